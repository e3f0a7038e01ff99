"""Runs every scenario of `SCENARIOS` once and prints what came of each, as one line of JSON.

A program of its own, since it runs with other versions of Spark than the tests do:
``python -m tests.spark.versions.program SERVERS FOLDER classic|connect``.

A scenario's outcome is "yes", "no" where it returns that, or the condition of the error that it raised.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROWS = 90
#: With which sources have names in the checkpoint.
NAMES = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}
SPEC = """name: versions
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "1"
"""
PIPELINE = """from pyspark import pipelines
from pyspark.sql import SparkSession

brokers = {brokers!r}


@pipelines.table
def numbers():
    options = dict(subscribe="rows", startingOffsets="earliest", **brokers)
    stream = SparkSession.active().readStream.format("pylog").options(**options).load()
    return stream.selectExpr("CAST(value AS STRING) AS value")


pipelines.create_sink("piped", "pylog", dict(topic="piped", **brokers))


@pipelines.append_flow(target="piped")
def doubled():
    return SparkSession.active().readStream.table("numbers").selectExpr("CAST(2 * CAST(value AS INT) AS STRING) AS value")
"""


class Run:
    """One session, and one topic with `ROWS` rows in three partitions, written by Spark.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    servers : str
        A broker whose topics have three partitions.
    folder : Path
        For checkpoints.
    """

    def __init__(self, spark: Any, servers: str, folder: Path) -> None:
        self.spark = spark
        self.brokers = {"kafka.bootstrap.servers": servers}
        self.folder = folder

    def rows(self) -> Any:
        """The frame that is written."""
        return self.spark.range(ROWS).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")

    def write(self, topic: str, **options: Any) -> None:
        """Append `rows`."""
        self.rows().write.format("pylog").options(topic=topic, **self.brokers, **options).mode("append").save()

    def read(self, topic: str, **options: Any) -> Any:
        """A batch read."""
        return self.spark.read.format("pylog").options(subscribe=topic, **self.brokers, **options).load()

    def stream(self, topic: str = "rows", *, name: str | None = None, **options: Any) -> Any:
        """A streaming read from the beginning; `name` is that of the source in the query."""
        given = {"subscribe": topic, "startingOffsets": "earliest", **self.brokers, **options}
        reader = self.spark.readStream if name is None else self.spark.readStream.name(name)
        return reader.format("pylog").options(**given).load()

    def checkpoint(self, name: str) -> str:
        """A checkpoint location."""
        return str(self.folder / name)

    def copy(self, topic: str, **options: Any) -> Any:
        """Stream everything from "rows" into `topic` until the end of what is there; the query."""
        writer = self.stream(**options).select("key", "value").writeStream.format("pylog")
        writer = writer.options(topic=topic, **self.brokers).option("checkpointLocation", self.checkpoint(topic))
        return finished(writer)

    def values(self, topic: str) -> list[int]:
        """The values of a topic, sorted."""
        return sorted(int(row.value) for row in self.read(topic).select("value").collect())


def finished(writer: Any) -> Any:
    """Run a stream to the end of what is there; the query."""
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    if query.exception() is not None:
        raise query.exception()
    return query


def batch_write(run: Run) -> None:
    run.write("rows")
    assert run.values("rows") == list(range(ROWS))


def batch_read(run: Run) -> None:
    frame = run.read("rows")
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert frame.where("partition = 1").count() + frame.where("partition <> 1").count() == ROWS


def fewer_columns(run: Run) -> None:
    reader = run.spark.read.format("pylog").schema("value BINARY, offset BIGINT").options(subscribe="rows")
    assert len(reader.options(**run.brokers).load().collect()) == ROWS


def stream_read(run: Run) -> None:
    finished(run.stream().writeStream.format("noop").option("checkpointLocation", run.checkpoint("noop")))
    query = run.stream().writeStream.format("memory").queryName("memory").start()
    try:
        query.processAllAvailable()
        assert run.spark.table("memory").count() == ROWS
    finally:
        query.stop()


def batch_once(run: Run) -> None:
    for _ in range(2):  # the second of one name and version writes nothing
        run.write("named", txnAppId="versions", txnVersion=1)
    assert run.values("named") == list(range(ROWS))


def stream_once(run: Run) -> None:
    run.copy("copied")
    # As after a crash between the sink's commit and Spark's: the batch runs again.
    for name in ("0", ".0.crc"):
        (run.folder / "copied" / "commits" / name).unlink()
    run.copy("copied")
    assert run.values("copied") == list(range(ROWS))


def foreach_once(run: Run) -> None:
    from pylog_spark import foreach_batch

    counts = run.stream().groupBy("key").count().selectExpr("key", "key AS value")
    each = counts.writeStream.outputMode("update").foreachBatch(foreach_batch("each", topic="each", **run.brokers))
    finished(each.option("checkpointLocation", run.checkpoint("each")))
    assert run.values("each") == list(range(ROWS))


def mirrored(run: Run) -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from pylog_spark.client import Admin
    from pylog_spark.listener import GroupMirror, QueryMetrics

    servers, reader = run.brokers["kafka.bootstrap.servers"], InMemoryMetricReader()
    mirror, metrics = GroupMirror(servers), QueryMetrics(meter_provider=MeterProvider([reader]))
    run.spark.streams.addListener(metrics)
    run.spark.streams.addListener(mirror)
    try:
        writer = run.stream().writeStream.format("noop").queryName("mirrored")
        query = finished(writer.option("checkpointLocation", run.checkpoint("mirrored")))
        assert mirror.wait(query, 60), "Spark has not reported the end to the listener"
    finally:
        run.spark.streams.removeListener(mirror)
        run.spark.streams.removeListener(metrics)
    data = json.loads(reader.get_metrics_data().to_json())
    counted = {each["name"]: each["data"] for each in data["resource_metrics"][0]["scope_metrics"][0]["metrics"]}
    (rows,) = counted["pylog.query.input.rows"]["data_points"]
    assert (rows["attributes"]["query"], rows["value"]) == ("mirrored", ROWS)
    with Admin(servers) as admin:
        shown = admin.group_offsets("mirrored")
        ends = {each[:2]: each.offset for each in admin.offsets([(*partition, -1) for partition in shown])}
    assert shown == ends, "marks of transactions have offsets, too"
    assert sum(shown.values()) >= ROWS


def watched(run: Run) -> None:
    import pylog_spark

    query = run.stream().writeStream.format("noop").queryName("watched").trigger(availableNow=True).start()
    with redirect_stdout(StringIO()) as printed:
        pylog_spark.watch(query, every_s=0.1, timeout_s=120)
    assert not query.isActive, "the display ends with the query"
    assert f"{ROWS} rows" in printed.getvalue(), printed.getvalue()


def named_sources(run: Run) -> str | None:
    if not hasattr(run.spark.readStream, "name"):
        return "no"
    for name, value in NAMES.items():
        run.spark.conf.set(name, value)
    topics = {"left": "rows", "right": "named"}
    try:
        for names, rows in ((("left", "right"), 2 * ROWS), (("right", "left"), 0)):
            left, right = (run.stream(topics[name], name=name) for name in names)
            writer = left.union(right).writeStream.format("noop")
            query = finished(writer.option("checkpointLocation", run.checkpoint("named")))
            read = sum(progress.numInputRows for progress in query.recentProgress)
            assert read == rows, f"{read} rows of {names}: in another order each source goes on where it was"
    finally:
        for name in NAMES:
            run.spark.conf.unset(name)
    return None


def pipelines(run: Run) -> str | None:
    command = Path(sys.executable).parent / "spark-pipelines"
    if not command.exists():
        return "no"
    folder = run.folder / "pipeline"
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC.format(storage=(folder / "storage").as_uri()))
    (folder / "transformations" / "pipeline.py").write_text(PIPELINE.format(brokers=run.brokers))
    # A home of another layout may be set for this program's own session; over Connect the pipeline runs in the server of that.
    ours = ("SPARK_HOME", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    environment = {name: text for name, text in os.environ.items() if name not in ours}
    # Its own server is to take any free port, as Spark's own tests do: another may run on this machine.
    environment["SPARK_TESTING"] = "1"
    words = [str(command), *(["--remote", "sc://localhost"] if is_connect(run.spark) else []), "run"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert run.values("piped") == [2 * value for value in range(ROWS)]
    return None


def is_connect(spark: Any) -> bool:
    """Whether it is a session of Spark Connect."""
    return ".connect." in type(spark).__module__


def real_time(run: Run) -> str | None:
    frame = run.stream().select("value")
    try:
        writer = frame.writeStream.format("console").outputMode("update").trigger(realTime="5 seconds")
        writer.option("checkpointLocation", run.checkpoint("real")).start().awaitTermination(60)
    except TypeError:
        return "no"  # Python does not know that trigger
    except Exception as error:
        if "STREAMING_REAL_TIME_MODE" in str(error):
            return "no"
        raise
    return None


def sentences(run: Run) -> None:
    wide = run.spark.createDataFrame([("a", 7)], "value STRING, partition INT")
    wide_stream = run.stream().selectExpr("value", "7 AS partition").writeStream.format("pylog").options(topic="rows")
    wide_stream = wide_stream.options(**run.brokers).option("checkpointLocation", run.checkpoint("wrong"))
    no_stream = run.stream(endingOffsets="latest").writeStream.format("noop")
    wrong = {
        "PYLOG_UNKNOWN_OPTION": lambda: run.read("rows", subscrieb="rows").columns,  # Connect is lazy
        "PYLOG_UNKNOWN_TOPIC": lambda: run.read("no-such-topic").count(),
        "PYLOG_INVALID_SCHEMA": lambda: run.read("rows").drop("value").write.format("pylog").mode("append")
        .options(topic="rows", **run.brokers).save(),
        "PYLOG_INVALID_OPTION": lambda: wide.write.format("pylog").mode("append")
        .options(topic="rows", **run.brokers).save(),
        "PYLOG_INVALID_OPTION ": lambda: finished(wide_stream),
        "PYLOG_INVALID_OPTION  ": lambda: finished(no_stream.option("checkpointLocation", run.checkpoint("none"))),
    }  # fmt: skip
    for expected, action in wrong.items():
        said = failure(action)
        assert said == expected.strip(), (expected, said)


def rate_limit(run: Run) -> None:
    run.copy("limited", maxOffsetsPerTrigger=30)
    assert run.values("limited") == list(range(ROWS))
    # Three batches, or one more: each partition's share of the limit is rounded down.
    assert len([path for path in (run.folder / "limited" / "commits").iterdir() if path.name.isdecimal()]) in (3, 4)


def arrow(run: Run) -> str | None:
    from pyspark.sql.types import StringType, StructType

    from pylog_spark.datasource import PylogDataSource

    writer = PylogDataSource({"topic": "rows", **run.brokers}).streamWriter(
        StructType().add("value", StringType()), False
    )
    return None if any("Arrow" in base.__name__ for base in type(writer).__mro__) else "no"


#: Row of the documented table -> scenario. The first one writes what the others read.
SCENARIOS: dict[str, Callable[[Run], str | None]] = {
    "batch write": batch_write,
    "batch read": batch_read,
    "only the columns of `.schema()`": fewer_columns,
    "stream read, `availableNow`": stream_read,
    "batch write of a `txnAppId`, exactly once": batch_once,
    "stream write, exactly once": stream_once,
    "`foreach_batch`, output mode update": foreach_once,
    "listeners: a group of the query's name, numbers": mirrored,
    "`pylog_spark.watch`": watched,
    "sources with names, `.name()`": named_sources,
    "declarative pipelines (`spark-pipelines`), from a topic and into one": pipelines,
    "a source in real-time mode": real_time,
    "errors that end with one sentence": sentences,
    "limits of a micro-batch (`maxOffsetsPerTrigger` and its kin)": rate_limit,
    "streams are written as Arrow": arrow,
}


def failure(action: Callable[[], Any]) -> str:
    """The condition of the error that `action` must raise."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return condition(error)
    return "nothing was wrong"


def condition(error: Exception) -> str:
    """The pylog condition that an error names, else what its message begins with and what Java says of the causes."""
    found = re.findall(r"\[(PYLOG_\w+)\]", str(error))
    if found:
        return found[-1]
    causes = re.findall(r"^Caused by: .*$", str(error), re.MULTILINE)
    return " ".join([*traceback.format_exception(error)[-2:], *causes])[:2000]


def outcome(scenario: Callable[[Run], str | None], run: Run) -> str:
    """Run it once."""
    try:
        return scenario(run) or "yes"
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return condition(error)


def session(mode: str) -> Any:
    """A classic session, or one of Spark Connect with a server of its own."""
    if mode == "classic":
        from pylog_spark.testing import spark_session

        # Tasks may be tried again: Spark 4.0 now and then forgets a Python worker (SPARK-52642).
        return spark_session("local[2,4]")
    from pyspark.sql import SparkSession

    from pylog_spark.testing import use_this_python

    use_this_python()
    return SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()


def main(servers: str, folder: str, mode: str) -> None:
    """Run all and print."""
    spark = session(mode)
    run = Run(spark, servers, Path(folder))
    outcomes = {name: outcome(scenario, run) for name, scenario in SCENARIOS.items()}
    print("outcomes", json.dumps({"version": spark.version, **outcomes}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
