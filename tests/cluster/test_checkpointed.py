"""`retention.until.checkpointed` in a cluster: groups whose coordinators are other brokers, and leaders that are killed. About 15 s."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.client.admin import EARLIEST
from pylog_spark.testing import LocalCluster
from tests.cluster.coordinators import GROUPS, coordinator
from tests.cluster.test_transactions import retrying
from tests.harness.waiting import stays

pytestmark = pytest.mark.long  # of one broker: tests/broker/test_checkpointed.py

PARTITIONS = 3
RECORDS = 200
OLD = {"segment.bytes": "5000", "retention.ms": "1", "file.delete.delay.ms": "0"}


@pytest.fixture(scope="module")
def cluster_settings() -> dict[str, object]:
    """Retention looks ten times a second."""
    return {"log_retention_check_interval_ms": 100, "log_flush_offset_checkpoint_interval_ms": 100}


@pytest.fixture
def admin(cluster: LocalCluster) -> Iterator[Admin]:
    """Of the cluster."""
    with Admin(cluster.bootstrap_servers) as client:
        yield client


def begins(admin: Admin, topic: str) -> list[int]:
    """The first offsets of the partitions."""
    return [found.offset for found in admin.offsets([(topic, number, EARLIEST) for number in range(PARTITIONS)])]


def produce(cluster: LocalCluster, topic: str) -> None:
    """Write to each partition, in many batches."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "batch.num.messages": 10, "acks": "all"})
    for number in range(RECORDS * PARTITIONS):
        producer.produce(topic, b"x" * 200, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def commit(cluster: LocalCluster, group: str, topic: str, offset: int) -> None:
    """Commit one offset for all partitions."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    at = [TopicPartition(topic, number, offset) for number in range(PARTITIONS)]
    retrying(lambda: consumer.commit(offsets=at, asynchronous=False))
    consumer.close()


def groups_of_two_brokers(cluster: LocalCluster, topic: str) -> list[str]:
    """Two groups with different coordinators."""
    found: dict[int, str] = {}
    for number in range(100):
        found.setdefault(coordinator(cluster, GROUPS, f"{topic}-{number}").broker_id, f"{topic}-{number}")
        if len(found) == 2:
            return list(found.values())
    raise AssertionError(f"one broker has all groups: {found}")


def test_leaders_keep_what_groups_of_other_brokers_need_also_after_a_kill(
    cluster: LocalCluster, admin: Admin, new_topic: str
) -> None:
    # The internal topic is made by the first group.
    any_name = f"{new_topic}-any"
    admin.create_topic(any_name, PARTITIONS, 3)
    commit(cluster, any_name, any_name, 0)
    names = ",".join(groups_of_two_brokers(cluster, new_topic))
    admin.create_topic(new_topic, PARTITIONS, 3, {**OLD, "retention.until.checkpointed": names})
    cluster.wait_in_sync(new_topic)
    produce(cluster, new_topic)
    first, second = names.split(",")
    commit(cluster, first, new_topic, RECORDS)
    commit(cluster, second, new_topic, 100)
    cluster.wait_for(lambda: all(50 < each <= 100 for each in begins(admin, new_topic)), "both groups' part is gone")

    victim = cluster.leader(new_topic, 0)
    assert victim is not None
    victim.kill()
    cluster.wait_for_leader(new_topic, 0)
    # The new leader looks for the groups before it removes anything, and then many times.
    stays(lambda: all(50 < each <= 100 for each in begins(admin, new_topic)), "both groups' part is gone", for_s=2)
    victim.start()
    commit(cluster, second, new_topic, RECORDS)
    cluster.wait_for(lambda: begins(admin, new_topic) == [RECORDS] * PARTITIONS, "all is gone")
