"""Transactions over partitions of several leaders, whose coordinator may die in the midst."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from pylog_spark.client import Admin
from tests.cluster.coordinators import TRANSACTIONS, coordinator
from tests.harness.runs import mostly_long, rounds
from tests.harness.waiting import turns, until

PARTITIONS = 6
WAIT_S = 60.0


@pytest.fixture
def topic(cluster, new_topic):
    """A topic of its own, and the name of its producer, too."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, PARTITIONS, 3)
    cluster.wait_in_sync(new_topic)
    return new_topic


def transactional(cluster, transactional_id):
    """A producer of the id, ready to begin."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "retry.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
    )
    retrying(lambda: producer.init_transactions(WAIT_S))
    return producer


def retrying(attempt):
    """Do it until it succeeds; only errors that the client calls retriable are tried again, and that a coordinator has moved:
    librdkafka hands that on from a request for committed offsets, and does not call it so.
    """
    done, refusals = [], []

    def succeeds():
        try:
            done.append(attempt())
        except KafkaException as error:
            reason = error.args[0]
            if not reason.retriable() and reason.code() != KafkaError.NOT_COORDINATOR:
                raise
            refusals.append(reason)
        return done

    until(succeeds, lambda: f"it succeeds: {refusals}", WAIT_S)
    return done[0]


def write(producer, topic, name):
    """One row into each partition, on the brokers' disks when this returns."""
    for partition in range(PARTITIONS):
        producer.produce(topic, f"{name}-{partition}", partition=partition)
    assert producer.flush(WAIT_S) == 0


def names(name):
    return {f"{name}-{partition}" for partition in range(PARTITIONS)}


def committed(cluster, topic, count):
    """What a committed reader sees, read until `count` rows came and every partition was at its end."""
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen, ended = [], set()
    try:
        for _ in turns(
            lambda: len(seen) >= count and len(ended) >= PARTITIONS, lambda: f"{count} rows are seen: {seen}", WAIT_S
        ):
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                ended.add(message.partition())
            else:
                ended.discard(message.partition())
                seen.append(message.value().decode())
    finally:
        consumer.close()
    return seen


def test_a_transaction_over_partitions_of_all_brokers_is_seen_whole_or_not_at_all(cluster, topic):
    assert {partition.leader for partition in cluster.describe_topic(topic)} == {1, 2, 3}
    producer = transactional(cluster, topic)
    for name, ends in [("no", producer.abort_transaction), ("yes", producer.commit_transaction)]:
        producer.begin_transaction()
        write(producer, topic, name)
        ends(WAIT_S)
    seen = committed(cluster, topic, PARTITIONS)
    assert sorted(seen) == sorted(names("yes"))


@pytest.mark.long  # one that commits: below
@pytest.mark.parametrize("commits", mostly_long([True, False], True))
def test_an_open_transaction_outlives_its_coordinator(cluster, topic, commits):
    producer = transactional(cluster, topic)
    producer.begin_transaction()
    write(producer, topic, "first")
    dead = coordinator(cluster, TRANSACTIONS, topic)
    dead.kill()
    retrying(lambda: (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_S))
    assert coordinator(cluster, TRANSACTIONS, topic) is not dead
    producer.begin_transaction()
    write(producer, topic, "second")
    retrying(lambda: producer.commit_transaction(WAIT_S))
    expected = names("second") | (names("first") if commits else set())
    assert sorted(committed(cluster, topic, len(expected))) == sorted(expected)


def test_a_commit_that_was_answered_reaches_every_partition_although_its_coordinator_died_then(cluster, topic):
    producer = transactional(cluster, topic)
    expected = set()
    for round_ in range(rounds("PYLOG_COORDINATOR_DEATHS", few=2, many=3)):
        producer.begin_transaction()
        write(producer, topic, f"round{round_}")
        dead = coordinator(cluster, TRANSACTIONS, topic)
        retrying(lambda: producer.commit_transaction(WAIT_S))
        dead.kill()
        expected |= names(f"round{round_}")
        assert sorted(committed(cluster, topic, len(expected))) == sorted(expected)
        dead.start()
        cluster.wait_in_sync(TRANSACTIONS)
        cluster.wait_in_sync(topic)


@pytest.mark.long  # tests/interop/test_transactions.py
def test_a_newer_producer_fences_the_older_one_also_at_another_coordinator(cluster, topic):
    old = transactional(cluster, topic)
    old.begin_transaction()
    write(old, topic, "old")
    coordinator(cluster, TRANSACTIONS, topic).kill()
    new = transactional(cluster, topic)
    new.begin_transaction()
    write(new, topic, "new")
    new.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        retrying(lambda: old.commit_transaction(WAIT_S))
    assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()
    assert sorted(committed(cluster, topic, PARTITIONS)) == sorted(names("new"))
