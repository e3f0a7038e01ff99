"""One Spark session of one side, driven by JSON lines: a job comes in on stdin, its seconds go out on stdout.

Started by `spark_session.py` as ``python -m benchmarks.spark_job SIDE MASTER``; SIDE is kafka (Spark's own connector), pylog, or
ceiling (`ceiling.py`: a Python data source that does nothing).
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, from_json

from benchmarks.ceiling import CeilingSource
from benchmarks.stream_job import stream
from benchmarks.table_job import fresh

_TASKS = 4


def session(side: str, master: str) -> SparkSession:
    """Nothing tuned; Spark's connector comes as jars."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName(f"bench-{side}")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    if side == "kafka":
        builder = builder.config("spark.jars", os.environ["BENCH_CONNECTOR_JARS"])
    spark = builder.getOrCreate()
    if side == "ceiling":
        spark.dataSource.register(CeilingSource)
    return spark


def read(spark: SparkSession, side: str, job: dict[str, Any]) -> None:
    """All columns or only `value` of a topic (or of `rows` ready-made rows) into the noop sink."""
    reader = spark.read.format(side)
    if side == "ceiling":
        reader = reader.options(rows=job["rows"], bytes=job["bytes"], tasks=_TASKS)
    elif "path" in job:
        reader = reader.option("path", job["path"]).option("subscribe", job["topic"])
    else:
        reader = reader.option("kafka.bootstrap.servers", job["bootstrap"]).option("subscribe", job["topic"])
    reader = reader.options(**job.get("options", {}))
    if job["columns"] == "value" and side != "kafka":
        reader = reader.schema("value binary")
    frame: DataFrame = reader.load()
    if job["columns"] == "value":
        frame = frame.select("value")
    frame.write.format("noop").mode("overwrite").save()


def typed(spark: SparkSession, side: str, job: dict[str, Any]) -> None:
    """Fields of a topic's values of JSON or Avro as columns into the noop sink."""
    reader = (
        spark.read.format(side).option("kafka.bootstrap.servers", job["bootstrap"]).option("subscribe", job["topic"])
    )
    frame: DataFrame
    if side == "pylog":
        schema = {"valueSchema": job["schema"]} if job["format"] == "avro" else {}
        options = {"valueFormat": job["format"], "localReads": "never", **schema}
        frame = reader.schema(job["wanted"]).options(**options).load()
    else:
        if job["format"] == "avro":
            parsed = from_avro(col("value"), job["schema"], {"mode": "PERMISSIVE"})
        else:
            parsed = from_json(col("value").cast("string"), job["schema"])
        frame = reader.load().select(parsed.alias("value")).select(*(f"value.{name}" for name in job["names"]))
    frame.write.format("noop").mode("overwrite").save()


def write(spark: SparkSession, side: str, job: dict[str, Any]) -> None:
    """`rows` rows with a value of `bytes` bytes into a topic. The rows are made and cached before the first, warm-up job is
    over, so that what is timed is writing them."""
    writer = _rows_to_write(spark, job["rows"], job["bytes"]).write.format(side).mode("append")
    if side != "ceiling":
        writer = writer.option("kafka.bootstrap.servers", job["bootstrap"]).option("topic", job["topic"])
    elif "drain" in job:
        writer = writer.option("drain", job["drain"])
    writer.options(**job.get("options", {})).save()


@cache
def _rows_to_write(spark: SparkSession, rows: int, value_bytes: int) -> DataFrame:
    numbers = spark.range(0, rows, 1, _TASKS)
    frame = numbers.selectExpr(f"cast(lpad(cast(id as string), {value_bytes}, 'x') as binary) as value").cache()
    frame.count()
    return frame


def warm(spark: SparkSession, side: str, job: dict[str, Any]) -> None:
    """Something, so that the session has done its first job."""
    spark.range(10).count()


_JOBS: dict[str, Callable[[SparkSession, str, dict[str, Any]], dict[str, float] | None]] = {
    "read": read,
    "typed": typed,
    "write": write,
    "stream": stream,
    "fresh": fresh,
    "warm": warm,
}


def main() -> None:
    """Serve jobs until stdin ends."""
    side, master = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints goes to stderr
    spark = session(side, master)
    for line in sys.stdin:
        job = json.loads(line)
        started = time.perf_counter()
        figures = _JOBS[job["do"]](spark, side, job) or {}
        print(json.dumps({"seconds": time.perf_counter() - started, **figures}), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
