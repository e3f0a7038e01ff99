"""`spark.read.format("pylog").load(directory)` in real Spark: the driver plans, the workers read files; nothing listens anywhere."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as every user of Spark has it

from pylog_spark._native import Client
from pylog_spark.testing import LocalBroker
from tests.directories.support import flip, record_batches
from tests.spark.support import Topic

ROWS = 5_000


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has stopped: a topic ``events`` with three partitions of JSON records."""
    folder = tmp_path_factory.mktemp("stopped")
    with LocalBroker(folder) as broker:
        client = Client({"bootstrap.servers": broker.bootstrap_servers})
        topic = Topic(None, broker.bootstrap_servers, client, "events", 3)
        topic.create(segment_bytes="1048576")
        for partition in range(3):
            for start in range(0, ROWS, 500):
                numbers = range(start, start + 500)
                topic.put([f'{{"id": {number}, "text": "{"x" * 400}"}}' for number in numbers], partition)
        client.close()
    return folder


def test_a_directory_is_read_as_a_topic_is(spark: Any, stopped: Path) -> None:
    frame = spark.read.format("pylog").load(str(stopped))
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    counted = frame.groupBy("topic", "partition").agg(
        F.count("*"), F.min("offset"), F.max("offset"), F.countDistinct("offset")
    )
    assert sorted(tuple(row) for row in counted.collect()) == [
        ("events", partition, ROWS, 0, ROWS - 1, ROWS) for partition in range(3)
    ]


def test_ranges_filters_and_typed_columns_work_as_with_brokers(spark: Any, stopped: Path) -> None:
    options = {
        "startingOffsets": '{"events":{"0":10,"1":20,"2":4990}}',
        "endingOffsets": '{"events":{"0":20,"1":20,"2":-1}}',
    }
    part = spark.read.format("pylog").options(subscribe="events", **options).load(str(stopped))
    assert sorted((row.partition, row.offset) for row in part.select("partition", "offset").collect()) == [
        *((0, offset) for offset in range(10, 20)),
        *((2, offset) for offset in range(4_990, 5_000)),
    ]
    typed = spark.read.format("pylog").schema("id BIGINT, text STRING").option("valueFormat", "json").load(str(stopped))
    assert typed.agg(F.sum("id"), F.max(F.length("text"))).first() == (3 * sum(range(ROWS)), 400)
    assert spark.read.format("pylog").option("limit", 7).load(str(stopped)).count() == 7


def test_one_log_partition_may_be_many_tasks(spark: Any, stopped: Path) -> None:
    frame = spark.read.format("pylog").option("minPartitions", 12).load(str(stopped))
    assert frame.rdd.getNumPartitions() >= 12
    assert frame.count() == 3 * ROWS


def test_sql_reads_a_directory(spark: Any, stopped: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW stored USING pylog OPTIONS (path '{stopped}', subscribe 'events')")
    assert spark.sql("SELECT count(*), max(offset) FROM stored WHERE partition = 1").first() == (ROWS, ROWS - 1)


def test_damage_fails_the_query_with_one_sentence_or_is_left_out(spark: Any, stopped: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(stopped, tmp_path / "copy"))
    file = min((copy / "events-1").glob("*.log"))
    batch = record_batches(file)[1]
    flip(file, batch.position + 100)
    frame = spark.read.format("pylog").load(str(copy))
    with pytest.raises(
        PySparkException, match=f"PYLOG_CORRUPT_BATCH.*events-1, offset {batch.base_offset}: "
    ) as failed:
        frame.count()
    assert str(file) in str(failed.value)
    lenient = spark.read.format("pylog").option("ignoreCorruptBatches", "true").load(str(copy))
    assert lenient.count() == 3 * ROWS - (batch.last_offset - batch.base_offset + 1)


def test_a_path_that_is_no_directory_is_an_error_at_load(spark: Any) -> None:
    with pytest.raises(PySparkException, match=r"PYLOG_INVALID_OPTION.*/nowhere is no data directory of a broker"):
        spark.read.format("pylog").load("/nowhere")


def test_a_stream_of_a_directory_is_refused_with_the_reason(spark: Any, stopped: Path) -> None:
    frame = spark.readStream.format("pylog").load(str(stopped))
    with pytest.raises(PySparkException, match="The option path has no meaning in a stream read, only in a batch read"):
        frame.writeStream.format("noop").start().awaitTermination()
