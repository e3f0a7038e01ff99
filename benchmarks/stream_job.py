"""A streaming query of one session: it runs a number of micro-batches, and Spark's own progress says what each took."""

import tempfile
import time
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pylog_spark.testing.spark import checkpoint_settings

_DEADLINE_S = 120
_LOOK_S = 0.1  # rarely: a look is work for the JVM that is measured

# What Spark's progress calls the parts of a trigger, gathered under the names that the rows use.
_PARTS = {
    "whole": ("triggerExecution",),
    "plan": ("latestOffset", "getBatch", "queryPlanning"),
    "run": ("addBatch",),
    "log": ("walCommit", "commitOffsets"),
}


def stream(spark: SparkSession, side: str, job: dict[str, Any]) -> dict[str, float]:
    """Run `batches` micro-batches of `trigger` rows, of which the first `warm` are not counted.

    The log is full before the query starts, so that all batches are of one size and follow each other at once. With `tuned`, Spark
    asks no readlink for the checkpoint's files.

    Returns
    -------
    dict
        Median milliseconds of a micro-batch: `whole`, and its parts `plan` (end offsets, the source's partitions, Spark's
        planner), `run` (the tasks and the sink's commit) and `log` (the two files that Spark writes for a batch).
    """
    reader = spark.readStream.format(side).options(**_source(side, job), **job.get("read", {}))
    frame = reader.load()
    with tempfile.TemporaryDirectory(dir=job["folder"]) as checkpoint:
        write = job.get("write")
        writer = (
            frame.select("value").writeStream.format(side).options(**write)
            if write
            else frame.writeStream.format("noop")
        )
        settings = checkpoint_settings(spark.version) if job["tuned"] else {}
        try:
            for name, text in settings.items():
                spark.conf.set(name, text)
            query = writer.option("checkpointLocation", checkpoint).start()
        finally:
            for name in settings:
                spark.conf.unset(name)
        try:
            progress = _wait_for(query, job["batches"])
        finally:
            query.stop()
    counted = progress[job["warm"] : job["batches"]]
    short = [batch for batch in counted if batch["numInputRows"] != job["trigger"]]
    if short:
        raise RuntimeError(f"a micro-batch read {short[0]['numInputRows']} rows instead of {job['trigger']}")
    durations = [batch["durationMs"] for batch in counted]
    return {
        part: median(sum(duration.get(name, 0) for name in names) for duration in durations)
        for part, names in _PARTS.items()
    }


def _source(side: str, job: dict[str, Any]) -> dict[str, str]:
    if side == "ceiling":
        return {"trigger": str(job["trigger"]), "tasks": str(job["tasks"]), "bytes": str(job["bytes"])}
    return {
        "kafka.bootstrap.servers": job["bootstrap"],
        "subscribe": job["topic"],
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(job["trigger"]),
    }


def _wait_for(query: StreamingQuery, batches: int) -> list[dict[str, Any]]:
    """The progress of the first `batches` micro-batches, as soon as they are done."""
    until = time.monotonic() + _DEADLINE_S
    while (last := query.lastProgress) is None or last["batchId"] + 1 < batches:
        error = query.exception()
        if error is not None:
            raise RuntimeError(f"the query failed: {error}")
        if time.monotonic() > until:
            raise RuntimeError(f"{batches} micro-batches took more than {_DEADLINE_S} s; the last progress is {last}")
        time.sleep(_LOOK_S)
    return [progress for progress in query.recentProgress if progress["numInputRows"]]
