"""Typed reads of JSON compared with Spark's `from_json` over schemas and records that hypothesis draws, damaged ones too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from pylog_spark.typed.formats import CORRUPT
from tests.harness import runs
from tests.spark.support import Topic
from tests.typed import support

RECORDS = 12
#: A number inside a text, as Java writes it: no other column shows numbers with an E, or with so many digits behind the point.
_BY_JAVA = re.compile(r"-?\d+\.(?:\d+E-?\d+|\d{14,})")


@st.composite
def topics(draw: st.DrawFn) -> tuple[StructType, list[bytes | None]]:
    """A schema, and records for it: most of them whole."""
    kinds = draw(st.lists(support.types(), min_size=1, max_size=4))
    columns = StructType([StructField(name, kind) for name, kind in zip(support.NAMES, kinds, strict=False)])
    records: list[bytes | None] = []
    for number in range(RECORDS):
        whole = draw(support.objects(columns)).encode()
        if number == 0:
            records.append(draw(st.sampled_from([None, b""])))
        records.append(draw(support.damaged(whole)) if number % 3 == 2 else whole)
    return columns, records


def by_spark(spark: Any, columns: StructType, records: list[bytes | None]) -> pa.Table:
    """What `from_json` makes of the records."""
    from pyspark.sql import functions

    frame = spark.createDataFrame(pa.table({"value": pa.array(records, pa.binary())}))
    text = functions.col("value").cast("string")
    parsed = functions.from_json(text, columns, {"timeZone": "UTC"}).alias("parsed")
    return frame.select(parsed).select("parsed.*").toArrow()


def shown(column: pa.ChunkedArray) -> str:
    """All of a column; numbers inside texts with the fewest digits that say which they are: before Java 19 some had more (JDK-4511638)."""
    return _BY_JAVA.sub(lambda number: repr(float(number[0])), support.shown(column))


def is_json(record: bytes | None) -> bool:
    """Whether the record begins with a value of JSON; it may have single quotes and control characters, as Jackson lets them pass."""
    text = (record or b"").decode(errors="replace").lstrip()
    # A single quote may be one of a text.
    return any(begins_with_json(each) for each in (text, text.replace("'", '"')))


def begins_with_json(text: str) -> bool:
    """Whether a value of JSON is at the beginning."""
    try:
        json.JSONDecoder(strict=False).raw_decode(text)
    except ValueError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.timeout(3600 if runs.LONG else 300)
def test_columns_are_those_of_from_json_whatever_the_records_say(spark: Any, make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()

    @support.examples(5, 1500)
    @given(topics())
    def compared(drawn: tuple[StructType, list[bytes | None]]) -> None:
        columns, records = drawn
        columns = StructType([*columns.fields, StructField(CORRUPT, StringType())])
        (start,) = topic.offsets()
        topic.put(records)
        ours = support.read(topic, columns, valueFormat="json", startingOffsets=f'{{"{topic.name}":{{"0":{start}}}}}')
        theirs = by_spark(spark, columns, records)
        assert ours.num_rows == theirs.num_rows == len(records)
        # Spark's text may not be UTF-8.
        damaged = [text is not None for text in ours[CORRUPT].to_pylist()]
        assert damaged == theirs[CORRUPT].cast(pa.binary()).is_valid().to_pylist(), (columns.simpleString(), records)
        # Of a record that is no JSON Spark may have kept what its parser found besides; here it is null.
        broken = [is_damaged and not is_json(record) for is_damaged, record in zip(damaged, records, strict=True)]
        # A value that fails inside of an object leaves Spark's parser there: what follows in it is then taken for columns of those names.
        flat = not any(isinstance(field.dataType, ArrayType | MapType | StructType) for field in columns)
        whole = [
            not is_damaged or (flat and not is_broken) for is_damaged, is_broken in zip(damaged, broken, strict=True)
        ]
        for name in columns.names[:-1]:
            assert shown(ours[name].filter(whole)) == shown(theirs[name].filter(whole)), (
                columns.simpleString(),
                name,
                records,
            )
            assert ours[name].filter(broken).null_count == sum(broken)
        for text, record in zip(ours[CORRUPT].to_pylist(), records, strict=True):
            assert text is None or text == (record or b"").decode(errors="replace")

    compared()


@pytest.mark.slow
def test_texts_inside_a_text_are_escaped_as_from_json_does(spark: Any, make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()
    columns = StructType([StructField("a", StringType())])
    texts = ["\U0001f600", "\U0001f600\U0010ffff", 'x\u00e9\uffff\U00010000"\\\n\u0001y', "\\ud83d\\ude00", ""]
    inside = [text if text.startswith("\\") else json.dumps(text, ensure_ascii=False)[1:-1] for text in texts]
    shapes = ('"%s"', '["%s"]', '{"k%s":"%s"}')
    records = [f'{{"a":{shape.replace("%s", text)}}}'.encode() for text in inside for shape in shapes]
    topic.put(records)
    ours, theirs = support.read(topic, columns, valueFormat="json"), by_spark(spark, columns, list(records))
    assert ours["a"].to_pylist() == theirs["a"].to_pylist()
    assert ours["a"].to_pylist()[1] == '["\\uD83D\\uDE00"]'
