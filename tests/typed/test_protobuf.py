"""Typed reads and writes of Protobuf: options, columns, what is refused; and in Spark, there and back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from pylog_spark.testing import LocalBroker
from tests.spark.support import Topic
from tests.typed.flights import SET, TYPED, Airport, F, Flight, descriptors, flight
from tests.typed.support import read, rows, schema

INT, LONG, TEXT, TIME = IntegerType(), LongType(), StringType(), TimestampType()


@pytest.fixture
def topic(make_topic: Callable[..., Topic]) -> Topic:
    """A topic of one partition."""
    return make_topic()


def test_columns_are_the_fields_that_are_named(topic: Topic) -> None:
    topic.put([flight(id=1, to={"code": "BER"}, tags=["a", "b"]), flight(), None, b"\xff"])
    columns = schema(to=schema(code=TEXT), tags=ArrayType(TEXT), _corrupt_record=TEXT, id=LONG)
    assert rows(topic, columns, **TYPED) == [
        ({"code": "BER"}, ["a", "b"], None, 1),
        (None, [], None, None),
        (None, None, None, None),
        (None, None, "\ufffd", None),
    ]


def test_only_what_is_asked_for_is_decoded(topic: Topic) -> None:
    topic.put([b"\x08\x01\x12\x01\xff"])  # What should be an airport is none.
    assert rows(topic, schema(id=LONG), **TYPED, mode="FAILFAST") == [(1,)]
    with pytest.raises(PylogError, match="the value of the record at offset 0 is no message of Protobuf"):
        rows(topic, schema(to=schema(code=TEXT)), **TYPED, mode="FAILFAST")


def test_a_key_is_one_column_and_bad_ones_go_to_their_topic(topic: Topic, make_topic: Callable[..., Topic]) -> None:
    bad = make_topic()
    topic.put(["x", "y"], key=pa.array([flight(id=1), b"\x08"], pa.binary()))
    typed = {name.replace("value", "key"): text for name, text in TYPED.items()}
    columns = schema(key=schema(id=LONG), offset=LONG)
    assert rows(topic, columns, **typed, mode="DROPMALFORMED", badRecordsTopic=bad.name) == [({"id": 1}, 0)]
    assert rows(bad, schema(value=TEXT), valueFormat="string") == [("y",)]


def test_maps_have_keys_of_any_type_and_fields_the_names_of_the_records_columns(topic: Topic) -> None:
    topic.put([flight(seats={7: "C", 0: ""}, offset=2**32 - 1)])
    columns = schema(seats=MapType(INT, TEXT), offset=LONG, r_offset=LONG)
    ((seats, offset, at),) = rows(topic, columns, **TYPED, recordPrefix="r_")
    assert (dict(seats), offset, at) == ({7: "C", 0: ""}, 2**32 - 1, 0)


@pytest.mark.parametrize(("syntax", "repaired"), [("proto2", True), ("proto3", False)])
def test_texts_that_are_no_utf8_are_repaired_in_proto2_and_damage_records_of_proto3(
    topic: Topic, syntax: str, repaired: bool
) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
    message = file.message_type.add(name="T")
    entry = message.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_INT32)
    message.field.add(name="s", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    message.field.add(name="m", number=2, label=F.LABEL_REPEATED, type=F.TYPE_MESSAGE, type_name=".t.T.MEntry")
    found = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()
    topic.put([b"\x0a\x02a\xb9", b"\x12\x06\x0a\x02a\xb9\x10\x01"])
    typed = {"valueFormat": "protobuf", "valueSchema": found, "valueMessage": "T", "mode": "DROPMALFORMED"}
    read = rows(topic, schema(s=TEXT, m=MapType(TEXT, INT)), **typed)
    assert read == ([("a\ufffd", []), (None, [("a\ufffd", 1)])] if repaired else [])


def test_without_a_schema_all_fields_are_there_with_the_types_of_from_protobuf(topic: Topic, tmp_path: Path) -> None:
    file = tmp_path / "flights.desc"
    file.write_bytes(SET.SerializeToString())
    options = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "recordPrefix": "r_", **TYPED}
    source = PylogDataSource({**options, "valueSchema": f"@{file}", "valueMessage": "Flight"})
    assert str(source.schema()).startswith(
        "`id` bigint, `to` struct<`code`: string>, `tags` array<string>, `at` timestamp, `seats` map<int, string>, "
        "`offset` int, `r_key` binary, `r_topic` string"
    )


def test_what_a_registrys_serializers_begin_with_is_passed_over_where_it_names_the_message(topic: Topic) -> None:
    airport = b"\x0a\x03BER"
    topic.put([b"\x00\x00\x00\x00\x09\x02\x02" + airport, b"\x00\x00\x00\x00\x09\x00" + airport, airport])
    typed = {**TYPED, "valueMessage": "Airport", "schemaIdPrefix": "true"}
    assert rows(topic, schema(code=TEXT), **typed) == [("BER",), (None,), (None,)]


def test_what_confluents_serializers_write_is_read_by_the_descriptors(
    registry_broker: LocalBroker, registered: Topic
) -> None:
    field = SerializationContext(registered.name, MessageField.VALUE)
    with closing(SchemaRegistryClient({"url": registry_broker.schema_registry_url})) as client:
        flights, airports = (
            ProtobufSerializer(kind, client, {"use.deprecated.format": False}) for kind in (Flight, Airport)
        )
        values = [flights(Flight(id=1, to={"code": "BER"}), field), airports(Airport(code="OSL"), field)]
    assert [value[5:7] for value in values] == [b"\x00\x08", b"\x02\x02"]
    registered.put(values)
    prefixed = {**TYPED, "schemaIdPrefix": "true", "mode": "DROPMALFORMED"}
    assert rows(registered, schema(id=LONG, to=schema(code=TEXT)), **prefixed) == [(1, {"code": "BER"})]
    assert rows(registered, schema(code=TEXT), **{**prefixed, "valueMessage": "Airport"}) == [("OSL",)]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (schema(nothing=INT), {}, "The message flights.Flight has no field nothing|has no field nothing"),
        (schema(id=INT), {}, "flights.Flight.id .* cannot be shown by a column of the type Int32"),
        (schema(at=DayTimeIntervalType()), {}, "flights.Flight.at .* cannot be shown by a column"),
        (schema(id=LONG), {"valueMessage": "Train"}, "have no message Train; they have flights.Flight"),
        (schema(id=LONG), {"valueSchema": "AAAA"}, "FileDescriptorSet"),
        (schema(id=LONG), {"valueMessage": None}, "needs valueSchema=@file .* and valueMessage"),
        (schema(id=LONG), {"valueSchema": None}, "needs valueSchema=@file"),
        (schema(id=LONG), {"valueFormat": "json", "valueSchema": None}, "valueMessage has no meaning without"),
        (
            schema(id=LONG),
            {"valueFormat": "json", "valueSchema": None, "valueMessage": None, "schemaIdPrefix": "true"},
            "schemaIdPrefix has no meaning without",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(
    topic: Topic, columns: StructType, options: dict[str, str | None], said: str
) -> None:
    given = {name: text for name, text in {**TYPED, **options}.items() if text is not None}
    with pytest.raises(PylogError, match=said):
        read(topic, columns, **given)


def test_a_message_that_holds_itself_is_read_by_the_columns_that_are_named(topic: Topic) -> None:
    typed = {**TYPED, "valueMessage": "flights.Tree"}
    options = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, **typed}
    with pytest.raises(PylogError, match=r"flights\.Tree\.trees holds a message of the type flights\.Tree in itself"):
        PylogDataSource(options).schema()
    topic.put([b"\x0a\x02\x0a\x00"])
    columns = schema(trees=ArrayType(schema(trees=ArrayType(StructType([])))))
    assert rows(topic, columns, **typed) == [([{"trees": [{}]}],)]


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (schema(id=TEXT), {}, "flights.Flight.id .* cannot be made of a column of the type Utf8"),
        (schema(nothing=INT), {}, "has no field nothing"),
        (schema(id=LONG), {"valueFormat": "json", "valueMessage": None}, "has no meaning in a write"),
        (schema(id=LONG), {"valueSchema": None}, "needs valueSchema=@file"),
    ],
)
def test_what_cannot_be_written_is_refused(
    servers: str, columns: StructType, options: dict[str, str | None], said: str
) -> None:
    given = {name: text for name, text in {**TYPED, **options}.items() if text is not None}
    source = PylogDataSource({"kafka.bootstrap.servers": servers, "topic": "t", **given})
    with pytest.raises(PylogError, match=said):
        source.writer(columns, False)


@pytest.mark.long  # by a batch of the registry: test_protobuf_registry.py
@pytest.mark.slow
def test_a_frame_comes_back_as_it_was_written_by_batch_and_stream(
    spark: Any, make_topic: Callable[..., Topic], checkpoint: str
) -> None:
    topic = make_topic()
    columns = "id bigint, to struct<code: string>, tags array<string>, at timestamp, seats map<int, string>"
    frame = topic.spark.sql(
        "select id + 1 as id, named_struct('code', concat('A', id)) as to, array('a', 'b') as tags, timestamp_micros(id - 1) as at, "
        "map(cast(id as int), 'x') as seats from range(4)"
    )
    topic.save(frame, **TYPED)
    written = [Flight.FromString(bytes(row.value)) for row in topic.read().collect()]
    assert sorted((each.id, each.to.code, each.at.ToMicroseconds()) for each in written) == [
        (number + 1, f"A{number}", number - 1) for number in range(4)
    ]
    back = topic.read(columns, **TYPED, mode="FAILFAST")
    assert sorted(back.collect(), key=lambda row: row.id) == frame.orderBy("id").collect()
    topic.save_stream(topic.read_stream(columns, **TYPED), checkpoint, **TYPED)
    assert topic.read(columns, **TYPED).count() == 8


@pytest.mark.long  # test_as_from_protobuf.py
@pytest.mark.slow
def test_a_span_of_time_is_an_interval(spark: Any, make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()
    found = descriptors()
    found.file[1].dependency.append("google/protobuf/duration.proto")
    found.file[1].message_type[1].field.add(
        name="wait", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_MESSAGE, type_name=".google.protobuf.Duration"
    )
    # Google's own files need not be among the descriptors.
    typed = {**TYPED, "valueSchema": base64.b64encode(found.SerializeToString()).decode(), "valueMessage": "Airport"}
    frame = topic.spark.sql("select 'BER' as code, interval '-1 00:00:00.5' day to second as wait")
    topic.save(frame, **typed)
    assert topic.read(**typed).select("code", "wait").collect() == frame.collect()
