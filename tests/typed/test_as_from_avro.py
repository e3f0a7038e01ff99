"""Typed reads of Avro compared with Spark's `from_avro` over schemas and records that hypothesis draws, damaged ones too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pylog_spark.datasource import PylogDataSource
from pylog_spark.typed import avro
from tests.harness import runs
from tests.spark.support import Topic
from tests.typed import avro_support, support

RECORDS = 12


@st.composite
def topics(draw: st.DrawFn) -> tuple[dict[str, Any], list[bytes | None]]:
    """A schema, and records for it: most of them whole."""
    schema = avro_support.Drawing(draw).record(depth=2)
    records: list[bytes | None] = [draw(st.sampled_from([None, b""]))]
    for number in range(RECORDS):
        whole = avro_support.datum(schema, draw(avro_support.values(schema)))
        records.append(draw(avro_support.damaged(whole)) if number % 3 == 2 else whole)
    return schema, records


def by_spark(spark: Any, schema: str, records: list[bytes | None]) -> tuple[StructType, pa.Table]:
    """What `from_avro` makes of the records, and Spark's types of it."""
    from pyspark.sql.avro.functions import from_avro

    frame = spark.createDataFrame(pa.table({"value": pa.array(records, pa.binary())}))
    parsed = from_avro("value", schema, {"mode": "PERMISSIVE"}).alias("parsed")
    found = frame.select(parsed).select("parsed.*")
    return found.schema, found.toArrow()


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.timeout(3600 if runs.LONG else 300)
def test_columns_are_those_of_from_avro_whatever_the_records_say(spark: Any, make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()
    avro_support.limit_java(spark)

    @support.examples(6, 1500)
    @given(topics())
    def compared(drawn: tuple[dict[str, Any], list[bytes | None]]) -> None:
        schema, records = json.dumps(drawn[0]), drawn[1]
        (start,) = topic.offsets()
        topic.put(records)
        options = {
            "valueFormat": "avro",
            "valueSchema": schema,
            "startingOffsets": f'{{"{topic.name}":{{"0":{start}}}}}',
        }
        columns = support.as_pysparks(avro.spark_type(avro.read(schema)))
        ours = support.read(topic, columns, **options)
        theirs_of, theirs = by_spark(spark, schema, records)
        assert ours.num_rows == theirs.num_rows == len(records)
        for name in columns.names:
            assert avro_support.plain(ours[name]) == avro_support.plain(theirs[name]), (schema, name, records)
        assert [field.dataType for field in columns.fields] == [field.dataType for field in theirs_of.fields]

    compared()


def test_the_columns_of_a_schema_are_those_of_the_read(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()
    schema = avro_support.record(
        avro_support.field("a", ["null", "long"]),
        avro_support.field(
            "b", {"type": "array", "items": avro_support.record(avro_support.field("c", "string"), name="I")}
        ),
    )
    options = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "valueFormat": "avro"}
    shown = PylogDataSource({**options, "valueSchema": json.dumps(schema)}).schema()
    assert shown.startswith("`a` bigint, `b` array<struct<`c`: string>>, `key` binary, `topic` string")
