"""History is read again: an offset range twice, and one month of a year into a topic of its own, with its old timestamps.

Needs nothing but this file: it starts a broker in an empty folder and removes both at the end.
"""

from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pylog_spark import start_broker
from pylog_spark.client import Admin
from pylog_spark.testing import spark_session

HOURS = 366 * 24  # of 2024
MARCH = "2024-03-01T00:00:00Z..2024-04-01T00:00:00Z"  # the end is exclusive


def write_history(spark: SparkSession, servers: dict[str, str]) -> None:
    """A measurement for each hour of 2024. The column `timestamp` is the record's time."""
    hour = sf.timestamp_seconds(sf.unix_timestamp(sf.lit("2024-01-01 00:00:00")) + sf.col("id") * 3600)
    history = spark.range(HOURS).select(
        sf.expr("string(id) as key"), sf.expr("string(id) as value"), hour.alias("timestamp")
    )
    history.write.format("pylog").options(topic="history", **servers).mode("append").save()


def replay(spark: SparkSession, servers: dict[str, str]) -> DataFrame:
    """A thousand offsets of each partition. Without the two options it is everything there is."""
    starting = '{"history": {"0": 1000, "1": 1000}}'
    ending = '{"history": {"0": 2000, "1": 2000}}'  # the end is exclusive
    range_of_offsets = {"subscribe": "history", "startingOffsets": starting, "endingOffsets": ending}
    return spark.read.format("pylog").options(**range_of_offsets, **servers).load()


def backfill(spark: SparkSession, servers: dict[str, str]) -> None:
    """March of the history into the topic `march`, with the times of then."""
    # `filterTimestamp` compares each record, in whatever order they are; the brokers' index says where to begin.
    march = spark.read.format("pylog").options(subscribe="history", filterTimestamp=MARCH, **servers).load()
    # Of one name each version is written once: a backfill that is run again, whatever for, adds nothing.
    once = {"txnAppId": "backfill-of-march", "txnVersion": "1"}
    rows = march.select("key", "value", "timestamp")
    rows.write.format("pylog").options(topic="march", **once, **servers).mode("append").save()


def main() -> None:
    """Write a year, replay a range of it, backfill a month of it twice."""
    spark = spark_session(config={"spark.sql.session.timeZone": "UTC"})
    with TemporaryDirectory() as folder, start_broker(folder, num_partitions=2) as broker:
        servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        # Retention goes by the records' times. In a topic that keeps seven days, the default, these would be gone in minutes.
        with Admin(broker.bootstrap_servers) as admin:
            for topic in ("history", "march"):
                admin.create_topic(topic, config={"retention.ms": "-1"})

        write_history(spark, servers)
        print(f"'history' has {HOURS} rows, one for each hour of 2024.")

        first, second = (replay(spark, servers).orderBy("partition", "offset").collect() for _ in range(2))
        assert first == second
        print(f"Replayed offsets 1000 to 2000 of both partitions, twice: {len(first)} rows, the same each time.")

        for time in ("once", "twice"):
            backfill(spark, servers)
            march = spark.read.format("pylog").options(subscribe="march", **servers).load()
            rows, begin, end = march.select(sf.count("*"), sf.min("timestamp"), sf.max("timestamp")).first()
            print(f"Backfilled {time}: 'march' has {rows} rows, from {begin} to {end}.")
            assert rows == 31 * 24
    spark.stop()


if __name__ == "__main__":
    main()
