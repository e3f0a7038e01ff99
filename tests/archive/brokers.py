"""Brokers that archive by themselves, with segments that are copied and removed within some tenths of a second."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import turns, until

EARLIEST, LATEST, EARLIEST_LOCAL, LATEST_TIERED = -2, -1, -4, -5
QUICK = {
    "archive_segment_bytes": 6_000,
    "remote_log_manager_task_interval_ms": 100,
    "log_retention_check_interval_ms": 100,
    "log_flush_offset_checkpoint_interval_ms": 100,
    "group_initial_rebalance_delay_ms": 0,
}
SHORT = {
    "remote.storage.enable": "true",
    "segment.bytes": "10000",
    "local.retention.bytes": "10000",
    "file.delete.delay.ms": "0",
}
#: Records of `values` that a broker keeps at most with `SHORT`, in batches of ten or fewer: `local.retention.bytes` and one segment. Where a segment
#: begins depends on where batches do, so only this is sure.
KEPT_RECORDS = 150


def begun(directory: Path, archive: Path | str, **settings: object) -> LocalBroker:
    """A broker whose archive is there."""
    return LocalBroker(directory, archive_url=str(archive), **{**QUICK, **settings})


def values(start: int, end: int) -> Iterator[str]:
    """A value for each number, of which zstandard makes half."""
    return (f"{number} {hashlib.sha256(str(number).encode()).hexdigest() * 2}" for number in range(start, end))


def offset(admin: Admin, topic: str, which: int, partition: int = 0) -> int:
    """An offset of a partition by the name of its place, or a time."""
    return admin.offsets([(topic, partition, which)])[0].offset


def until_short(admin: Admin, topic: str, least: int, partition: int = 0) -> int:
    """Wait until the broker has nothing of a partition before an offset; gives where it begins."""
    return until(
        lambda: found if (found := offset(admin, topic, EARLIEST_LOCAL, partition)) >= least else 0,
        lambda: (
            f"{topic}-{partition} begins at {least} on the broker, not {offset(admin, topic, EARLIEST_LOCAL, partition)}"
        ),
    )


def read_from(
    servers: str, topic: str, start: int, count: int, level: str = "read_uncommitted"
) -> list[tuple[int, bytes]]:
    """What librdkafka reads from an offset on: offsets and values of so many records."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "any",
            "isolation.level": level,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        found: list[tuple[int, bytes]] = []
        for _ in turns(lambda: len(found) >= count, lambda: f"{len(found)} of {count} records from {start} on"):
            for message in consumer.consume(count - len(found), 0.2):
                assert message.error() is None, message.error()
                found.append((message.offset(), message.value()))
        return found
    finally:
        consumer.close()
