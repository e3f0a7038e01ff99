"""Typed reads of Protobuf compared, over messages that hypothesis draws, damaged ones too, with what Google's parser reads and the rules of
Spark's `from_protobuf` make of it; and typed writes with what Google's parser reads of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql.types import StringType, StructField, StructType

from pylog_spark.typed.arrow import arrow_field
from pylog_spark.typed.formats import CORRUPT, Formats, Message
from pylog_spark.typed.writing import typed_write
from tests.harness import runs
from tests.spark.support import Topic
from tests.typed import messages, support

RECORDS = 8
#: Numbers of more than 32 bits where only 32 count: Java drops the others, Google's parser for Python refuses them.
LONG = re.compile(rb"[\x80-\xff]{4}")


@st.composite
def topics(draw: st.DrawFn) -> tuple[messages.Drawn, list[bytes]]:
    """A message and records, every third of them damaged."""
    drawn = draw(messages.messages(RECORDS))
    return drawn, [
        draw(messages.damaged(record)) if number % 3 == 2 else record for number, record in enumerate(drawn.records)
    ]


def expected(drawn: messages.Drawn, record: bytes) -> tuple[Any, ...] | None:
    """The columns of a record; None where it is damaged. Raises `UnreadableError`."""
    try:
        parsed = drawn.kind.FromString(record)
    except DecodeError:
        return None
    messages.check_entries(drawn.kind.DESCRIPTOR, parsed)
    if messages.is_damaged(drawn.kind, parsed):
        return None
    try:
        return messages.columns_of(drawn.kind.DESCRIPTOR, parsed, drawn.columns)
    except OverflowError:  # a time that Spark cannot hold
        return None


def compared(topic: Topic, drawn: messages.Drawn, records: list[bytes]) -> None:
    """Read the records and look at each."""
    (start,) = topic.offsets()
    topic.put(records)
    columns = StructType([*drawn.columns.fields, StructField(CORRUPT, StringType())])
    table = support.read(
        topic,
        columns,
        valueFormat="protobuf",
        valueSchema=base64.b64encode(drawn.descriptors).decode(),
        valueMessage=messages.ROOT,
        startingOffsets=f'{{"{topic.name}":{{"0":{start}}}}}',
    )
    assert table.num_rows == len(records)
    for row, record in enumerate(records):
        is_damaged = table[CORRUPT][row].is_valid
        try:
            wanted = expected(drawn, record)
        except messages.UnreadableError:
            continue
        if wanted is None and not is_damaged and LONG.search(record):
            continue
        assert is_damaged == (wanted is None), (record, drawn.columns.simpleString(), wanted)
        found = tuple(messages.shown(table[field.name][row], field.dataType) for field in drawn.columns.fields)
        assert found == (wanted or (None,) * len(found)), (record, drawn.columns.simpleString())


def written(drawn: messages.Drawn, table: pa.Table) -> list[bytes]:
    """What a write makes of rows."""
    formats = Formats(value="protobuf", value_message=Message(drawn.descriptors, messages.ROOT))
    names, write = typed_write(drawn.columns, "t", formats)
    return [value for batch in table.to_batches() for value in write.records(batch, names)["value"].to_pylist()]


@pytest.mark.timeout(3600 if runs.LONG else 300)
def test_columns_are_those_of_from_protobuf_whatever_the_records_say(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()

    @support.examples(30, 3000, phases=(Phase.generate,))
    @given(topics())
    def each(drawn: tuple[messages.Drawn, list[bytes]]) -> None:
        compared(topic, *drawn)

    each()


@pytest.mark.timeout(3600 if runs.LONG else 300)
def test_rows_are_written_as_messages_that_google_reads_as_they_were(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic()

    @support.examples(30, 3000, phases=(Phase.generate,))
    @given(messages.messages(RECORDS))
    def each(drawn: messages.Drawn) -> None:
        (start,) = topic.offsets()
        topic.put(drawn.records)
        table = support.read(
            topic,
            drawn.columns,
            valueFormat="protobuf",
            valueSchema=base64.b64encode(drawn.descriptors).decode(),
            valueMessage=messages.ROOT,
            mode="FAILFAST",
            startingOffsets=f'{{"{topic.name}":{{"0":{start}}}}}',
        )
        assert table.schema == pa.schema([arrow_field(field, is_wide=True) for field in drawn.columns.fields])
        for record, again in zip(drawn.records, written(drawn, table), strict=True):
            assert expected(drawn, again) == expected(drawn, record), (record, again)

    each()
