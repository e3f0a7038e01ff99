"""Two joins of two streams: clicks with the impressions that they belong to, and orders that nobody has paid in time.

Times are those of the events, in the records' timestamps, so what comes late or is read again joins as it did. Needs nothing but this
file: it starts a broker in an empty folder and removes both at the end.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pylog_spark import start_broker
from pylog_spark.client import Producer
from pylog_spark.testing import spark_session

NOON_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z
MINUTE_MS = 60_000


def put(address: str, topic: str, *events: tuple[int, str, str]) -> None:
    """Events of (minute after noon, key, value)."""
    with Producer(address, topic) as producer:
        for minute, key, value in events:
            producer.send(value.encode(), key.encode(), timestamp_ms=NOON_MS + minute * MINUTE_MS)


def events(spark: SparkSession, servers: dict[str, str], topic: str, name: str) -> DataFrame:
    """A topic as a stream with columns `<name>_key`, `<name>_at` and `<name>`; events may be ten minutes late."""
    reader = spark.readStream.format("pylog").options(subscribe=topic, startingOffsets="earliest", **servers)
    columns = (f"string(key) AS {name}_key", f"timestamp AS {name}_at", f"string(value) AS {name}")
    return reader.load().selectExpr(*columns).withWatermark(f"{name}_at", "10 minutes")


def clicked(spark: SparkSession, servers: dict[str, str]) -> DataFrame:
    """Inner join: each click with its impression, when it came within an hour. Spark keeps an impression for that long and no longer."""
    shown, click = events(spark, servers, "impressions", "ad"), events(spark, servers, "clicks", "user")
    in_time = "user_key = ad_key AND user_at BETWEEN ad_at AND ad_at + INTERVAL 1 HOUR"
    return shown.join(click, on=sf.expr(in_time)).selectExpr("ad_key AS key", "user || ' clicked ' || ad AS value")


def unpaid(spark: SparkSession, servers: dict[str, str]) -> DataFrame:
    """Left outer join: an order without a payment within half an hour. It is known when both watermarks are past that time."""
    order, payment = events(spark, servers, "orders", "goods"), events(spark, servers, "payments", "amount")
    in_time = "amount_key = goods_key AND amount_at BETWEEN goods_at AND goods_at + INTERVAL 30 MINUTES"
    joined = order.join(payment, on=sf.expr(in_time), how="left_outer").where("amount IS NULL")
    return joined.selectExpr("goods_key AS key", "'nobody paid for ' || goods AS value")


def run(frame: DataFrame, servers: dict[str, str], topic: str, checkpoint: Path) -> None:
    """Write what a join gives for all that there is now, exactly once; it goes on there the next time."""
    writer = frame.writeStream.format("pylog").options(topic=topic, checkpointLocation=str(checkpoint), **servers)
    writer.outputMode("append").trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Run both joins, let late events and later ones come, and run them again."""
    spark = spark_session(config={"spark.sql.session.timeZone": "UTC"})
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data"), log_retention_ms=-1) as broker:
        address = broker.bootstrap_servers
        servers = {"kafka.bootstrap.servers": address}
        put(address, "impressions", (0, "i1", "shoes"), (1, "i2", "books"), (2, "i3", "tea"))
        put(address, "clicks", (5, "i1", "ann"), (90, "i2", "ben"))  # ben's came too late for his impression
        put(address, "orders", (0, "o1", "shoes"), (3, "o2", "books"), (8, "o3", "tea"))
        put(address, "payments", (10, "o1", "80"), (50, "o2", "12"))  # the second came too late

        for late in (False, True):
            if late:
                put(address, "clicks", (55, "i3", "cid"))  # in time for its impression, whose hour is not over
                put(address, "payments", (35, "o3", "5"), (120, "o9", "1"))
                put(address, "orders", (120, "o9", "a lamp"))
            run(clicked(spark, servers), servers, "clicked", Path(folder, "clicked"))
            run(unpaid(spark, servers), servers, "unpaid", Path(folder, "unpaid"))
        rows = spark.read.format("pylog").options(subscribe="clicked,unpaid", **servers).load()
        for row in rows.orderBy("topic", "key").collect():
            print(f"{row.topic}: {row.value.decode()}")
    spark.stop()


if __name__ == "__main__":
    main()
