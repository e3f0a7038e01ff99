"""The wheel alone, in an empty environment, is all that a user needs.

Empty environments are made in `make test-long`: they cost 40 s, most of it pip's. In `make test` the wheel is unpacked before all else on
Python's path. Alone, as Rust's tests compile beside the others, and cargo builds one thing at a time.
"""

import re
import sys
import zipfile
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


def test_the_wheel_has_the_files_of_the_packages_and_says_what_it_should(wheel: Path) -> None:
    assert release.wrong_contents(wheel) == []


def test_what_the_wheel_has_is_all_that_a_broker_and_its_client_need_of_this_tree(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    program = """
import pylog_spark, tempfile
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
with tempfile.TemporaryDirectory() as folder, LocalBroker(folder) as broker, Admin(broker.bootstrap_servers) as admin:
    admin.create_topic("t", 1, 1)
print(pylog_spark.__file__)
"""
    printed = run(sys.executable, "-c", program, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert Path(printed.strip()).parents[1] == tmp_path


@pytest.mark.long
def test_it_is_installed_with_spark_within_30_seconds(installed: tuple[Path, float]) -> None:
    python, seconds = installed
    assert seconds <= INSTALL_MAX_S
    version = release.versions()["pyproject.toml"]
    assert run(python.with_name("pylog"), "--version").split()[-1] == version
    assert "site-packages" in run(python, "-c", "import pylog_spark; print(pylog_spark.__file__)", cwd=python.parent)


@pytest.mark.long
def test_the_ten_lines_of_the_readme_run_there(installed: tuple[Path, float], tmp_path: Path) -> None:
    printed = run(installed[0], "-c", snippets(ROOT / "README.md", "python"), cwd=tmp_path)
    counts = re.findall(r"^\|\s*(\d)\|\s*(\d+)\|$", printed, re.MULTILINE)
    assert sorted(counts) == [(str(key), "100") for key in range(10)], printed
