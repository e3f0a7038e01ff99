"""``pylog inspect``: what is printed of a data directory, and with which exit code."""

import json
import re
import subprocess
import sys

import pytest

from pylog_spark.testing import LocalBroker
from tests.directories.support import flip, record_batches


@pytest.fixture
def directory(tmp_path, pylog):
    """The directory of a broker that has stopped: a topic with ten records in one of two partitions, a group."""
    folder = tmp_path / "data"
    with LocalBroker(folder) as broker:
        server = ("-b", broker.bootstrap_servers)
        assert pylog("topic", "create", "orders", "-p", "2", *server).returncode == 0
        for start in (1, 6):
            lines = "".join(f"{number}\n" for number in range(start, start + 5))
            assert pylog("produce", "orders", "--partition", "1", *server, stdin=lines).returncode == 0
        assert (
            pylog("group", "reset-offsets", "g", "--topic", "orders", "--to-earliest", "--execute", *server).returncode
            == 0
        )
    return folder


def test_partitions_are_shown_with_their_offsets(pylog, directory):
    shown = pylog("inspect", str(directory))
    assert (shown.returncode, shown.stderr) == (0, "")
    heads, *rows = [re.split(r" +", line.strip()) for line in shown.stdout.splitlines()]
    assert heads == ["TOPIC", "PARTITION", "START", "STABLE", "END", "SEGMENTS", "BYTES"]
    size = str((directory / "orders-1" / f"{0:020}.log").stat().st_size)
    assert rows == [["orders", "0", "0", "0", "0", "1", "0"], ["orders", "1", "0", "10", "10", "1", size]]
    assert "__consumer_offsets" in pylog("inspect", str(directory), "--internal").stdout


def test_a_verification_counts_what_it_has_read(pylog, directory):
    shown = pylog("inspect", str(directory), "--verify", "--topic", "orders", "--json")
    assert (shown.returncode, shown.stderr) == (0, "Read 10 records; nothing to report.\n")
    found = json.loads(shown.stdout)
    assert found["notices"] == []
    assert [(row["partition"], row["records"]) for row in found["partitions"]] == [(0, 0), (1, 10)]
    assert found["partitions"][1]["batches"] >= 2
    assert found["partitions"][1]["codecs"] == ["none"]


def test_damage_is_named_and_the_exit_code_says_so(pylog, directory):
    file = directory / "orders-1" / f"{0:020}.log"
    batch = record_batches(file)[0]
    flip(file, batch.position + 70)
    assert pylog("inspect", str(directory)).returncode == 0, "only the end is looked at"
    shown = pylog("inspect", str(directory), "--verify")
    assert shown.returncode == 1
    assert f"orders-1, offset 0: {batch.size} bytes at position 0 of {file} are no whole batches" in shown.stderr
    assert shown.stderr.endswith("Read 5 records; 1 place to report.\n")


def test_what_is_not_there_is_one_sentence(pylog, directory):
    for words, sentence in (
        ([str(directory), "--topic", "order"], f"Error: {directory} has no topic 'order'.\n"),
        (["/nowhere"], "Error: /nowhere is no data directory of a broker: No such file or directory (os error 2); "
                       "all machines that read must see it under this path.\n"),
    ):  # fmt: skip
        shown = pylog("inspect", *words)
        assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", sentence)


def test_a_broker_that_runs_is_not_disturbed(tmp_path):
    with LocalBroker(tmp_path / "data") as broker:
        command = [sys.executable, "-m", "pylog_spark", "inspect", str(broker.data_dir)]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (shown.returncode, shown.stderr) == (0, "")
