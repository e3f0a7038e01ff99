"""`retention.until.checkpointed`: what a group has not committed stays, up to its limits; when it has, retention is as ever. About 20 s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from pylog_spark._native import Client
from pylog_spark.client import Admin
from pylog_spark.client.admin import EARLIEST
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import KEPT_RECORDS, SHORT, begun, until_short, values
from tests.harness.waiting import until
from tests.mirror.support import write
from tests.reading.streams import Checkpoint, read
from tests.spark.support import Topic

QUICK = {"log_retention_check_interval_ms": 100, "log_flush_offset_checkpoint_interval_ms": 100}
#: Every closed segment is too old at once.
OLD = {"segment.bytes": "5000", "retention.ms": "1", "file.delete.delay.ms": "0"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker that looks for what is too old ten times a second."""
    with LocalBroker(tmp_path_factory.mktemp("broker"), group_initial_rebalance_delay_ms=0, **QUICK) as running:
        yield running


@pytest.fixture
def admin(broker: LocalBroker) -> Iterator[Admin]:
    """Of the broker."""
    with Admin(broker.bootstrap_servers) as client:
        yield client


def fill(broker: LocalBroker, admin: Admin, topic: str, partitions: int = 1, **configs: str) -> None:
    """Make a topic in which everything is too old, and write to each partition."""
    admin.create_topic(topic, partitions, config={**OLD, **configs})
    write(broker.bootstrap_servers, topic, values(0, 300 * partitions), batch_num_messages=10)


def commit(broker: LocalBroker, group: str, topic: str, **offsets: int) -> None:
    """Commit offsets as a group: `p0=10`."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    at = [TopicPartition(topic, int(number[1:]), offset) for number, offset in offsets.items()]
    (*_,) = consumer.commit(offsets=at, asynchronous=False)
    consumer.close()


def begin(admin: Admin, topic: str, partition: int = 0) -> int:
    """The first offset of a partition."""
    return admin.offsets([(topic, partition, EARLIEST)])[0].offset


def passes(broker: LocalBroker, admin: Admin) -> None:
    """Wait until retention has looked at all logs several times: until it has emptied another topic again and again."""
    other = f"other-{time.monotonic_ns()}"
    admin.create_topic(other, 1, config=OLD)
    for end in (100, 200, 300):
        write(broker.bootstrap_servers, other, values(0, 100), batch_num_messages=10)
        until(lambda wanted=end: begin(admin, other) == wanted, f"{other} is emptied")


def test_records_stay_until_each_group_has_passed_them(broker: LocalBroker, admin: Admin) -> None:
    fill(broker, admin, "kept", 1, **{"retention.until.checkpointed": "first, second"})
    passes(broker, admin)
    assert begin(admin, "kept") == 0, "no group has an offset"
    commit(broker, "first", "kept", p0=300)
    passes(broker, admin)
    assert begin(admin, "kept") == 0, "the second one has none"
    commit(broker, "second", "kept", p0=150)
    until(lambda: 50 < begin(admin, "kept") <= 150, "what both have passed is removed")
    passes(broker, admin)
    assert begin(admin, "kept") <= 150
    commit(broker, "second", "kept", p0=300)
    until(lambda: begin(admin, "kept") == 300, "all is removed")


def test_each_partition_is_kept_by_itself_and_a_group_that_is_named_no_more_holds_nothing(
    broker: LocalBroker, admin: Admin
) -> None:
    fill(broker, admin, "parted", 2, **{"retention.until.checkpointed": "one"})
    commit(broker, "one", "parted", p1=10_000)
    until(lambda: begin(admin, "parted", 1) > 100, "the second partition is emptied")
    passes(broker, admin)
    assert begin(admin, "parted", 0) == 0
    admin.alter_configs("topic", "parted", {"retention.until.checkpointed": None})
    until(lambda: begin(admin, "parted", 0) > 100, "the first one, too")


@pytest.mark.parametrize("limit", ["ms", "bytes"])
def test_what_is_kept_for_groups_has_a_limit(broker: LocalBroker, admin: Admin, limit: str) -> None:
    name = f"limited-{limit}"
    limits = {"ms": "1", "bytes": "30000"}
    fill(
        broker,
        admin,
        name,
        1,
        **{"retention.until.checkpointed": "nobody", f"retention.until.checkpointed.max.{limit}": limits[limit]},
    )
    until(lambda: begin(admin, name) > 0, "it is beyond its limit")
    if limit == "bytes":
        passes(broker, admin)
        assert 0 < begin(admin, name) < 200, "no more than that is removed"
    with pytest.raises(LogError, match=r"retention\.until\.checkpointed\.max\.ms"):
        admin.alter_configs("topic", name, {"retention.until.checkpointed.max.ms": "-2"})


def test_a_query_of_spark_holds_what_it_has_not_read(broker: LocalBroker, admin: Admin) -> None:
    fill(broker, admin, "queried", 1, **{"retention.until.checkpointed": "my-query"})
    servers = broker.bootstrap_servers
    topic = Topic(None, servers, Client({"bootstrap.servers": servers}), "queried", 1)
    given = {"kafka.group.id": "my-query", "maxOffsetsPerTrigger": 60}
    checkpoint = Checkpoint()
    query = read(topic, checkpoint, **given)
    assert len(query.values) == 300
    # The end of the last batch is committed when the next one is planned.
    until(lambda: begin(admin, "queried") > 100, "what it has read is removed")
    passes(broker, admin)
    assert begin(admin, "queried") <= 300
    write(servers, "queried", values(300, 400), batch_num_messages=10)
    assert len(read(topic, checkpoint, **given).values) == 100


def test_a_restart_forgets_nothing_and_removes_nothing(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "again", group_initial_rebalance_delay_ms=0, **QUICK) as running:
        with Admin(running.bootstrap_servers) as client:
            fill(running, client, "again", 1, **{"retention.until.checkpointed": "one"})
            commit(running, "one", "again", p0=100)
            until(lambda: 0 < begin(client, "again") <= 100, "what it has passed is removed")
            first = begin(client, "again")
        running.restart()
        with Admin(running.bootstrap_servers) as client:
            passes(running, client)
            assert begin(client, "again") == first
            commit(running, "one", "again", p0=300)
            until(lambda: begin(client, "again") == 300, "all is removed")


def test_the_archive_keeps_what_a_group_needs(tmp_path: Path) -> None:
    with (
        begun(tmp_path / "broker", tmp_path / "archive") as running,
        Admin(running.bootstrap_servers) as client,
    ):
        configs = {**SHORT, "retention.ms": "1", "local.retention.ms": "1", "retention.until.checkpointed": "one"}
        client.create_topic("cold", 1, config=configs)
        write(running.bootstrap_servers, "cold", values(0, 400), batch_num_messages=10)
        until_short(client, "cold", 400 - KEPT_RECORDS)
        assert begin(client, "cold") == 0
        commit(running, "one", "cold", p0=200)
        until(lambda: 100 < begin(client, "cold") <= 200, "what it has passed is removed from the archive")
        commit(running, "one", "cold", p0=400)
        until(lambda: begin(client, "cold") > 300, "the rest, too")
