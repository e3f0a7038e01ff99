"""Streaming with limits: which offsets each micro-batch takes, with every trigger, and after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.compare import Ways
from tests.parity.ways import Query, Way, running, stream


def filled(way: Way, *sizes: int) -> None:
    """A topic whose partitions hold so many records."""
    way.topic("t", len(sizes))
    for partition, size in enumerate(sizes):
        way.put("t", [f"{partition}-{n}" for n in range(size)], partition)


def boundaries(batches: list[Any]) -> list[tuple[int, Any]]:
    """(rows, end) of each batch; that the rows are as many as Spark counted is checked on the way."""
    assert all(len(batch[1]) == batch[2] for batch in batches)
    return [(batch[2], batch[3]["t"]) for batch in batches]


def test_the_most_of_a_trigger_is_shared_in_proportion_and_starves_nobody(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 101, 11, 1)
        return stream(way, startingOffsets="earliest", maxOffsetsPerTrigger=40)

    assert boundaries(ways.same(scenario))[0] == (40 - 2 + 1, {"0": 35, "1": 3, "2": 1})


def test_a_limited_query_goes_on_where_it_stopped(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 20, 3)
        with running(way, startingOffsets="earliest", maxOffsetsPerTrigger=10) as query:
            first = query.catch_up()
        way.put("t", ["new"] * 5, 1)
        return first, stream(way, maxOffsetsPerTrigger=3)

    first, second = ways.same(scenario)
    assert sum(rows for rows, _ in boundaries(first)) == 23
    assert [rows for rows, _ in boundaries(second)] == [3, 2]


@pytest.mark.long  # tests/unit/spark
def test_trigger_once_takes_all_whatever_the_limits(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 9, 2)
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 3, "minOffsetsPerTrigger": 2}
        query = Query(way, way.folder / "once")
        first = query.run(way.stream_reader(**options).load(), once=True)
        way.put("t", ["one more"], 1)
        return first, query.run(way.stream_reader(**options).load(), once=True)

    first, second = ways.same(scenario)
    assert boundaries(first) == [(11, {"0": 9, "1": 2})]
    assert boundaries(second) == [(1, {"0": 9, "1": 3})]


@pytest.mark.long  # tests/unit/spark
def test_the_fewest_of_a_trigger_lets_it_wait_after_the_first_batch(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 3, 1)
        options = {"startingOffsets": "earliest", "minOffsetsPerTrigger": 10, "maxTriggerDelay": "1h"}
        with running(way, **options) as query:
            seen = [query.catch_up()]
            way.put("t", ["little"] * 4, 1)
            seen.append(query.catch_up())
            way.put("t", ["enough"] * 6, 0)
            seen.append(query.catch_up())
        with running(way, "another", **{**options, "maxTriggerDelay": "0s"}) as query:
            seen.append(query.catch_up())
            way.put("t", ["at once"], 0)
            seen.append(query.catch_up())
        return seen

    first, waiting, enough, all_at_once, no_delay = ways.same(scenario)
    assert boundaries(first) == [(4, {"0": 3, "1": 1})]
    assert waiting == []
    assert boundaries(enough) == [(10, {"0": 9, "1": 5})]
    assert boundaries(all_at_once) == [(14, {"0": 9, "1": 5})]
    assert boundaries(no_delay) == [(1, {"0": 10, "1": 5})]


@pytest.mark.long  # tests/unit/spark
def test_the_fewest_and_the_most_together(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 21, 11, 1)
        options = {"minOffsetsPerTrigger": 15, "maxOffsetsPerTrigger": 20, "maxTriggerDelay": "1h"}
        with running(way, startingOffsets="earliest", **options) as query:
            seen = [query.catch_up()]
            way.put("t", ["more"] * 8, 0)
            seen.append(query.catch_up())
        return seen

    first, second = ways.same(scenario)
    assert boundaries(first) == [(19, {"0": 12, "1": 6, "2": 1})]
    assert boundaries(second) == [(19, {"0": 27, "1": 10, "2": 1})]


@pytest.mark.long  # tests/spark/test_stream.py
def test_available_now_reads_what_was_there_and_starts_again_with_what_came(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 15, 0, 2)
        query = Query(way, way.folder / "now")
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 6}
        frame = way.stream_reader(**options).load()
        kept = query._keep

        def and_more(batch: Any, number: int) -> None:
            kept(batch, number)
            way.put("t", ["later"], 1)

        query._keep = and_more  # type: ignore[method-assign]
        first = query.run(frame)
        query._keep = kept  # type: ignore[method-assign]
        return first, query.run(frame)

    first, second = ways.same(scenario)
    assert boundaries(first)[-1][1] == {"0": 15, "1": 0, "2": 2}
    assert second[-1][-1]["t"]["1"] == len(first)


@pytest.mark.long  # test_ranges.py
def test_partitions_of_a_stream_are_cut_as_in_a_batch(ways: Ways) -> None:
    from tests.parity.test_batch import pieces

    def scenario(way: Way) -> object:
        filled(way, 10, 10, 1)
        seen = []
        query = Query(way, way.folder / "cut")
        query._keep = lambda frame, _: seen.append(pieces(frame))  # type: ignore[method-assign]
        query.run(way.stream_reader(startingOffsets="earliest", minPartitions="6", includeHeaders="true").load())
        return seen

    (cut,) = ways.same(scenario)
    assert len(cut) >= 6


def tasks_of(way: Way, **options: Any) -> list[int]:
    """How many tasks each micro-batch of three partitions with five records each has."""
    from pyspark.sql.functions import spark_partition_id

    filled(way, 5, 5, 5)
    seen: list[int] = []
    query = Query(way, way.folder / "tasks")
    query._keep = lambda frame, _: seen.append(  # type: ignore[method-assign]
        frame.select(spark_partition_id()).distinct().count()
    )
    query.run(way.stream_reader(startingOffsets="earliest", **options).load())
    return seen


def test_small_partitions_of_a_stream_share_a_task(ways: Ways) -> None:
    connector, pylog = ways.differ("tasks of a micro-batch", tasks_of)
    assert (connector, pylog) == ([3], [1])


def test_each_partition_of_a_stream_has_a_task_of_its_own_where_that_is_asked_for(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        return tasks_of(way, **({} if way.is_connector else {"minRecordsPerPartition": 1}))

    assert ways.same(scenario) == [3]


def test_progress_tells_starts_ends_and_the_latest_alike(ways: Ways) -> None:
    import json

    def scenario(way: Way) -> object:
        filled(way, 5, 2)
        query = Query(way, way.folder / "progress")
        query.run(way.stream_reader(startingOffsets="earliest", maxOffsetsPerTrigger=4).load())
        sources = [progress["sources"][0] for progress in query.query.recentProgress if progress["numInputRows"]]
        keys = ("startOffset", "endOffset", "latestOffset")
        return [
            {key: json.loads(source[key]) if isinstance(source[key], str) else source[key] for key in keys}
            | {"rows": source["numInputRows"]}
            for source in sources
        ]

    first, *_ = ways.same(scenario)
    assert (first["rows"], first["endOffset"], first["latestOffset"]) == (
        3,
        {"t": {"0": 2, "1": 1}},
        {"t": {"0": 5, "1": 2}},
    )


@pytest.mark.long  # Spark's version is pinned
def test_a_python_source_has_no_metrics_of_its_own(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        filled(way, 5)
        query = Query(way, way.folder / "metrics")
        query.run(way.stream_reader(startingOffsets="earliest", maxOffsetsPerTrigger=2).load())
        return next(
            dict(progress["sources"][0]["metrics"])
            for progress in query.query.recentProgress
            if progress["numInputRows"]
        )

    connector, pylog = ways.differ("progress metrics", scenario)
    assert connector["maxOffsetsBehindLatest"] == "3"
    assert pylog == {}
