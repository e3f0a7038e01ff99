"""df.write.format("pylog") and df.writeStream.format("pylog"): what arrives, and in which form.
How often: test_sink_once. Without Spark: ``tests/reading/test_writing.py``."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from tests.harness.runs import mostly_long
from tests.spark.support import Topic, committed

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def rows_of(topic: Topic, **options: Any) -> list[Any]:
    return list(topic.read(**options).orderBy("partition", "offset").collect())


def test_a_frame_is_appended_once_and_comes_back_as_it_was(make_topic: Topics, spark: Any) -> None:
    topic = make_topic(partitions=2)
    frame = spark.range(500).selectExpr("CAST(id AS STRING) AS key", "concat('v', id) AS value")
    topic.save(frame)
    rows = rows_of(topic)
    assert sorted((row.key, row.value) for row in rows) == sorted(
        (str(number).encode(), f"v{number}".encode()) for number in range(500)
    )
    topic.save(frame)
    assert len(rows_of(topic)) == 1000


def test_every_column_of_a_record_is_written(make_topic: Topics, spark: Any) -> None:
    topic = make_topic(partitions=3, retention_ms="-1")
    frame = spark.sql(
        "SELECT CAST('v' AS BINARY) AS value, 'k' AS key, 2 AS partition, TIMESTAMP '2013-01-01 05:15:00.123' AS timestamp,"
        " array(named_struct('key', 'h', 'value', CAST('1' AS BINARY))) AS headers"
    )
    topic.save(frame)
    (row,) = rows_of(topic, includeHeaders=True)
    assert (row.value, row.key, row.partition, row.offset) == (b"v", b"k", 2, 0)
    assert row.timestamp == datetime(2013, 1, 1, 5, 15, 0, 123_000)
    assert [(part.key, part.value) for part in row.headers] == [("h", b"1")]


def test_columns_that_are_no_part_of_a_record_are_left_alone_so_a_read_can_be_written_back(make_topic: Topics) -> None:
    first, second = make_topic(partitions=2), make_topic(partitions=2)
    first.put(["a"], 1)
    second.save(first.read(includeHeaders=True))
    (row,) = rows_of(second)
    assert (row.topic, row.partition, row.value) == (second.name, 1, b"a")


@pytest.mark.parametrize("output_mode", mostly_long(["append", "complete"], "append"))
def test_a_stream_is_appended_batch_by_batch_and_goes_on_after_a_restart(
    make_topic: Topics, checkpoint: str, output_mode: str
) -> None:
    source, sink = make_topic(), make_topic()
    source.put(["a", "b"])

    def run() -> None:
        frame = source.read_stream().selectExpr("CAST(value AS STRING) AS value")
        if output_mode == "complete":
            frame = frame.groupBy("value").count().selectExpr("value", "CAST(count AS STRING) AS key")
        sink.save_stream(frame, checkpoint, output_mode)

    run()
    assert sorted(sink.values()) == ["a", "b"]
    source.put(["c"])
    run()
    # Complete mode writes the whole result again: a log keeps it all, as with Spark's Kafka connector.
    assert sorted(sink.values()) == (["a", "b", "c"] if output_mode == "append" else ["a", "a", "b", "b", "c"])
    assert committed(checkpoint) == [0, 1]


def test_update_mode_is_refused_by_spark_before_anything_is_written(make_topic: Topics, checkpoint: str) -> None:
    source, sink = make_topic(), make_topic()
    source.put(["a"])
    counts = source.read_stream().groupBy("value").count().selectExpr("value")
    with pytest.raises(Exception, match="does not support Update mode"):
        sink.save_stream(counts, checkpoint, "update")
    assert sink.offsets() == [0]
