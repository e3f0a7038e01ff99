"""Typed writes: what is refused, without a session; and in Spark, what `to_json` would have written."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import DayTimeIntervalType, IntegerType, LongType, StringType, StructType

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.spark.support import Topic
from tests.typed.support import schema

INT, LONG, TEXT = IntegerType(), LongType(), StringType()

#: Expressions of one row each of whose columns has something that could be written in another way.
ROWS = [
    "cast(1 as tinyint) as a, 1.5D as b, 1e10D as c, 1e-5D as d, double('NaN') as e, float('-Infinity') as f",
    "float(0.1) as a, float(1e10) as b, float(3.4028235E38) as c, -0D as d, 1e7D as e, 123456.789D as f, 1e-3D as g",
    "'a\"\\\\\\n\\u0001\u00e9/\\u2028\\u007f' as a, X'616263' as b, true as c, cast(null as string) as d",
    "timestamp'2020-01-02 03:04:05.123456Z' as a, timestamp'1969-12-31 23:59:59.9995Z' as b, date'2020-01-02' as c",
    "timestamp_ntz'2020-01-02 03:04:05' as a, timestamp'0001-01-01 00:00:00Z' as b, date'12020-01-01' as c",
    "cast('0.0000000001' as decimal(38,10)) as a, cast('123.45' as decimal(10,4)) as b, cast(0 as decimal(20,10)) as c",
    "cast(-5 as decimal(5,2)) as a, cast(7 as decimal(10,0)) as b, cast(-7 as bigint) as c, cast(3 as smallint) as d",
    "array(1, null) as a, map('a', 1, 'b', null) as b, named_struct('x', 1, 'y', cast(null as int)) as c",
    "named_struct('x', cast(null as int)) as a, array(named_struct('x', cast(null as int)), null) as b, array() as c",
    "map('k\"', named_struct('x', array(array('y')))) as a",
    "cast(null as int) as a",
]


@pytest.fixture
def topic(spark: Any, make_topic: Callable[..., Topic]) -> Topic:
    """A topic of one partition."""
    return make_topic()


@pytest.mark.slow
def test_values_are_those_of_to_json(topic: Topic) -> None:
    spark = topic.spark
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        expected = []
        for row in ROWS:
            frame = spark.sql(f"select {row}")
            expected.append(frame.selectExpr("to_json(struct(*)) as value").collect()[0].value)
            topic.save(frame, valueFormat="json")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert topic.values() == expected


@pytest.mark.long  # values: above
@pytest.mark.slow
def test_a_frame_comes_back_as_it_was_written_by_batch_and_stream(topic: Topic, checkpoint: str) -> None:
    columns = "id bigint, name string, tags array<string>, at timestamp, price decimal(10,2), key struct<k:int>"
    frame = topic.spark.sql(
        "select id, if(id = 1, null, concat('n', id)) as name, array('a', null) as tags, timestamp_millis(id) as at, "
        "cast(id as decimal(10,2)) as price, named_struct('k', cast(id as int)) as key from range(4)"
    )
    topic.save(frame, valueFormat="json", keyFormat="json")
    typed = {"valueFormat": "json", "keyFormat": "json"}
    back = topic.read(columns, **typed, mode="FAILFAST")
    assert sorted(back.collect()) == sorted(frame.collect())
    topic.save_stream(topic.read_stream(columns, **typed), checkpoint, **typed)
    assert sorted(topic.read(columns, **typed).collect()) == sorted(frame.collect() * 2)


@pytest.mark.slow
def test_serializers_write_what_their_readers_read(topic: Topic) -> None:
    frame = topic.spark.sql(
        "select id as key, cast(id * 1.5 as double) as value from range(3) union all select null, null"
    )
    typed = {"keyFormat": "long", "valueFormat": "double"}
    topic.save(frame, **typed)
    raw = {(row.key and bytes(row.key), row.value and bytes(row.value)) for row in topic.read().collect()}
    assert raw == {(None, None), *((struct.pack(">q", n), struct.pack(">d", n * 1.5)) for n in range(3))}
    assert set(topic.read("key bigint, value double", **typed).collect()) == set(frame.collect())


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (schema(value=TEXT), {"valueFormat": "json"}, "with valueFormat=json the other columns make the value"),
        (
            schema(a=INT, offset=LONG),
            {"valueFormat": "json"},
            "it is what brokers say of a record; drop it, or set recordPrefix",
        ),
        (schema(key=TEXT), {"valueFormat": "json", "keyFormat": "string"}, "it has none besides those of the record"),
        (schema(a=DayTimeIntervalType()), {"valueFormat": "json"}, "which typed columns cannot have"),
        (schema(a=INT), {"valueFormat": "long"}, "needs a column value, and the frame has only a"),
        (schema(value=INT), {"valueFormat": "long"}, "must be BIGINT to be written, not INT"),
        (schema(a=INT, key=INT), {"valueFormat": "json", "keyFormat": "json"}, "must be STRUCT to be written, not INT"),
        (schema(a=INT), {"valueFormat": "json", "mode": "FAILFAST"}, "has no meaning in a write"),
    ],
)
def test_what_cannot_be_written_is_refused(
    servers: str, columns: StructType, options: dict[str, str], said: str
) -> None:
    source = PylogDataSource({"kafka.bootstrap.servers": servers, "topic": "t", **options})
    with pytest.raises(PylogError, match=said):
        source.writer(columns, False)


@pytest.mark.slow
def test_with_a_prefix_fields_may_have_the_names_of_the_records_columns(topic: Topic) -> None:
    frame = topic.spark.sql("select 'mine' as topic, 5 as offset, 'k' as r_key")
    topic.save(frame, valueFormat="json", recordPrefix="r_")
    (row,) = topic.read().collect()
    assert (row.key, row.value) == (b"k", b'{"topic":"mine","offset":5}')
