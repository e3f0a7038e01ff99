"""`spark.read.format("pylog").load(archive)` in real Spark: the workers read the objects, and no broker runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as every user of Spark has it

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import SHORT, begun, until_short, values
from tests.mirror.support import ends, write

ROWS = 6_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a topic ``events`` with three partitions of JSON records, whose broker is gone."""
    url = tmp_path_factory.mktemp("archive")
    with LocalBroker(tmp_path_factory.mktemp("gone")) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("events", 3)
        with Producer(broker.bootstrap_servers, "events") as producer:
            for number in range(ROWS):
                producer.send(f'{{"id": {number}, "text": "{"x" * 400}"}}'.encode(), partition=number % 3)
                if number % 300 == 299:
                    producer.flush()
        small = CopyOptions(segment_bytes=5_000, frame_bytes=50_000)
        assert len(list(copy_topic(admin, open_archive(str(url), create=True), "events", small, pytest.fail))) > 3
    return url


def test_an_archive_is_read_as_a_topic_is(spark: Any, archive: Path) -> None:
    frame = spark.read.format("pylog").load(str(archive))
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    counted = frame.groupBy("topic", "partition").agg(F.count("*"), F.min("offset"), F.max("offset"))
    assert sorted(tuple(row) for row in counted.collect()) == [("events", each, 2_000, 0, 1_999) for each in range(3)]
    part = spark.read.format("pylog").options(
        subscribe="events", startingOffsets='{"events": {"0": 1990, "1": 2000, "2": 2000}}'
    )
    assert sorted(row.offset for row in part.load(str(archive)).select("offset").collect()) == list(range(1_990, 2_000))
    typed = spark.read.format("pylog").schema("id BIGINT, text STRING").option("valueFormat", "json").load(str(archive))
    assert typed.select(F.sum("id")).first()[0] == ROWS * (ROWS - 1) // 2
    assert spark.read.format("pylog").option("limit", 7).load(f"file://{archive}").count() == 7
    assert frame.where("partition = 1 AND offset >= 1000").count() == 1_000


@pytest.mark.long  # tests/archive/test_store.py
def test_many_tasks_read_an_archive_each_row_once(spark: Any, archive: Path) -> None:
    frame = spark.read.format("pylog").option("maxBytesPerPartition", "100000").load(str(archive))
    assert frame.rdd.getNumPartitions() > 12
    assert frame.count() == frame.select("partition", "offset").distinct().count() == ROWS


def test_inspect_shows_and_verifies_an_archive(archive: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pylog_spark", "inspect", str(archive), "--verify"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == [
        "TOPIC",
        "PARTITION",
        "START",
        "STABLE",
        "END",
        "SEGMENTS",
        "BYTES",
        "BATCHES",
        "RECORDS",
        "CODECS",
    ]
    assert [(*row[:5], row[8]) for row in rows[1:]] == [
        ("events", f"{each}", "0", "2000", "2000", "2000") for each in range(3)
    ]
    assert done.stderr == f"Read {ROWS} records; nothing to report.\n"


@pytest.mark.long  # tests/archive/test_cold_reads.py, without Spark
def test_a_topic_of_which_brokers_have_only_the_end_is_read_whole_by_batches_and_streams(
    spark: Any, tmp_path: Path
) -> None:
    with begun(tmp_path / "broker", tmp_path / "archive") as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("events", 2, config=SHORT)
        write(broker.bootstrap_servers, "events", values(0, 3_000), batch_num_messages=10)
        behind = ends(broker.bootstrap_servers, "events", 2)
        for number in range(2):
            until_short(admin, "events", behind[number] * 2 // 3, number)
        given = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": "events",
            "startingOffsets": "earliest",
        }
        frame = spark.read.format("pylog").options(**given).load()
        assert sorted(int(row.value.split()[0]) for row in frame.select("value").collect()) == list(range(3_000))
        stream = spark.readStream.format("pylog").options(**given, maxOffsetsPerTrigger=500).load()
        query = (
            stream.selectExpr("CAST(value AS STRING) AS text")
            .writeStream.format("json")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert len(query.recentProgress) > 4
        found = spark.read.schema("text STRING").json(str(tmp_path / "out"))
        assert sorted(int(row.text.split()[0]) for row in found.collect()) == list(range(3_000))
