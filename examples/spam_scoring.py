"""Spam scoring: a model that is learned from one topic scores the messages of another, in `mapInPandas`, exactly once.

The model is naive Bayes over words, some lines of numpy; any other that Python can load takes its place. Needs nothing but this file
(and pandas, as `mapInPandas` does): it starts a broker in an empty folder and removes both at the end.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pylog_spark import start_broker
from pylog_spark.testing import spark_session

BUCKETS = 4096  # words are hashed, so the model has one size whatever people write
SPAM = ("win money now", "cheap pills here", "free prize click now", "money transfer click here")
HAM = ("lunch at noon", "the report is here", "meeting moved to monday", "see you at the review now")
NEW = {
    "m1": "click here to win a free prize",
    "m2": "the review is at noon",
    "m3": "free lunch at the meeting",
    "m4": "cheap money",
}


def counts_of(text: str) -> np.ndarray:
    """How often each word is in a message."""
    words = [crc32(word.encode()) % BUCKETS for word in text.lower().split()]
    return np.bincount(words, minlength=BUCKETS)


def learn(labelled: DataFrame) -> np.ndarray:
    """The weight of each word: how much likelier it is in spam than in other messages (logarithm, each word seen once more)."""
    seen = {"spam": np.ones(BUCKETS), "ham": np.ones(BUCKETS)}
    for row in labelled.collect():
        seen[row.label] += counts_of(row.text)
    return np.log(seen["spam"] / seen["spam"].sum()) - np.log(seen["ham"] / seen["ham"].sum())


def scoring(weights: np.ndarray) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """A function for `mapInPandas`. Spark sends the weights to its workers once for each task."""

    def score(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            frame["score"] = 1 / (1 + np.exp(-np.array([counts_of(text) @ weights for text in frame.text], float)))
            yield frame[["id", "text", "score"]]

    return score


def write(spark: SparkSession, servers: dict[str, str], topic: str, rows: list[tuple[str, str]]) -> None:
    """Rows of (key, text) as JSON values."""
    frame = spark.createDataFrame(rows, "key string, text string")
    frame.write.format("pylog").options(topic=topic, valueFormat="json", **servers).mode("append").save()


def main() -> None:
    """Learn from labelled messages, score new ones as a stream, print what is spam."""
    spark = spark_session()
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data")) as broker:
        servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        write(spark, servers, "labelled", [("spam", text) for text in SPAM] + [("ham", text) for text in HAM])
        typed = {"keyFormat": "string", "valueFormat": "json", **servers}
        labelled = (
            spark.read.format("pylog").schema("key string, text string").options(subscribe="labelled", **typed).load()
        )
        weights = learn(labelled.withColumnRenamed("key", "label"))
        print(f"Learned from {labelled.count()} messages.")

        write(spark, servers, "messages", list(NEW.items()))
        reader = spark.readStream.format("pylog").schema("key string, text string")
        messages = reader.options(subscribe="messages", startingOffsets="earliest", **typed).load()
        scored = messages.withColumnRenamed("key", "id").mapInPandas(
            scoring(weights), "id string, text string, score double"
        )
        # One topic for each verdict; a column `topic` says where a row goes.
        verdict = sf.when(sf.col("score") > 0.5, "spam").otherwise("inbox").alias("topic")
        rows = scored.select(
            verdict, sf.col("id").alias("key"), sf.expr("format_string('%.2f %s', score, text)").alias("value")
        )
        writer = rows.writeStream.format("pylog").options(checkpointLocation=str(Path(folder, "checkpoint")), **servers)
        writer.trigger(availableNow=True).start().awaitTermination()

        sorted_out = spark.read.format("pylog").options(subscribe="spam,inbox", **servers).load()
        for row in sorted_out.orderBy("topic", "key").collect():
            print(f"{row.topic:<6} {row.key.decode()}: {row.value.decode()}")
        assert {row.key.decode() for row in sorted_out.where("topic = 'spam'").collect()} == {"m1", "m4"}
    spark.stop()


if __name__ == "__main__":
    main()
