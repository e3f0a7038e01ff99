"""df.write.format("pylog") and df.writeStream.format("pylog"): what arrives, and in which form. How often: test_sink_once."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from tests.spark.support import Topic, committed, error_of

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def rows_of(one: Topic, **options: Any) -> list[Any]:
    return list(one.read(**options).orderBy("partition", "offset").collect())


def test_a_frame_is_appended_once_and_comes_back_as_it_was(topic: Topics, spark: Any) -> None:
    one = topic(partitions=2)
    frame = spark.range(500).selectExpr("CAST(id AS STRING) AS key", "concat('v', id) AS value")
    one.save(frame)
    rows = rows_of(one)
    assert sorted((row.key, row.value) for row in rows) == sorted(
        (str(number).encode(), f"v{number}".encode()) for number in range(500)
    )
    one.save(frame)
    assert len(rows_of(one)) == 1000


def test_every_column_of_a_record_is_written(topic: Topics, spark: Any) -> None:
    one = topic(partitions=3, retention_ms="-1")
    frame = spark.sql(
        "SELECT CAST('v' AS BINARY) AS value, 'k' AS key, 2 AS partition, TIMESTAMP '2013-01-01 05:15:00.123' AS timestamp,"
        " array(named_struct('key', 'h', 'value', CAST('1' AS BINARY))) AS headers"
    )
    one.save(frame)
    (row,) = rows_of(one, includeHeaders=True)
    assert (row.value, row.key, row.partition, row.offset) == (b"v", b"k", 2, 0)
    assert row.timestamp == datetime(2013, 1, 1, 5, 15, 0, 123_000)
    assert [(part.key, part.value) for part in row.headers] == [("h", b"1")]


def test_a_column_says_the_topic_and_the_option_wins_over_it(topic: Topics, spark: Any) -> None:
    one, two = topic(), topic()
    frame = spark.createDataFrame([(one.name, "x"), (two.name, "y")], "topic STRING, value STRING")
    one.save(frame, topic=None)
    assert (one.values(), two.values()) == (["x"], ["y"])
    one.save(frame)
    assert sorted(one.values()) == ["x", "x", "y"]
    assert two.values() == ["y"]


def test_a_null_value_is_a_tombstone(topic: Topics, spark: Any) -> None:
    one = topic()
    one.save(spark.createDataFrame([("k", None)], "key STRING, value STRING"))
    (row,) = rows_of(one)
    assert (row.key, row.value) == (b"k", None)


def test_columns_that_are_no_part_of_a_record_are_left_alone_so_a_read_can_be_written_back(topic: Topics) -> None:
    one, two = topic(partitions=2), topic(partitions=2)
    one.put(["a"], 1)
    two.save(one.read(includeHeaders=True))
    (row,) = rows_of(two)
    assert (row.topic, row.partition, row.value) == (two.name, 1, b"a")


def test_keys_are_partitioned_as_kafkas_own_clients_do(topic: Topics, spark: Any, servers: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    ours, theirs = topic(partitions=7), topic(partitions=7)
    keys = [f"key-{number}" for number in range(300)] + ["", "é"]
    ours.save(spark.createDataFrame([(key, key) for key in keys], "key STRING, value STRING"))
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs.name, value=key, key=key)
    assert producer.flush(30) == 0
    placed = [{bytes(row.value): row.partition for row in rows_of(one)} for one in (ours, theirs)]
    # librdkafka sends an empty key to a random partition, Java's client hashes it: not compared.
    assert len(placed[0]) == len(keys)
    assert {k: p for k, p in placed[0].items() if k} == {k: p for k, p in placed[1].items() if k}


def test_rows_without_a_key_are_spread_over_partitions(topic: Topics, spark: Any) -> None:
    one = topic(partitions=2)
    frame = spark.range(400).selectExpr("repeat('x', 1000) AS value").repartition(4)
    one.save(frame, **{"kafka.batch.size": "20000"})
    assert Counter(row.partition for row in rows_of(one)).keys() == {0, 1}
    assert len(rows_of(one)) == 400


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_codec_reads_back(topic: Topics, spark: Any, codec: str) -> None:
    one = topic()
    one.save(spark.range(100).selectExpr("repeat(CAST(id AS STRING), 50) AS value").coalesce(1), compression=codec)
    assert one.values() == [str(number) * 50 for number in range(100)]


@pytest.mark.parametrize("output_mode", ["append", "complete"])
def test_a_stream_is_appended_batch_by_batch_and_goes_on_after_a_restart(
    topic: Topics, checkpoint: str, output_mode: str
) -> None:
    source, sink = topic(), topic()
    source.put(["a", "b"])

    def run() -> None:
        frame = source.read_stream().selectExpr("CAST(value AS STRING) AS value")
        if output_mode == "complete":
            frame = frame.groupBy("value").count().selectExpr("value", "CAST(count AS STRING) AS key")
        sink.save_stream(frame, checkpoint, output_mode)

    run()
    assert sorted(sink.values()) == ["a", "b"]
    run()
    assert sorted(sink.values()) == ["a", "b"]
    source.put(["c"])
    run()
    # Complete mode writes the whole result again: a log keeps it all, as with Spark's Kafka connector.
    assert sorted(sink.values()) == (["a", "b", "c"] if output_mode == "append" else ["a", "a", "b", "b", "c"])
    assert committed(checkpoint) == [0, 1]


def test_update_mode_is_refused_by_spark_before_anything_is_written(topic: Topics, checkpoint: str) -> None:
    source, sink = topic(), topic()
    source.put(["a"])
    counts = source.read_stream().groupBy("value").count().selectExpr("value")
    with pytest.raises(Exception, match="does not support Update mode"):
        sink.save_stream(counts, checkpoint, "update")
    assert sink.offsets() == [0]


def test_rows_that_a_failed_job_wrote_stay_and_the_next_job_appends(topic: Topics, spark: Any) -> None:
    one = topic()
    frame = spark.range(10).selectExpr("IF(id = 9, raise_error('boom'), CAST(id AS STRING)) AS value").coalesce(1)
    with pytest.raises(Exception, match="boom"):
        one.save(frame)
    one.save(spark.createDataFrame([("after",)], "value STRING"))
    assert one.values()[-1] == "after"


def test_a_write_without_rows_writes_nothing(topic: Topics, spark: Any) -> None:
    one = topic()
    one.save(spark.createDataFrame([], "value STRING"))
    assert one.offsets() == [0]


def test_a_partition_that_does_not_exist_is_named(topic: Topics, spark: Any) -> None:
    one = topic(partitions=2)
    frame = spark.createDataFrame([("a", 7)], "value STRING, partition INT")
    condition, sentence = error_of(lambda: one.save(frame))
    assert condition in ("PYLOG_INVALID_OPTION", "PYLOG_UNKNOWN_TOPIC")
    assert "7" in sentence
    assert one.name in sentence


def test_a_row_without_a_topic_is_refused(topic: Topics, spark: Any) -> None:
    one = topic()
    frame = spark.createDataFrame([(None, "x")], "topic STRING, value STRING")
    _, sentence = error_of(lambda: one.save(frame, topic=None))
    assert "topic" in sentence
