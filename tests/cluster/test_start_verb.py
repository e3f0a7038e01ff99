"""`pylog cluster start`: a whole cluster for a newcomer, in one terminal."""

import re
import signal
import stat
import subprocess
import sys

import pytest

from pylog_spark.client import Admin
from tests.harness.children import PipedChild
from tests.harness.runs import mostly_long


def started(directory, *more):
    command = [sys.executable, "-m", "pylog_spark", "cluster", "start", "--dir", str(directory), *more]
    return PipedChild(command, stdin=subprocess.DEVNULL, errors=True)


def ready_servers(process):
    """The bootstrap servers of the readiness line."""
    while not (found := re.match(r"pylog cluster ready on (\S+) ", process.line())):
        pass
    return found[1]


def stopped(process):
    process.signal(signal.SIGINT)
    assert process.wait() == 0, process.errors
    return process.output


def test_it_runs_until_ctrl_c_and_goes_on_from_its_directory(tmp_path):
    process = started(tmp_path / "c", "--brokers", "2", "--config", "num.partitions=3")
    try:
        servers = ready_servers(process)
        with Admin(servers) as admin:
            assert len(admin.cluster().brokers) == 2
            assert admin.create_topic("t").replication_factor == 2
        assert "stopped" in stopped(process)
        process = started(tmp_path / "c", "--brokers", "2")
        assert ready_servers(process) == servers
        with Admin(servers) as admin:
            assert len(admin.topic("t").partitions) == 3
        assert "stopped" in stopped(process)
    finally:
        if process.running:
            stopped(process)


@pytest.mark.long  # tests/cli/test_broker_verb.py
def test_a_wrong_setting_is_reported_before_anything_is_left_running(tmp_path):
    process = started(tmp_path / "c", "--brokers", "1", "--config", "num.partition=3")
    assert process.wait() == 1
    assert "did you mean num.partitions" in process.errors


@pytest.mark.long  # without them: above
@pytest.mark.parametrize(
    "secured",
    mostly_long(
        [["--tls", "--sasl", "SCRAM-SHA-512"], ["--tls"], ["--sasl", "SCRAM-SHA-256"]],
        ["--tls", "--sasl", "SCRAM-SHA-512"],
    ),
)
def test_with_tls_and_logins_it_says_where_clients_find_their_settings(tmp_path, secured):
    process = started(tmp_path / "c", "--brokers", "2", *secured)
    try:
        servers = ready_servers(process)
        command = [sys.executable, "-m", "pylog_spark", "topic", "create", "t", "--bootstrap-server", servers]
        properties = tmp_path / "c" / "client.properties"
        # Replicas on both brokers, so one of them has reached the other.
        subprocess.run([*command, "--command-config", str(properties)], check=True, timeout=60)
        assert stat.S_IMODE(properties.stat().st_mode) == 0o600
        assert "stopped" in stopped(process)
    finally:
        if process.running:
            stopped(process)
