"""A driver with two streams, whose first attempts at tasks fail after they have read, and which is killed at the end of the first
micro-batches when it is told so. Of one stream the driver reads small micro-batches, of the other the tasks do.

    python -m tests.typed.bad_driver SERVERS TOPIC CHECKPOINTS kill|stay BAD_OF_DRIVER BAD_OF_TASKS
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pylog_spark.testing import spark_session
from tests import spark_home


def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the first attempt at a task fails when it has all of them."""
    from pyspark import TaskContext

    yield from batches
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        raise RuntimeError("this attempt fails on purpose")


def main(servers: str, topic: str, checkpoints: str, end: str, *bad: str) -> None:
    """Read the topic to its end by both streams."""
    spark_home.prepare()
    spark: Any = spark_session(master="local[2,3]", config=spark_home.OUT_OF_THE_WAY)
    spark.sparkContext.setLogLevel("OFF")
    both = threading.Barrier(len(bad))

    def batch(rows: Any, _: int) -> None:
        rows.mapInArrow(fails_once, "id int").count()
        if end == "kill":
            both.wait()
            os.kill(os.getpid(), signal.SIGKILL)

    queries = []
    for topic_of_bad, prefetch in zip(bad, ("1m", "0"), strict=True):
        reader = spark.readStream.format("pylog").schema("id int").option("kafka.bootstrap.servers", servers)
        typed = {"valueFormat": "json", "badRecordsTopic": topic_of_bad, "mode": "DROPMALFORMED"}
        places = {"subscribe": topic, "startingOffsets": "earliest", "prefetchMaxBytes": prefetch}
        writer = reader.options(**places, **typed).load().writeStream.foreachBatch(batch)
        writer = writer.option("checkpointLocation", f"{checkpoints}/{prefetch}")
        queries.append(writer.trigger(availableNow=True).start())
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
