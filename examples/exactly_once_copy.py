"""A stream copies one topic into another, fails in the middle of a micro-batch, and is started again: each row is there once.

Needs nothing but this file: it starts a broker in an empty folder and removes both at the end.
"""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQuery

from pylog_spark import start_broker
from pylog_spark.client import Admin
from pylog_spark.testing import spark_session

ARTICLES = 1000
MEGABYTE = 1_000_000


def write_articles(spark: SparkSession, servers: dict[str, str]) -> None:
    """Short articles, and one of two megabytes: number 700."""
    number = sf.col("id").cast("string")
    text = sf.when(sf.col("id") == 700, sf.repeat(sf.lit("words "), 2 * MEGABYTE // 6)).otherwise(number)
    articles = spark.range(0, ARTICLES, 1, numPartitions=1).select(number.alias("key"), text.alias("value"))
    articles.write.format("pylog").options(topic="articles", **servers).mode("append").save()


def start_copy(spark: SparkSession, servers: dict[str, str], checkpoint: Path) -> StreamingQuery:
    """All articles that there are, in upper case, in micro-batches of 300 rows."""
    source = {"subscribe": "articles", "startingOffsets": "earliest", "maxRecordsPerTrigger": "300"}
    articles = spark.readStream.format("pylog").options(**source, **servers).load()
    loud = articles.select("key", sf.upper(sf.col("value").cast("string")).alias("value"))
    # What was copied stands in the checkpoint: with the same one a query goes on, with a new one it would begin again.
    target = {"topic": "loud-articles", "checkpointLocation": str(checkpoint)}
    return loud.writeStream.format("pylog").options(**target, **servers).trigger(availableNow=True).start()


def copied(spark: SparkSession, servers: dict[str, str]) -> Counter[int]:
    """How often each article is in the target."""
    rows = spark.read.format("pylog").options(subscribe="loud-articles", **servers).load()
    return Counter(int(row.key) for row in rows.select("key").collect())


def main() -> None:
    """Write, copy until it fails, mend the reason, copy the rest, count."""
    spark = spark_session()
    spark.sparkContext.setLogLevel("OFF")  # The copy is to fail; Spark would print the whole stack.
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data")) as broker:
        servers, checkpoint = {"kafka.bootstrap.servers": broker.bootstrap_servers}, Path(folder, "checkpoint")
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("articles", config={"max.message.bytes": str(4 * MEGABYTE)})
            admin.create_topic("loud-articles")
            write_articles(spark, servers)
            print(f"'articles' has {ARTICLES} rows. One is larger than 'loud-articles' takes.")

            try:
                start_copy(spark, servers, checkpoint).awaitTermination()
            except StreamingQueryException:
                there = copied(spark, servers)
                print(f"The copy failed in its third micro-batch. Readers see the first two: {there.total()} rows.")

            admin.alter_configs("topic", "loud-articles", {"max.message.bytes": str(4 * MEGABYTE)})
            start_copy(spark, servers, checkpoint).awaitTermination()
        there = copied(spark, servers)
        print(f"Started again, it copied the rest: {there.total()} rows, {len(there)} different ones.")
        assert there == Counter(range(ARTICLES)), "an article is missing, or is there twice"
    spark.stop()


if __name__ == "__main__":
    main()
