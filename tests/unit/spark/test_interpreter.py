"""Which Python Spark's workers run after an import of pylog_spark: programs of a real virtual environment, activated and not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BIN = str(Path(sys.executable).parent)
_PRINT = "import pylog_spark, os; print(os.environ.get('PYSPARK_PYTHON'))"

pytestmark = pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="runs in a virtual environment")


def run(code: str, *path: str, **environment: str) -> tuple[str, str]:
    """What a program of this environment prints, with `path` as PATH and no choice of a Python made."""
    chosen = {name: text for name, text in os.environ.items() if not name.startswith("PYSPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**chosen, "PATH": os.pathsep.join(path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip(), done.stderr


@pytest.fixture
def other_path(tmp_path: Path) -> str:
    """A folder with a python3 of its own."""
    (tmp_path / "python3").symlink_to(sys.executable)
    return str(tmp_path)


def test_an_environment_that_is_not_activated_is_what_sparks_workers_run(other_path: str) -> None:
    assert run(_PRINT, other_path, BIN)[0] == sys.executable
    assert run(_PRINT, other_path)[0] == sys.executable
    assert run(_PRINT, "/nowhere")[0] == sys.executable


def test_an_activated_environment_needs_nothing(other_path: str) -> None:
    assert run(_PRINT, BIN, other_path)[0] == "None"


def test_somebodys_own_choice_is_kept(other_path: str) -> None:
    assert run(_PRINT, other_path, PYSPARK_PYTHON="/mine")[0] == "/mine"


def test_a_program_of_spark_submit_whose_java_half_runs_already_is_left_alone(other_path: str) -> None:
    assert run(_PRINT, other_path, PYSPARK_GATEWAY_PORT="1")[0] == "None"


def test_an_import_after_the_session_was_made_is_warned_of(other_path: str) -> None:
    # Spark's Java half as the session would leave it, without the seconds that its start takes.
    code = f"import pyspark; pyspark.SparkContext._gateway = object(); {_PRINT}"
    said, warned = run(code, other_path)
    assert said == "None"
    assert "import pylog_spark before the session is made, or set PYSPARK_PYTHON" in warned
