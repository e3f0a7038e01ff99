"""The same rows by every way: a plain Kafka client, Spark through the broker, Spark with the archive's part read in the archive, a stream that does so,
and `path` without any broker. 20 MiB, about 20 s; 10 GiB in a long run, in which the broker's memory says whether it stays flat.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every user of Spark has it

from benchmarks.load import texts
from benchmarks.process import peak_rss_mib
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.client import Admin
from pylog_spark.client.admin import LATEST
from pylog_spark.testing import LocalBroker
from tests.harness import runs
from tests.harness.waiting import until

pytestmark = (
    pytest.mark.long
)  # each way: tests/reading/test_archived.py, tests/archive/test_cold_reads.py, tests/spark/test_archives.py

MIB = runs.rounds("PYLOG_EQUAL_MIB", 20, 10_240)
PARTITIONS = 2
VALUE_BYTES = 1_000
MOST_MEMORY_MIB = 100
_SEGMENT_BYTES = (1 << 20) if MIB < 1_000 else (64 << 20)


class Rows(NamedTuple):
    """Rows of a partition: how many, the sum of their offsets, that of checksums of offset, key and value."""

    count: int
    offsets: int
    checksums: int


def checksum(offset: int, key: bytes, value: bytes) -> int:
    """What a row adds."""
    return zlib.crc32(b"%d %s %s" % (offset, key, value))


def fill(servers: str, topic: str) -> None:
    """Write records in full batches, and every thousandth in a transaction that is aborted."""
    values = texts(VALUE_BYTES)
    records = MIB * (1 << 20) // VALUE_BYTES
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "batch.size": 500_000, "log_level": 0})
    for number in range(records):
        place = {"key": b"%d" % number, "partition": number % PARTITIONS}
        while True:
            try:
                producer.produce(topic, values[number % len(values)], **place)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    aborted = Producer({"bootstrap.servers": servers, "transactional.id": "aborted", "log_level": 0})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    for number in range(2_000):
        aborted.produce(topic, values[number % len(values)], key=b"aborted", partition=number % PARTITIONS)
    aborted.abort_transaction(30)
    for number in range(2_000):
        producer.produce(topic, values[number % len(values)], key=b"%d" % number, partition=number % PARTITIONS)
    producer.flush()


def consumed(servers: str, topic: str, ends: dict[int, int]) -> tuple[dict[int, Rows], dict[int, Rows]]:
    """What librdkafka gives of committed records: all rows, and those before the `ends`."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "any",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    whole, before = dict.fromkeys(ends, Rows(0, 0, 0)), dict.fromkeys(ends, Rows(0, 0, 0))
    left = set(ends)
    consumer.assign([TopicPartition(topic, number, 0) for number in ends])
    while left:
        for message in consumer.consume(10_000, 0.5):
            number = message.partition()
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(number)
                continue
            offset = message.offset()
            each = (1, offset, checksum(offset, message.key(), message.value()))
            whole[number] = Rows(*map(sum, zip(whole[number], each, strict=True)))
            if offset < ends[number]:
                before[number] = Rows(*map(sum, zip(before[number], each, strict=True)))
    consumer.close()
    return whole, before


def summed(frame: DataFrame) -> dict[int, Rows]:
    """The same of a frame of records."""
    text = F.concat(F.col("offset").cast("string").cast("binary"), F.lit(b" "), "key", F.lit(b" "), "value")
    sums = frame.groupBy("partition").agg(
        F.count("*"), F.sum(F.col("offset").cast("decimal(38,0)")), F.sum(F.crc32(text).cast("decimal(38,0)"))
    )
    return {row[0]: Rows(*map(int, row[1:])) for row in sums.collect()}


def streamed(spark: Any, checkpoint: Path, **options: str) -> dict[int, Rows]:
    """The same of a stream that reads to the end."""
    found = dict.fromkeys(range(PARTITIONS), Rows(0, 0, 0))

    def add(frame: DataFrame, _number: int) -> None:
        for number, rows in summed(frame).items():
            found[number] = Rows(*map(sum, zip(found[number], rows, strict=True)))

    reader = spark.readStream.format("pylog").options(startingOffsets="earliest", **options)
    query = reader.load().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query.foreachBatch(add).start().awaitTermination()
    return found


@pytest.mark.timeout(7_200 if MIB >= 1_000 else 300)
def test_every_way_gives_the_same_rows_and_the_broker_stays_small(spark: Any, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    settings = {
        "remote_log_manager_task_interval_ms": 100,
        "log_retention_check_interval_ms": 100,
        "log_flush_offset_checkpoint_interval_ms": 100,
    }
    with (
        LocalBroker(tmp_path / "data", archive_url=str(archive), **settings) as broker,
        Admin(broker.bootstrap_servers) as admin,
    ):
        servers = broker.bootstrap_servers
        local = {"segment.bytes": str(_SEGMENT_BYTES), "local.retention.bytes": str(_SEGMENT_BYTES)}
        admin.create_topic(
            "events", PARTITIONS, config={**local, "remote.storage.enable": "true", "file.delete.delay.ms": "0"}
        )
        fill(servers, "events")
        last = {
            found.partition: found.offset for found in admin.offsets([("events", n, LATEST) for n in range(PARTITIONS)])
        }
        until(
            lambda: all(admin.offsets([("events", n, -4)])[0].offset > last[n] // 2 for n in range(PARTITIONS)),
            "most is in the archive alone",
            deadline_s=600,
        )
        # So that where the broker begins stays as it is.
        admin.alter_configs("topic", "events", {"local.retention.bytes": "-1"})
        log = ArchiveLog(str(archive))
        ends = {number: log.manifest("events", number).end for number in range(PARTITIONS)}

        at = {"kafka.bootstrap.servers": servers, "subscribe": "events", "localReads": "never"}
        by_archive = spark.read.format("pylog").options(**at)
        assert summed(by_archive.load()) == summed(by_archive.option("archiveReads", "never").load())
        assert streamed(spark, tmp_path / "checkpoint", **at) == summed(by_archive.load())
        whole, before = consumed(servers, "events", ends)
        assert summed(by_archive.option("archiveReads", "auto").load()) == whole
        ending = {"endingOffsets": json.dumps({"events": {str(number): end for number, end in ends.items()}})}
        assert summed(spark.read.format("pylog").options(**ending).load(str(archive))) == before
        peak = peak_rss_mib(broker.pid)
        print(f"{MIB} MiB: the broker had at most {peak:.0f} MiB of memory")
        assert peak < MOST_MEMORY_MIB
    assert sum(rows.count for rows in whole.values()) == MIB * (1 << 20) // VALUE_BYTES + 2_000
