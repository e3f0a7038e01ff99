"""From the offsets of a read to its tasks, over an index of times that a test sets by hand."""

from collections.abc import Iterable
from typing import Any

from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.options import BATCH, STREAM, read_options
from pylog_spark.options.read import STREAM_MIN_RECORDS
from pylog_spark.source.tasks import TaskPlanner

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": "id-a", "b": "id-b"}


class FakeLog:
    """Stands for `pylog_spark.source.log.Log`: `first` says where the first record young enough is; asked for `asked`."""

    def __init__(self, first: Offsets) -> None:
        self.first = first
        self.asked: list[list[TopicPartition]] = []

    def first_at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        self.asked.append(sorted(partitions))
        return {partition: self.first[partition] for partition in self.asked[-1]}


class Read:
    """A read with options and an index of times."""

    def __init__(self, first: Offsets | None = None, scope: str = BATCH, **given: Any) -> None:
        texts = {name: str(text) for name, text in given.items()}
        self._options = read_options({"bootstrap.servers": "b:1", "subscribe": "a", **texts}, scope)
        self.log = FakeLog(first or {})
        self._planner = TaskPlanner(self._options, self.log)  # type: ignore[arg-type]

    def tasks(self, *ranges: OffsetRange, ids: dict[str, str] = IDS) -> list[list[tuple[TopicPartition, int, int]]]:
        planned = self._planner.tasks(ranges, ids, self._options.wanted)
        assert all(topic_id == ids.get(part.partition.topic, "") for task in planned for part, topic_id in task.pieces)
        return [[tuple(part) for part, _ in task.pieces] for task in planned]  # type: ignore[misc]


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
