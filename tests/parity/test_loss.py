"""Records, partitions and topics that are gone: refused on all ways, or gone on without, as failOnDataLoss says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.runs import mostly_long
from tests.parity.compare import Ways
from tests.parity.ways import PLACE, Query, Way, outcome, running, stream

EARLIEST = {"startingOffsets": "earliest"}


def read_up(way: Way, count: int, word: str = "t") -> None:
    """A topic of `count` records that a query has read up to its end."""
    way.topic(word)
    way.put(word, [f"old-{n}" for n in range(count)])
    stream(way, subscribe=way.name(word), **EARLIEST)


def recreate(way: Way, count: int, word: str = "t", partitions: int = 1) -> None:
    """Delete a topic and make it again, with `count` other records in partition 0."""
    way.delete(word)
    way.topic(word, partitions)
    way.put(word, [f"new-{n}" for n in range(count)])


def values(batches: list[Any]) -> list[str]:
    """The values of all batches."""
    return [row[PLACE.index("value")].decode() for batch in batches for row in batch.rows]


def test_a_topic_recreated_shorter_is_refused(ways: Ways) -> None:
    def scenario(way: Way) -> None:
        read_up(way, 2)
        recreate(way, 1)
        stream(way)

    ways.refused("a log shorter than what was read", scenario)


def test_a_topic_recreated_shorter_is_read_from_its_beginning(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        read_up(way, 3)
        recreate(way, 2)
        return values(stream(way, failOnDataLoss="false"))

    assert ways.differ("recreated topic", scenario) == ([], ["new-0", "new-1"])


def test_a_topic_recreated_longer_is_noticed(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        read_up(way, 1)
        recreate(way, 3)
        return outcome(lambda: values(stream(way)), "PYLOG_TOPIC_RECREATED")

    assert ways.differ("recreated topic", scenario) == (["new-1", "new-2"], "refused")


@pytest.mark.parametrize("fail", mostly_long(["true", "false"], "true"))
def test_records_that_aged_out_before_they_were_read(ways: Ways, fail: str) -> None:
    def scenario(way: Way) -> object:
        read_up(way, 2)
        way.put("t", [f"{n}" for n in range(2, 6)])
        way.delete_before("t", 0, 4)
        return values(stream(way, failOnDataLoss=fail))

    if fail == "true":
        ways.refused("records that aged out", scenario)
    else:
        assert ways.same(scenario) == ["4", "5"]


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_a_starting_offset_that_aged_out(ways: Ways, kind: str, fail: str) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", [f"{n}" for n in range(6)])
        way.delete_before("t", 0, 3)
        options = {"startingOffsets": way.json({"t": {"0": 1}}), "failOnDataLoss": fail}
        if kind == "stream":
            return values(stream(way, **options))
        return [row[-1].decode() for row in way.read(**options)]

    if fail == "true":
        ways.refused("records that aged out", scenario)
    else:
        assert ways.same(scenario) == ["3", "4", "5"]


def test_a_starting_offset_behind_the_end_of_a_stream_is_refused(ways: Ways) -> None:
    def scenario(way: Way) -> None:
        way.topic()
        way.put("t", ["a", "b"])
        stream(way, startingOffsets=way.json({"t": {"0": 7}}))

    ways.refused("a log shorter than the start", scenario)


@pytest.mark.parametrize("fail", mostly_long(["true", "false"], "true"))
def test_a_deleted_topic_of_a_pattern_is_loss_or_left(ways: Ways, fail: str) -> None:
    def scenario(way: Way) -> object:
        for word in ("p-a", "p-b"):
            way.topic(word)
            way.put(word, ["old"])
        options = {"subscribePattern": way.name("p-.*"), "failOnDataLoss": fail, **EARLIEST}
        first = stream(way, **options)
        way.delete("p-a")
        way.put("p-b", ["new"])
        return values(first), values(stream(way, **options))

    if fail == "true":
        ways.refused("a topic that was deleted", scenario)
    else:
        assert ways.same(scenario) == (["old", "old"], ["new"])


@pytest.mark.long  # tests/reading/test_losses.py
def test_a_pattern_whose_topics_are_all_gone_makes_no_empty_offset(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("p-a")
        way.put("p-a", ["old"])
        options = {"subscribePattern": way.name("p-.*"), "failOnDataLoss": "false", **EARLIEST}
        with running(way, **options) as query:
            query.catch_up()
            way.delete("p-a")
            query.catch_up()
            return query.ends()[-1]

    assert ways.same(scenario) == {"p-a": {"0": 1}}


@pytest.mark.parametrize("fail", mostly_long(["true", "false"], "true"))
def test_a_new_partition_that_lost_its_beginning(ways: Ways, fail: str) -> None:
    def scenario(way: Way) -> object:
        read_up(way, 1)
        way.add_partitions("t", 2)
        way.put("t", ["gone", "left"], 1)
        way.delete_before("t", 1, 1)
        return values(stream(way, failOnDataLoss=fail))

    if fail == "true":
        ways.refused("a new partition that lost its beginning", scenario)
    else:
        assert ways.same(scenario) == ["left"]


def test_a_topic_deleted_while_a_task_reads_it_is_no_failure_when_loss_is_allowed(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a", "b"])
        query = Query(way, way.folder / "deleted")
        kept = query._keep

        def delete_and_read(batch: Any, number: int) -> None:
            if number == 0:
                recreate(way, 0)
            kept(batch, number)

        query._keep = delete_and_read  # type: ignore[method-assign]
        # pylog's driver has read so few rows before the topic is deleted; here its tasks do.
        options = {
            "failOnDataLoss": "false",
            "kafkaConsumer.pollTimeoutMs": "1000",
            "prefetchMaxBytes": "0",
            **EARLIEST,
        }
        return values(query.run(way.stream_reader(**options).load()))

    assert ways.same(scenario) == []


def meddled(way: Way, meddle: Any, **options: Any) -> list[Any]:
    """Run with AvailableNow in three batches; `meddle` runs in the first, after its rows were read."""
    way.topic("t", 5)
    way.put("t", [f"{n}" for n in range(15)])
    query = Query(way, way.folder / "meddled")
    kept = query._keep

    def keep_and_meddle(batch: Any, number: int) -> None:
        kept(batch, number)
        if number == 0:
            meddle()

    query._keep = keep_and_meddle  # type: ignore[method-assign]
    return query.run(way.stream_reader(maxOffsetsPerTrigger=5, **EARLIEST, **options).load())


@pytest.mark.parametrize("fail", mostly_long(["true", "false"], "true"))
def test_available_now_fails_when_partitions_vanish_between_its_batches(ways: Ways, fail: str) -> None:
    def scenario(way: Way) -> None:
        meddled(way, lambda: recreate(way, 15, partitions=3), failOnDataLoss=fail)

    ways.refused("partitions lost during AvailableNow", scenario)


@pytest.mark.parametrize("fail", mostly_long(["true", "false"], "true"))
def test_available_now_fails_when_offsets_vanish_between_its_batches(ways: Ways, fail: str) -> None:
    def scenario(way: Way) -> None:
        meddled(way, lambda: recreate(way, 8, partitions=5), failOnDataLoss=fail)

    ways.refused("offsets lost during AvailableNow", scenario)


@pytest.mark.long  # test_limits.py
def test_available_now_leaves_new_partitions_for_the_next_run(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        def meddle() -> None:
            way.add_partitions("t", 6)
            way.put("t", ["new"], 5)

        return meddled(way, meddle), stream(way, "meddled")

    first, second = ways.same(scenario)
    assert [batch[2] for batch in first] == [5, 5, 5]
    assert [row[-1] for batch in second for row in batch[1]] == [b"new"]


@pytest.mark.long  # tests/spark/test_stream.py
def test_a_failed_batch_is_tried_again_although_partitions_were_added(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a"])
        query = Query(way, way.folder / "failing")
        frame = way.stream_reader(**EARLIEST).load()

        def fail(batch: Any, number: int) -> None:
            batch.collect()
            raise RuntimeError("the user's own mistake")

        kept, query._keep = query._keep, fail  # type: ignore[method-assign]
        first = outcome(lambda: query.run(frame), "the user's own mistake")
        way.add_partitions("t", 2)
        second = outcome(lambda: query.run(frame), "the user's own mistake")
        query._keep = kept  # type: ignore[method-assign]
        query.run(frame)
        return first, second, query._rows[0], query.ends()[-1]

    connector, pylog = ways.differ("a new empty partition", scenario)
    assert connector[:3] == pylog[:3] == ("refused", "refused", [("t", 0, 0, b"a")])
    assert (connector[3], pylog[3]) == ({"t": {"0": 1, "1": 0}}, {"t": {"0": 1}})
