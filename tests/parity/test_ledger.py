"""The tables of README.md, the list of differences and the page made from it agree with the tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.parity.differences import DIFFERENCES, page
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
