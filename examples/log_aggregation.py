"""Log files of several services become topics, one for each service, exactly once; then they are searched as one log.

Services append to files and begin a new one now and then. A stream reads each file that is complete and writes its lines. Needs nothing
but this file: it starts a broker in an empty folder and removes both at the end.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pylog_spark import start_broker
from pylog_spark.testing import spark_session

SERVICES = ("web", "search", "mail")
LINE = r"^(\S+) (\S+) (.*)$"  # time, level, message


def complete_files(logs: Path, hour: int, lines: int) -> None:
    """What three services logged in an hour; each renames its file when it is complete, so that no half file is read."""
    for number, service in enumerate(SERVICES):
        text = "".join(
            f"2026-01-01T{hour:02}:{line // 60:02}:{line % 60:02}Z {'ERROR' if line % (100 + number) == 99 else 'INFO'} "
            f"{service} request {hour * lines + line}\n"
            for line in range(lines)
        )
        half = logs / f".{service}-{hour}"
        half.write_text(text)
        half.rename(logs / f"{service}-{hour}.log")


def ship(spark: SparkSession, servers: dict[str, str], logs: Path, checkpoint: Path) -> int:
    """Write the lines of all files that are new into the topic of their service; how many. A job that runs by a schedule.

    Spark's checkpoint knows the files, and the sink writes each of its batches once: a job that dies in the middle is just run again.
    """
    lines = spark.readStream.format("text").load(str(logs)).select("value", "_metadata.file_name")
    found = lines.where(sf.col("value").rlike(LINE))
    records = found.select(
        sf.concat(sf.lit("logs-"), sf.regexp_extract("file_name", r"^(\w+)-", 1)).alias("topic"),
        sf.regexp_extract("value", LINE, 2).alias("key"),  # the level, by which readers filter
        "value",
        # The time of the record is that of the line, so that time ranges and retention go by it.
        sf.to_timestamp(sf.regexp_extract("value", LINE, 1)).alias("timestamp"),
    )
    writer = records.writeStream.format("pylog").options(checkpointLocation=str(checkpoint), **servers)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def main() -> None:
    """Ship two hours, then one more, then nothing; search."""
    spark = spark_session(config={"spark.sql.session.timeZone": "UTC"})
    # Logs of a fixed day are old one day: keep them.
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data"), log_retention_ms=-1) as broker:
        servers, logs = {"kafka.bootstrap.servers": broker.bootstrap_servers}, Path(folder, "logs")
        logs.mkdir()
        for hours in ((0, 1), (2,), ()):
            for hour in hours:
                complete_files(logs, hour, lines=1200)
            print(
                f"Shipped {ship(spark, servers, logs, Path(folder, 'checkpoint'))} lines of {3 * len(hours)} new files."
            )

        # One pattern reads all services. Keys are compared before rows are built, and times find their offsets in the index.
        search = {"subscribePattern": "logs-.*", "filterKey": "ERROR", "filterTimestamp": "2026-01-01T01:00:00Z.."}
        errors = spark.read.format("pylog").options(**search, **servers).load()
        for row in (
            errors.groupBy("topic")
            .agg(sf.count("*").alias("n"), sf.max("timestamp").alias("last"))
            .orderBy("topic")
            .collect()
        ):
            print(f"{row.topic:<12} {row.n} errors since 1 o'clock, the last at {row['last']:%H:%M:%S}")
        whole = spark.read.format("pylog").options(subscribePattern="logs-.*", **servers).load()
        assert whole.count() == whole.select("value").distinct().count() == 3 * 3 * 1200
    spark.stop()


if __name__ == "__main__":
    main()
