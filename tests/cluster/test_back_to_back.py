"""A Java producer whose transactions follow each other at once, over partitions of all brokers.

The first batch of a transaction reaches leaders before the marker of the one before: those must not take it for a stranger's
(transaction version 2 of KIP-890, which only the Java client speaks of those here).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalCluster
from tests.harness.runs import rounds
from tests.interop.clients import until_transactions_end
from tests.peers.tools import java

# tests/interop/test_transactions.py, one after the other
pytestmark = [pytest.mark.long, pytest.mark.peers]

PARTITIONS = 9
TRANSACTIONS = rounds("PYLOG_BACK_TO_BACK", few=40, many=1_000)
#: Far longer than a transaction takes while leaders move (0.2 s with a broker that is not optimised).
TRANSACTION_MAX_S = 1
WAIT_S = 60.0


@pytest.fixture(scope="module")
def cluster_settings() -> dict[str, object]:
    """What the load writes is removed soon: ten thousand transactions take minutes."""
    return {"log_retention_check_interval_ms": 5_000}


@contextmanager
def beside(step: Callable[[], object]) -> Iterator[None]:
    """Does `step` again and again in a thread meanwhile."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            step()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


Meanwhile = Callable[[LocalCluster, str], AbstractContextManager[None]]


def nothing(cluster: LocalCluster, topic: str) -> AbstractContextManager[None]:
    """Leaves the cluster alone."""
    return nullcontext()


def load(cluster: LocalCluster, topic: str) -> AbstractContextManager[None]:
    """Other records for all partitions of another topic, on all replicas."""
    busy = f"{topic}-busy"
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(busy, PARTITIONS, 3, {"retention.bytes": "50000000", "segment.bytes": "10000000"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1})

    def step() -> None:
        for partition in range(PARTITIONS):
            producer.produce(busy, b"x" * 10_000, partition=partition)
        producer.flush(WAIT_S)

    return beside(step)


def moves(cluster: LocalCluster, topic: str) -> AbstractContextManager[None]:
    """Gives each partition another leader, one after the other."""
    numbers = iter(range(10**9))

    def step() -> None:
        number = next(numbers)
        first = 1 + (number // PARTITIONS) % 3
        place = (topic, number % PARTITIONS)
        # A broker may just have forgotten who controls.
        with suppress(LogError), Admin(cluster.bootstrap_servers) as admin:
            admin.reassign({place: [1 + (first - 1 + place_in_row) % 3 for place_in_row in range(3)]})
            admin.elect_leaders([place])

    return beside(step)


def committed(servers: str, topic: str) -> list[list[int]]:
    """What a reader of committed data sees, by partition."""
    settings = {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"nothing came for {WAIT_S} s; ended: {ended}"
        if message.error():
            ended.add(message.partition())
        else:
            seen[message.partition()].append(int(message.value()))
    consumer.close()
    return seen


@pytest.mark.parametrize(
    "meanwhile", [load, *(pytest.param(other, marks=pytest.mark.long) for other in (nothing, moves))]
)
def test_transactions_that_follow_each_other_at_once_are_all_committed_in_order(
    cluster: LocalCluster, new_topic: str, meanwhile: Meanwhile
) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, PARTITIONS, 3)
    cluster.wait_in_sync(new_topic)
    words = [cluster.bootstrap_servers, new_topic, new_topic, str(PARTITIONS), str(TRANSACTIONS)]
    deadline_s = WAIT_S + TRANSACTIONS * TRANSACTION_MAX_S
    with meanwhile(cluster, new_topic):
        print(java("BackToBack", *words, deadline_s=deadline_s).strip(), "transactions a second")
    until_transactions_end(cluster.bootstrap_servers)
    assert committed(cluster.bootstrap_servers, new_topic) == [list(range(TRANSACTIONS))] * PARTITIONS
