"""The typed borders: the stubs say what the built module is, and what users call has no `Any`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pylog_spark"
#: As in the override of pyproject.toml by which mypy refuses every explicit Any there.
TYPED = ("client", "consumer_group", "results", "testing")


def typed_files() -> list[Path]:
    return [*sorted(file for room in TYPED for file in (PACKAGE / room).rglob("*.py")), PACKAGE / "_native.pyi"]


def test_the_stubs_are_those_of_the_built_module() -> None:
    # Both ways: every name, class, method, parameter and default.
    command = [sys.executable, "-m", "mypy.stubtest", "pylog_spark._native", "--mypy-config-file", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_that_users_call_names_any() -> None:
    files = typed_files()
    assert len(files) > 20
    named = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.Name) and node.id == "Any") or (isinstance(node, ast.Attribute) and node.attr == "Any")
    ]
    assert named == []


def test_mypy_refuses_any_where_users_call() -> None:
    from mypy.config_parser import parse_config_file
    from mypy.options import Options

    options = Options()
    parse_config_file(options, lambda: None, str(ROOT / "pyproject.toml"))
    assert options.strict_optional
    for room in (*(f"pylog_spark.{room}.some" for room in TYPED), "pylog_spark._native"):
        assert options.clone_for_module(room).disallow_any_explicit, room
