"""What typed reads promise, without a session: formats, columns, modes, and what is refused."""

import logging
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.spark.support import Topic
from tests.typed.support import read, rows, schema

INT, LONG, TEXT, BYTES = IntegerType(), LongType(), StringType(), BinaryType()


@pytest.fixture
def topic(make_topic: Callable[..., Topic]) -> Topic:
    """A topic of one partition."""
    return make_topic()


@pytest.mark.parametrize(
    ("form", "kind", "code", "value"),
    [
        ("long", LongType(), ">q", -(2**40)),
        ("bigint", LongType(), ">q", 7),
        ("integer", IntegerType(), ">i", -5),
        ("int", IntegerType(), ">i", 2**31 - 1),
        ("short", ShortType(), ">h", -300),
        ("float", FloatType(), ">f", 0.5),
        ("double", DoubleType(), ">d", -1e300),
    ],
)
def test_a_number_is_read_as_kafkas_serializer_writes_it(
    topic: Topic, form: str, kind: DataType, code: str, value: float
) -> None:
    topic.put([struct.pack(code, value), None, b"123"])
    got = rows(topic, schema(value=kind, _corrupt_record=TEXT), valueFormat=form)
    assert got == [(value, None), (None, None), (None, "123")]


def test_a_text_is_utf_8_and_repaired_where_it_is_none(topic: Topic) -> None:
    topic.put(["é", b"a\xffb", "", None])
    assert rows(topic, schema(value=TEXT), valueFormat="string", mode="FAILFAST") == [
        ("é",),
        ("a\ufffdb",),
        ("",),
        (None,),
    ]


def test_keys_have_a_format_of_their_own(topic: Topic) -> None:
    keys = pa.array([struct.pack(">q", 5), None, b"x"], pa.binary())
    topic.put(["one", "two", "three"], key=keys)
    columns = schema(key=LONG, value=BYTES, _corrupt_record=TEXT)
    assert rows(topic, columns, keyFormat="long") == [(5, b"one", None), (None, b"two", None), (None, b"three", "x")]


def test_a_json_key_is_one_column(topic: Topic) -> None:
    topic.put(['{"n":1}', '{"n":2}'], key=pa.array([b'{"id":7,"other":1}', None], pa.binary()))
    columns = schema(key=schema(id=INT), n=INT)
    assert rows(topic, columns, keyFormat="json", valueFormat="json") == [({"id": 7}, 1), (None, 2)]


def test_columns_of_the_record_stand_among_those_of_its_value(topic: Topic) -> None:
    topic.put(['{"id":1,"name":"x"}', '{"id":2}'], timestamp=pa.array([5, 6], pa.timestamp("ms")))
    columns = schema(name=TEXT, offset=LONG, id=INT, topic=TEXT, partition=INT, value=BYTES)
    assert rows(topic, columns, valueFormat="json") == [
        ("x", 0, 1, topic.name, 0, b'{"id":1,"name":"x"}'),
        (None, 1, 2, topic.name, 0, b'{"id":2}'),
    ]


def test_with_a_prefix_fields_may_have_the_names_of_the_records_columns(topic: Topic) -> None:
    topic.put(['{"topic":"mine","value":1.5,"offset":"x"}'])
    columns = schema(topic=TEXT, value=DoubleType(), r_topic=TEXT, r_offset=LONG, offset=TEXT)
    assert rows(topic, columns, valueFormat="json", recordPrefix="r_") == [("mine", 1.5, topic.name, 0, "x")]


def test_only_columns_asked_for_are_decoded(topic: Topic) -> None:
    topic.put(['{"bad":"x","good":1}', '{"good":2,"bad":3}'])
    assert rows(topic, schema(good=INT), valueFormat="json", mode="FAILFAST") == [(1,), (2,)]


BROKEN = ['{"id":1}', '{"id":"x","n":2}', "{", '{"id":4}', None]


def test_permissive_gives_nulls_for_what_does_not_parse_and_its_text(topic: Topic) -> None:
    topic.put(BROKEN)
    columns = schema(id=INT, n=INT, _corrupt_record=TEXT)
    assert rows(topic, columns, valueFormat="json") == [
        (1, None, None),
        (None, 2, '{"id":"x","n":2}'),
        (None, None, "{"),
        (4, None, None),
        (None, None, None),
    ]


@pytest.mark.parametrize("batch_bytes", [1, 1_500_000])
def test_dropmalformed_leaves_damaged_records_out_and_says_how_many(
    topic: Topic, batch_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    topic.put(BROKEN)
    columns = schema(offset=LONG, id=INT, topic=TEXT)
    with caplog.at_level(logging.WARNING, "pylog_spark"):
        got = rows(topic, columns, valueFormat="json", mode="DropMalformed", batchBytes=batch_bytes)
    assert got == [(0, 1, topic.name), (3, 4, topic.name), (4, None, topic.name)]
    assert caplog.messages == ["left out 2 records that do not parse, as mode=DROPMALFORMED says"]


def test_failfast_names_the_record(topic: Topic) -> None:
    topic.put(BROKEN)
    with pytest.raises(PylogError) as caught:
        rows(topic, schema(id=INT), valueFormat="json", mode="FAILFAST")
    assert caught.value.condition == "PYLOG_BAD_RECORD"
    assert caught.value.sentence == (
        f"topic {topic.name}, partition 0: the value of the record at offset 1 has a part that does not fit its column's type "
        "(field id); set mode to PERMISSIVE to get such records with nulls, or to DROPMALFORMED to leave them out."
    )


def test_filters_and_limits_go_with_typed_columns(topic: Topic) -> None:
    topic.put(
        [f'{{"id":{number}}}' for number in range(100)],
        key=pa.array([b"even" if number % 2 == 0 else b"odd" for number in range(100)], pa.binary()),
    )
    columns = schema(id=INT)
    read_ids = lambda **options: [row[0] for row in rows(topic, columns, valueFormat="json", **options)]  # noqa: E731
    assert read_ids(filterKey="odd", filterOffset="..10") == [1, 3, 5, 7, 9]
    assert read_ids(limit=3) == [0, 1, 2]


def test_all_columns_come_with_a_schema_by_option(topic: Topic) -> None:
    options = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "valueFormat": "json"}
    source = PylogDataSource({**options, "valueSchema": "id bigint, name string", "recordPrefix": "r_"})
    assert source.schema() == (
        "id bigint, name string, `r_key` binary, `r_topic` string, `r_partition` int, `r_offset` bigint, "
        "`r_timestamp` timestamp, `r_timestampType` int"
    )
    with pytest.raises(PylogError, match="valueFormat=json needs to know the columns"):
        PylogDataSource(options).schema()


def test_a_schema_may_stand_in_a_file(topic: Topic, tmp_path: Any) -> None:
    file = tmp_path / "flights.ddl"
    file.write_text("id bigint\n")
    options = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "valueFormat": "json"}
    assert str(PylogDataSource({**options, "valueSchema": f"@{file}"}).schema()).startswith("id bigint, `key` binary")
    with pytest.raises(PylogError, match="names a file that cannot be read"):
        PylogDataSource({**options, "valueSchema": f"@{file}.not"}).schema()


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (schema(offset=TEXT), {"valueFormat": "json"}, "if it is a field of the value, set recordPrefix"),
        (schema(value=INT), {"valueFormat": "long"}, "The column value is BIGINT with valueFormat=long, not INT"),
        (schema(other=INT), {"valueFormat": "long"}, "its value has no fields; the columns are key, value, topic"),
        (schema(key=INT), {"keyFormat": "json"}, "The column key is STRUCT with keyFormat=json, not INT"),
        (schema(a=DayTimeIntervalType()), {"valueFormat": "json"}, "which typed columns cannot have"),
        (StructType([StructField("a", INT, False)]), {"valueFormat": "json"}, "leave NOT NULL out"),
        (schema(a=ArrayType(INT, False)), {"valueFormat": "json"}, "leave NOT NULL out"),
        (schema(a=INT, b=TEXT).add("a", INT), {"valueFormat": "json"}, "comes twice"),
        (schema(a=INT), {"valueFormat": "jsn"}, "must be one of json, avro, protobuf, binary, string"),
        (
            schema(a=INT),
            {"valueFormat": "json", "mode": "STRICT"},
            "must be one of PERMISSIVE, DROPMALFORMED, FAILFAST",
        ),
        (schema(value=BYTES), {"mode": "FAILFAST"}, "mode needs valueFormat or keyFormat"),
        (
            schema(value=TEXT),
            {"valueFormat": "string", "valueSchema": "a int"},
            "has no meaning with valueFormat=string",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(topic: Topic, columns: StructType, options: dict[str, str], said: str) -> None:
    with pytest.raises(PylogError, match=said):
        read(topic, columns, **options)
