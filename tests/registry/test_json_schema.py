"""JSON Schemas in the registry of a real broker, with Confluent's client and JSON serializers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pylog_spark.registry.client import RegistryClient
from pylog_spark.testing import LocalBroker


def json_schema(document: Any, *references: SchemaReference) -> Schema:
    """A schema as Confluent's client has it."""
    return Schema(json.dumps(document), "JSON", list(references))


def closed(**properties: Any) -> dict[str, Any]:
    """A schema of objects with these properties alone."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


STRING, NUMBER, INTEGER = ({"type": kind} for kind in ("string", "number", "integer"))


def test_json_serializers_write_and_read_through_a_topic(
    broker: LocalBroker, client: SchemaRegistryClient, new_topic: str
) -> None:
    context = SerializationContext(new_topic, MessageField.VALUE)
    schema = json.dumps({"title": "Person", **closed(name=STRING, age=INTEGER), "required": ["name"]})
    serialize = JSONSerializer(schema, client)
    people = [{"name": f"name-{number}", "age": number} for number in range(5)]
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for person in people:
        producer.produce(new_topic, serialize(person, context))
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": new_topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([new_topic])
    deserialize = JSONDeserializer(schema, schema_registry_client=client)
    read: list[Any] = []
    while len(read) < len(people):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        read.append(deserialize(message.value(), context))
    consumer.close()
    assert read == people
    found = RegistryClient(broker.schema_registry_url).latest(f"{new_topic}-value").schema
    assert found.schema_type == "JSON"
    assert json.loads(found.text)["title"] == "Person"


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        pytest.param(
            closed(a=STRING), closed(a=STRING, b=STRING), True, False, id="a property more of a closed schema"
        ),
        pytest.param(
            {"properties": {"a": STRING}}, {"properties": {"a": STRING, "b": STRING}}, False, True, id="of an open one"
        ),
        pytest.param(INTEGER, NUMBER, True, False, id="an integer becomes a number"),
        pytest.param(STRING, {"type": ["string", "null"]}, True, False, id="a type more"),
        pytest.param(STRING, INTEGER, False, False, id="another type"),
        pytest.param({"enum": ["a"]}, {"enum": ["a", "b"]}, True, False, id="a value more"),
        pytest.param({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 9}, True, False, id="longer"),
        pytest.param({"oneOf": [STRING]}, {"oneOf": [STRING, INTEGER]}, True, False, id="a choice more"),
        pytest.param(
            {**closed(a=STRING, b=STRING), "required": ["a", "b"]},
            {**closed(a=STRING, b=STRING), "required": ["a"]},
            True,
            False,
            id="less required",
        ),
        pytest.param(
            closed(a=STRING),
            {**closed(a=STRING, b={**STRING, "default": ""}), "required": ["b"]},
            True,
            False,
            id="default",
        ),
    ],
)
def test_json_schemas_are_compared_as_confluents_registry_does(
    client: SchemaRegistryClient, subject: str, old: Any, new: Any, backward: bool, forward: bool
) -> None:
    client.set_compatibility(subject_name=subject, level="NONE")
    client.register_schema(subject, json_schema(old))
    for level, expected in (("BACKWARD", backward), ("FORWARD", forward), ("FULL", backward and forward)):
        client.set_compatibility(subject_name=subject, level=level)
        assert client.test_compatibility(subject, json_schema(new)) is expected, level


def test_a_json_schema_refers_to_others_and_to_itself(
    client: SchemaRegistryClient, new_subject: Callable[[], str]
) -> None:
    inner, outer = new_subject(), new_subject()
    client.register_schema(inner, json_schema(closed(city=STRING)))
    reference = SchemaReference("https://example.com/address.json", inner, 1)
    tree = {
        "$id": "https://example.com/person.json",
        "type": "object",
        "properties": {"home": {"$ref": "address.json"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    }
    made = client.register_schema(outer, json_schema(tree, reference))
    assert [each.subject for each in client.get_schema(made).references] == [inner]
    assert client.test_compatibility(outer, json_schema(tree, reference))
    # What it refers to is compared, too.
    client.register_schema(inner, json_schema(closed(city=STRING, street=STRING)))
    later = SchemaReference("https://example.com/address.json", inner, 2)
    assert client.test_compatibility(outer, json_schema(tree, later))
    client.register_schema(outer, json_schema(tree, later))
    assert not client.test_compatibility(outer, json_schema(tree, reference))


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"])
def test_every_draft_has_its_own_words_for_names_and_bounds(
    client: SchemaRegistryClient, subject: str, draft: str
) -> None:
    is_4 = draft == "draft-04"
    host = "https" if "/" in draft else "http"
    naming, parts = ("id" if is_4 else "$id"), ("$defs" if "/" in draft else "definitions")

    def schema(most: int) -> Schema:
        bound = {"maximum": most, "exclusiveMaximum": True} if is_4 else {"exclusiveMaximum": most}
        # A property that is called as a keyword, and a keyword of the user's own.
        properties = {
            "id": {"type": "string"},
            "$id": {"$ref": "other.json#/properties/id"},
            "n": {"$ref": f"#/{parts}/n"},
        }
        other = {naming: "other.json", "properties": {"id": {"type": "string"}}}
        return json_schema(
            {
                "$schema": f"{host}://json-schema.org/{draft}/schema",
                naming: "https://example.com/root.json",
                "x-id": "mine",
                parts: {"n": {"type": "number", **bound}, "other": other},
                "properties": properties,
            }
        )

    client.register_schema(subject, schema(5))
    assert client.test_compatibility(subject, schema(6))
    assert not client.test_compatibility(subject, schema(4))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param('{"type": "strnig"}', "is not valid under any of the given schemas", id="no type"),
        pytest.param('{"minimum": "1"}', "is not of type 'number'", id="no number"),
        pytest.param('{"$ref": "#/definitions/none"}', "leads nowhere", id="nowhere"),
        pytest.param('{"$ref": "https://example.com/x"}', "leads nowhere", id="nothing is fetched"),
        pytest.param('{"$ref": "#"}', "leads back to itself", id="itself"),
        pytest.param('{"a": 1', "is JSON", id="no JSON"),
        pytest.param("[1]", "is an object, true or false", id="a list"),
        pytest.param('{"maximum": 1e999}', "too large", id="too large a number"),
        pytest.param('{"not":' * 200 + "{}" + "}" * 200, "nested deeper", id="deep"),
    ],
)
def test_what_is_no_json_schema_is_refused_with_a_sentence(
    client: SchemaRegistryClient, subject: str, text: str, sentence: str
) -> None:
    with pytest.raises(SchemaRegistryError, match=sentence) as refused:
        client.register_schema(subject, Schema(text, "JSON"))
    assert refused.value.error_code == 42201


def test_schemas_of_two_types_in_one_subject_are_not_compatible(client: SchemaRegistryClient, subject: str) -> None:
    assert sorted(client.get_schema_types()) == ["AVRO", "JSON", "PROTOBUF"]
    client.register_schema(subject, Schema('"string"', "AVRO"))
    with pytest.raises(SchemaRegistryError, match="another type") as refused:
        client.register_schema(subject, json_schema(STRING))
    assert refused.value.error_code == 409
    client.set_compatibility(subject_name=subject, level="NONE")
    assert client.register_schema(subject, json_schema(STRING)) != client.get_version(subject, 1).schema_id
