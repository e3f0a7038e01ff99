"""The conda recipe says what pyproject.toml says, and the forms of issues are such. The recipe is not built: that takes conda-forge's channel."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging import release

ROOT = release.ROOT
PROJECT = (ROOT / "pyproject.toml").read_text()
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """The recipe, with its version put in."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text()
    (version,) = re.findall(r"^  version: ([\d.]+)$", text, re.MULTILINE)
    found: dict[str, Any] = yaml.safe_load(text.replace("${{ version }}", version))
    return found


def said(name: str) -> str:
    """The text of a setting of pyproject.toml, of `project` where others have one of that name."""
    found: str = re.findall(rf'^{name} = "(.*)"$', PROJECT, re.MULTILINE)[0]
    return found


def listed(name: str) -> set[str]:
    """The packages of a list in pyproject.toml, with their versions."""
    (found,) = re.findall(rf"^{name} = (\[.*\])$", PROJECT, re.MULTILINE)
    return {re.sub(r"(?=[<>=])", " ", each, count=1) for each in ast.literal_eval(found)}


def test_the_recipe_has_the_name_version_and_licence_of_the_package(recipe: dict[str, Any]) -> None:
    assert recipe["package"] == {"name": said("name"), "version": said("version")}
    assert recipe["about"]["license"] == said("license")
    assert recipe["about"]["summary"] == said("description")


def test_the_recipe_needs_what_the_package_needs(recipe: dict[str, Any]) -> None:
    needs = recipe["requirements"]
    assert set(needs["run"]) == listed("dependencies") | {f"python {said('requires-python')}"}
    assert set(needs["run_constraints"]) == listed("spark")
    assert listed("requires") <= set(needs["host"])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="check-jsonschema needs Python 3.11")
@pytest.mark.parametrize(
    ("schema", "names"), [("issue-forms", ["bug.yml", "feature.yml"]), ("issue-config", ["config.yml"])]
)
def test_the_forms_of_issues_are_valid(schema: str, names: list[str]) -> None:
    assert {*names} <= {file.name for file in FORMS.iterdir()}
    checker = Path(sys.executable).with_name("check-jsonschema")
    files = [str(FORMS / name) for name in names]
    done = subprocess.run(
        [checker, "--builtin-schema", f"vendor.github-{schema}", *files],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
