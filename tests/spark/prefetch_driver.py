"""Streaming queries whose tasks cannot have a Python worker: ``python -m tests.spark.prefetch_driver SERVERS FOLDER MOST_BYTES...``.

For each MOST_BYTES (`prefetchMaxBytes`) a query reads the topic "rows" to its end, and a line is printed: ``read N``, or ``failed``.
"""

import sys
from typing import Any


def session() -> Any:
    """A session whose tasks get no Python worker (`taskless_daemon`)."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.python.daemon.module", "tests.spark.taskless_daemon")
    return builder.getOrCreate()


def count(spark: Any, servers: str, checkpoint: str, most_bytes: str) -> str:
    """What came of a query."""
    options = {"subscribe": "rows", "startingOffsets": "earliest", "prefetchMaxBytes": most_bytes}
    stream = spark.readStream.format("pylog").options(**{"kafka.bootstrap.servers": servers, **options}).load()
    query = stream.groupBy().count().writeStream.format("memory").queryName(f"counted{most_bytes}")
    query = query.outputMode("complete").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120)
    except Exception:  # noqa: BLE001  # whatever Spark makes of a worker that is not there
        return "failed"
    return f"read {spark.table(f'counted{most_bytes}').first()[0]}"


def main(servers: str, folder: str, *sizes: str) -> None:
    """See the module."""
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    for most_bytes in sizes:
        print(count(spark, servers, f"{folder}/{most_bytes}", most_bytes), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
