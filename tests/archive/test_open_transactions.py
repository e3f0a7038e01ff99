"""A transaction that an archive has in part: nobody sees its records before the archive knows how it ended. The file takes about 6 s.

A segment is archived when it is closed, and a transaction of it may end in the next one, which is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark._native import Client
from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import EARLIEST_LOCAL, LATEST_TIERED, SHORT, begun, offset, values
from tests.archive.test_cold_reads import rows
from tests.directories.support import LEVELS, consumed, stored
from tests.harness.waiting import until
from tests.mirror.support import ends, write
from tests.spark.support import Topic

COMMITTED, ABORTED, LATER = 100, 250, 350


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Where the broker's archive is."""
    return tmp_path / "archive"


@pytest.fixture
def broker(tmp_path: Path, archive: Path) -> Iterator[LocalBroker]:
    """A broker with a topic ``open``: of it the broker keeps no closed segment that is archived."""
    with begun(tmp_path / "broker", archive) as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topic("open", 1, config={**SHORT, "local.retention.bytes": "1"})
        yield running


def begin_and_write(broker: LocalBroker) -> Producer:
    """Write records, and then more of a transaction than a segment holds; gives its producer."""
    write(broker.bootstrap_servers, "open", values(0, COMMITTED), batch_num_messages=10)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "open", "batch.num.messages": 10}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values(COMMITTED, ABORTED):
        producer.produce("open", value)
    assert producer.flush(30) == 0
    return producer


def copied(archive: Path) -> int:
    """Up to where the log is copied; 0 before the archive knows the topic."""
    with suppress(LogError):
        return ArchiveLog(str(archive)).manifest("open", 0).copied_until
    return 0


def seen(broker: LocalBroker, level: str) -> list[bytes]:
    """The values that a consumer sees from the beginning to the end that the level has."""
    (end,) = ends(broker.bootstrap_servers, "open", 1, level)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "any", "isolation.level": level}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition("open", 0, 0)])

        def is_done() -> bool:
            found.extend(message.value() for message in consumer.consume(1_000, 0.2) if message.error() is None)
            (at,) = consumer.position([TopicPartition("open", 0)])
            return at.offset >= end

        until(is_done, "all is read")
    finally:
        consumer.close()
    return found


def test_records_of_an_aborted_transaction_are_hidden_while_the_archive_does_not_have_its_end(
    broker: LocalBroker, archive: Path
) -> None:
    servers = broker.bootstrap_servers
    begin_and_write(broker).abort_transaction(30)
    committed = [value.encode() for value in values(0, COMMITTED)]
    with Admin(servers) as admin:
        until(lambda: copied(archive) > COMMITTED + 20, "a part of the transaction is copied")
        until(lambda: offset(admin, "open", EARLIEST_LOCAL) > COMMITTED // 2, "the broker deletes what is archived")
        topic = Topic(None, servers, Client({"bootstrap.servers": servers}), "open", 1)
        for _ in range(5):
            assert seen(broker, "read_committed") == committed
            assert [row[2] for row in rows(topic, isolationLevel="read_committed")] == committed
            assert [row.value for row in stored("", "open", path=str(archive))] == committed
        assert offset(admin, "open", LATEST_TIERED) < COMMITTED
        assert len(seen(broker, "read_uncommitted")) == ABORTED
        # When the archive has the end of it, it is as ever.
        write(servers, "open", values(ABORTED, LATER), batch_num_messages=10)
        until(lambda: offset(admin, "open", EARLIEST_LOCAL) > ABORTED, "the broker deletes the transaction")
    committed += [value.encode() for value in values(ABORTED, LATER)]
    assert seen(broker, "read_committed") == committed
    assert [row[2] for row in rows(topic, isolationLevel="read_committed")] == committed
    whole = {level: consumed(servers, "open", 1, level) for level in LEVELS}
    end = ArchiveLog(str(archive)).bounds("open", 0)[1]
    ending = {"endingOffsets": json.dumps({"open": {"0": end}})}
    for level in LEVELS:
        found = stored("", "open", path=str(archive), isolationLevel=level, **ending)
        assert found == [row for row in whole[level] if row.offset < end]


def test_a_copy_that_ends_inside_of_a_transaction_that_was_aborted_ends_before_it_for_readers(tmp_path: Path) -> None:
    """Another transaction is open in it, so the last stable offset is there."""
    with LocalBroker(tmp_path / "data") as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("open", 1)
        first = begin_and_write(broker)
        other = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "other"})
        other.init_transactions(30)
        other.begin_transaction()
        other.produce("open", b"other")
        assert other.flush(30) == 0
        first.produce("open", b"the last one")
        assert first.flush(30) == 0
        first.abort_transaction(30)
        url = str(tmp_path / "archive")
        copy = lambda: list(copy_topic(admin, open_archive(url, create=True), "open", CopyOptions(), pytest.fail))  # noqa: E731
        assert len(copy()) == 1
        assert ArchiveLog(url).manifest("open", 0).copied_until == ABORTED
        assert ArchiveLog(url).bounds("open", 0) == (0, COMMITTED)
        committed = [value.encode() for value in values(0, COMMITTED)]
        assert [row.value for row in stored("", "open", path=url, isolationLevel="read_committed")] == committed
        other.commit_transaction(30)
        assert len(copy()) == 1
        found = stored("", "open", path=url, isolationLevel="read_committed")
        assert [row.value for row in found] == [*committed, b"other"]
