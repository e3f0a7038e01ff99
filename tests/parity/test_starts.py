"""Streams from every kind of start with every kind of subscription, restarted, and with partitions that come later."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.compare import Ways
from tests.parity.ways import BASE_MS, Batch, Query, Record, Way, running, stream

SECOND = BASE_MS + 1_000
SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
STARTS = ("latest", "earliest", "offsets", "times", "one time", "the default")


def filled(way: Way) -> None:
    """Five partitions of three records each; the last one or two of each are a second later."""
    way.topic("one-topic", 5)
    for partition in range(5):
        early = 1 + partition % 2
        records = [Record(f"{partition}.{n}", None, BASE_MS if n < early else SECOND) for n in range(3)]
        way.put("one-topic", records, partition)


def subscription(way: Way, kind: str) -> dict[str, str]:
    """The option that names the topic."""
    return {
        "assign": {"assign": way.json({"one-topic": [0, 1, 2, 3, 4]})},
        "subscribe": {"subscribe": way.name("one-topic")},
        "subscribePattern": {"subscribePattern": way.name("one-.*")},
    }[kind]


def start(way: Way, kind: str) -> dict[str, Any]:
    """The option that says where to begin."""
    return {
        "latest": {"startingOffsets": "latest"},
        "earliest": {"startingOffsets": "earliest"},
        "offsets": {"startingOffsets": way.json({"one-topic": {"0": -2, "1": -1, "2": 0, "3": 1, "4": 3}})},
        "times": {
            "startingOffsetsByTimestamp": way.json({"one-topic": {str(n): (SECOND, BASE_MS)[n // 4] for n in range(5)}})
        },
        "one time": {"startingTimestamp": SECOND},
        "the default": {},
    }[kind]


def rows_of(*looks: list[Batch]) -> list[list[tuple[Any, ...]]]:
    """The rows of each look at a running query. Its batches depend on when it sees a new partition, and whether empty."""
    return [[row for batch in batches for row in batch.rows] for batches in looks]


@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.parametrize("by", SUBSCRIPTIONS)
def test_every_start_begins_at_the_same_offsets_and_goes_on_after_a_restart(ways: Ways, by: str, kind: str) -> None:
    def scenario(way: Way) -> object:
        filled(way)
        loss = str(STARTS.index(kind) % 2 == 0)
        seen = [stream(way, **subscription(way, by), **start(way, kind), failOnDataLoss=loss)]
        if kind in ("latest", "offsets"):
            way.put("one-topic", ["later"], 3)
            # What was said at first counts no more.
            seen.append(stream(way, **subscription(way, by), startingOffsets="earliest"))
        return seen

    rows = [sum(batch[2] for batch in batches) for batches in ways.same(scenario)]
    assert (
        rows
        == {
            "latest": [0, 1],
            "earliest": [15],
            "offsets": [3 + 3 + 2, 1],
            "times": [2 + 1 + 2 + 1 + 3],
            "one time": [2 + 1 + 2 + 1 + 2],
            "the default": [0],
        }[kind]
    )


@pytest.mark.long  # tests/spark/test_stream.py
@pytest.mark.parametrize(("by", "kind"), [("subscribe", "latest"), ("subscribePattern", "earliest")])
def test_a_running_query_finds_new_records_and_new_partitions_from_their_beginning(
    ways: Ways, by: str, kind: str
) -> None:
    def scenario(way: Way) -> object:
        filled(way)
        with running(way, **subscription(way, by), **start(way, kind)) as query:
            seen = [query.catch_up()]
            way.put("one-topic", ["new"], 2)
            seen.append(query.catch_up())
            way.add_partitions("one-topic", 7)
            way.put("one-topic", ["first"], 6)
            seen.append(query.catch_up())
        way.put("one-topic", ["while it was stopped"], 5)
        return rows_of(*seen, stream(way, **subscription(way, by)))

    *_, added, restarted = ways.same(scenario)
    assert [row[-1] for row in added] == [b"first"]
    assert [row[-1] for row in restarted] == [b"while it was stopped"]


@pytest.mark.long  # tests/reading/test_starts.py
def test_a_pattern_finds_a_topic_that_is_made_later(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("p-1")
        way.put("p-1", ["a"])
        with running(way, subscribePattern=way.name("p-.*")) as query:
            seen = [query.catch_up()]
            way.topic("p-2")
            way.topic("other")
            way.put("p-2", ["b"])
            way.put("other", ["c"])
            seen.append(query.catch_up())
        return rows_of(*seen)

    first, second = ways.same(scenario)
    assert first == []
    assert [row[-1] for row in second] == [b"b"]


@pytest.mark.long  # examples/stream_joins.py
def test_two_sources_in_one_query_keep_apart(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        for word, size in (("small", 4), ("large", 12)):
            way.topic(word)
            way.put(word, [f"{n}" for n in range(size)])
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 5}
        small, large = (way.stream_reader(subscribe=way.name(word), **options).load() for word in ("small", "large"))
        query = Query(way, way.folder / "union")
        batches = query.run(small.union(large))
        return [(batch.rows, batch.input_rows) for batch in batches]

    assert [rows for _, rows in ways.same(scenario)] == [4 + 5, 5, 2]


@pytest.mark.long  # examples/flights
def test_a_watermark_on_the_record_time_closes_windows(ways: Ways) -> None:
    from pyspark.sql.functions import window

    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", [Record("a", None, BASE_MS + 1_000 * n) for n in (0, 1, 2, 30)])
        counts = (
            way.stream_reader(startingOffsets="earliest")
            .load()
            .withWatermark("timestamp", "10 seconds")
            .groupBy(window("timestamp", "5 seconds"))
            .count()
        )
        name = f"w{way.format}{way.servers.rpartition(':')[2]}"
        query = (
            counts.writeStream.format("memory").queryName(name).outputMode("append").trigger(availableNow=True).start()
        )
        assert query.awaitTermination(60)
        return [(row.window.start, row["count"]) for row in way.spark.table(name).collect()]

    ((_, count),) = ways.same(scenario)
    assert count == 3


@pytest.mark.long  # a frame used twice: test_batch.py
def test_a_self_join_reads_alike(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("t", 2)
        way.put("t", ["1", "2", "6"])
        numbers = (
            way.stream_reader(startingOffsets="earliest").load().selectExpr("cast(cast(value as string) as int) v")
        )
        left, right = numbers.selectExpr("v", "v % 5 as k"), numbers.selectExpr("v as w", "v % 5 as k")
        seen: list[object] = []
        writer = left.join(right, "k").writeStream.foreachBatch(
            lambda frame, _: seen.extend(map(tuple, frame.collect()))
        )
        query = writer.option("checkpointLocation", str(way.folder / "join")).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        offsets = (way.folder / "join" / "offsets" / "0").read_text().splitlines()
        return sorted(seen), len(offsets) - 2

    rows, _ = ways.same(scenario)
    assert rows == [(1, 1, 1), (1, 1, 6), (1, 6, 1), (1, 6, 6), (2, 2, 2)]
