"""The numbers of queries: what is counted, what is left out and said, and what a look at the brokers adds."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from pylog_spark.listener import numbers as kinds
from pylog_spark.listener.numbers import PARTS_MAX, QUERIES_MAX, Family, Measured, Numbers
from pylog_spark.listener.progress import BatchProgress
from pylog_spark.offsets import TopicPartition


def batch(query: str | None = "q", *, number: int = 0, run: str = "r", **more: Any) -> BatchProgress:
    """A batch of two partitions, of which one is read to its end."""
    source = {"numInputRows": 5, "startOffset": None, "endOffset": {"t": {"0": 3, "1": 2}}}
    document = {
        "id": "an-id",
        "runId": run,
        "name": query,
        "batchId": number,
        "durationMs": {"addBatch": 40, "triggerExecution": 100},
        "sources": [{**source, "latestOffset": {"t": {"0": 3, "1": 9}}}],
        **more,
    }
    return BatchProgress.of_json(json.dumps(document))


def shown(numbers: Numbers, family: Family) -> dict[tuple[str, ...], float]:
    return dict(numbers.samples(family))


def test_batches_add_up_and_go_on_when_a_query_of_the_same_name_starts_again() -> None:
    numbers = Numbers()
    numbers.begin("q", "r")
    numbers.add(batch())
    numbers.add(batch(number=1))
    numbers.end("r")
    assert shown(numbers, kinds.ACTIVE) == {("q",): 0}
    numbers.begin("q", "again")
    numbers.add(batch(number=2, run="again"))
    assert shown(numbers, kinds.ACTIVE) == {("q",): 1}
    assert shown(numbers, kinds.BATCHES) == {("q",): 3}
    assert shown(numbers, kinds.ROWS) == {("q", "0"): 15}
    assert shown(numbers, kinds.SECONDS) == pytest.approx({("q", "addBatch"): 0.12, ("q", "triggerExecution"): 0.3})
    assert shown(numbers, kinds.OF_LAG) == {("q", "0", "t", "0"): 0, ("q", "0", "t", "1"): 7}


def test_a_query_without_a_name_has_its_id() -> None:
    numbers = Numbers()
    numbers.add(batch(None))
    assert shown(numbers, kinds.LAG) == {("an-id", "0"): 7}


def test_sources_that_read_no_log_have_rows_and_no_lag() -> None:
    sources = [
        {"numInputRows": 4, "startOffset": 1, "endOffset": 2, "latestOffset": 2},
        {"numInputRows": 2, "startOffset": {"logOffset": 0}, "endOffset": {"logOffset": 1}, "latestOffset": None},
        {"numInputRows": 1, "startOffset": {}, "endOffset": {}, "latestOffset": {}},
    ]
    numbers = Numbers()
    numbers.add(batch(sources=sources))
    assert shown(numbers, kinds.ROWS) == {("q", "0"): 4, ("q", "1"): 2, ("q", "2"): 1}
    assert shown(numbers, kinds.LAG) == shown(numbers, kinds.END) == {}


def test_seconds_grow_from_the_record_that_a_look_has_found_and_are_0_when_all_is_read() -> None:
    clock = [1_000.0]
    numbers = Numbers(now_s=lambda: clock[0])
    numbers.add(batch())
    of_0, of_1 = (("q", "0", "t", str(partition)) for partition in (0, 1))
    assert shown(numbers, kinds.OF_BEHIND) == {of_0: 0}, "of the other nobody knows"
    seen = {(0, TopicPartition("t", 0)): Measured(3, None, None), (0, TopicPartition("t", 1)): Measured(12, 990.0, 77)}
    numbers.measure("q", seen)
    assert shown(numbers, kinds.OF_LAG) == {of_0: 0, of_1: 10}
    assert shown(numbers, kinds.OF_BYTES) == {of_0: 0, of_1: 77}
    assert shown(numbers, kinds.BEHIND) == {("q", "0"): 10}
    clock[0] = 1_005.0
    assert shown(numbers, kinds.BEHIND) == {("q", "0"): 15}
    caught_up = {"numInputRows": 10, "endOffset": {"t": {"0": 3, "1": 12}}, "latestOffset": {"t": {"0": 3, "1": 12}}}
    numbers.add(batch(number=1, sources=[caught_up]))
    assert shown(numbers, kinds.BEHIND) == shown(numbers, kinds.LAG) == {("q", "0"): 0}


def test_partitions_beyond_the_bound_are_in_the_sums_alone_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    numbers = Numbers(partitions_max=1)
    with caplog.at_level(logging.WARNING, "pylog_spark"):
        numbers.add(batch())
        numbers.add(batch(number=1))
    assert caplog.messages == [
        "The query 'q' reads 2 partitions: its metrics have the first 1 of them, and sums of all."
    ]
    assert set(shown(numbers, kinds.OF_LAG)) == {("q", "0", "t", "0")}
    assert shown(numbers, kinds.LAG) == {("q", "0"): 7}
    assert shown(numbers, kinds.LEFT_OUT) == {("q",): 1}


def test_queries_beyond_the_bound_are_those_that_were_quiet_for_longest(caplog: pytest.LogCaptureFixture) -> None:
    numbers = Numbers()
    with caplog.at_level(logging.WARNING, "pylog_spark"):
        for number in range(QUERIES_MAX):
            numbers.begin(f"q{number}", f"r{number}")
        numbers.add(batch("q0", run="r0"))
        numbers.begin("more", "r")
    names = {name for (name,) in shown(numbers, kinds.ACTIVE)}
    assert len(names) == QUERIES_MAX
    assert "q1" not in names
    assert names >= {"q0", "more"}
    assert caplog.messages == [f"Metrics are kept of {QUERIES_MAX} queries: those of 'q1' are left out."]


def test_parts_and_operators_have_a_bound() -> None:
    numbers = Numbers()
    many = {f"part{number:03}": 1 for number in range(PARTS_MAX + 10)}
    operators = [{"operatorName": "stateStoreSave", "numRowsTotal": 4}] * (PARTS_MAX + 10)
    numbers.add(batch(durationMs=many, stateOperators=operators))
    assert len(shown(numbers, kinds.SECONDS)) == len(shown(numbers, kinds.STATE)) == PARTS_MAX
    assert shown(numbers, kinds.STATE)["q", "0 stateStoreSave"] == 4
