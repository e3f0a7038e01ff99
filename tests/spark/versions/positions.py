"""Where the sentence of an error stands in what Spark shows, as one line of JSON.

A program of its own, since a process has either classic sessions or sessions of Spark Connect:
``python -m tests.spark.versions.positions SERVERS FOLDER classic|connect``.

By the name of a case: the condition, where the first "[PYLOG_" and the last one begin, how many characters the message has, and the
frames of this package in it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.versions.program import Run, finished, session


def cases(run: Run) -> dict[str, Callable[[], Any]]:
    """One error of each place in which Spark runs code of the data source."""
    too_large = {"kafka.decompressed.batch.max.bytes": "10"}
    stream = run.stream("packed", **too_large).writeStream.format("noop")
    to_nowhere = run.stream("packed").select("value", "topic").writeStream.format("pylog").options(**run.brokers)
    return {
        "option": lambda: run.read("packed", subscrieb="packed").columns,
        "topic": lambda: run.read("no-such-topic").count(),
        "plan": lambda: run.read("packed", startingOffsets='{"packed":{"0":99999,"1":0,"2":0}}').count(),
        "read task": lambda: run.read("packed", **too_large).select("value").collect(),
        "write task": lambda: run.write("small"),
        "stream plan": lambda: finished(
            run.stream("packed", endingOffsets="latest").writeStream.format("noop")
            .option("checkpointLocation", run.checkpoint("ending"))
        ),
        "stream read task": lambda: finished(stream.option("checkpointLocation", run.checkpoint("large"))),
        "stream write task": lambda: finished(
            to_nowhere.option("topic", "small").option("checkpointLocation", run.checkpoint("small"))
        ),
    }  # fmt: skip


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
            "beginning": text[: found[0] + 40],
            "end": text[-300:],
        }
    return {"condition": None, "text": "nothing was wrong"}


def main(servers: str, folder: str, mode: str) -> None:
    """Run all and print."""
    spark = session(mode)
    run = Run(spark, servers, Path(folder))
    run.write("packed", compression="lz4")
    print("positions", json.dumps({name: position(action) for name, action in cases(run).items()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
