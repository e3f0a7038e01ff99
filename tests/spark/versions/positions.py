"""Where the sentence of an error stands in what Spark shows, as one line of JSON.

A program of its own, since a process has either classic sessions or sessions of Spark Connect:
``python -m tests.spark.versions.positions SERVERS FOLDER classic|connect``.

By the name of a case: the condition, where the first "[PYLOG_" and the last one begin, how many characters the message has, the
frames of this package in it, and its end. "no Java": those of batches again, in a session that is asked for no stack of Java.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.versions.program import ROWS, Run, finished, session

_BATCH = ("option", "topic", "plan", "read task", "write task")


def cases(run: Run) -> dict[str, Callable[[], Any]]:
    """One error of each place in which Spark runs code of the data source."""
    opened = {"kafka.decompressed.batch.max.bytes": "1024"}

    def streamed(name: str, **options: str) -> Any:
        frame = run.stream("packed", **options)
        return finished(frame.writeStream.format("noop").option("checkpointLocation", run.checkpoint(name)))

    def copied() -> Any:
        writer = run.stream("packed").select("value").writeStream.format("pylog").options(topic="small", **run.brokers)
        return finished(writer.option("checkpointLocation", run.checkpoint("copied")))

    return {
        "option": lambda: run.read("packed", subscrieb="packed").columns,
        "topic": lambda: run.read("no-such-topic").count(),
        "plan": lambda: run.read("packed", startingOffsets='{"packed":{"0":99999,"1":0,"2":0}}').count(),
        "read task": lambda: run.read("packed", **opened).select("value").collect(),
        "write task": lambda: run.write("small"),
        "stream plan": lambda: streamed("ending", endingOffsets="latest"),
        "stream read task": lambda: streamed("opened", **opened),
        "stream write task": copied,
    }


def position(action: Callable[[], Any]) -> dict[str, Any]:
    """Where the sentence of the error stands that `action` raises."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        text = str(error)
        found = [each.start() for each in re.finditer(r"\[PYLOG_", text)]
        if not found:
            return {"condition": None, "text": text[:500]}
        condition = re.match(r"\[(PYLOG_\w+)\]", text[found[0] :])
        frames = re.findall(r'File "[^"]*/pylog_spark/([^"]*)"', text)
        return {
            "condition": condition and condition[1],
            "first": found[0],
            "last": found[-1],
            "length": len(text),
            "frames": frames,
            "end": text[-1_000:],
        }
    return {"condition": None, "text": "nothing was wrong"}


def main(servers: str, folder: str, mode: str) -> None:
    """Run all and print."""
    spark = session(mode)
    run = Run(spark, servers, Path(folder))
    wide = spark.range(ROWS).selectExpr("repeat('x', 1000) AS value")
    wide.write.format("pylog").options(topic="packed", compression="lz4", **run.brokers).mode("append").save()
    actions = cases(run)
    found = {name: position(action) for name, action in actions.items()}
    spark.conf.set("spark.sql.connect.serverStacktrace.enabled", "false")
    spark.conf.set("spark.sql.pyspark.jvmStacktrace.enabled", "false")
    found |= {f"{name}, no Java": position(actions[name]) for name in _BATCH}
    print("positions", json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
