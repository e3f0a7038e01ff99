"""The registry of a real broker with Confluent's own client and Avro serializers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

from pylog_spark.client import Admin
from pylog_spark.registry.client import RegistryClient
from pylog_spark.testing import LocalBroker, LocalCluster

NAME = '{"name":"name","type":"string"}'
AGE = '{"name":"age","type":"int"}'
AGE_OR_0 = '{"name":"age","type":"int","default":0}'


def record(*fields: str) -> Schema:
    """An Avro record of these fields."""
    return Schema(f'{{"type":"record","name":"Person","namespace":"people","fields":[{",".join(fields)}]}}', "AVRO")


def code_of(call: Callable[..., object], *args: object, **named: object) -> int:
    """The error code with which the registry refuses a call."""
    with pytest.raises(SchemaRegistryError) as refused:
        call(*args, **named)
    return int(refused.value.error_code)


def test_avro_serializers_write_and_read_through_a_topic(
    broker: LocalBroker, client: SchemaRegistryClient, new_topic: str
) -> None:
    context = SerializationContext(new_topic, MessageField.VALUE)
    people = [{"name": f"name-{number}", "age": number} for number in range(5)]
    serialize = AvroSerializer(client, record(NAME, AGE).schema_str)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for person in people:
        producer.produce(new_topic, serialize(person, context))
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": new_topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([new_topic])
    # The reader's schema is a later one.
    deserialize = AvroDeserializer(
        client, record(NAME, AGE, '{"name":"city","type":"string","default":"-"}').schema_str
    )
    read: list[Any] = []
    while len(read) < len(people):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        read.append(deserialize(message.value(), context))
    consumer.close()
    assert read == [{**person, "city": "-"} for person in people]
    assert client.get_latest_version(f"{new_topic}-value").version == 1


def test_an_incompatible_schema_is_refused_by_the_level_in_force(client: SchemaRegistryClient, subject: str) -> None:
    first = client.register_schema(subject, record(NAME))
    assert code_of(client.register_schema, subject, record(NAME, AGE)) == 409
    assert not client.test_compatibility(subject, record(NAME, AGE))
    second = client.register_schema(subject, record(NAME, AGE_OR_0))
    assert second > first
    client.set_compatibility(subject_name=subject, level="FORWARD_TRANSITIVE")
    assert client.get_compatibility(subject) == "FORWARD_TRANSITIVE"
    assert code_of(client.register_schema, subject, record(AGE_OR_0)) == 409
    client.set_compatibility(subject_name=subject, level="NONE")
    third = client.register_schema(subject, Schema('"int"', "AVRO"))
    assert client.get_versions(subject) == [1, 2, 3]
    assert [client.get_version(subject, number).schema_id for number in (1, 2, 3)] == [first, second, third]


def test_a_schema_that_is_there_keeps_its_id_in_every_subject_and_however_it_is_spaced(
    client: SchemaRegistryClient, new_subject: Callable[[], str]
) -> None:
    one, other = new_subject(), new_subject()
    known = client.register_schema(one, record(NAME, '{"name":"n","type":"long"}'))
    spaced = Schema(record(NAME, '{"name": "n",  "type": "long"}').schema_str.replace(",", " ,\n"), "AVRO")
    assert client.register_schema(one, spaced) == client.register_schema(other, spaced) == known
    assert client.get_versions(one) == [1]
    assert client.lookup_schema(other, spaced).schema_id == known
    turned = Schema(
        '{"namespace":"people","name":"Person","fields":[{"type":"string","x":1,"name":"name","a":2}],"type":"record"}',
        "AVRO",
    )
    straight = Schema(record('{"name":"name","type":"string","a":2,"x":1}').schema_str, "AVRO")
    client.set_compatibility(subject_name=one, level="NONE")
    normal = client.register_schema(one, turned, normalize_schemas=True)
    assert client.register_schema(one, straight, normalize_schemas=True) == normal


def test_what_is_not_there_or_wrong_has_confluents_error_codes(client: SchemaRegistryClient, subject: str) -> None:
    assert code_of(client.get_latest_version, subject) == 40401
    assert code_of(client.get_schema, 2_000_000) == 40403
    assert code_of(client.register_schema, subject, Schema('{"type":"recrod"}', "AVRO")) == 42201
    assert code_of(client.set_compatibility, subject, "BACKWARDS") == 42203
    assert code_of(client.get_compatibility, subject) == 40408
    client.register_schema(subject, record(NAME))
    assert code_of(client.get_version, subject, 7) == 40402
    assert code_of(client.lookup_schema, subject, record(AGE)) == 40403
    assert code_of(client.delete_subject, "none") == 40401
    assert code_of(client.delete_version, subject, 1, True) == 40407


def test_deletions_are_soft_first_and_an_id_is_never_given_again(client: SchemaRegistryClient, subject: str) -> None:
    known = client.register_schema(subject, record(NAME))
    last = client.register_schema(subject, record(NAME, AGE_OR_0))
    assert client.delete_version(subject, 2) == 2
    assert client.get_versions(subject) == [1]
    assert client.delete_subject(subject) == [1]
    assert subject not in client.get_subjects()
    assert client.get_schema(last).schema_str == record(NAME, AGE_OR_0).schema_str
    client.clear_caches()
    assert client.register_schema(subject, record(NAME)) == known
    assert client.get_versions(subject) == [3]
    client.delete_subject(subject)
    assert client.delete_subject(subject, permanent=True) == [1, 2, 3]
    assert code_of(client.get_latest_version, subject) == 40401
    assert client.register_schema(subject, record(NAME, '{"name":"new","type":"int"}')) > last


def test_a_schema_uses_types_that_another_one_defines(
    client: SchemaRegistryClient, new_subject: Callable[[], str]
) -> None:
    inner, outer = new_subject(), new_subject()
    inner_id = client.register_schema(inner, record(NAME))
    pair = Schema(
        '{"type":"record","name":"Pair","namespace":"people","fields":[{"name":"one","type":"Person"},{"name":"other",'
        '"type":"people.Person"}]}',
        "AVRO",
        [SchemaReference("people.Person", inner, 1)],
    )
    outer_id = client.register_schema(outer, pair)
    assert outer_id != inner_id
    found = client.get_schema(outer_id)
    assert [(each.name, each.subject, each.version) for each in found.references] == [("people.Person", inner, 1)]
    assert code_of(client.delete_subject, inner) == 42206
    client.delete_subject(outer)
    assert client.delete_subject(inner) == [1]


def test_a_registry_that_is_read_only_changes_nothing(client: SchemaRegistryClient, subject: str) -> None:
    client.register_schema(subject, record(NAME))
    client.update_mode(subject, "READONLY")
    assert code_of(client.register_schema, subject, record(NAME, AGE_OR_0)) == 42205
    assert code_of(client.delete_subject, subject) == 42205
    client.update_mode(subject, "READWRITE")
    assert client.delete_subject(subject) == [1]


def test_a_restart_and_a_kill_keep_every_subject_level_and_id(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", schema_registry=True) as broker:
        client = SchemaRegistryClient({"url": broker.schema_registry_url})
        ids = [
            client.register_schema(f"s{number}", record(f'{{"name":"f{number}","type":"int"}}')) for number in range(3)
        ]
        client.set_compatibility(subject_name="s1", level="FULL")
        client.delete_subject("s2")
        for stop in (broker.terminate, broker.kill):
            stop()
            broker.start()
            fresh = SchemaRegistryClient({"url": broker.schema_registry_url})
            assert fresh.get_subjects() == ["s0", "s1"]
            assert fresh.get_compatibility("s1") == "FULL"
            assert [fresh.register_schema(f"s{number}", fresh.get_schema(ids[number])) for number in (0, 1)] == ids[:2]
        ours = RegistryClient(broker.schema_registry_url)
        assert ours.latest("s0").id == ids[0]
        with Admin(broker.bootstrap_servers) as admin:
            (described,) = admin.configs("topic", ["_schemas"])
            assert {entry.name: entry.value for entry in described.configs}["cleanup.policy"] == "compact"


@pytest.mark.long  # one broker that writes: above
@pytest.mark.slow
def test_brokers_that_write_at_once_agree_on_every_id(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with LocalCluster(tmp_path, 2, schema_registry=True) as cluster:
        clients = [RegistryClient(broker.schema_registry_url) for broker in cluster.brokers]

        def register(number: int) -> tuple[int, int]:
            text = f'{{"type":"fixed","name":"F{number // 2}","size":{number // 2 + 1}}}'
            return number // 2, clients[number % 2].register(f"subject-{number // 2}", text)

        # Each schema by both brokers at the same time.
        with ThreadPoolExecutor(4) as pool:
            given = list(pool.map(register, range(16)))
        by_subject = {subject: {given_id for each, given_id in given if each == subject} for subject in range(8)}
        assert all(len(ids) == 1 for ids in by_subject.values()), by_subject
        assert len(set.union(*by_subject.values())) == 8
        for client in clients:
            for subject, (schema_id,) in by_subject.items():
                assert client.latest(f"subject-{subject}").id == schema_id
                assert client.latest(f"subject-{subject}").version == 1
        # What one has just written, the other finds.
        made = clients[0].register("late", '"string"')
        assert clients[1].schema_by_id(made).text == '"string"'
