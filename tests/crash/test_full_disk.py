"""A full disk: producers get errors, acknowledged records stay readable, the process lives, and space makes it well again.

Of several brokers one with a full disk falls behind; as a leader it hands over to the others, stops, and says why.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker, LocalBrokerError, LocalCluster
from tests.harness.small_disk import mount, small_disk
from tests.harness.waiting import said, until

pytestmark = pytest.mark.root

DISK_BYTES = 12 * 1024 * 1024
_DEADLINE_S = 60


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted tmpfs of DISK_BYTES."""
    with small_disk(tmp_path / "disk", DISK_BYTES) as folder:
        yield folder


def _fill(folder: Path) -> None:
    """Leave no byte of the disk, to the files that a stop writes neither."""
    with open(folder / "rest", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


class Filler:
    """Produces numbered values, one after the other acknowledged or refused."""

    def __init__(self, servers: str, partition: int = 0) -> None:
        self._partition = partition
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
        """Send `count` values of `size` bytes and wait until each is acknowledged or refused."""
        for _ in range(count):
            self._producer.produce(
                "full", b"%08d" % self._sent + b"." * (size - 8), partition=self._partition, on_delivery=self._delivered
            )
            self._sent += 1
        assert self._producer.flush(_DEADLINE_S) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
        else:
            self.acknowledged[message.offset() or 0] = int((message.value() or b"")[:8])


def read_all(servers: str, partition: int = 0) -> dict[int, int]:
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
        low, high = consumer.get_watermark_offsets(TopicPartition("full", partition), timeout=_DEADLINE_S)
        consumer.assign([TopicPartition("full", partition, low)])
        messages: list[Message] = []
        while len(messages) < high - low:
            got = consumer.consume(high - low - len(messages), timeout=_DEADLINE_S)
            assert got, f"{len(messages)} of {high - low} records came"
            assert [message.error() for message in got if message.error()] == []
            messages += got
        return {message.offset() or 0: int((message.value() or b"")[:8]) for message in messages}
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
        mount(small_disk, 2 * DISK_BYTES, "remount,rw")
        broker.start()
        refused = len(filler.refused)
        filler.send(50)
        assert len(filler.refused) == refused, filler.refused[-1]
        held = read_all(broker.bootstrap_servers)
        assert filler.acknowledged.items() <= held.items()
        assert len(set(held.values())) == len(held)


def test_a_stop_with_a_full_disk_is_reported_in_a_sentence(small_disk: Path) -> None:
    with LocalBroker(small_disk) as broker:
        filler = Filler(broker.bootstrap_servers)
        while not filler.refused:
            filler.send(50)
        _fill(small_disk)
        assert broker.terminate() == 1
        said(broker, "Error: Stopped, but not cleanly (")
        assert "Traceback" not in said(broker, "no space left")


def test_a_start_with_a_disk_that_filled_up_while_a_topic_was_made_is_reported_in_a_sentence(small_disk: Path) -> None:
    broker = LocalBroker(small_disk).start()
    _fill(small_disk)
    # Room for the topic's document, and not for the logs of its 50 partitions.
    os.truncate(small_disk / "rest", os.path.getsize(small_disk / "rest") - 40_960)
    member = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "first", "log_level": 0})
    member.subscribe(["any"])
    until(lambda: member.poll(0.1) or "is stored but cannot be served" in broker.logs(), "the disk is full")
    member.close()
    broker.terminate()
    before = len(broker.logs())
    with pytest.raises(LocalBrokerError):
        broker.start()
    said(broker, "Error: __consumer_offsets-", after=before)
    assert "Traceback" not in said(broker, "no space left", after=before)
    broker.close()


@pytest.mark.long  # one broker: above
def test_a_leader_with_a_full_disk_hands_over_and_stops_and_comes_back_with_space(
    small_disk: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "broker-1").symlink_to(small_disk)
    with LocalCluster(folder) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topic("full", 3, 3, {"min.insync.replicas": "2"})
        cluster.wait_in_sync("full")
        full = cluster.broker(1)
        partition = next(
            partition.partition for partition in cluster.describe_topic("full") if partition.leader == full.broker_id
        )
        filler = Filler(cluster.bootstrap_servers, partition)
        # A record may also be refused because a busy machine was slow.
        until(lambda: not full.running or filler.send(50), "the leader stops", _DEADLINE_S)
        assert full.wait() == 1
        said(full, "Error: Stopped, so that other brokers lead what this one could not write (")
        assert "Traceback" not in said(full, "no space left")
        cluster.wait_for_leader("full", partition, other_than=full)
        acknowledged = len(filler.acknowledged)
        # The first ones may still go to where the leader was.
        cluster.wait_for(
            lambda: filler.send(5) or len(filler.acknowledged) > acknowledged, "the next leader takes records"
        )
        held = read_all(cluster.bootstrap_servers, partition)
        assert filler.acknowledged.items() <= held.items()
        mount(small_disk, 4 * DISK_BYTES, "remount,rw")
        full.start()
        cluster.wait_in_sync("full")
        assert read_all(cluster.bootstrap_servers, partition) == held
