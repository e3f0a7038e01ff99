"""An archive on a disk whose machine loses power: what brokers have removed of their logs because the archive has it is still there.

Files lose what was not synced and folders the names that were not (`tests.harness.machine`). Three losses in `make test` (the file takes
about 15 s), 100 with ``PYLOG_ARCHIVE_POWER_CUTS=100``.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import (
    EARLIEST_LOCAL,
    KEPT_RECORDS,
    LATEST_TIERED,
    SHORT,
    begun,
    offset,
    read_from,
    until_short,
    values,
)
from tests.cluster.test_machine import run_on
from tests.harness import runs
from tests.harness.machine import Machine
from tests.harness.waiting import until
from tests.mirror.support import write

# kill -9: test_brokers.py
pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="a preloaded library of Linux")]
CUTS = runs.rounds("PYLOG_ARCHIVE_POWER_CUTS", 3, 30)
SEED = runs.seed("PYLOG_ARCHIVE_POWER_SEED")
_PUTS = """
import sys
from pylog_spark.archive.store.objects import Objects
objects = Objects(sys.argv[1])
objects.put("topics/t/0/object", b"content")
objects.put("topics/t/0/manifest", b"names it")
"""
_IS_KILLED = """
import os, sys
os.makedirs(os.path.join(sys.argv[1], "topics/t/0"))
"""


class Powered:
    """A broker and its archive on a machine."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder / "machine")
        self.archive = folder / "disk" / "of" / "archive"
        (folder / "disk").mkdir()
        self._disk = folder / "disk"
        self.broker: LocalBroker = begun(folder / "broker", self.archive)
        self.broker.program = self.machine.program

    def cut_power(self, randomness: random.Random | None = None) -> int:
        """Kill the broker; its disk and the archive's lose what was not synced. Gives how many names and bytes the archive has lost."""
        self.broker.kill()
        self.machine.lose_unsynced(Path(self.broker.data_dir), randomness)
        return self.machine.lose_unnamed(self._disk) + self.machine.lose_unsynced(self.archive, randomness)


@pytest.fixture
def powered(tmp_path: Path) -> Iterator[Powered]:
    """Of this test."""
    made = Powered(tmp_path)
    try:
        made.broker.start()
        yield made
    finally:
        made.broker.close()


@pytest.mark.parametrize("before", ["", _IS_KILLED], ids=["no folder", "folders of a process that was killed"])
def test_an_object_that_was_put_is_there_after_a_loss_of_power_with_all_its_folders(
    tmp_path: Path, before: str
) -> None:
    machine, disk = Machine(tmp_path / "machine"), tmp_path / "disk"
    disk.mkdir()
    archive = disk / "an" / "archive"
    for program in (before, _PUTS):
        assert run_on(machine, program, str(archive)).wait() == 0
    machine.lose_unnamed(disk)
    machine.lose_unsynced(disk, None)
    found = {path.name: path.read_bytes() for path in archive.rglob("*") if path.is_file()}
    assert found == {"object": b"content", "manifest": b"names it"}


def test_what_a_killed_writer_had_not_synced_is_before_records_are_removed_for_it(powered: Powered) -> None:
    """A kill between the manifest and the sync of its folder: the next start sees the manifest, and is the one who may delete."""
    broker = powered.broker
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("seen", 1, config={**SHORT, "durability": "flushed", "local.retention.bytes": "-1"})
        write(broker.bootstrap_servers, "seen", values(0, 600), batch_num_messages=10)
        until(lambda: offset(admin, "seen", LATEST_TIERED) > 450, "it is archived")
        assert offset(admin, "seen", EARLIEST_LOCAL) == 0
    assert broker.terminate() == 0
    powered.machine.forget_names()
    broker.start()
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_configs("topic", "seen", {"local.retention.bytes": "10000"})
        until_short(admin, "seen", 600 - KEPT_RECORDS)
    powered.cut_power()
    broker.start()
    assert [number for number, _ in read_from(broker.bootstrap_servers, "seen", 0, 600)] == list(range(600))


def test_records_that_brokers_have_removed_are_in_the_archive_after_losses_of_power(powered: Powered) -> None:
    print(f"PYLOG_ARCHIVE_POWER_SEED={SEED}")
    drawn, broker = random.Random(SEED), powered.broker
    acknowledged: list[bytes] = []

    def said(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(message.value())

    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("cut", 1, config={**SHORT, "durability": "flushed"})
    once = {"enable.idempotence": True, "linger.ms": 1, "batch.num.messages": 20, "log_level": 0}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **once})
    number, lost = 0, 0
    for _ in range(CUTS):
        wanted = len(acknowledged) + drawn.randrange(200, 400)
        while len(acknowledged) < wanted:
            assert number < 100_000
            producer.produce("cut", f"{number:0200}".encode(), on_delivery=said)
            number += 1
            producer.poll(0.002)
        lost += powered.cut_power(drawn)
        broker.start()
    assert producer.flush(60) == 0
    print(f"{lost} names and bytes of the archive were lost in {CUTS} cuts")
    with Admin(broker.bootstrap_servers) as admin:
        removed = until_short(admin, "cut", number * 3 // 4)
        found = [value for _, value in read_from(broker.bootstrap_servers, "cut", 0, number)]
    assert found == [f"{each:0200}".encode() for each in range(number)]
    assert sorted(acknowledged) == found
    assert ArchiveLog(str(powered.archive)).manifest("cut", 0).missing(0, removed) == []
