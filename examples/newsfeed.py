"""A newsfeed: each post of an author goes to all who follow the author, and a reader's feed is one read by key.

Who follows whom is a topic as well, the newest record for each pair counts. Needs nothing but this file: it starts a broker in an
empty folder and removes both at the end.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pylog_spark
from pylog_spark import start_broker
from pylog_spark.client import Admin, Producer
from pylog_spark.testing import spark_session

Pair = tuple[str, str]


def follow(address: str, *changes: tuple[str, str, bool]) -> None:
    """Reader, author, and whether the one follows the other from now on. A record without a value ends it, as in any compacted topic."""
    with Producer(address, "follows") as producer:
        for reader, author, follows in changes:
            producer.send(b"1" if follows else None, f"{reader}>{author}".encode())


def post(address: str, *posts: tuple[str, str]) -> None:
    """Author and text."""
    with Producer(address, "posts") as producer:
        for author, text in posts:
            producer.send(text.encode(), author.encode())


def followers(spark: SparkSession, servers: dict[str, str]) -> DataFrame:
    """Who follows whom now: of each pair the newest record, unless it is an end."""
    changes = spark.read.format("pylog").options(subscribe="follows", **servers).load()
    newest = changes.groupBy("key").agg(sf.max_by("value", "offset").alias("value")).where("value IS NOT NULL")
    pair = sf.split(sf.col("key").cast("string"), ">")
    return newest.select(pair[0].alias("reader"), pair[1].alias("author"))


def fan_out(spark: SparkSession, servers: dict[str, str], checkpoint: Path) -> None:
    """Hand each new post to its author's followers, exactly once."""
    write = pylog_spark.foreach_batch("newsfeed", topic="feeds", **servers)

    def hand_out(posts: DataFrame, batch_id: int) -> None:
        # Read again for each batch: somebody may follow or leave at any time.
        handed = posts.join(followers(spark, servers), "author")
        # The reader is the key: a feed lies in one partition, in order.
        write(handed.select(sf.col("reader").alias("key"), sf.expr("author || ': ' || text AS value")), batch_id)

    reader = spark.readStream.format("pylog").options(subscribe="posts", startingOffsets="earliest", **servers)
    posts = reader.load().selectExpr("string(key) AS author", "string(value) AS text")
    query = posts.writeStream.foreachBatch(hand_out).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()


def feed(spark: SparkSession, servers: dict[str, str], reader: str) -> list[str]:
    """What one reader sees, oldest first. Records of others are left out before rows are built."""
    rows = spark.read.format("pylog").options(subscribe="feeds", filterKey=reader, **servers).load()
    return [row.value.decode() for row in rows.orderBy("offset").collect()]


def main() -> None:
    """Follow, post, hand out; leave, post, hand out."""
    spark = spark_session()
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data")) as broker:
        address, checkpoint = broker.bootstrap_servers, Path(folder, "checkpoint")
        servers = {"kafka.bootstrap.servers": address}
        with Admin(address) as admin:
            admin.create_topic("follows", 1, config={"cleanup.policy": "compact"})
            admin.create_topic("posts", 2)
            admin.create_topic("feeds", 4)

        follow(address, ("ann", "cid", True), ("ben", "cid", True), ("ben", "dora", True))
        post(address, ("cid", "A new job"), ("dora", "Hello"), ("eve", "Nobody follows me"))
        fan_out(spark, servers, checkpoint)
        follow(address, ("ben", "cid", False), ("ann", "dora", True))
        post(address, ("cid", "The first day"), ("dora", "Good bye"))
        fan_out(spark, servers, checkpoint)

        for reader in ("ann", "ben"):
            # Posts of different authors come in the order in which they were handed out.
            print(f"{reader} sees {sorted(feed(spark, servers, reader))}")
        assert feed(spark, servers, "eve") == []
    spark.stop()


if __name__ == "__main__":
    main()
