"""A query with state, as far as its topic goes: how often each value has been counted, as one line of JSON.

A program of its own, for Spark of another version: ``python -m tests.spark.versions.counting SERVERS TOPIC CHECKPOINT``.
"""

import json
import sys
from collections import Counter
from typing import Any

from tests.spark.versions.program import session


def main(servers: str, topic: str, checkpoint: str) -> None:
    """Count what is there, and print the result."""
    spark = session("classic")
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    counts = spark.readStream.format("pylog").options(**options).load()
    seen: Counter[str] = Counter()

    def keep(frame: Any, _batch: int) -> None:
        seen.update({row["value"].decode(): row["count"] - seen[row["value"].decode()] for row in frame.collect()})

    writer = counts.groupBy("value").count().writeStream.outputMode("complete").foreachBatch(keep)
    assert writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination(200)
    print("counted", json.dumps({"version": spark.version, "counts": dict(sorted(seen.items()))}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
