"""Where format("pylog") means to do otherwise than Spark's Kafka connector, each with its reason.

What is not here must be equal: tests show each difference by `Ways.differ` (or by naming it), and fail as soon as it is none.
``python -m tests.parity.differences > docs/parity.md`` writes the page of the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """What the connector does, what pylog does, and why."""

    connector: str
    pylog: str
    why: str


DIFFERENCES: dict[str, Difference] = {
    "isolation level": Difference(
        "reads `read_uncommitted` by default",
        "reads `read_committed` by default; `isolationLevel` and `kafka.isolation.level` choose",
        "Rows of aborted transactions are no rows. On a topic without transactions both are the same.",
    ),
    "user schema": Difference(
        "`.schema()` is refused",
        "`.schema()` may name fewer columns, in any order; only those are built",
        "Spark hands a Python source no column list, and building fewer columns is faster.",
    ),
    "unknown options": Difference(
        "an option that does not exist is ignored",
        "it is refused, with the nearest name",
        "A misspelt option is a setting that silently does not hold.",
    ),
    "unknown client settings": Difference(
        "a `kafka.` setting that does not exist is ignored with a warning in the log",
        "it is refused, with the nearest name",
        "As above.",
    ),
    "a partition of assign that is not there": Difference(
        "is left out",
        "is refused",
        "Whoever names a partition wants its records.",
    ),
    "endingTimestamp in a stream": Difference(
        "ignored, unlike the other two ending options, which are refused",
        "refused like the other two",
        "A stream has no end.",
    ),
    "delivery": Difference(
        "writes at least once: a task that is tried again writes its rows again",
        "writes exactly once by default, in transactions, whose markers take one offset of each partition and write; "
        "`delivery` set to `at-least-once` writes as the connector does",
        "Rows are not doubled by a crash. A reader of committed data sees them when the batch is committed.",
    ),
    "timestamp column of a write": Difference(
        "a column `timestamp` is ignored",
        "it is the record's time (type TIMESTAMP; null is now)",
        "Times of replayed records are kept.",
    ),
    "acks": Difference(
        "`kafka.acks` and `kafka.enable.idempotence` may be anything",
        "fewer acknowledgements than `all` are refused unless `delivery` is `at-least-once`",
        "A transaction needs them.",
    ),
    "save mode": Difference(
        "a batch write without `.mode()` appends (`errorIfExists` is taken for `append`)",
        '`.mode("append")` must be said',
        "Spark itself refuses other modes of a Python data source.",
    ),
    "a frame that is read again": Difference(
        "an action on the same DataFrame binds `earliest` and `latest` anew",
        "they are bound at the first action of a `load()`; load again to see what came",
        "Spark keeps the partitions that a Python source has planned. A count and a write of one frame see the same rows.",
    ),
    "maxRecordsPerPartition alone in a batch": Difference(
        "is not looked at when the ends are `earliest` and `latest` and `minPartitions` is not given",
        "holds always",
        "The option says so.",
    ),
    "recreated topic": Difference(
        "a topic that was deleted and made again is noticed only while it is shorter than what was read; else its first "
        "records are skipped, also with `failOnDataLoss` false",
        "is noticed by the topic's id: `PYLOG_TOPIC_RECREATED`; with `failOnDataLoss` false it is read from its beginning",
        "Offsets carry topic ids (the key `@pylog` of the offsets' JSON).",
    ),
    "a target that is made again": Difference(
        "a topic that is deleted and made again under a running write, by hand or by brokers that create topics themselves, is written "
        "on to silently",
        "the write stops: `PYLOG_TOPIC_RECREATED`; where the topic is only deleted, `PYLOG_TOPIC_DELETED`, and it is not made again",
        "What was written before is gone, and the checkpoint says that it was written.",
    ),
    "tasks of a micro-batch": Difference(
        "each log partition with new records is a Spark partition",
        "ranges of fewer than 1000 offsets and some 1 MiB share one, until there is work for more; `minRecordsPerPartition` sets the "
        "number, and with 1 each log partition is a Spark partition. In a batch read it always is, unless the option is given",
        "A Python task of a few records costs more to start than to run. The rows and offsets are the same.",
    ),
    "a time that Spark cannot hold": Difference(
        "fails the read (a producer that writes nanoseconds where milliseconds belong)",
        "is read as the last time that Spark can hold",
        "The other columns are sound.",
    ),
    "a new empty partition": Difference(
        "makes a micro-batch without rows that notes it",
        "makes none; it is read from its beginning all the same",
        "A batch costs time.",
    ),
    "offsets in the checkpoint": Difference(
        "the JSON has the topics, each with its partitions; a key `@pylog` is refused",
        "the same and a key `@pylog` with the ids of the topics; the connector's checkpoints are gone on with",
        "See above. To go back to the connector, start a new checkpoint from these offsets: `startingOffsets` without `@pylog`.",
    ),
    "progress metrics": Difference(
        "`sources[].metrics` has minOffsetsBehindLatest and two more",
        "`metrics` is empty; `latestOffset` minus `endOffset` is the same number",
        "Spark lets no Python source report metrics.",
    ),
    "output mode update": Difference(
        "`update` appends the changed rows of each micro-batch",
        "refused",
        "Spark itself refuses `update` for a Python sink; a `foreachBatch` does the same.",
    ),
}


def page() -> str:
    """Render ``docs/parity.md``."""
    rows = [
        f"| {name} | {difference.connector} | {difference.pylog} | {difference.why} |"
        for name, difference in DIFFERENCES.items()
    ]
    return _PAGE.format(rows="\n".join(rows))


_PAGE = """# Where format("pylog") differs from format("kafka")

The same PySpark code runs with Spark's Kafka connector on Apache Kafka, with pylog on Apache Kafka and with pylog on a pylog
broker; tests compare schema, rows, the offsets of each micro-batch and what is refused (`tests/parity`; what the connector answers
is recorded there by `make parity`). They are equal but for this list. Written by `python -m tests.parity.differences > docs/parity.md`.

| what | Spark's Kafka connector | pylog | why |
|---|---|---|---|
{rows}
"""

if __name__ == "__main__":
    print(page(), end="")
