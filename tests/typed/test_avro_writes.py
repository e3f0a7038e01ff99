"""Typed writes of Avro: what fastavro and Confluent's deserializer read of them, and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql.types import ArrayType, DecimalType, IntegerType, LongType, StringType, StructType

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from pylog_spark.testing import LocalBroker
from pylog_spark.typed import avro
from tests.spark.support import Topic
from tests.typed import avro_support
from tests.typed.avro_support import field, record
from tests.typed.support import schema

INT, LONG, TEXT = IntegerType(), LongType(), StringType()

#: Expressions of one row each of whose columns has something that could be written in another way.
ROWS = [
    "cast(1 as tinyint) as a, cast(-3 as smallint) as b, 5 as c, -(1L << 40) as d, 1.5D as e, float('NaN') as f, true as g",
    "'a\u00e9' as a, X'00ff' as b, cast(null as string) as c, date'2020-01-02' as d, '' as e",
    "timestamp'1969-12-31 23:59:59.9995Z' as a, timestamp_ntz'2020-01-02 03:04:05' as b",
    "cast(-1.25 as decimal(5,2)) as a, cast('99999999999999999999.5' as decimal(38,10)) as b, cast(null as decimal(9,0)) as c",
    "array(1, null) as a, map('a', 1, 'b', null) as b, named_struct('x', named_struct('y', 1), 'z', array(array('q'))) as c",
]
#: Of all these, what cannot be told from the columns alone.
GIVEN = record(
    field("id", "long"),
    field("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    field("mark", {"type": "fixed", "name": "Mark", "size": 2}),
    field("at", ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
    field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    field("other", ["null", "string"]),
    field("either", ["null", "int", "string"]),
)


@pytest.fixture
def topic(spark: Any, make_topic: Callable[..., Topic]) -> Topic:
    """A topic of one partition."""
    return make_topic()


def value(topic: Topic) -> bytes:
    """The newest value."""
    return bytes(topic.read("value binary, offset long").orderBy("offset").collect()[-1].value)


@pytest.mark.long  # as fastavro reads it: below
@pytest.mark.slow
@pytest.mark.peers
def test_values_are_those_of_to_avro(topic: Topic) -> None:
    from pyspark.sql.avro.functions import to_avro
    from pyspark.sql.functions import struct

    avro_support.limit_java(topic.spark)
    java = topic.spark._jvm.org.apache.spark.sql
    for row in ROWS:
        frame = topic.spark.sql(f"select {row}")
        made = avro.schema_of(frame.schema)
        nullable = java.types.DataType.fromJson(frame.schema.json()).asNullable()
        theirs = java.avro.SchemaConverters.toAvroType(nullable, False, "topLevelRecord", "")
        assert json.loads(made) == json.loads(theirs.toString())
        (expected,) = frame.select(to_avro(struct("*"), made).alias("value")).collect()
        topic.save(frame, valueFormat="avro")
        assert value(topic) == bytes(expected.value), row


@pytest.mark.slow
def test_a_given_schema_is_written_as_fastavro_reads_it(topic: Topic) -> None:
    frame = topic.spark.sql(
        "select 7 as id, 'B' as kind, X'0102' as mark, timestamp'2020-01-02 03:04:05.678Z' as at, "
        "cast(-1.5 as decimal(8,2)) as price, named_struct('member0', cast(null as int), 'member1', 'x') as either, 'k' as key"
    )
    topic.save(frame, valueFormat="avro", valueSchema=json.dumps(GIVEN))
    read: Any = fastavro.schemaless_reader(io.BytesIO(value(topic)), GIVEN, None)
    assert (read["id"], read["kind"], read["mark"], read["other"], read["either"]) == (7, "B", b"\x01\x02", None, "x")
    assert (read["at"].isoformat(), str(read["price"])) == ("2020-01-02T03:04:05.678000+00:00", "-1.50")
    columns = "id long, kind string, mark binary, at timestamp, price decimal(9,2), either struct<member0: int, member1: string>, key string"
    back = topic.read(columns, valueFormat="avro", keyFormat="string", valueSchema=json.dumps(GIVEN), mode="FAILFAST")
    assert [tuple(row) for row in back.collect()] == [
        tuple(frame.select("id", "kind", "mark", "at", "price", "either", "key").collect()[0])
    ]


@pytest.mark.slow
def test_a_value_that_a_schema_does_not_have_ends_the_write_with_a_sentence(topic: Topic) -> None:
    for row, said in (
        ("cast(null as long) as id", "the column id is null, which its Avro type does not allow"),
        ("1L as id, 'C' as kind", "the column kind has a text that is no symbol of its enum"),
        ("1L as id, X'01' as mark", "the column mark has 1 bytes where its fixed type has 2"),
    ):
        frame = topic.spark.sql(f"select {row}")
        fields = [each for each in GIVEN["fields"] if each["name"] in frame.columns]
        with pytest.raises(Exception, match=said):
            topic.save(frame, valueFormat="avro", valueSchema=json.dumps(record(*fields)))


@pytest.mark.slow
def test_a_registry_is_told_of_schemas_and_confluents_deserializer_reads_them(
    spark: Any, registry_broker: LocalBroker, registered: Topic, checkpoint: str
) -> None:
    url = registry_broker.schema_registry_url
    typed = {"valueFormat": "avro", "keyFormat": "avro", "schema.registry.url": url}
    frame = spark.sql(
        "select id, if(id = 1, null, concat('n', id)) as name, named_struct('k', id) as key from range(3)"
    )
    registered.save(frame, **typed)
    back = registered.read("id long, name string, key struct<k: long>", mode="FAILFAST", **typed)
    assert sorted(back.collect()) == sorted(frame.collect())
    records = registered.read().collect()
    with closing(SchemaRegistryClient({"url": url})) as client:
        assert client.get_latest_version(f"{registered.name}-key").version == 1
        read = AvroDeserializer(client)
        values = [read(bytes(row.value), SerializationContext(registered.name, MessageField.VALUE)) for row in records]
        keys = [read(bytes(row.key), SerializationContext(registered.name, MessageField.KEY)) for row in records]
    assert sorted(values, key=str) == [{"id": 0, "name": "n0"}, {"id": 1, "name": None}, {"id": 2, "name": "n2"}]
    assert sorted(keys, key=str) == [{"k": number} for number in range(3)]
    # The newest schema of a subject, with a stream.
    newest = {"valueFormat": "avro", "valueSubject": f"{registered.name}-value", "schema.registry.url": url}
    columns = "id long, name string"
    stream = registered.read_stream(columns, **newest)
    registered.save_stream(stream, checkpoint, **newest)
    assert registered.read(columns, mode="FAILFAST", **newest).count() == 6


def test_a_schema_that_is_not_compatible_is_refused_before_anything_is_written(
    registry_broker: LocalBroker, registered: Topic
) -> None:
    options = {
        "kafka.bootstrap.servers": registered.servers,
        "topic": registered.name,
        "valueFormat": "avro",
        "schema.registry.url": registry_broker.schema_registry_url,
    }
    PylogDataSource(options).writer(schema(a=INT), False)
    with pytest.raises(PylogError, match="refused") as refused:
        PylogDataSource(options).writer(schema(a=ArrayType(INT)), False)
    assert refused.value.condition == "PYLOG_REGISTRY_REFUSED"


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (
            schema(id=INT),
            {"valueSchema": json.dumps(GIVEN)},
            "the column kind is a field of the Avro schema that no column has",
        ),
        (
            schema(a=INT),
            {"valueSchema": json.dumps(record(field("b", "int")))},
            "the column a is no field of the Avro schema",
        ),
        (
            schema(a=TEXT),
            {"valueSchema": json.dumps(record(field("a", "int")))},
            "the column a is STRING, of which its Avro type, an int, cannot be made",
        ),
        (
            schema(a=DecimalType(10, 2)),
            {"valueSchema": json.dumps(record(field("a", GIVEN["fields"][4]["type"])))},
            "the column a is DECIMAL\\(10,2\\), of which its Avro type, bytes, cannot be made",
        ),
        (schema(**{"a-b": INT}), {}, "a name that Avro does not allow"),
        (schema(a=INT), {"valueSchema": "{"}, "is no Avro schema"),
        (schema(topic=TEXT, a=INT), {"topic": "", "schema.registry.url": "http://h:1"}, "give valueSubject, or topic"),
    ],
)
def test_what_cannot_be_written_is_refused(
    servers: str, columns: StructType, options: dict[str, str], said: str
) -> None:
    given = {"kafka.bootstrap.servers": servers, "topic": "t", "valueFormat": "avro", **options}
    source = PylogDataSource({name: text for name, text in given.items() if text})
    with pytest.raises(PylogError, match=said):
        source.writer(columns, False)
