"""A full disk: producers are told, what was acknowledged stays readable, the process lives, and space makes it well again."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from pylog_spark.testing import LocalBroker

pytestmark = pytest.mark.root

DISK_BYTES = 12 * 1024 * 1024
_DEADLINE_S = 60


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted tmpfs of DISK_BYTES."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a full disk needs a small file system, and mounting one needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    _mount(folder, DISK_BYTES, "rw")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(folder: Path, size_bytes: int, how: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"{how},size={size_bytes}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"NOT TESTED: a full disk needs a small file system, and this machine mounts none: {done.stderr}")


class Filler:
    """Produces numbered values, one after the other acknowledged or refused."""

    def __init__(self, servers: str) -> None:
        settings = {
            "bootstrap.servers": servers,
            "acks": "all",
            "retries": 0,
            "message.timeout.ms": 10_000,
            "linger.ms": 1,
        }
        self._producer = Producer({**settings, "log_level": 0})
        self.acknowledged: dict[int, int] = {}
        self.refused: list[KafkaError] = []
        self._sent = 0

    def send(self, count: int, size: int = 10_000) -> None:
        """Send `count` values of `size` bytes and wait for the verdicts."""
        for _ in range(count):
            self._producer.produce(
                "full", b"%08d" % self._sent + b"." * (size - 8), partition=0, on_delivery=self._verdict
            )
            self._sent += 1
        assert self._producer.flush(_DEADLINE_S) == 0

    def _verdict(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
        else:
            self.acknowledged[message.offset() or 0] = int((message.value() or b"")[:8])


def read_all(servers: str) -> dict[int, int]:
    """Offset -> number of every record in the log."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "full",
            "enable.auto.commit": False,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition("full", 0), timeout=_DEADLINE_S)
        consumer.assign([TopicPartition("full", 0, low)])
        messages: list[Message] = []
        while len(messages) < high - low:
            got = consumer.consume(high - low - len(messages), timeout=_DEADLINE_S)
            assert got, f"{len(messages)} of {high - low} records came"
            assert [one.error() for one in got if one.error()] == []
            messages += got
        return {one.offset() or 0: int((one.value() or b"")[:8]) for one in messages}
    finally:
        consumer.close()


@pytest.mark.parametrize("segment_bytes", [1_000_000, 1024**3], ids=["at a segment roll", "inside a segment"])
def test_a_full_disk_refuses_records_and_loses_none(small_disk: Path, segment_bytes: int) -> None:
    with LocalBroker(small_disk, log_segment_bytes=segment_bytes, log_index_interval_bytes=0) as broker:
        filler = Filler(broker.bootstrap_servers)
        while not filler.refused:
            filler.send(50)
        assert len(filler.acknowledged) * 10_000 > DISK_BYTES // 2
        filler.send(5)
        assert broker.running
        held = read_all(broker.bootstrap_servers)
        assert filler.acknowledged.items() <= held.items()
        broker.kill()
        _mount(small_disk, 2 * DISK_BYTES, "remount,rw")
        broker.start()
        refused = len(filler.refused)
        filler.send(50)
        assert len(filler.refused) == refused, filler.refused[-1]
        held = read_all(broker.bootstrap_servers)
        assert filler.acknowledged.items() <= held.items()
        assert len(set(held.values())) == len(held)
