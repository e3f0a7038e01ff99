"""The command line as a user calls it: a process of its own."""

import os
import subprocess
import sys

import pytest

from pylog_spark.testing import LocalBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with LocalBroker(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def environment(broker):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return {**os.environ, "PYTHONPATH": root, "PYLOG_BOOTSTRAP_SERVERS": broker.bootstrap_servers}


@pytest.fixture
def command():
    """The words that start pylog."""
    return [sys.executable, "-m", "pylog_spark"]


@pytest.fixture
def pylog(environment, command):
    """Run `pylog` with words; returns the finished process with text (or bytes) of both outputs."""

    def run(*words, stdin="", **more):
        more.setdefault("text", True)
        more.setdefault("env", environment)
        return subprocess.run([*command, *words], input=stdin, capture_output=True, timeout=60, check=False, **more)

    return run
