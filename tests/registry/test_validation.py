"""Topics whose records must name schemas of the registry, with the clients that users have."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pylog_spark.client import Admin, Consumer
from pylog_spark.client.consumer import Record
from pylog_spark.registry.client import RegistryClient
from pylog_spark.testing import LocalBroker, LocalCluster

NUMBER = '{"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}'
VALUES = "confluent.value.schema.validation"
DEAD_LETTERS = "schema.validation.dead.letter.topic"
KEYS = "confluent.key.schema.validation"


@pytest.fixture
def topic(broker: LocalBroker, new_topic: str) -> str:
    """A topic whose values are checked."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(new_topic, 1, 1, {VALUES: "true"})
    return new_topic


@pytest.fixture
def send(broker: LocalBroker) -> Callable[..., list[str]]:
    """Sends values by one producer of librdkafka, and gives the name of the error of each that is refused."""
    producers: dict[str, Producer] = {}

    def send(topic: str, *values: bytes | None, **settings: Any) -> list[str]:
        given = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1_000, **settings}
        producer = producers.setdefault(repr(settings), Producer(given))
        errors: list[str] = []

        def delivered(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                errors.append(error.name())

        # A producer that knows the topic puts each record where its batch grows; else they go there while it sends.
        producer.list_topics(topic, 30)
        for value in values:
            producer.produce(topic, value, key=b"k", on_delivery=delivered)
        assert producer.flush(30) == 0
        return errors

    return send


def count(broker: LocalBroker, topic: str) -> int:
    """How many records the topic has."""
    with Admin(broker.bootstrap_servers) as admin:
        return admin.offsets([(topic, 0, -1)])[0].offset


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_only_values_of_schemas_of_the_topics_subject_are_taken(
    broker: LocalBroker, client: SchemaRegistryClient, topic: str, new_subject: Callable[[], str], send: Any, codec: str
) -> None:
    context = SerializationContext(topic, MessageField.VALUE)
    value = AvroSerializer(client, NUMBER)({"n": 1}, context)
    assert value is not None
    other = client.register_schema(new_subject(), Schema('"string"', "AVRO"))
    settings = {"compression.type": codec}
    assert send(topic, value, None, value, **settings) == []
    for wrong in (b"text", b"", b"\0\0\0", b"\0" + other.to_bytes(4, "big") + b"\2x", b"\1" + value[1:]):
        assert send(topic, wrong, **settings) == ["INVALID_RECORD"], wrong
    # The whole batch, and nothing after it.
    assert send(topic, value, b"text", **settings) == ["INVALID_RECORD"] * 2
    assert send(topic, value, **settings) == []
    assert count(broker, topic) == 4


def test_an_idempotent_producer_goes_on_after_a_refusal(
    client: SchemaRegistryClient, broker: LocalBroker, topic: str, send: Any
) -> None:
    value = AvroSerializer(client, NUMBER)({"n": 1}, SerializationContext(topic, MessageField.VALUE))
    settings = {"enable.idempotence": True}
    for _ in range(3):
        assert send(topic, value, **settings) == []
        assert send(topic, b"text", **settings) == ["INVALID_RECORD"]
    assert count(broker, topic) == 3


def test_a_transaction_with_a_refused_record_is_aborted_and_the_next_one_commits(
    client: SchemaRegistryClient, broker: LocalBroker, topic: str
) -> None:
    value = AvroSerializer(client, NUMBER)({"n": 1}, SerializationContext(topic, MessageField.VALUE))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.produce(topic, b"text")
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(30)
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(30)
    # librdkafka counts the records of a refused batch, so that this producer cannot go on at any broker.
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.commit_transaction(30)


@pytest.fixture
def diverting(broker: LocalBroker, topic: str) -> tuple[str, str]:
    """The topic, and its dead letter topic."""
    letters = f"{topic}-dead"
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(letters, 2, 1)
        admin.alter_configs("topic", topic, {DEAD_LETTERS: letters})
    return topic, letters


@pytest.mark.parametrize("settings", [{}, {"enable.idempotence": True}], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_without_a_schema_go_to_the_dead_letter_topic_and_the_others_of_their_batch_are_written(
    broker: LocalBroker, client: SchemaRegistryClient, diverting: tuple[str, str], send: Any, codec: str, settings: Any
) -> None:
    topic, letters = diverting
    value = AvroSerializer(client, NUMBER)({"n": 1}, SerializationContext(topic, MessageField.VALUE))
    assert value is not None
    settings = {"compression.type": codec, **settings}
    unknown = b"\0\x7f\xff\xff\xff" + b"x" * 300
    # Some of a batch, all of one, none of one; the producer goes on with its sequence.
    assert send(topic, value, b"text", None, unknown, value, **settings) == []
    assert send(topic, b"", b"text", **settings) == []
    assert send(topic, value, **settings) == []
    rows = read(broker, topic)
    # Offsets are those that the producer was told: 1, 3, 5 and 6 were taken out.
    assert [(row.offset, row.value) for row in rows] == [(0, value), (2, None), (4, value), (7, value)]
    found = read(broker, letters)
    assert sorted(row.value or b"" for row in found) == sorted([b"", b"text", b"text", unknown])
    for row in found:
        headers = dict(row.headers)
        assert (row.key, headers["pylog.topic"], headers["pylog.partition"]) == (b"k", topic.encode(), b"0")
        assert b"schema" in headers["pylog.error"]


def test_a_dead_letter_has_what_its_record_had_in_a_transaction_too(
    broker: LocalBroker, client: SchemaRegistryClient, diverting: tuple[str, str]
) -> None:
    topic, letters = diverting
    value = AvroSerializer(client, NUMBER)({"n": 1}, SerializationContext(topic, MessageField.VALUE))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.produce(topic, b"text", key=b"key", timestamp=1_700_000_000_123, headers=[("h", b"1"), ("h", None)])
        producer.commit_transaction(30)
    found = read(broker, letters)
    assert len(found) == 2
    for row in found:
        assert (row.key, row.value, row.timestamp_ms) == (b"key", b"text", 1_700_000_000_123)
        assert list(row.headers)[:2] == [("h", b"1"), ("h", None)]


@pytest.mark.parametrize("broken", ["missing", "checked"])
def test_without_a_dead_letter_topic_that_takes_them_the_batch_is_refused_and_says_why(
    broker: LocalBroker, diverting: tuple[str, str], send: Any, broken: str
) -> None:
    topic, letters = diverting
    with Admin(broker.bootstrap_servers) as admin:
        if broken == "missing":
            admin.delete_topics([letters])
        else:
            admin.alter_configs("topic", letters, {KEYS: "true"})
    assert send(topic, b"text", b"text") == ["INVALID_RECORD"] * 2
    assert count(broker, topic) == 0


def test_more_dead_letters_than_go_at_once_are_refused(
    broker: LocalBroker, diverting: tuple[str, str], send: Any
) -> None:
    topic, letters = diverting
    # One batch, however slow the machine is: it waits for all of them, and for nothing else.
    refused = send(topic, *[b"text"] * 1_000, **{"batch.num.messages": 1_000, "linger.ms": 60_000})
    assert refused == ["INVALID_RECORD"] * 1_000
    assert count(broker, topic) == 0
    assert count(broker, letters) == 0


def read(broker: LocalBroker, topic: str) -> list[Record]:
    """All records of a topic, partition after partition."""
    with Consumer(broker.bootstrap_servers, topic, start="earliest", follow=False) as consumer:
        return list(consumer)


def test_keys_are_checked_alone_and_the_setting_changes_while_the_broker_runs(
    broker: LocalBroker, client: SchemaRegistryClient, new_topic: str
) -> None:
    made = client.register_schema(f"{new_topic}-key", Schema('"string"', "AVRO"))
    key = b"\0" + made.to_bytes(4, "big") + b"\2k"
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    def sent(key: bytes | None) -> bool:
        errors.clear()
        producer.produce(new_topic, b"text", key=key, on_delivery=lambda error, _: error and errors.append(error))
        assert producer.flush(30) == 0
        return not errors

    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(new_topic, 1, 1, {KEYS: "true"})
        assert [sent(key), sent(None), sent(b"k")] == [True, True, False]
        admin.alter_configs("topic", new_topic, {KEYS: "false"})
        assert sent(b"k")
        admin.alter_configs("topic", new_topic, {KEYS: "true"})
        assert not sent(b"k")
        # A schema that is deleted is one that a record must not name.
        client.delete_subject(f"{new_topic}-key")
        assert not sent(key)


@pytest.mark.long  # of one broker: above
@pytest.mark.slow
def test_every_broker_of_a_cluster_knows_what_another_one_has_just_registered(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 2, schema_registry=True) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topic("orders", 4, 1, {VALUES: "true"})
        SchemaRegistryClient({"url": cluster.brokers[0].schema_registry_url}).set_compatibility(level="NONE")
        registries = [RegistryClient(broker.schema_registry_url) for broker in cluster.brokers]
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                refused.append(error)

        for number in range(8):
            # Written at once to leaders of which one did not write the schema.
            schema = json.dumps({"type": "fixed", "name": "F", "size": number + 1})
            schema_id = registries[number % 2].register("orders-value", schema)
            for partition in range(4):
                value = b"\0" + schema_id.to_bytes(4, "big") + b"x" * (number + 1)
                producer.produce("orders", value, partition=partition, on_delivery=delivered)
            assert producer.flush(30) == 0
        assert refused == []
        for partition in range(4):
            producer.produce("orders", b"text", partition=partition, on_delivery=delivered)
        assert producer.flush(30) == 0
        assert [error.name() for error in refused] == ["INVALID_RECORD"] * 4


def test_a_broker_without_a_registry_takes_nothing_for_such_a_topic(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data") as alone:
        with Admin(alone.bootstrap_servers) as admin:
            admin.create_topic("orders", 1, 1, {VALUES: "true"})
        producer = Producer({"bootstrap.servers": alone.bootstrap_servers})
        errors: list[KafkaError] = []
        producer.produce("orders", b"text", on_delivery=lambda error, _: error and errors.append(error))
        assert producer.flush(30) == 0
        assert [error.name() for error in errors] == ["POLICY_VIOLATION"]
