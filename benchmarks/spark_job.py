"""One Spark session of one side, driven by JSON lines: a job comes in on stdin, its seconds go out on stdout.

Started by `spark_session.py` as ``python -m benchmarks.spark_job SIDE``; SIDE is kafka (Spark's own connector), pylog, or
ceiling (a Python data source that does nothing but hand over Arrow batches, or take them).
"""

import glob
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
_BATCH_BYTES = 1_500_000
_BATCH_ROWS_MAX = 10_000
_TASKS = 4


class CeilingSource(DataSource):
    """Hands Spark the same ready-made Arrow batch again and again, or counts what it is given."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> str:
        return _COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(schema.names, int(self.options["rows"]), int(self.options["bytes"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return CeilingWriter()


class CeilingReader(DataSourceReader):
    """`rows` rows in `_TASKS` partitions."""

    def __init__(self, columns: list[str], rows: int, value_bytes: int) -> None:
        self._columns, self._rows, self._bytes = columns, rows, value_bytes

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = min(_BATCH_ROWS_MAX, _BATCH_BYTES // (self._bytes + 50))
        whole = {
            "key": pa.nulls(rows, pa.binary()),
            "value": pa.array([b"x" * self._bytes] * rows, pa.binary()),
            "topic": pa.array(["ceiling"] * rows, pa.string()),
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.array([1_700_000_000_000_000] * rows, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * rows, pa.int32()),
        }
        batch = pa.RecordBatch.from_pydict({column: whole[column] for column in self._columns})
        left = self._rows // _TASKS
        while left > 0:
            yield batch.slice(0, min(rows, left))
            left -= rows


class CeilingWriter(DataSourceArrowWriter):
    """Receives and forgets."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def session(side: str) -> SparkSession:
    """local[2], nothing tuned; Spark's connector comes as jars."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName(f"bench-{side}")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    if side == "kafka":
        builder = builder.config("spark.jars", ",".join(glob.glob(os.environ["BENCH_CONNECTOR_JARS"])))
    spark = builder.getOrCreate()
    if side == "ceiling":
        spark.dataSource.register(CeilingSource)
    return spark


def read(spark: SparkSession, side: str, job: dict[str, Any]) -> None:
    """All columns or only `value` of a topic (or of `rows` ready-made rows) into the noop sink."""
    reader = spark.read.format(side)
    if side == "ceiling":
        reader = reader.options(rows=job["rows"], bytes=job["bytes"])
    else:
        reader = reader.option("kafka.bootstrap.servers", job["bootstrap"]).option("subscribe", job["topic"])
    if job["columns"] == "value" and side != "kafka":
        reader = reader.schema("value binary")
    frame: DataFrame = reader.load()
    if job["columns"] == "value":
        frame = frame.select("value")
    frame.write.format("noop").mode("overwrite").save()


def write(spark: SparkSession, side: str, job: dict[str, Any]) -> None:
    """`rows` rows with a value of `bytes` bytes into a topic. The rows are made and cached before the first, warm-up job is
    over, so that what is timed is writing them."""
    writer = _rows_to_write(spark, job["rows"], job["bytes"]).write.format(side).mode("append")
    if side != "ceiling":
        writer = writer.option("kafka.bootstrap.servers", job["bootstrap"]).option("topic", job["topic"])
    writer.save()


@cache
def _rows_to_write(spark: SparkSession, rows: int, value_bytes: int) -> DataFrame:
    numbers = spark.range(0, rows, 1, _TASKS)
    frame = numbers.selectExpr(f"cast(lpad(cast(id as string), {value_bytes}, 'x') as binary) as value").cache()
    frame.count()
    return frame


def main() -> None:
    """Serve jobs until stdin ends."""
    side = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints goes to stderr
    spark = session(side)
    for line in sys.stdin:
        job = json.loads(line)
        started = time.perf_counter()
        {"read": read, "write": write, "warm": lambda *_: spark.range(10).count()}[job["do"]](spark, side, job)
        print(json.dumps({"seconds": time.perf_counter() - started}), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
