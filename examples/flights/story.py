"""The flights story: a year of real departures goes into pylog, streams out, survives a stop, and is replayed.

Run it with `make demo`. It starts its own broker in an empty folder, compares all numbers itself, and exits with 1 at the
first difference. The steps are the functions, in order: `write`, `stream`, `final_counts`, `replay_hash`.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from flights import YEAR, Count, Day, differences, expected_counts, read_events
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQuery
from screen import Step, quiet_start, show_what_next, step

from pylog_spark import foreach_batch, start_broker
from pylog_spark.client import Admin
from pylog_spark.client.admin import LATEST
from pylog_spark.testing.spark import spark_session

TOPIC = "flights"
RESULTS = "departures-by-day"
PARTITIONS = 8
BATCHES = 6
# Two carriers share a partition with half of all events, others have one of their own: reading a sixth of each partition,
# their event times are up to 30 days apart. The watermark must wait longer than that, or late rows would be dropped.
WATERMARK = "45 days"
_LOOK_S = 0.2
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    # For a minute on two cores: Java's second compiler would cost more than it brings.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
EVENT = "struct<event_time: timestamp, origin: string, dep_delay: bigint>"
RECORD = (
    "carrier string, flight bigint, tailnum string, origin string, dest string, dep_delay bigint, event_time timestamp"
)


class Different(Exception):
    """Two ways of computing the same thing disagree."""


def write(spark: SparkSession, servers: str, events: pa.Table) -> None:
    """Write the events as JSON records keyed by carrier, in the order of their event time (hence one Spark task)."""
    names = [column.split()[0] for column in RECORD.split(", ")]
    frame = spark.createDataFrame(events.select(names)).coalesce(1)
    records = frame.select(sf.col("carrier").alias("key"), sf.to_json(sf.struct(*names)).alias("value"))
    records.write.format("pylog").mode("append").option("kafka.bootstrap.servers", servers).option(
        "topic", TOPIC
    ).save()


def counted(spark: SparkSession, servers: str, events: int) -> DataFrame:
    """The streaming computation: daily windows of event time by origin, with a watermark."""
    stream = (
        spark.readStream.format("pylog")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", -(-events // BATCHES))
        .load()
    )
    event = stream.select(sf.from_json(sf.col("value").cast("string"), EVENT).alias("event")).select("event.*")
    return (
        event.withWatermark("event_time", WATERMARK)
        .groupBy(sf.window("event_time", "1 day").start.alias("day"), "origin")
        .agg(
            sf.count("*").alias("scheduled"), sf.count("dep_delay").alias("departed"), sf.avg("dep_delay").alias("mean")
        )
    )


class Upserts:
    """Writes each batch's changed windows to the results topic, once; can hold a batch before its write.

    A window's last record is its count.
    """

    def __init__(self, servers: str, hold_at: int | None = None) -> None:
        # The name and the number of the batch tell a batch that runs again after a restart from another one.
        self._append = foreach_batch(RESULTS, topic=RESULTS, **{"kafka.bootstrap.servers": servers})
        self._hold_at = hold_at
        self.reached, self.release = threading.Event(), threading.Event()

    def __call__(self, changed: DataFrame, batch_id: int) -> None:
        if self._hold_at is not None and batch_id >= self._hold_at:
            self.reached.set()
            self.release.wait()
        key = sf.concat_ws(" ", sf.date_format("day", "yyyy-MM-dd"), "origin")
        value = sf.to_json(sf.struct(sf.lit(batch_id).alias("batch"), "scheduled", "departed", "mean"))
        self._append(changed.select(key.alias("key"), value.alias("value")).coalesce(1), batch_id)


def stream(counts: DataFrame, upserts: Upserts, checkpoint: Path) -> StreamingQuery:
    """Start the query: all that is there now, then end."""
    writer = counts.writeStream.outputMode("update").foreachBatch(upserts).option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def stop_half_way(counts: DataFrame, servers: str, checkpoint: Path, events: int, shown: Step) -> int:
    """Start the query, stop it in the middle of its middle batch; the number of events that it had finished."""
    upserts = Upserts(servers, hold_at=BATCHES // 2)
    query = stream(counts, upserts, checkpoint)
    while query.isActive and not upserts.reached.wait(_LOOK_S):
        shown.reached(_events_read(query), events)
    # The stop waits for the batch, and the batch is held until it is being stopped.
    stop = threading.Thread(target=query.stop)
    stop.start()
    while query.isActive:
        stop.join(_LOOK_S)
    upserts.release.set()
    stop.join()
    done = _events_read(query)
    if error := query.exception():
        raise Different(f"the query was to be stopped, but failed: {error}")
    if not 0 < done < events:
        raise Different(f"the query was to be stopped half-way, but had read {done:,} of {events:,} events")
    return done


def run_to_the_end(
    counts: DataFrame, servers: str, checkpoint: Path, before: int, events: int, shown: Step
) -> tuple[int, int]:
    """Restart from the checkpoint, after `before` of all `events`, and finish: (events read, events dropped as too late)."""
    query = stream(counts, Upserts(servers), checkpoint)
    while not query.awaitTermination(_LOOK_S):
        shown.reached(before + _events_read(query), events)
    late = sum(
        int(state["numRowsDroppedByWatermark"]) for progress in _progress(query) for state in progress["stateOperators"]
    )
    return _events_read(query), late


def _progress(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(progress.json) for progress in query.recentProgress]


def _events_read(query: StreamingQuery) -> int:
    return sum(int(progress["numInputRows"]) for progress in _progress(query))


def final_counts(spark: SparkSession, servers: str) -> dict[Day, Count]:
    """Replay the results topic: the last record of each window."""
    records = spark.read.format("pylog").option("kafka.bootstrap.servers", servers).option("subscribe", RESULTS).load()
    text = records.select(sf.col("key").cast("string"), sf.col("value").cast("string"), "partition", "offset")
    last: dict[Day, Count] = {}
    for row in text.orderBy("partition", "offset").collect():
        day, origin = row["key"].split()
        result = json.loads(row["value"])
        last[Day(date.fromisoformat(day), origin)] = Count(result["scheduled"], result["departed"], result.get("mean"))
    return last


def middle_half(servers: str) -> tuple[str, str]:
    """Starting and ending offsets, as Spark's option values, of the middle half of every partition."""
    with Admin(servers) as admin:
        ends = {part: end for _, part, end, _ in admin.offsets([(TOPIC, part, LATEST) for part in range(PARTITIONS)])}
    starting = {str(part): end // 4 for part, end in ends.items()}
    ending = {str(part): end - end // 4 for part, end in ends.items()}
    return json.dumps({TOPIC: starting}), json.dumps({TOPIC: ending})


def replay_hash(spark: SparkSession, servers: str, starting: str, ending: str) -> tuple[int, str]:
    """Read an offset range in batch: (records, SHA-256 over every column of every record in log order)."""
    reader = spark.read.format("pylog").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
    frame = reader.option("startingOffsets", starting).option("endingOffsets", ending).load()
    table = frame.toArrow().sort_by([("partition", "ascending"), ("offset", "ascending")])
    digest = hashlib.sha256()
    for column in table.combine_chunks().columns:
        for value in column.to_pylist():
            digest.update(repr(value).encode())
    return table.num_rows, digest.hexdigest()


def tell(folder: Path, months: int = YEAR) -> None:
    """The whole story in `folder`. Raises Different."""
    with step("Reading a year of departures from New York" if months == YEAR else "Reading departures") as shown:
        events = read_events(months)
        wanted = expected_counts(events)
        shown.outcome = f"{events.num_rows:,} events, {len(wanted):,} windows counted in plain Python"
    with step("Starting Spark and a broker") as shown:
        with quiet_start():
            spark = spark_session(app_name="flights", config=SETTINGS)
        broker = start_broker(folder / "data", num_partitions=1)
        servers = broker.bootstrap_servers
        shown.outcome = f"Spark {spark.version}, pylog on {servers}"
    try:
        with step("Writing them, keyed by carrier") as shown:
            with Admin(servers) as admin:
                admin.create_topic(TOPIC, PARTITIONS)
            write(spark, servers, events)
            shown.outcome = f"{events.num_rows:,} records in {PARTITIONS} partitions, exactly once"
        counts = counted(spark, servers, events.num_rows)
        with step("Streaming out: windows, watermark; stopped half-way") as shown:
            before = stop_half_way(counts, servers, folder / "checkpoint", events.num_rows, shown)
            shown.outcome = f"{before:,} events counted before the stop"
        with step("Restarted from the checkpoint, to the end") as shown:
            after, late = run_to_the_end(counts, servers, folder / "checkpoint", before, events.num_rows, shown)
            shown.outcome = f"{after:,} more events, {late} dropped as late"
        with step("Comparing the stream with the plain computation") as shown:
            wrong = differences(wanted, final_counts(spark, servers))
            if wrong or before + after != events.num_rows:
                raise Different(f"{before + after:,} events, {len(wrong)} windows differ: " + "; ".join(wrong[:3]))
            shown.outcome = f"{len(wanted):,} windows, all the same"
        with step("Replaying the middle half of every partition") as shown:
            starting, ending = middle_half(servers)
            first = replay_hash(spark, servers, starting, ending)
            shown.outcome = f"{first[0]:,} records, sha256 {first[1][:16]}"
        with step("The same again, after the broker was restarted") as shown:
            broker.close()
            broker = start_broker(folder / "data", port=int(servers.rpartition(":")[2]))
            second = replay_hash(spark, servers, starting, ending)
            if first != second:
                raise Different(f"the first replay gave {first}, the second {second}")
            shown.outcome = f"{second[0]:,} records, sha256 {second[1][:16]}"
    finally:
        broker.close()
        spark.stop()


def main() -> int:
    """Tell the story; exit code 1 when two numbers differ that must be the same."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", metavar="DIR", help="keep the broker's data and the checkpoint in this empty folder")
    parser.add_argument("--months", type=int, default=YEAR, metavar="N", help="only the first N months of the year")
    given = parser.parse_args()
    keep = given.keep
    folder = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="pylog-flights-"))
    try:
        tell(folder, given.months)
    except Different as different:
        print(f"\nDIFFERENT: {different}", file=sys.stderr)
        return 1
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    print("Every number is the same.")
    show_what_next()
    return 0


if __name__ == "__main__":
    sys.exit(main())
