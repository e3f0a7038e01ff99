"""The shape of the code, checked: arrows between the native crates and inside them, sizes, no traces of one machine, tests that test.

Cargo holds the arrows between the native crates; the map in ARCHITECTURE.md is compared with them, so that the two cannot drift apart.
Inside a crate nothing but these tests holds them: no files use each other in a circle, and where the map of a `lib.rs` says what a module
uses, that is so.
The arrows between the Python rooms are import-linter contracts in pyproject.toml; inside a room files import each other in no circle, either.
"""

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.harness import rust_modules, seconds

pytestmark = pytest.mark.check

ROOT = Path(__file__).parent.parent
RUST = ROOT / "broker_native"

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

_TABLE_ROW = re.compile(r"^\| `(\w+)` \| pylog-\w+ \|.*\| ([^|]+) \|$")
_FUNCTION = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*fn (\w+)", re.MULTILINE)
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
    places = [folder for crate in crates() if (folder := RUST / crate / "tests").is_dir()]
    for file in tracked(".rs"):
        folder = file.parent if file.stem in ("mod", "lib") else file.with_suffix("")
        places += [folder / name for name in declaration.findall(file.read_text())]
    return tuple(places)


def only_tests(file: Path, code: str) -> str:
    """The test code of a Rust file: all of it where it is declared as a test module, else its `#[cfg(test)] mod` blocks."""
    if is_only_tests(file):
        return code
    blocks = (code[found.start() : block_end(code, found.end() - 1)] for found in _TEST_MODULE.finditer(code))
    return "\n".join(blocks)


def is_only_tests(file: Path) -> bool:
    """Whether a Rust file is declared as a test module."""
    return any(file.is_relative_to(place) or file == place.with_suffix(".rs") for place in rust_test_modules())


def rust_functions(code: str) -> Iterator[tuple[str, int, str]]:
    """(name, lines, attributes and body) of every function that has a body."""
    for found in _FUNCTION.finditer(code):
        end = block_end(code, found.end())
        if end != found.end():
            text = code[found.start() : end]
            yield found.group(1), text.strip().count("\n") + 1, text


def crates() -> dict[str, set[str]]:
    """Crate of the workspace (its folder) -> the crates that its code uses, as its Cargo.toml says."""
    found = {}
    for manifest in sorted(RUST.glob("*/Cargo.toml")):
        dependencies = re.search(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", manifest.read_text(), re.MULTILINE | re.DOTALL)
        assert dependencies is not None, manifest
        found[manifest.parent.name] = set(re.findall(r"^([\w-]+)\.workspace", dependencies[1], re.MULTILINE))
    return found


def own(dependencies: set[str]) -> set[str]:
    """Which of them are crates of this workspace, by their folders."""
    return {name.removeprefix("pylog-") for name in dependencies if name.startswith("pylog-")}


def test_the_map_says_of_every_crate_what_cargo_lets_it_use() -> None:
    rows = [_TABLE_ROW.match(line) for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines()]
    said = {row[1]: set(re.findall(r"`(\w+)`", row[2])) for row in rows if row}
    assert said == {crate: own(dependencies) for crate, dependencies in crates().items()}


def test_only_columnar_typed_and_native_see_arrow_only_native_sees_python_and_only_the_server_has_a_runtime() -> None:
    def users(prefix: str) -> set[str]:
        return {crate for crate, names in crates().items() if any(name.startswith(prefix) for name in names)}

    assert users("arrow-") == {"columnar", "native", "typed"}
    assert users("pyo3") == {"native"}
    assert users("tokio") == {"native", "server"}


def test_no_simulator_comes_into_the_wheel() -> None:
    reached, ahead = set(), {"native"}
    while ahead:
        reached |= ahead
        ahead = set().union(*(own(crates()[crate]) for crate in ahead)) - reached
    assert set(crates()) - reached == {"testkit"}


@functools.cache
def inside(crate: str) -> dict[str, dict[str, set[str]]]:
    """For each file of a crate the files that it uses, with the names that it takes from them; tests are left out."""
    src = RUST / crate / "src"
    files = [file for file in tracked(".rs") if file.is_relative_to(src) and not is_only_tests(file)]
    arrows = rust_modules.Crate(src, {file: without_tests(code_of(file.read_text())) for file in files}).arrows()
    return {
        str(file.relative_to(src)): {str(other.relative_to(src)): names for other, names in used.items()}
        for file, used in arrows.items()
    }


def wings(crate: str) -> dict[str, set[str]]:
    """For each module at the root of a crate, a folder or a file, the others that it uses."""
    found: dict[str, set[str]] = {}
    for file, used in inside(crate).items():
        wing = file.partition("/")[0].removesuffix(".rs")
        others = {other.partition("/")[0].removesuffix(".rs") for other in used}
        found[wing] = found.get(wing, set()) | others - {wing}
    return found


def test_no_files_of_a_crate_use_each_other_in_a_circle() -> None:
    for crate in crates():
        arrows = inside(crate)
        for circle in rust_modules.circles(arrows):
            why = [f"{file} -> {other}: {', '.join(sorted(names))}"
                   for file in circle for other, names in sorted(arrows[file].items()) if other in circle]  # fmt: skip
            text = "\n".join(why)
            raise AssertionError(
                f"files of {crate} use each other in a circle; what two of them need is for a file of its own:\n{text}"
            )


def test_no_python_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("pylog_spark", cache_dir=None)
    # `pylog_spark/__init__.py` hands on what users call, when they ask for it.
    files = graph.modules - {"pylog_spark"}
    arrows = {file: dict.fromkeys(graph.find_modules_directly_imported_by(file)) for file in files}
    assert len(arrows) > 200
    assert rust_modules.circles(arrows) == [], (
        "files import each other in a circle, if only for types or when a function is called; what two of them need is for a file of its own"
    )


def test_no_modules_at_the_root_of_a_crate_use_each_other_in_a_circle() -> None:
    for crate in crates():
        circles = rust_modules.circles({wing: dict.fromkeys(used) for wing, used in wings(crate).items()})
        assert circles == [], (
            f"modules of {crate} use each other in a circle; one of them is to be below the other: {circles}"
        )


def said_of_modules(crate: str) -> dict[str, tuple[set[str], set[str]]]:
    """The rows of the map in a crate's `lib.rs` that say what their modules use: row -> its modules, what they use."""
    rows = re.findall(
        r"^//! \| ([^|]*`[^|]*) \| [^|]+ \| ([^|]*) \|$", (RUST / crate / "src/lib.rs").read_text(), re.MULTILINE
    )
    return {row: (set(re.findall(r"`(\w+)`", row)), set(re.findall(r"`(\w+)`", used))) for row, used in rows}


@pytest.mark.parametrize("crate", ["client", "coordinator", "server", "storage"])
def test_the_map_of_a_crate_says_of_every_module_what_it_uses(crate: str) -> None:
    said = said_of_modules(crate)
    found = wings(crate)
    del found["lib"]
    assert set().union(*(modules for modules, _ in said.values())) == found.keys()
    for row, (modules, used) in said.items():
        uses = set().union(*(found[module] for module in modules)) - modules
        assert uses == used, f"{crate}/src/lib.rs says that {row} uses {sorted(used)}, but it uses {sorted(uses)}"


@pytest.mark.parametrize("written", [
    "use crate::b::Second;",
    "use super::b::{self, Second};",
    "use crate::{a::First, b::Second as Other};",
    "use crate::b;\nfn third() -> b::Second { b::Second }",
    "fn third() -> crate::b::Second { super::b::Second }",
    "use crate::Second;",
    "use super::*;\nfn third() -> Second { Second }",
])  # fmt: skip
def test_a_circle_is_found_whichever_way_its_paths_are_written(written: str) -> None:
    src = Path("src")
    codes = {
        src / "lib.rs": "mod a;\nmod b;\npub use b::Second;",
        src / "a.rs": f"{written}\npub struct First;",
        src / "b.rs": "use crate::a::First;\npub struct Second;\nimpl Second { fn of(_: First) {} }",
    }
    arrows = rust_modules.Crate(src, codes).arrows()
    assert rust_modules.circles(arrows) == [["src/a.rs", "src/b.rs"]]


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


def test_every_page_has_a_place_in_the_site() -> None:
    named = set(re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    missing = {page.name for page in (ROOT / "docs").glob("*.md")} - named
    assert missing == set(), "name them under 'nav' in mkdocs.yml"


def test_a_file_of_tests_that_takes_over_a_minute_says_why() -> None:
    silent = []
    for name, known in seconds.recorded().items():
        if known.get("seconds", 0) > 60 and (file := ROOT / name).exists():
            opening = ast.get_docstring(ast.parse(file.read_text())) or ""
            if "minute" not in opening:
                silent.append(name)
    assert silent == []
