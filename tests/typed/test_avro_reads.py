"""Typed reads of Avro: with a schema that is given, and with the schemas of a registry, which Confluent's serializers registered."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql.types import ArrayType, BinaryType, DoubleType, IntegerType, LongType, StringType, StructType

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from pylog_spark.testing import LocalBroker
from tests.harness.ports import nowhere
from tests.spark.support import Topic
from tests.typed.avro_support import datum, field, record
from tests.typed.support import rows, schema

INT, LONG, TEXT, DOUBLE = IntegerType(), LongType(), StringType(), DoubleType()
FIRST = record(field("id", "int"), field("name", ["null", "string"]), field("gone", "string"))
SECOND = record(field("id", "long"), field("name", "string"), field("city", "string", default="-"))


@pytest.fixture
def topic(make_topic: Callable[..., Topic]) -> Topic:
    """A topic of one partition."""
    return make_topic()


@pytest.fixture
def options(registry_broker: LocalBroker) -> dict[str, str]:
    """The options of a read by registered schemas."""
    return {"valueFormat": "avro", "schema.registry.url": registry_broker.schema_registry_url}


def serialize(broker: LocalBroker, topic: str, schema: dict[str, Any], *values: Any, key: bool = False) -> list[bytes]:
    """Values as Confluent's serializer writes them, with their schema registered for the topic."""
    context = SerializationContext(topic, MessageField.KEY if key else MessageField.VALUE)
    with closing(SchemaRegistryClient({"url": broker.schema_registry_url})) as client:
        client.set_compatibility(f"{topic}-value", "NONE")
        write = AvroSerializer(client, json.dumps(schema))
        return [write(value, context) for value in values]


def two_versions(broker: LocalBroker, topic: Topic) -> None:
    """Records of two schemas."""
    first = [{"id": 1, "name": "a", "gone": "x"}, {"id": 2, "name": None, "gone": "y"}]
    second = [{"id": 2**40, "name": "c", "city": "BER"}]
    topic.put([*serialize(broker, topic.name, FIRST, *first), *serialize(broker, topic.name, SECOND, *second)])


def test_a_schema_that_is_given_wrote_the_records(topic: Topic) -> None:
    topic.put([datum(FIRST, {"id": 1, "name": "a", "gone": "x"}), b"\x02\x02", None])
    given = {"valueFormat": "avro", "valueSchema": json.dumps(FIRST)}
    columns = schema(name=TEXT, id=INT, offset=LONG, _corrupt_record=TEXT)
    assert rows(topic, columns, **given) == [("a", 1, 0, None), (None, None, 1, "\x02\x02"), (None, None, 2, None)]
    assert rows(topic, schema(id=INT), mode="DROPMALFORMED", **given) == [(1,), (1,), (None,)]
    assert rows(topic, schema(gone=TEXT), mode="DROPMALFORMED", **given) == [("x",), (None,)]
    with pytest.raises(PylogError, match=r"BAD_RECORD.*offset 1 is no datum of its Avro schema"):
        rows(topic, schema(gone=TEXT), mode="FAILFAST", **given)


def test_numbers_and_names_widen_to_the_columns(topic: Topic) -> None:
    topic.put([datum(FIRST, {"id": 1, "name": "a", "gone": "x"})])
    given = {"valueFormat": "avro", "valueSchema": json.dumps(FIRST)}
    assert rows(topic, schema(id=LONG), **given) == [(1,)]
    assert rows(topic, schema(id=DOUBLE), **given) == [(1.0,)]
    with pytest.raises(PylogError, match="has an int where STRING is wanted \\(field id\\)"):
        rows(topic, schema(id=TEXT), **given)
    with pytest.raises(PylogError, match="is read as a schema that has no field other"):
        rows(topic, schema(other=TEXT), **given)


def test_without_a_readers_schema_the_columns_are_found_in_each_writers_by_name(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    two_versions(registry_broker, registered)
    columns = schema(id=LONG, name=TEXT, city=TEXT, _corrupt_record=TEXT)
    expected = [(1, "a", None, None), (2, None, None, None), (2**40, "c", "BER", None)]
    assert rows(registered, columns, **options) == expected
    # Of a process that knows the schemas, too.
    assert rows(registered, columns, **options) == expected
    assert rows(registered, schema(gone=TEXT), **options) == [("x",), ("y",), (None,)]


def test_a_writers_schema_is_resolved_to_the_newest_of_a_subject(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    two_versions(registry_broker, registered)
    named = {**options, "valueSubject": f"{registered.name}-value"}
    columns = schema(id=LONG, city=TEXT, name=TEXT, _corrupt_record=TEXT)
    one, two, three = rows(registered, columns, **named)
    assert (one, three) == ((1, "-", "a", None), (2**40, "BER", "c", None))
    # Its name is null, which the newest schema does not allow.
    assert two[:3] == (None, None, None)
    assert two[3] is not None
    given = {"kafka.bootstrap.servers": registered.servers, "subscribe": registered.name}
    assert (
        PylogDataSource({**given, **named})
        .schema()
        .startswith("`id` bigint, `name` string, `city` string, `key` binary")
    )


def test_a_given_schema_resolves_by_aliases_defaults_and_unions(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    two_versions(registry_broker, registered)
    reader = record(
        field("number", ["null", "double"], aliases=["id"]),
        field("tags", {"type": "array", "items": "string"}, default=["t"]),
        field("kind", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, default="B"),
        field("name", ["string", "null"]),
    )
    columns = schema(number=DOUBLE, tags=ArrayType(TEXT), kind=TEXT, name=TEXT)
    got = rows(registered, columns, valueSchema=json.dumps(reader), **options)
    assert got == [(1.0, ["t"], "B", "a"), (2.0, ["t"], "B", None), (float(2**40), ["t"], "B", "c")]


def test_symbols_that_a_reader_does_not_know_are_its_default_or_damage(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    def of(symbols: list[str], **more: Any) -> dict[str, Any]:
        return record(field("e", {"type": "enum", "name": "E", "symbols": symbols, **more}))

    registered.put(serialize(registry_broker, registered.name, of(["A", "B"]), {"e": "A"}, {"e": "B"}))
    columns = schema(e=TEXT, _corrupt_record=TEXT)
    strict = rows(registered, columns, valueSchema=json.dumps(of(["B"])), **options)
    assert [row[0] for row in strict] == [None, "B"]
    assert strict[0][1] is not None
    kind = rows(registered, columns, valueSchema=json.dumps(of(["C", "B"], default="C")), **options)
    assert kind == [("C", None), ("B", None)]


def test_schemas_may_refer_to_others(registry_broker: LocalBroker, registered: Topic, options: dict[str, str]) -> None:
    subject = f"{registered.name}-value"
    with closing(SchemaRegistryClient({"url": registry_broker.schema_registry_url})) as client:
        client.register_schema(
            f"{subject}-street", Schema(json.dumps(record(field("no", "int"), name="shop.Street")), "AVRO")
        )
        whole = record(field("street", "shop.Street"), field("other", {"type": "array", "items": "shop.Street"}))
        reference = SchemaReference("shop.Street", f"{subject}-street", 1)
        made = client.register_schema(subject, Schema(json.dumps(whole), "AVRO", [reference]))
    registered.put([struct.pack(">bI", 0, made) + b"\x0e\x04\x02\x04\x00"])
    inner = schema(no=INT)
    columns = schema(street=inner, other=ArrayType(inner))
    assert rows(registered, columns, **options) == [({"no": 7}, [{"no": 1}, {"no": 2}])]
    assert rows(registered, columns, valueSubject=subject, **options) == [({"no": 7}, [{"no": 1}, {"no": 2}])]


def test_keys_are_of_any_type(registry_broker: LocalBroker, registered: Topic, options: dict[str, str]) -> None:
    keys = serialize(registry_broker, registered.name, {"type": "string"}, "a", "b", key=True)
    values = serialize(registry_broker, registered.name, FIRST, *({"id": n, "name": None, "gone": ""} for n in (1, 2)))
    registered.put(values, key=pa.array(keys, pa.binary()))
    got = rows(registered, schema(key=TEXT, id=INT), keyFormat="avro", **options)
    assert got == [("a", 1), ("b", 2)]
    whole = schema(value=schema(id=INT))
    assert rows(registered, whole, **options) == [({"id": 1},), ({"id": 2},)]


def test_what_begins_with_no_id_or_an_unknown_one_is_damaged(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    (good,) = serialize(registry_broker, registered.name, FIRST, {"id": 1, "name": None, "gone": ""})
    unknown = [struct.pack(">bI", 0, 10**9 + number) + b"\x02" for number in range(3)]
    registered.put([good, *unknown, b"", b"\x00\x00", b"\x01" + good[1:], b'{"id":1}', good])
    assert rows(registered, schema(id=INT), mode="DROPMALFORMED", **options) == [(1,), (1,)]
    assert [row[0] for row in rows(registered, schema(id=INT), **options)] == [1, *[None] * 7, 1]
    with pytest.raises(PylogError, match="begins with the id of a schema that the registry does not have"):
        rows(registered, schema(id=INT), mode="FAILFAST", **options)


def test_a_limit_holds_while_schemas_are_looked_up(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    for number in range(6):
        one = record(field("id", "int"), field(f"f{number}", "int", default=0))
        registered.put(serialize(registry_broker, registered.name, one, *[{"id": number}] * 3))
    small = {**options, "batchBytes": "1"}
    assert [row[0] for row in rows(registered, schema(id=INT), **small)] == sorted([*range(6)] * 3)
    assert [row[0] for row in rows(registered, schema(id=INT), limit=8, **small)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_damaged_records_go_to_a_topic_once_while_schemas_are_looked_up(
    registry_broker: LocalBroker, registered: Topic, make_registered: Callable[..., Topic], options: dict[str, str]
) -> None:
    bad, damaged = make_registered(), []
    for number in range(4):
        one = record(field("id", "int"), field(f"g{number}", "int", default=0))
        good = serialize(registry_broker, registered.name, one, {"id": number})
        damaged.append(struct.pack(">bI", 0, 2 * 10**9 + number))
        registered.put([*good, damaged[-1], *good])
    options = {**options, "batchBytes": "1", "badRecordsTopic": bad.name, "mode": "DROPMALFORMED"}
    assert [row[0] for row in rows(registered, schema(id=INT), **options)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [row[0] for row in rows(bad, schema(value=BinaryType()))] == damaged


def test_a_registry_that_does_not_answer_is_an_error_that_says_so(
    registry_broker: LocalBroker, registered: Topic, options: dict[str, str]
) -> None:
    registered.put(serialize(registry_broker, registered.name, FIRST, {"id": 1, "name": None, "gone": ""}))
    with pytest.raises(PylogError, match="No schema registry answered") as raised:
        rows(registered, schema(id=INT), **{**options, "schema.registry.url": f"http://{nowhere()}"})
    assert raised.value.condition == "PYLOG_REGISTRY_UNREACHABLE"


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        (schema(a=INT), {"valueFormat": "avro"}, "needs the schema that wrote the records"),
        (
            schema(a=INT),
            {"valueFormat": "avro", "valueSchema": "a int"},
            "The Avro schema of valueSchema cannot be used",
        ),
        (schema(a=INT), {"valueFormat": "avro", "valueSubject": "s"}, "needs schema.registry.url beside it"),
        (schema(a=INT), {"valueFormat": "json", "valueSubject": "s"}, "only with avro"),
        (schema(a=INT), {"valueFormat": "json", "schema.registry.url": "http://h:1"}, "has no meaning without"),
        (schema(a=INT), {"valueFormat": "avro", "schema.registry.url": "h"}, "is no address of a schema registry"),
        (schema(a=INT), {"valueFormat": "avro", "schema.registry.ur": "h"}, "did you mean schema.registry.url"),
        (
            schema(a=INT),
            {"valueFormat": "avro", "schema.registry.request.timeout.ms": "5"},
            "need the option schema.registry.url",
        ),
        (
            schema(a=INT, value=schema(a=INT)),
            {"valueFormat": "avro", "schema.registry.url": "http://h:1"},
            "name only one",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(servers: str, columns: StructType, given: dict[str, str], said: str) -> None:
    with pytest.raises(PylogError, match=said):
        PylogDataSource({"kafka.bootstrap.servers": servers, "subscribe": "t", **given}).reader(columns)


def test_a_login_to_the_registry_is_not_shown(servers: str) -> None:
    secret = "user:hunter2"
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": "t",
        "valueFormat": "avro",
        "schema.registry.url": "http://me:hunter2@h:1",
        "schema.registry.basic.auth.user.info": secret,
    }
    reader: Any = PylogDataSource(options).reader(schema(a=INT))
    assert "hunter2" not in repr(vars(reader))


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", ["1m", "0"], ids=["driver", "tasks"])
def test_a_stream_has_the_columns_of_registered_schemas(
    spark: Any,
    registry_broker: LocalBroker,
    registered: Topic,
    options: dict[str, str],
    checkpoint: str,
    most_bytes: str,
) -> None:
    two_versions(registry_broker, registered)
    frame = registered.read_stream("id bigint, city string", prefetchMaxBytes=most_bytes, **options)
    table = f"avro_{most_bytes}"
    writer = frame.writeStream.format("memory").queryName(table).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    assert query.exception() is None
    assert sorted(map(tuple, spark.table(table).collect())) == [(1, None), (2, None), (2**40, "BER")]
    whole = registered.read(valueSubject=f"{registered.name}-value", mode="DROPMALFORMED", **options)
    assert whole.columns[:4] == ["id", "name", "city", "key"]
    assert whole.select("id", "city").orderBy("id").collect() == [(1, "-"), (2**40, "BER")]
