"""What a streaming query reads next, over a log that a test sets by hand."""

import json
from collections.abc import Iterable

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.limits import Latest, Limit
from pylog_spark.offsets.position import Position
from pylog_spark.options import STREAM, read_options
from pylog_spark.source.planner import StreamPlanner

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class FakeLog:
    """Stands for `pylog_spark.source.log.Log`: `held` says what each partition holds, [first, end)."""

    def __init__(self, held: dict[TopicPartition, tuple[int, int]], topic_id: str = "id") -> None:
        self.held, self.topic_id = held, topic_id

    def assigned(self) -> Position:
        return Position(dict.fromkeys(self.held, 0), {partition.topic: self.topic_id for partition in self.held})

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {partition: self.held[partition][0] for partition in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {partition: self.held[partition][1] for partition in partitions}

    def resolve(self, limit: Limit, option: str, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.latest(partitions) if isinstance(limit, Latest) else self.earliest(partitions)


def planner(log: FakeLog, clock: list[float] | None = None, **options: str) -> StreamPlanner:
    given = {"bootstrap.servers": "b:1", "subscribe": "a", "startingOffsets": "earliest", **options}
    return StreamPlanner(read_options(given, STREAM), log, lambda: clock[0] if clock else 0.0)  # type: ignore[arg-type]


def spans(stream: StreamPlanner, start: dict[str, object], end: dict[str, object]) -> list[tuple[int, int, int]]:
    return [(offsets.partition.partition, offsets.start, offsets.end) for offsets, _ in stream.ranges(start, end)]


def test_nothing_new_gives_the_start_itself_so_that_spark_makes_no_batch() -> None:
    log = FakeLog({A0: (0, 5)})
    stream = planner(log)
    start = json.loads(json.dumps(planner(FakeLog({A0: (0, 5)}), startingOffsets="latest").initial()))
    assert stream.latest(start, None, may_wait=True) is start
    log.held[A0] = (0, 6)
    end = stream.latest(start, None, may_wait=True)
    assert spans(stream, start, end) == [(0, 5, 6)]
    assert stream.latest(end, None, may_wait=True) is end


def test_a_new_partition_begins_at_earliest_and_an_empty_one_makes_no_batch() -> None:
    log = FakeLog({A0: (0, 5)})
    stream = planner(log)
    start = stream.latest(stream.initial(), None, may_wait=True)
    log.held[A1] = (0, 0)
    assert stream.latest(start, None, may_wait=True) is start
    log.held[A1] = (2, 7)
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(1, 2, 7)]


def test_the_limit_of_the_engine_wins_over_the_option() -> None:
    stream = planner(FakeLog({A0: (0, 100)}), maxOffsetsPerTrigger="10")
    start = stream.initial()
    assert spans(stream, start, stream.latest(start, 10, may_wait=True)) == [(0, 0, 10)]
    assert spans(stream, start, stream.latest(start, None, may_wait=False)) == [(0, 0, 100)]


def test_available_now_sees_nothing_that_came_after_it_started() -> None:
    log = FakeLog({A0: (0, 5)})
    stream = planner(log)
    start = stream.initial()
    stream.freeze()
    log.held = {A0: (0, 9), A1: (0, 3)}
    end = stream.latest(start, None, may_wait=False)
    assert spans(stream, start, end) == [(0, 0, 5)]
    assert stream.latest(end, None, may_wait=False) is end


def test_a_batch_waits_for_min_offsets_up_to_the_delay() -> None:
    clock = [0.0]
    stream = planner(FakeLog({A0: (0, 5)}), clock, minOffsetsPerTrigger="6", maxTriggerDelay="10s")
    start = stream.initial()
    assert stream.latest(start, None, may_wait=True) is start
    clock[0] = 9.9
    assert stream.latest(start, None, may_wait=True) is start
    clock[0] = 10.0
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(0, 0, 5)]
    assert stream.latest(start, None, may_wait=False) is not start


def test_a_recreated_topic_is_one_named_error_even_when_its_offsets_fit() -> None:
    start = planner(FakeLog({A0: (0, 5)}, "first")).initial()
    stream = planner(FakeLog({A0: (0, 50)}, "second"))
    with pytest.raises(PylogError, match="'a' was deleted and created again") as caught:
        stream.latest(start, None, may_wait=True)
    assert caught.value.condition == "PYLOG_TOPIC_RECREATED"


def test_a_recreated_topic_is_read_from_its_beginning_when_loss_is_allowed() -> None:
    old = FakeLog({A0: (0, 5)}, "first")
    start = planner(old).latest(planner(old).initial(), None, may_wait=True)
    stream = planner(FakeLog({A0: (0, 3)}, "second"), failOnDataLoss="false")
    end = stream.latest(start, None, may_wait=True)
    assert spans(stream, start, end) == [(0, 0, 3)]
    assert stream.latest(end, None, may_wait=True) is end


def test_a_log_that_ends_before_what_was_read_is_data_loss() -> None:
    start = planner(FakeLog({A0: (0, 5)}), startingOffsets="latest").initial()
    with pytest.raises(PylogError, match="a-0 ends at offset 3, before offset 5"):
        planner(FakeLog({A0: (0, 3)})).latest(start, None, may_wait=True)
    forgiving = planner(FakeLog({A0: (0, 3)}), failOnDataLoss="false")
    end = forgiving.latest(start, None, may_wait=True)
    assert spans(forgiving, start, end) == []
    assert forgiving.latest(end, None, may_wait=True) is end


def test_a_partition_that_is_gone_is_data_loss_once() -> None:
    start = planner(FakeLog({A0: (0, 5), A1: (0, 5)}), startingOffsets="latest").initial()
    with pytest.raises(PylogError, match="a-1 was read up to offset 5 and is not there any more"):
        planner(FakeLog({A0: (0, 5)})).latest(start, None, may_wait=True)
    forgiving = planner(FakeLog({A0: (0, 5)}), failOnDataLoss="false")
    end = forgiving.latest(start, None, may_wait=True)
    assert forgiving.latest(end, None, may_wait=True) is end


def test_records_that_retention_took_are_data_loss_and_not_skipped_silently() -> None:
    log = FakeLog({A0: (0, 5)})
    start = planner(log).initial()
    log.held[A0] = (3, 9)
    end = planner(log).latest(start, None, may_wait=True)
    with pytest.raises(PylogError, match="a-0 holds nothing before offset 3, and this query needs it from offset 0"):
        planner(log).ranges(start, end)
    assert spans(planner(log, failOnDataLoss="false"), start, end) == [(0, 3, 9)]


def test_a_replayed_batch_is_planned_the_same_whatever_came_since() -> None:
    log = FakeLog({A0: (0, 5)})
    start, end = planner(log).initial(), planner(log).latest(planner(log).initial(), None, may_wait=True)
    log.held = {A0: (0, 500), A1: (0, 7)}
    assert spans(planner(log), start, end) == [(0, 0, 5)]


def test_before_spark_4_2_an_unchanged_log_gives_the_same_text() -> None:
    stream = planner(FakeLog({A1: (0, 2), A0: (0, 5)}))
    assert json.dumps(stream.all_latest()) == json.dumps(planner(FakeLog({A0: (0, 5), A1: (0, 2)})).all_latest())


def test_progress_reports_the_end_of_the_log_last_seen() -> None:
    stream = planner(FakeLog({A0: (0, 100)}))
    assert stream.reported_latest() is None
    stream.latest(stream.initial(), 10, may_wait=True)
    assert (stream.reported_latest() or {})["a"] == {"0": 100}
