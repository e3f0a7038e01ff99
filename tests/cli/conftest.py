"""The command line as a user calls it: a process of its own."""

import os
import subprocess
import sys
from tempfile import TemporaryFile

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.forks import Forks


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


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Runs `pylog` without the start of an interpreter."""
    with Forks(tmp_path_factory.mktemp("forks")) as running:
        yield running


@pytest.fixture
def pylog(environment, forks):
    """Run `pylog` with words; returns the finished process with text (or bytes) of both outputs."""

    def run(*words, stdin="", text=True, env=environment):
        words = [str(word) for word in words]
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin.encode() if isinstance(stdin, str) else stdin)
            given.seek(0)
            code = forks.run(words, given, out, err, env)
            out.seek(0)
            err.seek(0)
            printed = [out.read(), err.read()]
        return subprocess.CompletedProcess(words, code, *([each.decode() for each in printed] if text else printed))

    return run
