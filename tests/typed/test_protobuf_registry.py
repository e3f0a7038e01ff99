"""Typed reads and writes of Protobuf by the schemas of a registry, which Confluent's serializers register and read."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from pylog_spark.testing import LocalBroker
from tests.spark.support import Topic
from tests.typed.flights import TYPED, Airport, F, Flight, descriptors
from tests.typed.support import rows, schema

LONG, TEXT = LongType(), StringType()
TWO = 'syntax = "proto3"; package flights; message Flight { int64 id = 1; } message Airport { string code = 1; }'
#: The same messages at other places, and a field more.
MOVED = TWO.replace("message Flight {", "message New {} message Flight { string by = 3;")


@pytest.fixture
def options(registry_broker: LocalBroker, registered: Topic) -> dict[str, str]:
    """The options of a read by the newest schema of the topic's subject."""
    url = registry_broker.schema_registry_url
    return {"valueFormat": "protobuf", "valueSubject": f"{registered.name}-value", "schema.registry.url": url}


def register(broker: LocalBroker, subject: str, text: str, *references: SchemaReference) -> int:
    """The id of a schema, which becomes the newest of a subject."""
    with closing(SchemaRegistryClient({"url": broker.schema_registry_url})) as client:
        return int(client.register_schema(subject, Schema(text, "PROTOBUF", list(references))))


def value(number: int, place: bytes, message: bytes) -> bytes:
    """A message behind the id of a schema and its place there."""
    return b"\x00" + number.to_bytes(4, "big") + place + message


def test_columns_and_message_are_those_of_the_newest_schema_of_a_subject(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    field = SerializationContext(registered.name, MessageField.VALUE)
    with closing(SchemaRegistryClient({"url": registry_broker.schema_registry_url})) as client:
        write = ProtobufSerializer(Flight, client, {"use.deprecated.format": False})
        values = [write(Flight(id=number, to={"code": "BER"}), field) for number in (1, 2)]
    registered.put([*values, None])
    given = {"kafka.bootstrap.servers": registered.servers, "subscribe": registered.name, "recordPrefix": "r_"}
    assert str(PylogDataSource({**given, **options}).schema()).startswith(
        "`id` bigint, `to` struct<`code`: string>, `tags` array<string>, `at` timestamp, `seats` map<int, string>, `offset` int, `r_key`"
    )
    columns = schema(id=LONG, to=schema(code=TEXT))
    read = rows(registered, columns, mode="FAILFAST", **options)
    assert sorted(read, key=str) == [(1, {"code": "BER"}), (2, {"code": "BER"}), (None, None)]


def test_a_message_is_read_wherever_the_schema_of_its_writer_has_it(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    subject = options["valueSubject"]
    first, moved = register(registry_broker, subject, TWO), register(registry_broker, subject, MOVED)
    flight, airport = b"\x08\x05", b"\x0a\x03BER"
    registered.put(
        [
            value(first, b"\x00", flight),
            value(moved, b"\x02\x02", flight + b"\x1a\x01x"),
            value(first, b"\x02\x02", airport),
            value(moved, b"\x02\x04", airport),
            value(moved, b"\x00", b""),
            value(999, b"\x00", flight),
            flight,
        ]
    )
    options["mode"] = "DROPMALFORMED"
    flights = rows(registered, schema(id=LONG, by=TEXT), **options, valueMessage="Flight")
    assert sorted(flights, key=str) == [(5, "x"), (5, None)]
    assert rows(registered, schema(code=TEXT), **options, valueMessage="flights.Airport") == [("BER",)] * 2
    # With descriptors that are given, the place is that of the writer's schema, too.
    del options["valueSubject"]
    assert rows(registered, schema(code=TEXT), **{**TYPED, **options, "valueMessage": "Airport"}) == [("BER",)] * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (value(999, b"\x00", b""), "begins with the id of a schema that the registry does not have"),
        (b"\x08\x05", "does not begin with the id of a schema"),
    ],
)
def test_what_begins_with_no_id_or_an_unknown_one_is_damaged(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str], given: bytes, said: str
) -> None:
    register(registry_broker, options["valueSubject"], TWO)
    registered.put([given])
    with pytest.raises(PylogError, match=said):
        rows(registered, schema(id=LONG), mode="FAILFAST", **options)


def test_schemas_may_import_others(registry_broker: LocalBroker, registered: Topic, options: dict[str, str]) -> None:
    base = (
        'syntax = "proto3"; package base; import "google/protobuf/timestamp.proto"; '
        "message At { google.protobuf.Timestamp at = 1; }"
    )
    register(registry_broker, f"{registered.name}-base", base)
    reference = SchemaReference("base.proto", f"{registered.name}-base", 1)
    text = 'syntax = "proto3"; import "base.proto"; message Seen { base.At first = 1; }'
    number = register(registry_broker, options["valueSubject"], text, reference)
    registered.put([value(number, b"\x00", b"\x0a\x04\x0a\x02\x08\x01")])
    columns = schema(first=schema(at=TimestampType()))
    ((first,),) = rows(registered, columns, mode="FAILFAST", **options)
    assert first["at"].timestamp() == 1.0


@pytest.mark.slow
def test_a_registry_is_told_of_schemas_and_confluents_deserializer_reads_what_is_written(
    spark: Any, registry_broker: LocalBroker, registered: Topic, options: dict[str, str], checkpoint: str
) -> None:
    frame = spark.sql("select id + 1 as id, named_struct('code', concat('A', id)) as to from range(3)")
    given = {**TYPED, "schema.registry.url": options["schema.registry.url"]}
    registered.save(frame, **given)
    records = registered.read().collect()
    field = SerializationContext(registered.name, MessageField.VALUE)
    with closing(SchemaRegistryClient({"url": options["schema.registry.url"]})) as client:
        assert client.get_latest_version(options["valueSubject"]).schema.schema_type == "PROTOBUF"
        read = ProtobufDeserializer(Flight, {"use.deprecated.format": False}, client)
        flights = [read(bytes(row.value), field) for row in records]
        assert sorted((each.id, each.to.code) for each in flights) == [
            (number + 1, f"A{number}") for number in range(3)
        ]
        # The second message of the subject's newest schema, by a stream.
        columns = "id bigint, to struct<code: string>"
        airports = registered.read_stream(columns, **options).selectExpr("to.code as code")
        registered.save_stream(airports, checkpoint, **options, valueMessage="Airport")
        read = ProtobufDeserializer(Airport, {"use.deprecated.format": False}, client)
        written = [bytes(row.value) for row in registered.read().collect()]
        codes = [read(each, field).code for each in written if each[5:7] == b"\x02\x02"]
    assert sorted(codes) == ["A0", "A1", "A2"]
    assert registered.read("code string", **options, valueMessage="Airport", mode="DROPMALFORMED").count() == 3
    assert registered.read(columns, **options, mode="DROPMALFORMED").count() == 3


def imported() -> dict[str, str]:
    """Options of descriptors of which one imports another that is not Google's."""
    found = descriptors()
    other = found.file.add(name="other.proto", package="other", syntax="proto3")
    trip = other.message_type.add(name="Trip")
    trip.field.add(name="id", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_INT64)
    other.dependency.append("flights.proto")
    text = base64.b64encode(found.SerializeToString()).decode()
    return {"valueSchema": text, "valueMessage": "other.Trip", "valueSubject": ""}


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        (schema(id=LONG), {"valueSubject": ""}, "or valueSubject, whose newest schema it is, with schema.registry.url"),
        (schema(id=LONG), {"schema.registry.url": ""}, "needs schema.registry.url beside it"),
        (schema(id=LONG), {"schemaIdPrefix": "true"}, "has no meaning in a write"),
        (schema(id=LONG), {"valueMessage": "Train"}, "have no message Train; they have flights.Flight"),
        (schema(id=TEXT), {}, "flights.Flight.id .* cannot be made of a column of the type Utf8"),
        (schema(train=LONG), {}, "has no field train"),
        (schema(id=LONG), imported(), "imports flights.proto, and so it cannot be registered"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_registered(
    registry_broker: LocalBroker,
    registered: Topic,
    options: dict[str, str],
    columns: StructType,
    given: dict[str, str],
    said: str,
) -> None:
    register(registry_broker, options["valueSubject"], TWO)
    options = {"kafka.bootstrap.servers": registered.servers, "topic": registered.name, **options, **given}
    source = PylogDataSource({name: text for name, text in options.items() if text})
    with pytest.raises(PylogError, match=said):
        source.writer(columns, False)
    with closing(SchemaRegistryClient({"url": registry_broker.schema_registry_url})) as client:
        assert client.get_versions(f"{registered.name}-value") == [1]


def test_an_id_is_looked_up_or_read_over_and_not_both(registered: Topic, options: dict[str, str]) -> None:
    with pytest.raises(PylogError, match="leave one of them out"):
        rows(registered, schema(id=LONG), schemaIdPrefix="true", **options)


def test_a_subject_of_another_type_is_refused(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    with closing(SchemaRegistryClient({"url": registry_broker.schema_registry_url})) as client:
        client.register_schema(options["valueSubject"], Schema('"string"', "AVRO"))
    with pytest.raises(PylogError, match="is of the type AVRO, not PROTOBUF"):
        rows(registered, schema(id=LONG), **options)
