"""Typed reads in Spark itself: batches, streams whose micro-batches the driver or the tasks read, pushed-down conditions."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.support import Topic

ROWS = 40
COLUMNS = "id bigint, tags array<string>, at timestamp, _corrupt_record string, offset bigint"


@pytest.fixture
def topic(spark: Any, make_topic: Callable[..., Topic]) -> Topic:
    """A topic whose every tenth record is damaged."""
    topic = make_topic(partitions=2)
    for partition in range(2):
        topic.put(
            [
                "{" if number % 10 == 9 else f'{{"id":{number},"tags":["a",null],"at":"2026-01-01T00:00:00Z"}}'
                for number in range(ROWS)
            ],
            partition,
            key=pa.array([struct.pack(">q", number) for number in range(ROWS)], pa.binary()),
        )
    return topic


def good(partitions: int = 2) -> list[int]:
    return sorted([number for number in range(ROWS) if number % 10 != 9] * partitions)


@pytest.mark.slow
def test_a_batch_has_the_columns_of_its_values(topic: Topic) -> None:
    frame = topic.read(COLUMNS, valueFormat="json")
    assert frame.where("_corrupt_record is not null").count() == 2 * ROWS // 10
    (row,) = frame.where("id = 3").select("tags", "offset", frame.at.cast("bigint").alias("at")).distinct().collect()
    assert (row.tags, row.offset, row["at"]) == (["a", None], 3, 1_767_225_600)
    assert sorted(row.id for row in topic.read("id int", valueFormat="json", mode="DROPMALFORMED").collect()) == good()


@pytest.mark.slow
def test_without_a_schema_all_columns_are_there(topic: Topic) -> None:
    frame = topic.read(valueFormat="json", valueSchema="id bigint, tags array<string>", keyFormat="long")
    assert frame.columns == ["id", "tags", "key", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert frame.where("key = id").count() == len(good())


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", ["1m", "0"], ids=["driver", "tasks"])
def test_a_stream_has_the_columns_of_its_values(topic: Topic, checkpoint: str, most_bytes: str, tmp_path: Path) -> None:
    options = {"valueFormat": "json", "mode": "DROPMALFORMED", "prefetchMaxBytes": most_bytes}
    frame = topic.read_stream("id bigint, tags array<string>, partition int", **options)
    table = f"typed_{most_bytes}"
    writer = frame.writeStream.format("memory").queryName(table).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    assert query.exception() is None
    got = topic.spark.table(table).collect()
    assert sorted(row.id for row in got) == good()
    assert {tuple(row.tags) for row in got} == {("a", None)}


@pytest.mark.slow
def test_failfast_ends_a_query_with_a_sentence(topic: Topic) -> None:
    with pytest.raises(
        Exception, match=r"\[PYLOG_BAD_RECORD\] topic .* partition \d: the value of the record at offset 9"
    ):
        topic.read("id int", valueFormat="json", mode="FAILFAST").collect()


@pytest.mark.slow
def test_conditions_on_fields_and_on_the_record_under_prefixed_names_are_pushed_down(topic: Topic) -> None:
    settings = topic.spark.conf
    settings.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        options = {"valueFormat": "json", "keyFormat": "long", "recordPrefix": "r_", "pushdown": "true"}
        frame = topic.read("id int, offset string, r_offset bigint, r_key bigint", **options)
        found = frame.where("r_offset < 5 and id > 1 and r_key < 4 and offset is null").collect()
    finally:
        settings.set("spark.sql.python.filterPushdown.enabled", "false")
    assert sorted(row.id for row in found) == [2, 2, 3, 3]
