"""Topics with transactions, and with gaps that compaction left: which rows, and where batches end."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from pylog_spark._native import RangeReader
from tests.parity.compare import Ways
from tests.parity.ways import BASE_MS, WAIT_S, Record, Way, running, send, stream

LEVELS = ("read_committed", "read_uncommitted")


def transaction(producer: Producer, way: Way, values: range, end: str) -> None:
    """Write values to partition 0 in one transaction and end it: commit, abort, or leave it open."""
    producer.begin_transaction()
    send(producer, way.name(), [Record(f"{n}") for n in values])
    if end != "open":
        ended(producer, way, end)


def ended(producer: Producer, way: Way, end: str) -> None:
    """End the open transaction: commit, or abort."""
    producer.commit_transaction(WAIT_S) if end == "commit" else producer.abort_transaction(WAIT_S)
    way.await_markers()


def values(rows: list[tuple[Any, ...]]) -> list[int]:
    """The values as numbers."""
    return [int(row[-1]) for row in rows]


@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_read_sees_what_its_isolation_level_shows(ways: Ways, level: str) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        seen = []
        producer = way.transactional()
        for first, end in ((1, "commit"), (6, "abort"), (11, "commit"), (16, "open")):
            transaction(producer, way, range(first, first + 5), end)
            seen.append(way.read(kafka_isolation_level=level))
        producer.abort_transaction(WAIT_S)
        return seen

    seen = ways.same(scenario)
    committed = [*range(1, 6), *range(11, 16)]
    assert values(seen[-1]) == (committed if level == "read_committed" else [*range(1, 21)])


def test_the_isolation_level_is_another_by_default(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        producer = way.transactional()
        transaction(producer, way, range(3), "abort")
        transaction(producer, way, range(3, 5), "commit")
        return values(way.read()), [batch.end for batch in stream(way, startingOffsets="earliest")]

    connector, pylog = ways.differ("isolation level", scenario)
    assert connector[0] == [0, 1, 2, 3, 4]
    assert pylog[0] == [3, 4]


@pytest.mark.parametrize("level", LEVELS)
def test_a_rate_limited_stream_cuts_at_the_same_offsets_over_markers_and_aborts(ways: Ways, level: str) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        producer = way.transactional()
        transaction(producer, way, range(5), "commit")
        transaction(producer, way, range(6, 11), "abort")
        transaction(producer, way, range(12, 17), "commit")
        for group in (range(18, 19), range(20, 21), range(22, 24)):
            transaction(producer, way, group, "commit")
        return stream(
            way,
            kafka_isolation_level=level,
            maxOffsetsPerTrigger=3,
            startingOffsets="earliest",
        )

    batches = ways.same(scenario)
    read = [number for batch in batches for number in values(batch[1])]
    assert len(batches) == 9
    assert (6 in read) == (level == "read_uncommitted")


@pytest.mark.parametrize("level", LEVELS)
def test_a_stream_stops_before_an_open_transaction_or_reads_it(ways: Ways, level: str) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        options = {"kafka_isolation_level": level, "startingOffsets": "earliest"}
        producer = way.transactional()
        with running(way, **options) as query:
            way.put("t", ["0"])
            seen = [query.catch_up()]
            transaction(producer, way, range(1, 4), "open")
            seen.append(query.catch_up())
            ended(producer, way, "commit")
            seen.append(query.catch_up())
            transaction(producer, way, range(5, 8), "abort")
            way.put("t", ["9"])
            seen.append(query.catch_up())
            return [[number for batch in part for number in values(batch.rows)] for part in seen]

    seen = ways.same(scenario)
    assert [offset for part in seen for offset in part] == (
        [0, 1, 2, 3, 9] if level == "read_committed" else [0, 1, 2, 3, 5, 6, 7, 9]
    )


def test_null_keys_and_values_in_a_transaction_are_rows(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        producer = way.transactional()
        producer.begin_transaction()
        send(producer, way.name(), [Record(None), Record(None, "1"), Record("2")])
        ended(producer, way, "commit")
        options = {"kafka_isolation_level": "read_committed", "startingOffsets": "earliest"}
        return stream(way, columns=("key", "value"), **options)

    (batch,) = ways.same(scenario)
    assert batch[1] == [(None, None), (b"1", None), (None, b"2")]


def test_gaps_of_compaction_are_no_loss(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        compacted(way)
        rows = way.read(("key", "value"))
        last = {key: value for key, value in rows}  # noqa: C416 - the last one of a key wins
        batches = stream(way, startingOffsets="earliest", failOnDataLoss="true", maxOffsetsPerTrigger=150)
        return last, [batch.end for batch in batches], len({row for batch in batches for row in batch.rows}) < 400

    last, ends, some_are_gone = ways.same(scenario)
    assert last == {f"key-{n}".encode(): f"{380 + n}".encode() for n in range(20)}
    assert ends == [{"t": {"0": 150}}, {"t": {"0": 300}}, {"t": {"0": 400}}]
    assert some_are_gone


def compacted(way: Way) -> None:
    """400 records of 20 keys; compaction took most of them."""
    settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_ms": "50"}
    way.topic("t", 1, delete_retention_ms="0", **settings)
    for first in range(0, 400, 100):
        # Segments are rolled by the times of their records.
        records = [Record(f"{n}", f"key-{n % 20}", BASE_MS + first * 1_000) for n in range(first, first + 100)]
        way.put("t", records)

    def left() -> int:
        reader = RangeReader({"bootstrap.servers": way.servers}, way.name(), 0, 0, 400, ["offset"])
        return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(reader))

    way.wait_until(lambda: left() < 400)
