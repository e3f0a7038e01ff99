"""The tables of README.md, the list of differences, the page made from it and the recorded answers agree with the tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.parity.compare import COLLECTED
from tests.parity.differences import DIFFERENCES, page
from tests.parity.recorded import FOLDER, Recording, versions
from tests.parity.refusals import REFUSALS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROW = re.compile(r"^\| (?!case|---)(.+) \| (.+) \|$", re.MULTILINE)
SOURCES = {file.name: file.read_text() for file in sorted(HERE.glob("test_*.py")) if file.name != Path(__file__).name}


def names_in(file: Path) -> set[str]:
    """The names of the tests of a file."""
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_case_of_the_connectors_suites_has_a_test_or_a_reason() -> None:
    rows = ROW.findall((HERE / "README.md").read_text())
    assert len(rows) > 120
    for case, cell in rows:
        if cell.startswith("none: "):
            assert len(cell) > 12, case
            continue
        file, name = cell.strip("`").split("::")
        assert name in names_in(HERE / file), f"{case}: {cell}"


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_difference_is_shown_by_a_test(difference: str) -> None:
    assert any(f'"{difference}"' in source for source in SOURCES.values())


@pytest.mark.parametrize("situation", REFUSALS)
def test_a_situation_is_shown_by_a_test(situation: str) -> None:
    assert any(f'"{situation}"' in source for source in SOURCES.values())


def test_the_page_of_differences_is_made_from_the_list() -> None:
    assert (ROOT / "docs" / "parity.md").read_text() == page()


RECORDED = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_a_recorded_answer_belongs_to_a_test(request: pytest.FixtureRequest, file: Path) -> None:
    source = HERE / f"{file.stem}.py"
    assert source.exists(), f"{file.name} belongs to no file of tests: run `make parity`"
    recorded = set(Recording(file).tests)
    functions = {name for name in names_in(source) if name.startswith("test_")}
    unused = {test for test in recorded if test.partition("[")[0] not in functions}
    collected = request.config.stash[COLLECTED].get(source, set())
    if {test.partition("[")[0] for test in collected} == functions:  # the whole file; else its parameters are not known
        unused |= recorded - collected
    assert unused == set(), "no test asks for these answers any more: run `make parity`"


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_the_recorded_answers_are_of_the_versions_that_are_installed(file: Path) -> None:
    assert Recording(file).versions == versions(), "run `make parity`"
