"""A process that dies under the tests leaves a line: who it was, how it ended, and where it was if it could say so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # of the harness alone; it kills processes of tests

ROOT = Path(__file__).parents[2]
_TESTS = """
import ctypes
import os
import signal

from pylog_spark.testing.process import Child


def test_of_a_fault():
    ctypes.string_at(0)


def test_of_a_signal_that_leaves_no_word():
    os.kill(os.getpid(), signal.SIGKILL)


def test_of_a_child():
    child = Child("The broker")
    child.start(["sh", "-c", "echo its last line >&2; kill -ABRT $$"])
    os.waitid(os.P_PID, child.process().pid, os.WEXITED | os.WNOWAIT)
    assert child.running


def test_of_a_child_that_is_put_away():
    child = Child("The lost broker")
    try:
        child.start(["sh", "-c", "kill -BUS $$"])
        os.waitid(os.P_PID, child.process().pid, os.WEXITED | os.WNOWAIT)
        assert child.running
    finally:
        child.close()


def test_of_a_child_that_was_to_die():
    child = Child("Another broker")
    child.start(["sleep", "60"])
    child.stop(signal.SIGKILL)
    raise AssertionError("for another reason")
"""


def test_processes_and_children_that_died_are_named_with_what_they_left(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    plugins = ["-p", "xdist", "-p", "tests.harness.last_words"]
    options = ["-n", "1", "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini"), "--color", "no"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": ""},
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = done.stdout
    assert "5 failed" in said, said + done.stderr
    assert "gw0 was ended by SIGSEGV" in said
    assert "in test_of_a_fault" in said.partition("processes that died")[2]
    assert "gw1 was ended by SIGKILL" in said
    assert "It has left no word of where it was." in said
    assert "was ended by SIGABRT. Its log ends:\nits last line" in said
    assert "The lost broker (process " in said
    assert "was ended by SIGBUS" in said
    assert "Another broker" not in said.replace('"Another broker"', "")
