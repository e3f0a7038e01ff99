"""Consumer groups and their offsets, whose coordinator may die."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from pylog_spark.client import Admin
from tests.cluster.coordinators import GROUPS, TRANSACTIONS, coordinator
from tests.cluster.test_transactions import committed, retrying, transactional
from tests.harness.runs import rounds
from tests.harness.waiting import until

PARTITIONS = 6
WAIT_S = 60.0


@pytest.fixture
def topic(cluster, new_topic):
    """A topic of its own, and the name of its group, too."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, PARTITIONS, 3)
    cluster.wait_in_sync(new_topic)
    return new_topic


def produce(cluster, topic, values):
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "enable.idempotence": True})
    for number in values:
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def member(cluster, topic):
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
    )
    consumer.subscribe([topic])
    return consumer


def read(consumers, count):
    """Polls in turn until `count` messages came; each is committed before the next."""
    seen = []

    def complete():
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and not message.error():
                seen.append(int(message.value()))
                retrying(lambda member=consumer, read=message: member.commit(read, asynchronous=False))
        return len(seen) >= count

    until(complete, lambda: f"{count} messages came, not only {len(seen)}", WAIT_S)
    return seen


def share(consumers):
    """Polls in turn until each has its part of the topic, of which nothing is written yet."""

    def shared():
        assert [message for consumer in consumers if (message := consumer.poll(0.05)) and not message.error()] == []
        return [len(consumer.assignment()) for consumer in consumers] == [PARTITIONS // len(consumers)] * len(consumers)

    until(shared, "each member has its part", WAIT_S)


def polled(consumer, count):
    """Polls until `count` messages came; nothing is committed."""
    rows = []

    def complete():
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            rows.append(message)
        return len(rows) >= count

    until(complete, lambda: f"{count} messages came, not only {len(rows)}", WAIT_S)
    return rows


def offsets(cluster, topic, timeout_s=WAIT_S):
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic})
    try:
        asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        return {
            partition.partition: partition.offset
            for partition in retrying(lambda: consumer.committed(asked, timeout_s))
        }
    finally:
        consumer.close()


def test_a_group_goes_on_after_its_coordinator_died_and_reads_nothing_twice(cluster, topic):
    consumers = [member(cluster, topic), member(cluster, topic)]
    try:
        # Who reads while the other one joins may be refused to commit, and what it read is read again.
        share(consumers)
        produce(cluster, topic, range(30))
        first = read(consumers, 30)
        assert sorted(first) == list(range(30))
        dead = coordinator(cluster, GROUPS, topic)
        dead.kill()
        produce(cluster, topic, range(30, 60))
        assert sorted(read(consumers, 30)) == list(range(30, 60)), "offsets were forgotten"
        assert coordinator(cluster, GROUPS, topic) is not dead
    finally:
        for consumer in consumers:
            consumer.close()
    assert offsets(cluster, topic) == dict.fromkeys(range(PARTITIONS), 10)


@pytest.mark.long  # of one: above
def test_committed_offsets_survive_the_death_of_one_coordinator_after_the_other(cluster, topic):
    produce(cluster, topic, range(PARTITIONS))
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic, "enable.auto.commit": False}
    )
    last = rounds("PYLOG_COORDINATOR_DEATHS", few=2, many=3)
    try:
        for round_ in range(1, last + 1):
            where = [TopicPartition(topic, partition, round_) for partition in range(PARTITIONS)]
            retrying(lambda where=where: consumer.commit(offsets=where, asynchronous=False))
            dead = coordinator(cluster, GROUPS, topic)
            dead.kill()
            assert offsets(cluster, topic) == dict.fromkeys(range(PARTITIONS), round_)
            dead.start()
            cluster.wait_in_sync(GROUPS)
    finally:
        consumer.close()


@pytest.mark.long  # test_transactions.py
def test_offsets_and_rows_of_a_transaction_count_together_when_both_coordinators_die(cluster, topic):
    out, name = f"{topic}-out", f"{topic}-copy"
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(out, PARTITIONS, 3)
    cluster.wait_in_sync(out)
    produce(cluster, topic, range(PARTITIONS))
    consumer, producer = member(cluster, topic), transactional(cluster, name)
    try:
        rows = polled(consumer, PARTITIONS)
        producer.begin_transaction()
        for row in rows:
            producer.produce(out, row.value(), partition=row.partition())
        at = [TopicPartition(topic, row.partition(), row.offset() + 1) for row in rows]
        retrying(lambda: producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), WAIT_S))
        with pytest.raises(KafkaException, match="Timed out"):  # the transaction is open, so there is no answer
            offsets(cluster, topic, timeout_s=2.0)
        for keeper in {id(broker): broker for broker in (
            coordinator(cluster, TRANSACTIONS, name), coordinator(cluster, GROUPS, topic))}.values():  # fmt: skip
            keeper.kill()
            keeper.start()
            for each in (out, TRANSACTIONS, GROUPS):
                cluster.wait_in_sync(each)
        retrying(lambda: producer.commit_transaction(WAIT_S))
    finally:
        consumer.close()
    assert sorted(committed(cluster, out, PARTITIONS)) == [str(number) for number in range(PARTITIONS)]
    cluster.wait_for(
        lambda: offsets(cluster, topic) == dict.fromkeys(range(PARTITIONS), 1), "offsets of the transaction"
    )
