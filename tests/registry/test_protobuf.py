"""Protobuf schemas in the registry of a real broker, with Confluent's client and Protobuf serializers."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory

from pylog_spark._native import compile_protobuf
from pylog_spark.registry.client import RegistryClient
from pylog_spark.registry.schemas.protobuf import parse_protobuf
from pylog_spark.testing import LocalBroker

ADDRESS = 'syntax = "proto3"; package people; message Address { string city = 1; }'
PERSON = """
syntax = "proto3";
package people;
import "people/address.proto";
import "google/protobuf/timestamp.proto";
// Somebody.
message Person {
  string name = 1;
  Address home = 2;
  google.protobuf.Timestamp born = 3;
  map<string, int32> counts = 4;
  oneof contact { string mail = 5; int64 phone = 6; }
}
"""


def proto(body: str, package: str = "p") -> Schema:
    """A schema of proto3."""
    return Schema(f'syntax = "proto3"; package {package}; {body}', "PROTOBUF")


def descriptor_of(text: str) -> str:
    """What Confluent's serializers register."""
    return base64.b64encode(parse_protobuf(text).descriptor).decode()


def message_class(files: dict[str, str], name: str) -> Any:
    """The class of a message, as generated code has it."""
    from google.protobuf import timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for file in files:
        pool.AddSerializedFile(compile_protobuf(file, files)[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_protobuf_serializers_write_and_read_through_a_topic_with_what_the_schema_imports(
    broker: LocalBroker, client: SchemaRegistryClient, new_topic: str
) -> None:
    person_class = message_class({"people/address.proto": ADDRESS, "people/person.proto": PERSON}, "people.Person")
    context = SerializationContext(new_topic, MessageField.VALUE)
    serialize = ProtobufSerializer(person_class, client, {"use.deprecated.format": False})
    people = []
    for number in range(3):
        person = person_class(name=f"name-{number}", mail="m")
        person.home.city = "Berlin"
        person.born.seconds = number
        person.counts["a"] = number
        people.append(person)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for person in people:
        producer.produce(new_topic, serialize(person, context))
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": new_topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([new_topic])
    deserialize = ProtobufDeserializer(person_class, {"use.deprecated.format": False}, client)
    read = []
    while len(read) < len(people):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        read.append(deserialize(message.value(), context))
    consumer.close()
    assert read == people
    ours = RegistryClient(broker.schema_registry_url)
    schema = ours.latest(f"{new_topic}-value").schema
    assert "oneof contact {" in schema.text
    assert "map<string, int32> counts = 4;" in schema.text
    # As other clients read it: the text, with what it imports.
    imported = ours.resolved(schema)
    assert list(imported) == ["people/address.proto"]
    compile_protobuf("person.proto", {"person.proto": schema.text, **imported})


def test_a_text_and_its_descriptor_are_the_same_schema(client: SchemaRegistryClient, subject: str) -> None:
    text = 'syntax = "proto3";\npackage p;\n\nmessage A {\n  string a = 1;\n}\n'
    commented = Schema("// Why.\n" + text, "PROTOBUF")
    known = client.register_schema(subject, Schema(text, "PROTOBUF"))
    assert client.register_schema(subject, Schema(descriptor_of(text), "PROTOBUF")) == known
    assert client.get_schema(known).schema_str == text
    assert client.register_schema(subject, commented, normalize_schemas=True) == known
    # Confluent's client keeps the id of a schema, however it is asked for, and one form of each id.
    client.clear_caches()
    assert client.get_schema(known, fmt="serialized").schema_str == descriptor_of(text)
    assert client.register_schema(subject, commented) != known
    assert client.get_latest_version(subject).schema.schema_str.startswith("// Why.")


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        pytest.param(
            "message A { int32 a = 1; }", "message A { int32 a = 1; string b = 2; }", True, True, id="a field more"
        ),
        pytest.param(
            "message A { int32 a = 1; }", "message A { int64 b = 1; }", True, True, id="another number, another name"
        ),
        pytest.param("message A { int32 a = 1; }", "message A { sint32 a = 1; }", False, False, id="another encoding"),
        pytest.param("message A { string a = 1; }", "message A { bytes a = 1; }", True, True, id="string and bytes"),
        pytest.param("message A {} message B {}", "message A {}", False, True, id="a message less"),
        pytest.param(
            "message A { B b = 1; } message B {} message C {}",
            "message A { C b = 1; } message B {} message C {}",
            False,
            False,
            id="another message",
        ),
        pytest.param(
            "message A { int32 a = 1; int32 b = 2; }",
            "message A { oneof c { int32 a = 1; int32 b = 2; } }",
            False,
            True,
            id="into a oneof",
        ),
        pytest.param(
            "message A { oneof c { int32 a = 1; int32 b = 2; } }",
            "message A { oneof c { int32 a = 1; } }",
            False,
            True,
            id="a choice less",
        ),
        pytest.param(
            "message A { map<string, int32> a = 1; }",
            "message A { map<string, string> a = 1; }",
            False,
            False,
            id="another map",
        ),
        pytest.param(
            "message A { E e = 1; } enum E { X = 0; }",
            "message A { E e = 1; } enum E { X = 0; Y = 1; }",
            True,
            True,
            id="enum",
        ),
        pytest.param(
            "message A { message B { int32 a = 1; } }",
            "message A { message B { string a = 1; } }",
            False,
            False,
            id="nested",
        ),
        pytest.param(
            "message A { repeated int32 a = 1; }", "message A { int32 a = 1; }", False, False, id="no longer repeated"
        ),
    ],
)
def test_protobuf_schemas_are_compared_as_confluents_registry_does(
    client: SchemaRegistryClient, subject: str, old: str, new: str, backward: bool, forward: bool
) -> None:
    client.set_compatibility(subject_name=subject, level="NONE")
    client.register_schema(subject, proto(old))
    for level, expected in (("BACKWARD", backward), ("FORWARD", forward), ("FULL", backward and forward)):
        client.set_compatibility(subject_name=subject, level=level)
        assert client.test_compatibility(subject, proto(new)) is expected, level
    client.set_compatibility(subject_name=subject, level="FULL")
    assert not client.test_compatibility(subject, proto(old, package="q"))


def test_imported_messages_are_compared_too(client: SchemaRegistryClient, new_subject: Callable[[], str]) -> None:
    inner, outer = new_subject(), new_subject()
    client.set_compatibility(subject_name=inner, level="NONE")
    for body in ("string city = 1;", "string city = 1; string street = 2;", "int32 city = 1;"):
        client.register_schema(inner, proto(f"message Address {{ {body} }}", "people"))

    def person(version: int) -> Schema:
        text = 'syntax = "proto3"; package people; import "address.proto"; message Person { Address home = 1; }'
        return Schema(text, "PROTOBUF", [SchemaReference("address.proto", inner, version)])

    client.register_schema(outer, person(1))
    assert client.test_compatibility(outer, person(2))
    assert not client.test_compatibility(outer, person(3))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param('syntax = "proto3"; message A { string a = ; }', "expected an integer", id="no number"),
        pytest.param('syntax = "proto3"; message A { B b = 1; }', "'B' is not defined", id="no such type"),
        pytest.param('syntax = "proto3"; import "none.proto";', "'none.proto' not found", id="no such import"),
        pytest.param(
            'syntax = "proto3"; message A { string a = 1; int32 b = 1; }', "already used", id="a number twice"
        ),
        pytest.param('syntax = "proto3"; ' + "message A {" * 5_000 + "}" * 5_000, "recursion limit", id="deep"),
        pytest.param("aGVsbG8gd29ybGQ=", "failed to decode", id="no descriptor"),
        pytest.param('syntax = "proto3"; // ' + "x" * 300_000, "at most 262144 characters", id="large"),
    ],
)
def test_what_is_no_protobuf_schema_is_refused_with_a_sentence(
    client: SchemaRegistryClient, subject: str, text: str, sentence: str
) -> None:
    with pytest.raises(SchemaRegistryError, match=sentence) as refused:
        client.register_schema(subject, Schema(text, "PROTOBUF"))
    assert refused.value.error_code == 42201
