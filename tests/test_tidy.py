"""The shape of the code, checked: import arrows of the native rooms, sizes, no traces of one machine, tests that test.

The arrows are read from the table in `broker_native/src/lib.rs`, so that the map and the rule cannot drift apart. The arrows
of the Python rooms are import-linter contracts in pyproject.toml.
"""

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import order

ROOT = Path(__file__).parent.parent
RUST = ROOT / "broker_native" / "src"

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

_TABLE_ROW = re.compile(r"^//! \| \[?`(\w+)`\]? \|.*\| ([^|]+) \|$")
_FUNCTION = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*fn (\w+)", re.MULTILINE)
_CRATE_PATH = re.compile(r"\bcrate::(\w+)|\bcrate::\{([^;]*)\};")
_ARROW_CRATE = re.compile(r"\barrow_(?:array|buffer|data|schema)\b")
_TEST_MODULE = re.compile(r"^#\[cfg\(test\)\]\s*(?:#\[[^\n]*\]\s*)*mod \w+ \{", re.MULTILINE)
_RUST_TEST = re.compile(r"#\[(?:tokio::)?test(?:\([^)]*\))?\]")
_MACHINE_PATH = re.compile(r"/(?:root|home|work|Users|mnt)/\w|/tmp/(?:base|wt|target)\b")


@functools.cache
def tracked(*suffixes: str) -> tuple[Path, ...]:
    """Files of the project (tracked or new, never ignored) that end in one of `suffixes`; all when none is given."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    files = [ROOT / name for name in listed if not suffixes or name.endswith(suffixes)]
    return tuple(sorted(file for file in files if file.is_file()))


def code_of(rust: str) -> str:
    """Rust source with comments and string contents blanked out; every line stays where it is."""
    token = re.compile(
        r"//[^\n]*|/\*.*?\*/|b?r(#*)\".*?\"\1|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'",
        re.DOTALL,
    )
    return token.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), rust)


def block_end(code: str, start: int) -> int:
    """Index behind the brace that closes the first block opened after `start`; `start` when it is only a declaration."""
    depth = 0
    for found in re.finditer(r"[{};]", code[start:]):
        if found.group() == ";" and depth == 0:
            return start
        depth += {"{": 1, "}": -1, ";": 0}[found.group()]
        if depth == 0:
            return start + found.end()
    return len(code)


def without_tests(code: str) -> str:
    """`code` without its `#[cfg(test)] mod` blocks."""
    for found in reversed(list(_TEST_MODULE.finditer(code))):
        code = code[: found.start()] + code[block_end(code, found.end() - 1) :]
    return code


@functools.cache
def rust_test_modules() -> tuple[Path, ...]:
    """Places (without suffix) of the modules that are compiled for tests only."""
    declaration = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod (\w+);")
    places = [ROOT / "broker_native" / "tests"]
    for file in tracked(".rs"):
        folder = file.parent if file.stem in ("mod", "lib") else file.with_suffix("")
        places += [folder / name for name in declaration.findall(file.read_text())]
    return tuple(places)


def only_tests(file: Path, code: str) -> str:
    """The test code of a Rust file: all of it where it is declared as a test module, else its `#[cfg(test)] mod` blocks."""
    if any(file.is_relative_to(place) or file == place.with_suffix(".rs") for place in rust_test_modules()):
        return code
    blocks = (code[found.start() : block_end(code, found.end() - 1)] for found in _TEST_MODULE.finditer(code))
    return "\n".join(blocks)


def rust_functions(code: str) -> Iterator[tuple[str, int, str]]:
    """(name, lines, attributes and body) of every function that has a body."""
    for found in _FUNCTION.finditer(code):
        end = block_end(code, found.end())
        if end != found.end():
            text = code[found.start() : end]
            yield found.group(1), text.strip().count("\n") + 1, text


def rust_rooms() -> dict[str, set[str]]:
    """Room -> rooms it may import, as the table in lib.rs says; `py` may import all."""
    rows = [_TABLE_ROW.match(line) for line in (RUST / "lib.rs").read_text().splitlines()]
    allowed = {row.group(1): set(re.findall(r"`(\w+)`", row.group(2))) for row in rows if row}
    for room, row in ((row.group(1), row) for row in rows if row):
        if row.group(2).strip() == "all":
            allowed[room] = set(allowed) - {room}
    return allowed


def imported_rooms(code: str) -> set[str]:
    """Rooms that `code` names by a path from the crate's root."""
    rooms: set[str] = set()
    for single, several in _CRATE_PATH.findall(code):
        rooms |= {single} if single else set(re.findall(r"(?:^|,)\s*(\w+)", several))
    return rooms


def test_the_table_in_lib_rs_names_every_native_room() -> None:
    modules = set(re.findall(r"^(?:pub )?mod (\w+);", (RUST / "lib.rs").read_text(), re.MULTILINE))
    assert modules
    assert set(rust_rooms()) == modules


@pytest.mark.parametrize("room", sorted(rust_rooms()))
def test_a_native_room_imports_only_what_the_table_allows(room: str) -> None:
    allowed = rust_rooms()[room] | {room}
    wrong = {}
    for file in (RUST / room).rglob("*.rs"):
        extra = imported_rooms(code_of(file.read_text())) - allowed
        if extra:
            wrong[str(file.relative_to(ROOT))] = sorted(extra)
    assert wrong == {}


def test_only_columnar_and_py_see_arrow_and_only_py_sees_python() -> None:
    wrong = []
    for file in RUST.rglob("*.rs"):
        code, room = code_of(file.read_text()), file.relative_to(RUST).parts[0]
        if _ARROW_CRATE.search(code) and room not in ("columnar", "py"):
            wrong.append(f"{file.relative_to(ROOT)} sees Arrow")
        if re.search(r"\bpyo3\b", code) and room != "py":
            wrong.append(f"{file.relative_to(ROOT)} sees PyO3")
    assert wrong == []


def test_no_file_is_longer_than_600_lines_without_its_tests() -> None:
    long = {}
    for file in tracked(".rs", ".py"):
        text = file.read_text()
        lines = (without_tests(code_of(text)) if file.suffix == ".rs" else text).count("\n")
        if lines > FILE_LINES_MAX:
            long[str(file.relative_to(ROOT))] = lines
    assert long == {}


def test_no_rust_function_is_longer_than_70_lines() -> None:
    long = {}
    for file in tracked(".rs"):
        for name, lines, _ in rust_functions(code_of(file.read_text())):
            if lines > FUNCTION_LINES_MAX:
                long[f"{file.relative_to(ROOT)}: {name}"] = lines
    assert long == {}


def python_functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a Python file, methods and nested ones too."""
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_python_function_is_longer_than_70_lines_without_its_docstring() -> None:
    long = {}
    for file in tracked(".py"):
        for function in python_functions(file):
            first = function.body[0]
            documented = ast.get_docstring(function) is not None
            docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
            lines = (function.end_lineno or 0) - function.lineno + 1 - docstring
            if lines > FUNCTION_LINES_MAX:
                long[f"{file.relative_to(ROOT)}: {function.name}"] = lines
    assert long == {}


def test_nothing_in_the_project_names_a_place_on_one_machine() -> None:
    found = []
    for file in tracked():
        text = file.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{file.relative_to(ROOT)}: {match.group()}" for match in _MACHINE_PATH.finditer(text)]
    assert found == []


def _calls(function: ast.AST) -> set[str]:
    """Names of what `function` calls; the word "assert" when it asserts itself."""
    calls = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            calls.add("assert")
        elif isinstance(node, ast.Call):
            calls.add(node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
    return calls


def checking(calls: dict[str, set[str]], checks: set[str]) -> set[str]:
    """Names of functions that end up in one of `checks`, directly or through functions of the same name space."""
    found = set(checks)
    while True:
        more = {name for name, called in calls.items() if name not in found and called & found}
        if not more:
            return found
        found |= more


def test_every_python_test_can_fail_by_an_assertion() -> None:
    calls: dict[str, set[str]] = {}
    tests = {}
    for file in tracked(".py"):
        if ROOT / "tests" in file.parents:
            for function in python_functions(file):
                calls.setdefault(function.name, set()).update(_calls(function))
                if function.name.startswith("test_"):
                    tests[f"{file.relative_to(ROOT)}: {function.name}"] = _calls(function)
    good = checking(calls, {"assert", "raises", "warns", "fail"})
    assert len(tests) > 100
    assert [test for test, called in tests.items() if not called & good] == []


def test_every_rust_test_can_fail_by_an_assertion() -> None:
    calls: dict[str, set[str]] = {}
    tests = {}
    for file in tracked(".rs"):
        code = code_of(file.read_text())
        for name, _, text in rust_functions(only_tests(file, code)):
            calls.setdefault(name, set()).update(_rust_calls(text, name))
        for marker in _RUST_TEST.finditer(code):
            body = code[marker.start() : block_end(code, marker.end())]
            name = _FUNCTION.search(body)
            tests[f"{file.relative_to(ROOT)}: {name.group(1) if name else body[:60]}"] = _rust_calls(body, "")
    good = checking(calls, {"assert"})
    assert len(tests) > 100
    assert [test for test, called in tests.items() if not called & good] == []


def _rust_calls(text: str, own: str) -> set[str]:
    """Names that `text` calls; the word "assert" when it asserts or is to panic."""
    calls = set(re.findall(r"\b(\w+)(?:::<[^;{}()]*>)?!?\(", text)) - {own}
    if re.search(r"\b\w*assert\w*!|#\[should_panic", text):
        calls.add("assert")
    return calls


def test_a_file_of_tests_that_takes_over_a_minute_says_why() -> None:
    silent = []
    for name, known in order.recorded().items():
        if known["seconds"] > 60 and (file := ROOT / name).exists():
            opening = ast.get_docstring(ast.parse(file.read_text())) or ""
            if "minute" not in opening:
                silent.append(name)
    assert silent == []
