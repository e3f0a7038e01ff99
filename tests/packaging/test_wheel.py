"""The wheel alone, in an empty environment, is all that a user needs. Costs 40 s, most of it pip's."""

import re
from pathlib import Path

import pytest

from tests.docs.test_snippets import snippets
from tests.packaging import release
from tests.packaging.environment import ROOT, Wheels, run

pytestmark = [pytest.mark.alone, pytest.mark.timeout(900)]
#: From the wheel to an environment with Spark.
INSTALL_MAX_S = 30.0


@pytest.fixture(scope="module")
def installed(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The Python of an environment with ``pylog-spark[spark]``, and the seconds that its installation took."""
    return wheels.environment(tmp_path_factory.mktemp("empty") / "environment", "[spark]")


def test_the_wheel_has_the_files_of_the_packages_and_says_what_it_should(wheels: Wheels) -> None:
    assert release.wrong_contents(wheels.wheel) == []


def test_it_is_installed_with_spark_within_30_seconds(installed: tuple[Path, float]) -> None:
    python, seconds = installed
    assert seconds <= INSTALL_MAX_S
    version = release.versions()["pyproject.toml"]
    assert run(python.with_name("pylog"), "--version").split()[-1] == version
    assert "site-packages" in run(python, "-c", "import pylog_spark; print(pylog_spark.__file__)", cwd=python.parent)


def test_the_ten_lines_of_the_readme_run_there(installed: tuple[Path, float], tmp_path: Path) -> None:
    printed = run(installed[0], "-c", snippets(ROOT / "README.md", "python"), cwd=tmp_path)
    counts = re.findall(r"^\|\s*(\d)\|\s*(\d+)\|$", printed, re.MULTILINE)
    assert sorted(counts) == [(str(key), "100") for key in range(10)], printed
