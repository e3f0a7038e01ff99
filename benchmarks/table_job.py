"""How fresh a table of the lakehouse is: records are produced at an even rate while a stream loads them."""

import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from pylog_spark import lakehouse
from pylog_spark.lakehouse.commits import State, commit_name

_VALUE = b'{"id": 1, "price": 2.5, "note": "' + b"x" * 150 + b'"}'
_SCHEMA = "id bigint, price double, note string"
_DEADLINE_S = 60
_TICK_S = 0.01


def fresh(spark: SparkSession, side: str, job: dict[str, Any]) -> dict[str, float]:
    """Load `rate` records a second for `seconds` into a table of Parquet files in `folder`, of which those of the first `warm` seconds are
    not counted.

    Returns
    -------
    dict
        Milliseconds from a record's timestamp, which its producer gave it, to the commit that made it a row of the table: `p50`, `p95`.
    """
    log = {"kafka.bootstrap.servers": job["bootstrap"], "subscribe": job["topic"]}
    with tempfile.TemporaryDirectory(dir=job["folder"]) as folder:
        query = lakehouse.stream(spark, folder, schema=_SCHEMA, table_format=job["format"], **log)
        try:
            counted_from_ms = _produce(job) + job["warm"] * 1000
            until = time.monotonic() + _DEADLINE_S
            while lakehouse.read(spark, folder).count() < job["rate"] * job["seconds"]:
                if time.monotonic() > until or not query.isActive:
                    raise RuntimeError(
                        f"the table does not have all records after {_DEADLINE_S} s: {query.exception()}"
                    )
                time.sleep(1)
        finally:
            query.stop()
        rows = lakehouse.read(spark, folder).selectExpr("partition", "offset", "unix_millis(timestamp) as at").collect()
        commits = _commits(Path(folder))
    waited = [
        next(at_ms for at_ms, ends in commits if ends.get(row.partition, 0) > row.offset) - row.at
        for row in rows
        if row.at >= counted_from_ms
    ]
    percentiles = quantiles(waited, n=100)
    return {"p50": percentiles[49], "p95": percentiles[94]}


def _produce(job: dict[str, Any]) -> int:
    """Produce at an even rate; when it began, in milliseconds since 1970."""
    producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 5})
    began_ms, began, sent = time.time_ns() // 1_000_000, time.monotonic(), 0
    while sent < job["rate"] * job["seconds"]:
        for _ in range(int((time.monotonic() - began) * job["rate"]) + 1 - sent):
            producer.produce(job["topic"], _VALUE)
            sent += 1
        producer.poll(0)
        time.sleep(_TICK_S)
    producer.flush()
    return began_ms


def _commits(table: Path) -> list[tuple[float, dict[int, int]]]:
    """When each commit of the table appeared, in milliseconds since 1970, and up to which offsets of the partitions it goes."""
    found, state = [], State()
    while (path := table / "_pylog" / "commits" / commit_name(state.number + 1)).exists():
        state = state.after(path.read_text())
        # A commit gets its name by a link, which is its file's last change.
        found.append(
            (path.stat().st_ctime_ns / 1e6, {each.partition: end for each, end in state.position.offsets.items()})
        )
    return found
