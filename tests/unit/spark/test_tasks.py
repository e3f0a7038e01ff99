"""From the offsets of a read to its tasks, over an index of times that a test sets by hand."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.offsets.visible import Taken, Wish
from pylog_spark.options import BATCH, STREAM, read_options
from pylog_spark.options.read import STREAM_MIN_BYTES, STREAM_MIN_RECORDS
from pylog_spark.source.sizes import BELIEVED_S, LOOKS_MAX
from pylog_spark.source.tasks import TaskPlanner

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": "id-a", "b": "id-b"}


class FakeLog:
    """Stands for `pylog_spark.source.log.Log`: `first` says where the first record young enough is; asked for `asked`.
    `record_bytes` says how large the records of a topic are; looked at were the partitions `looked`."""

    def __init__(self, first: Offsets) -> None:
        self.first = first
        self.asked: list[list[TopicPartition]] = []
        self.record_bytes: dict[str, int] = {}
        self.looked: list[TopicPartition] = []

    def advance(self, wishes: Sequence[Wish]) -> list[Taken]:
        self.looked += [wish.partition for wish in wishes]
        if any(wish.partition.topic not in self.record_bytes for wish in wishes):
            raise PylogError("PYLOG_DATA_LOSS", "It is gone.")
        return [Taken(wish.start + 1, 1, self.record_bytes[wish.partition.topic]) for wish in wishes]

    def parted(self, ranges: list[OffsetRange], *, all_of_it: bool) -> tuple[list[OffsetRange], list[OffsetRange]]:
        del all_of_it  # Nothing is archived.
        return [], ranges

    def first_at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        self.asked.append(sorted(partitions))
        return {partition: self.first[partition] for partition in self.asked[-1]}


class Read:
    """A read with options and an index of times."""

    def __init__(self, first: Offsets | None = None, scope: str = BATCH, **given: Any) -> None:
        texts = {name: str(text) for name, text in given.items()}
        self._options = read_options({"bootstrap.servers": "b:1", "subscribe": "a", **texts}, scope)
        self.log = FakeLog(first or {})
        self.now_s = 0.0
        self._planner = TaskPlanner(self._options, self.log, monotonic_s=lambda: self.now_s)  # type: ignore[arg-type]

    def tasks(self, *ranges: OffsetRange, ids: dict[str, str] = IDS) -> list[list[tuple[TopicPartition, int, int]]]:
        planned = self._planner.tasks(self._planner.parts(ranges, ids, self._options.wanted), ids)
        assert all(topic_id == ids.get(part.partition.topic, "") for task in planned for part, topic_id in task.ranges)
        return [[tuple(part) for part, _ in task.ranges] for task in planned]  # type: ignore[misc]


def test_without_options_each_partition_with_something_to_read_is_a_task_and_nothing_is_asked() -> None:
    read = Read()
    assert read.tasks(OffsetRange(A1, 5, 9), OffsetRange(A0, 0, 3), OffsetRange(B0, 2, 2)) == [
        [(A0, 0, 3)],
        [(A1, 5, 9)],
    ]
    assert read.log.asked == []


def test_reading_begins_at_the_first_record_that_is_young_enough() -> None:
    read = Read({A0: 4, A1: -1, B0: 0}, filterTimestamp="1000..")
    assert read.tasks(OffsetRange(A0, 0, 9), OffsetRange(A1, 0, 9), OffsetRange(B0, 0, 9)) == [
        [(A0, 4, 9)],
        [(B0, 0, 9)],
    ]


def test_a_first_record_behind_the_range_leaves_nothing_of_it() -> None:
    assert Read({A0: 9}, filterTimestamp="1000..").tasks(OffsetRange(A0, 0, 9)) == []


def test_a_partition_that_is_past_the_first_time_is_not_asked_for_again() -> None:
    read = Read({A0: 4, A1: 0}, filterTimestamp="1000..")
    read.tasks(OffsetRange(A0, 0, 3), OffsetRange(A1, 0, 3))
    read.tasks(OffsetRange(A0, 3, 6), OffsetRange(A1, 3, 6))
    read.tasks(OffsetRange(A0, 6, 9), OffsetRange(A1, 6, 9))
    assert read.tasks(OffsetRange(A0, 9, 12), OffsetRange(A1, 9, 12)) == [[(A0, 9, 12)], [(A1, 9, 12)]]
    assert read.log.asked == [[A0, A1], [A0], [A0]]


def test_a_topic_made_again_is_asked_for_again_and_one_without_id_always() -> None:
    read = Read({A0: 0}, filterTimestamp="1000..")
    for ids in ({"a": "one"}, {"a": "one"}, {"a": "two"}, {}, {}):
        read.tasks(OffsetRange(A0, 0, 3), ids=ids)
    assert len(read.log.asked) == 4


def test_no_time_that_an_index_could_help_with_is_asked_for() -> None:
    for text in ("..1000", "0.."):
        read = Read(filterTimestamp=text)
        assert read.tasks(OffsetRange(A0, 0, 3)) == [[(A0, 0, 3)]]
        assert read.log.asked == []


def test_a_limit_is_one_task_over_everything_in_order() -> None:
    read = Read(limit=5, minPartitions=7, maxRecordsPerPartition=1)
    assert read.tasks(OffsetRange(B0, 0, 2), OffsetRange(A0, 3, 9)) == [[(A0, 3, 9), (B0, 0, 2)]]
    assert Read(limit=5).tasks(OffsetRange(A0, 3, 3)) == []


def test_pieces_of_a_partition_stay_together_and_are_still_split_on_request() -> None:
    whole = (OffsetRange(A0, 0, 100), OffsetRange(A1, 0, 100))
    assert Read(filterOffset="0,50..60").tasks(*whole) == [
        [(A0, 0, 1), (A0, 50, 60)],
        [(A1, 0, 1), (A1, 50, 60)],
    ]
    split = Read(filterOffset="0,50..60", maxRecordsPerPartition=5).tasks(*whole)
    assert split[:3] == [[(A0, 0, 1)], [(A0, 50, 55)], [(A0, 55, 60)]]
    assert len(split) == 6


def test_small_ranges_of_all_topics_share_a_task_on_request() -> None:
    ranges = (OffsetRange(A0, 0, 2), OffsetRange(A1, 0, 50), OffsetRange(B0, 0, 2))
    assert Read(minRecordsPerPartition=10).tasks(*ranges) == [[(A0, 0, 2), (A1, 0, 50), (B0, 0, 2)]]
    assert Read(minRecordsPerPartition=2).tasks(*ranges) == [[(A0, 0, 2)], [(A1, 0, 50)], [(B0, 0, 2)]]


def spread(count: int, size: int) -> list[OffsetRange]:
    """As many partitions, each with as many offsets to read."""
    return [OffsetRange(TopicPartition("a", number), 0, size) for number in range(count)]


def sizes(read: Read, *ranges: OffsetRange) -> list[int]:
    """How many log partitions each task has."""
    return [len(task) for task in read.tasks(*ranges)]


def test_small_ranges_of_a_stream_share_a_task_and_those_of_a_batch_do_not() -> None:
    ranges = spread(200, 1)
    assert sizes(Read(scope=STREAM), *ranges) == [200]
    assert sizes(Read(), *ranges) == [1] * 200


def test_a_partition_of_a_stream_is_a_task_as_soon_as_there_is_work_for_it() -> None:
    assert sizes(Read(scope=STREAM), *spread(4, STREAM_MIN_RECORDS)) == [1, 1, 1, 1]
    assert sizes(Read(scope=STREAM), *spread(4, STREAM_MIN_RECORDS - 1)) == [2, 2]
    assert sizes(Read(scope=STREAM), *spread(100, STREAM_MIN_RECORDS // 10)) == [10] * 10


def test_what_an_option_says_of_tasks_wins_over_the_streams_own_bound() -> None:
    assert sizes(Read(scope=STREAM, minRecordsPerPartition=1), *spread(9, 1)) == [1] * 9
    assert len(sizes(Read(scope=STREAM, minPartitions=3), *spread(9, 1))) == 3
    assert sizes(Read(scope=STREAM, maxRecordsPerPartition=4), *spread(8, 2)) == [2, 2, 2, 2]


def streamed(record_bytes: dict[str, int] | None = None, **given: Any) -> Read:
    """A stream of records of these sizes, by topic."""
    read = Read(scope=STREAM, **given)
    read.log.record_bytes = record_bytes or {}
    return read


def test_few_large_records_of_a_stream_are_work_for_a_task() -> None:
    assert sizes(streamed({"a": STREAM_MIN_BYTES}), *spread(9, 1)) == [1] * 9
    assert sizes(streamed({"a": STREAM_MIN_BYTES // 2}), *spread(8, 1)) == [2] * 4
    assert sizes(streamed({"a": STREAM_MIN_BYTES // 900 + 1}), *spread(3, 900)) == [1, 1, 1]
    assert sizes(streamed({"a": 1}), *spread(200, 1)) == [200]
    assert sizes(streamed(), *spread(200, 1)) == [200], "where it cannot be known offsets alone count"


def test_each_topic_has_a_record_size_of_its_own() -> None:
    read = streamed({"a": 1, "b": STREAM_MIN_BYTES})
    ranges = [OffsetRange(TopicPartition(topic, number), 0, 5) for topic in "ab" for number in range(3)]
    assert sizes(read, *ranges) == [4, 1, 1]


def test_the_bound_in_bytes_is_an_option_and_does_not_change_a_bound_in_records() -> None:
    assert sizes(streamed({"a": 100}, minBytesPerPartition=200), *spread(8, 1)) == [2] * 4
    asked = streamed({"a": STREAM_MIN_BYTES}, minRecordsPerPartition=4)
    assert sizes(asked, *spread(8, 1)) == [4, 4]
    assert asked.log.looked == []
    both = Read(minRecordsPerPartition=1_000, minBytesPerPartition=200)
    both.log.record_bytes = {"a": 100}
    assert sizes(both, *spread(8, 1)) == [2] * 4
    with pytest.raises(PylogError, match="minBytesPerPartition needs minRecordsPerPartition"):
        Read(minBytesPerPartition=200)


def test_records_are_looked_at_once_in_a_while_and_only_where_ranges_may_share() -> None:
    read = streamed({"a": 10})
    sizes(read, *spread(1, 1))
    sizes(read, *spread(3, STREAM_MIN_RECORDS))
    assert read.log.looked == []
    ranges = [OffsetRange(A0, 0, 2), OffsetRange(A1, 0, 5)]
    sizes(read, *ranges)
    sizes(read, *ranges)
    assert read.log.looked == [A1]
    read.now_s = BELIEVED_S + 1
    sizes(read, *ranges)
    assert read.log.looked == [A1, A1]


def test_of_many_topics_a_few_are_looked_at_for_each_micro_batch() -> None:
    topics = [f"t{number:02}" for number in range(2 * LOOKS_MAX)]
    read = streamed(dict.fromkeys(topics, 10))
    ranges = [OffsetRange(TopicPartition(topic, 0), 0, number + 1) for number, topic in enumerate(topics)]
    ids = dict.fromkeys(topics, "id")
    read.tasks(*ranges, ids=ids)
    assert {partition.topic for partition in read.log.looked} == set(topics[LOOKS_MAX:])
    read.tasks(*ranges, ids=ids)
    assert sorted(partition.topic for partition in read.log.looked) == topics
