"""Transactions of librdkafka's producer against a real broker: what `read_committed` readers see of them, whatever happens."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.harness.brokers import Brokers
from tests.harness.waiting import until
from tests.interop.clients import create_topic, until_transactions_end, values_seen
from tests.peers.kafka import dump_log

pytestmark = pytest.mark.cluster

DEADLINE_S = 30
_RECONNECT = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 10, "log_level": 0}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokers]:
    """A broker of its own: these tests kill it."""
    with Brokers(tmp_path, transaction_state_log_num_partitions=3, offsets_topic_num_partitions=3) as broker:
        yield broker


def new_producer(broker: Brokers, transactional_id: str, **settings: object) -> Producer:
    """A transactional producer that is ready."""
    common = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id, **_RECONNECT}
    producer = Producer({**common, **{name.replace("_", "."): value for name, value in settings.items()}})
    producer.init_transactions(DEADLINE_S)
    return producer


def read(broker: Brokers, topic: str, isolation: str = "read_committed", partition: int = 0) -> list[str]:
    """All values that a reader of `isolation` sees up to the partition's end, once all that was ended is complete."""
    until_transactions_end(broker.bootstrap_servers)
    seen = values_seen(broker.bootstrap_servers, topic, partition, isolation, DEADLINE_S, _RECONNECT)
    return [value.decode() for value in seen]


def test_a_commit_is_seen_and_an_abort_is_not(broker: Brokers) -> None:
    create_topic(broker.bootstrap_servers, "orders", 2)
    producer = new_producer(broker, "shop")
    for number in range(6):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("orders", f"{number}", partition=partition)
        if number % 3 == 1:
            producer.flush(DEADLINE_S)
            producer.abort_transaction(DEADLINE_S)
        else:
            producer.commit_transaction(DEADLINE_S)
    for partition in (0, 1):
        assert read(broker, "orders", partition=partition) == ["0", "2", "3", "5"]
        assert read(broker, "orders", "read_uncommitted", partition) == ["0", "1", "2", "3", "4", "5"]


def test_nothing_behind_an_open_transaction_is_seen_before_it_ends(broker: Brokers) -> None:
    create_topic(broker.bootstrap_servers, "orders")
    slow, quick = new_producer(broker, "slow"), new_producer(broker, "quick")
    slow.begin_transaction()
    slow.produce("orders", "slow", partition=0)
    assert slow.flush(DEADLINE_S) == 0
    quick.begin_transaction()
    quick.produce("orders", "quick", partition=0)
    quick.commit_transaction(DEADLINE_S)
    assert read(broker, "orders") == []
    slow.commit_transaction(DEADLINE_S)
    assert read(broker, "orders") == ["slow", "quick"]


def test_a_second_producer_with_the_same_id_fences_the_first_and_aborts_what_it_left(broker: Brokers) -> None:
    create_topic(broker.bootstrap_servers, "orders")
    first = new_producer(broker, "shop")
    first.begin_transaction()
    first.produce("orders", "of the first", partition=0)
    assert first.flush(DEADLINE_S) == 0
    second = new_producer(broker, "shop")
    second.begin_transaction()
    second.produce("orders", "of the second", partition=0)
    second.commit_transaction(DEADLINE_S)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(DEADLINE_S)
    assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert fenced.value.args[0].fatal()
    assert read(broker, "orders") == ["of the second"]


def test_a_transaction_that_is_open_for_too_long_is_aborted(broker: Brokers) -> None:
    create_topic(broker.bootstrap_servers, "orders")
    producer = new_producer(broker, "shop", transaction_timeout_ms=1_000)
    producer.begin_transaction()
    producer.produce("orders", "late", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    other = new_producer(broker, "other")
    other.begin_transaction()
    other.produce("orders", "other", partition=0)
    other.commit_transaction(DEADLINE_S)
    until(lambda: read(broker, "orders") == ["other"], "the transaction hides no longer what is behind it")
    with pytest.raises(KafkaException):
        producer.commit_transaction(DEADLINE_S)


def test_offsets_count_only_when_their_transaction_commits(broker: Brokers) -> None:
    create_topic(broker.bootstrap_servers, "orders")
    producer = new_producer(broker, "shop")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False, **_RECONNECT}
    )
    try:
        place = TopicPartition("orders", 0)
        for offset, commits, seen in ((5, True, 5), (9, False, 5), (7, True, 7)):
            producer.begin_transaction()
            producer.produce("orders", f"{offset}", partition=0)
            positions = [TopicPartition("orders", 0, offset)]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), DEADLINE_S)
            if commits:
                producer.commit_transaction(DEADLINE_S)
            else:
                producer.abort_transaction(DEADLINE_S)
            assert consumer.committed([place], DEADLINE_S)[0].offset == seen
    finally:
        consumer.close()


def test_a_transaction_left_open_is_committed_after_the_broker_was_killed(broker: Brokers) -> None:
    create_topic(broker.bootstrap_servers, "orders")
    producer = new_producer(broker, "shop")
    producer.begin_transaction()
    producer.produce("orders", "before", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    broker.kill()
    broker.start()
    producer.produce("orders", "after", partition=0)
    producer.commit_transaction(DEADLINE_S)
    assert read(broker, "orders") == ["before", "after"]


@pytest.mark.peers
def test_kafkas_own_tool_reads_the_transaction_log(tmp_path: Path) -> None:
    with Brokers(tmp_path, transaction_state_log_num_partitions=1) as broker:
        create_topic(broker.bootstrap_servers, "orders")
        producer = new_producer(broker, "shop")
        for committed in (True, False):
            producer.begin_transaction()
            producer.produce("orders", "x", partition=0)
            assert producer.flush(DEADLINE_S) == 0
            if committed:
                producer.commit_transaction(DEADLINE_S)
            else:
                producer.abort_transaction(DEADLINE_S)
        until_transactions_end(broker.bootstrap_servers)
    segments = sorted((broker.data_dir / "__transaction_state-0").glob("*.log"))
    printed = dump_log(segments, "--transaction-log-decoder")
    states = re.findall(r'"transactionalId":"shop".*?"transactionStatus":(\d)', printed)
    # Empty; Ongoing, PrepareCommit, CompleteCommit; Ongoing, PrepareAbort, CompleteAbort.
    assert states == ["0", "1", "2", "4", "1", "3", "5"]
    printed = dump_log(sorted((broker.data_dir / "orders-0").glob("*.log")), "--deep-iteration")
    assert re.findall(r"endTxnMarker: (\w+)", printed) == ["COMMIT", "ABORT"]
