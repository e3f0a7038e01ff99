"""The command line as a user calls it: a process of its own."""

import os
import subprocess
import sys

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with LocalBroker(tmp_path_factory.mktemp("data"), group_initial_rebalance_delay_ms=0) as running:
        yield running


@pytest.fixture
def environment(broker):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return {**os.environ, "PYTHONPATH": root, "PYLOG_BOOTSTRAP_SERVERS": broker.bootstrap_servers}


@pytest.fixture
def make_topic(broker):
    """Make a topic without a process, for tests of other verbs: `make_topic(name, partitions=2)`."""

    def make(name, partitions=1):
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic(name, partitions=partitions)
        return name

    return make


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
        return subprocess.run([*command, *words], input=stdin, capture_output=True, timeout=120, check=False, **more)

    return run
