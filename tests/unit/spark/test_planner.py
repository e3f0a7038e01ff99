"""What a streaming query reads next, over a log that a test sets by hand."""

import json
from collections.abc import Callable, Collection, Sequence

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.limits import Latest, Limit
from pylog_spark.offsets.position import Position
from pylog_spark.offsets.visible import Taken, Wish
from pylog_spark.options import STREAM, read_options
from pylog_spark.source.log import Bounds
from pylog_spark.source.planner import Clock, StreamPlanner

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class FakeLog:
    """Stands for `pylog_spark.source.log.Log`: `held` says what each partition holds, [first, end)."""

    def __init__(self, held: dict[TopicPartition, tuple[int, int]], topic_id: str = "id") -> None:
        self.held, self.topic_id = held, topic_id
        self.uncommitted: Offsets = {}
        self.asked: list[str] = []
        self.first_asked: list[TopicPartition] = []

    def assigned(self, known: Collection[TopicPartition] = ()) -> Position:
        self.asked.append("assigned")
        return Position(dict.fromkeys(self.held, 0), {partition.topic: self.topic_id for partition in self.held})

    def bounds(self, partitions: Collection[TopicPartition]) -> Bounds:
        return Bounds(self.earliest(partitions), self.latest(partitions))

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        self.first_asked.extend(partitions)
        if partitions:
            self.asked.append("earliest")
        return {each: self.held[each][0] for each in partitions}

    def latest(self, partitions: Collection[TopicPartition], isolation: str | None = None) -> Offsets:
        if partitions:
            self.asked.append("latest")
        ends = self.uncommitted if isolation == "read_uncommitted" else {}
        return {partition: ends.get(partition, self.held[partition][1]) for partition in partitions}

    def resolve(self, limit: Limit, option: str, partitions: Collection[TopicPartition]) -> Offsets:
        bounds = self.bounds(partitions)
        return bounds.latest if isinstance(limit, Latest) else bounds.earliest

    def advance(self, wishes: Sequence[Wish]) -> list[Taken]:
        """Every second offset is a row."""
        self.asked.append("advance")
        taken = []
        for wish in wishes:
            rows = [offset for offset in range(wish.start, wish.end) if offset % 2 == 0][: wish.records]
            reached = rows[-1] + 1 if rows and len(rows) == wish.records else wish.end
            taken.append(Taken(reached, len(rows), 0))
        return taken


def planner(
    log: FakeLog, clock: list[float] | None = None, on_sleep: Callable[[float], None] = lambda _: None, **options: str
) -> StreamPlanner:
    given = {"bootstrap.servers": "b:1", "subscribe": "a", "startingOffsets": "earliest", **options}
    time = Clock(lambda: clock[0] if clock else 0.0, on_sleep)
    return StreamPlanner(read_options(given, STREAM), log, time)  # type: ignore[arg-type]


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
    log.held[A1] = (0, 7)
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(1, 0, 7)]


def test_a_new_partition_that_has_lost_its_beginning_is_data_loss() -> None:
    start = planner(FakeLog({A0: (0, 5)}), startingOffsets="latest").initial()
    log = FakeLog({A0: (0, 5), A1: (2, 7)})
    stream = planner(log)
    with pytest.raises(PylogError, match="a-1, which is new to this query, begins at offset 2 and not at 0") as caught:
        stream.ranges(start, stream.latest(start, None, may_wait=True))
    assert caught.value.condition == "PYLOG_DATA_LOSS"
    forgiving = planner(log, failOnDataLoss="false")
    assert spans(forgiving, start, forgiving.latest(start, None, may_wait=True)) == [(1, 2, 7)]


def test_a_trigger_asks_for_metadata_and_offsets_once_and_planning_asks_nothing() -> None:
    log = FakeLog({A0: (0, 5), A1: (0, 5)})
    stream = planner(log)
    start = stream.initial()
    log.asked.clear()
    end = stream.latest(start, 3, may_wait=True)
    assert spans(stream, start, end) == [(0, 0, 1), (1, 0, 1)]
    assert log.asked == ["assigned", "latest", "earliest"]


def test_first_offsets_are_asked_for_only_where_the_log_has_moved() -> None:
    log = FakeLog({A0: (0, 5), A1: (0, 5)})
    stream = planner(log)
    start = stream.latest(stream.initial(), None, may_wait=True)
    log.first_asked.clear()
    log.held = {A0: (5, 5), A1: (0, 6)}
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(1, 5, 6)]
    assert log.first_asked == [A1]
    log.asked.clear()
    again = {"@pylog": start["@pylog"], "a": {"0": 5, "1": 6}}
    assert stream.latest(again, None, may_wait=True) is again
    assert log.asked == ["assigned", "latest"]


def test_a_position_is_the_same_whether_it_is_spark_s_copy_or_the_planner_s_own() -> None:
    log = FakeLog({A0: (0, 5), A1: (0, 5)})
    stream = planner(log)
    start = stream.initial()
    end = stream.latest(start, None, may_wait=True)
    copies = json.loads(json.dumps(start)), json.loads(json.dumps(end))
    assert spans(stream, *copies) == spans(stream, start, end) == [(0, 0, 5), (1, 0, 5)]
    copies[1]["a"]["1"] = 3
    assert spans(stream, *copies) == [(0, 0, 5), (1, 0, 3)]


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
    first = stream.latest(start, 3, may_wait=True)
    log.held = {A0: (0, 9)}
    assert spans(stream, start, first) == [(0, 0, 3)]
    end = stream.latest(first, None, may_wait=False)
    assert spans(stream, first, end) == [(0, 3, 5)]
    assert stream.latest(end, None, may_wait=False) is end


@pytest.mark.parametrize(
    ("condition", "held", "end"),
    [
        ("PYLOG_AVAILABLE_NOW_PARTITIONS", {A0: (0, 5), A1: (0, 5)}, {"a": {"0": 5}}),
        ("PYLOG_AVAILABLE_NOW_BEYOND", {A0: (0, 5), A1: (0, 5)}, {"a": {"0": 6, "1": 1}}),
        ("PYLOG_AVAILABLE_NOW_LOST", {A0: (0, 5)}, {"a": {"0": 5, "1": 5}}),
        ("PYLOG_AVAILABLE_NOW_TRUNCATED", {A0: (0, 4), A1: (0, 5)}, {"a": {"0": 5, "1": 5}}),
    ],
)
@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_topic_that_changes_while_available_now_reads_it_is_one_of_four_conditions(
    condition: str, held: dict[TopicPartition, tuple[int, int]], end: dict[str, object], fail: str
) -> None:
    log = FakeLog({A0: (0, 5), A1: (0, 5)})
    stream = planner(log, failOnDataLoss=fail)
    start = stream.initial()
    stream.freeze()
    stream.latest(start, None, may_wait=False)
    log.held = held
    with pytest.raises(PylogError) as caught:
        stream.ranges(start, {"@pylog": {"topic_ids": {"a": "id"}, "version": 1}, **end})
    assert caught.value.condition == condition


def test_a_batch_waits_for_min_offsets_up_to_the_delay_but_not_the_first() -> None:
    clock = [0.0]
    log = FakeLog({A0: (0, 5)})
    stream = planner(log, clock, minOffsetsPerTrigger="6", maxTriggerDelay="10s")
    start = stream.latest(stream.initial(), None, may_wait=True)
    assert start["a"] == {"0": 5}
    log.held[A0] = (0, 10)
    assert stream.latest(start, None, may_wait=True) is start
    clock[0] = 9.9
    assert stream.latest(start, None, may_wait=True) is start
    assert stream.latest(start, None, may_wait=False) is not start
    clock[0] = 10.0
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(0, 5, 10)]


def test_a_limit_in_rows_is_met_exactly_and_all_limits_hold_together() -> None:
    log = FakeLog({A0: (0, 100), A1: (0, 10)})
    stream = planner(log, maxRecordsPerTrigger="20")
    start = stream.initial()
    end = stream.latest(start, None, may_wait=True)
    rows = sum(1 for _, low, high in spans(stream, start, end) for offset in range(low, high) if offset % 2 == 0)
    assert rows == 20
    both = planner(log, maxRecordsPerTrigger="20", maxOffsetsPerTrigger="11")
    assert spans(both, start, both.latest(start, 11, may_wait=True)) == [(0, 0, 10), (1, 0, 1)]
    assert spans(stream, start, stream.latest(start, None, may_wait=False)) == [(0, 0, 100), (1, 0, 10)]


def test_a_limit_in_rows_that_cannot_bind_looks_at_no_batch() -> None:
    log = FakeLog({A0: (0, 20)})
    stream = planner(log, maxRecordsPerTrigger="20")
    stream.latest(stream.initial(), None, may_wait=True)
    assert "advance" not in log.asked


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
    with pytest.raises(PylogError, match="a-0 ends at offset 3, before offset 5") as caught:
        planner(FakeLog({A0: (0, 3)})).latest(start, None, may_wait=True)
    assert caught.value.condition == "PYLOG_LOG_TRUNCATED"
    forgiving = planner(FakeLog({A0: (0, 3)}), failOnDataLoss="false")
    end = forgiving.latest(start, None, may_wait=True)
    assert spans(forgiving, start, end) == []
    assert forgiving.latest(end, None, may_wait=True) is end


def test_a_partition_that_is_gone_is_data_loss_once() -> None:
    start = planner(FakeLog({A0: (0, 5), A1: (0, 5)}), startingOffsets="latest").initial()
    with pytest.raises(PylogError, match="a-1 was read up to offset 5 and is not there any more") as caught:
        planner(FakeLog({A0: (0, 5)})).latest(start, None, may_wait=True)
    assert caught.value.condition == "PYLOG_PARTITION_GONE"
    forgiving = planner(FakeLog({A0: (0, 5)}), failOnDataLoss="false")
    end = forgiving.latest(start, None, may_wait=True)
    assert forgiving.latest(end, None, may_wait=True) is end


def test_when_nothing_is_left_the_position_is_kept_so_that_nothing_is_read_twice_when_it_is_seen_again() -> None:
    log = FakeLog({A0: (0, 5)})
    stream = planner(log, subscribe="", subscribePattern="a", failOnDataLoss="false", startingOffsets="latest")
    start = stream.initial()
    log.held.clear()
    assert stream.latest(start, None, may_wait=True) is start
    log.held[A0] = (0, 6)
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(0, 5, 6)]


def test_a_topic_that_is_gone_is_named_unless_it_is_no_longer_subscribed_to() -> None:
    b0 = TopicPartition("b", 0)
    start = planner(FakeLog({A0: (0, 5), b0: (0, 5)}), subscribe="a,b", startingOffsets="latest").initial()
    for subscribed, condition in (("a,b", "PYLOG_TOPIC_DELETED"), ("a", "PYLOG_PARTITION_GONE")):
        with pytest.raises(PylogError) as caught:
            planner(FakeLog({A0: (0, 5)}), subscribe=subscribed).latest(start, None, may_wait=True)
        assert caught.value.condition == condition


def test_a_broker_that_is_behind_for_a_moment_is_asked_again_before_it_is_believed() -> None:
    start = planner(FakeLog({A0: (0, 5)}), startingOffsets="latest").initial()
    log = FakeLog({A0: (0, 3)})
    pauses: list[float] = []

    def catch_up(seconds: float) -> None:
        pauses.append(seconds)
        log.held[A0] = (0, 5)

    stream = planner(log, on_sleep=catch_up, **{"fetchOffset.retryIntervalMs": "20"})
    assert stream.latest(start, None, may_wait=True) is start
    assert pauses == [0.02]
    with pytest.raises(PylogError, match="ends at offset 3"):
        planner(FakeLog({A0: (0, 3)}), on_sleep=pauses.append).latest(start, None, may_wait=True)
    assert pauses == [0.02, 1.0, 1.0]


def test_a_reader_of_committed_data_behind_a_position_of_all_data_has_lost_nothing() -> None:
    start = planner(FakeLog({A0: (0, 9)}), startingOffsets="latest").initial()
    log = FakeLog({A0: (0, 5)})
    log.uncommitted = {A0: 12}
    stream = planner(log)
    assert stream.latest(start, None, may_wait=True) is start
    log.held[A0] = (0, 12)
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(0, 9, 12)]


def test_a_replayed_batch_of_a_log_that_was_cut_is_loss_and_reads_what_is_left_when_allowed() -> None:
    log = FakeLog({A0: (0, 5)})
    start = planner(log).initial()
    end = planner(log).latest(start, None, may_wait=True)
    log.held[A0] = (0, 3)
    with pytest.raises(PylogError, match="a-0 ends at offset 3, before offset 5"):
        planner(log).ranges(start, end)
    assert spans(planner(log, failOnDataLoss="false"), start, end) == [(0, 0, 3)]


def test_a_checkpoint_of_sparks_kafka_connector_is_gone_on_with() -> None:
    stream = planner(FakeLog({A0: (0, 9)}))
    start = {"a": {"0": 5}}
    assert spans(stream, start, stream.latest(start, None, may_wait=True)) == [(0, 5, 9)]
    assert stream.latest({"a": {"0": 9}}, None, may_wait=True) == {"a": {"0": 9}}


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


def test_progress_reports_the_high_watermark_when_an_open_transaction_holds_the_query_back() -> None:
    log = FakeLog({A0: (0, 5), A1: (0, 7)})
    log.uncommitted = {A0: 12}
    stream = planner(log)
    end = stream.latest(stream.initial(), None, may_wait=True)
    assert end["a"] == {"0": 5, "1": 7}
    assert (stream.reported_latest() or {})["a"] == {"0": 12, "1": 7}
    dirty = planner(log, isolationLevel="read_uncommitted")
    dirty.latest(dirty.initial(), None, may_wait=True)
    assert (dirty.reported_latest() or {})["a"] == {"0": 5, "1": 7}, "its end is the high watermark already"
