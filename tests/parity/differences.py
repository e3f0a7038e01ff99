"""Where format("pylog") differs from Spark's Kafka connector on purpose, each with its reason.

All else must be equal. Tests show each difference by `Ways.differ` (or by its name), and fail as soon as there is no difference.
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
        "reads `read_committed` by default; `isolationLevel` or `kafka.isolation.level` changes that",
        "Records of aborted transactions should not be rows. On a topic without transactions both are the same.",
    ),
    "user schema": Difference(
        "`.schema()` is refused",
        "`.schema()` may name fewer columns, in any order; only those are built",
        "Spark does not tell a Python source which columns a query uses, and building fewer columns is faster.",
    ),
    "unknown options": Difference(
        "an option that does not exist is ignored",
        "it is refused, with the nearest name",
        "With a misspelt option, a query would silently run without it.",
    ),
    "unknown client settings": Difference(
        "a `kafka.` setting that does not exist is ignored with a warning in the log",
        "it is refused, with the nearest name",
        "As above.",
    ),
    "a partition of assign that does not exist": Difference(
        "it is left out",
        "it is refused",
        "A query that names a partition needs its records.",
    ),
    "endingTimestamp in a stream": Difference(
        "ignored, unlike the other two ending options, which are refused",
        "refused like the other two",
        "A stream has no end.",
    ),
    "delivery": Difference(
        "writes at least once: a task that is tried again writes its rows again",
        "writes exactly once by default, in transactions; the marker that ends a transaction takes one offset in each partition; "
        "`delivery` set to `at-least-once` writes as the connector does",
        "A crash does not duplicate rows. A reader of committed data sees them when the batch is committed.",
    ),
    "timestamp column of a write": Difference(
        "a column `timestamp` is ignored",
        "it is the record's time (type TIMESTAMP; null is now)",
        "Records that are copied keep their times.",
    ),
    "acks": Difference(
        "`kafka.acks` and `kafka.enable.idempotence` may have any value",
        "`kafka.acks` other than `all`, and no idempotence, are refused unless `delivery` is `at-least-once`",
        "Transactions need both.",
    ),
    "save mode": Difference(
        "a batch write without `.mode()` appends (`errorIfExists` is taken for `append`)",
        '`.mode("append")` is required',
        "Spark itself refuses other modes of a Python data source.",
    ),
    "a frame that is read again": Difference(
        "each action on the same DataFrame looks up `earliest` and `latest` anew",
        "they are looked up at the first action after a `load()`; call `load()` again to see newer records",
        "Spark keeps the partitions that a Python source has planned. So a count and a write of one frame see the same rows.",
    ),
    "maxRecordsPerPartition alone in a batch": Difference(
        "is ignored when the read goes from `earliest` to `latest` and `minPartitions` is not given",
        "always holds",
        "So the option is documented.",
    ),
    "recreated topic": Difference(
        "a topic that was deleted and created again is noticed only while it is shorter than what was read; else its first "
        "records are skipped, also with `failOnDataLoss` false",
        "it is noticed by the topic's id: `PYLOG_TOPIC_RECREATED`; with `failOnDataLoss` false it is read from its beginning",
        "Offsets carry topic ids (the key `@pylog` of the offsets' JSON).",
    ),
    "a topic that is created again during a write": Difference(
        "a write silently goes on into the new topic when its topic is deleted and created again, by an administrator or by brokers that "
        "create topics automatically",
        "the write stops: `PYLOG_TOPIC_RECREATED`; where the topic is only deleted, `PYLOG_TOPIC_DELETED`, and it is not created again",
        "The rows written before are gone, although the checkpoint says that they were written.",
    ),
    "tasks of a micro-batch": Difference(
        "each log partition with new records is a Spark partition",
        "ranges of fewer than 1000 offsets and about 1 MiB share one; `minRecordsPerPartition` sets that number, and with 1 each log "
        "partition is a Spark partition. In a batch read each is, unless the option is given",
        "For a few records, a Python task takes longer to start than to run. The rows and offsets are the same.",
    ),
    "a time that Spark cannot hold": Difference(
        "the read fails (for example when a producer has written nanoseconds instead of milliseconds)",
        "it is read as the last time that Spark can hold",
        "The other columns are correct.",
    ),
    "a new empty partition": Difference(
        "causes a micro-batch without rows that records it",
        "causes none; it is read from its beginning all the same",
        "A batch costs time.",
    ),
    "offsets in the checkpoint": Difference(
        "the JSON has the topics, each with its partitions; a key `@pylog` is refused",
        "the same and a key `@pylog` with the ids of the topics; a query can go on from the connector's checkpoint",
        "The ids are needed to notice a recreated topic. To go back to the connector, start a new checkpoint from these offsets: `startingOffsets` without `@pylog`.",
    ),
    "progress metrics": Difference(
        "`sources[].metrics` has minOffsetsBehindLatest and two more",
        "`metrics` is empty; `latestOffset` minus `endOffset` is the same number",
        "Spark lets no Python source report metrics.",
    ),
    "output mode update": Difference(
        "`update` appends the changed rows of each micro-batch",
        "refused",
        "Spark itself refuses `update` for a Python sink; `foreachBatch` can do the same.",
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
broker; tests compare schema, rows, the offsets of each micro-batch and what is refused (`tests/parity`; the connector's results
are recorded there by `make parity`). All are equal except for this list. This page is written by `python -m tests.parity.differences > docs/parity.md`.

| what | Spark's Kafka connector | pylog | why |
|---|---|---|---|
{rows}
"""

if __name__ == "__main__":
    print(page(), end="")
