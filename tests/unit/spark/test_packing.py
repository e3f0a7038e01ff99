"""Ranges that share a Spark task."""

from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.packing import Group, pack
from pylog_spark.offsets.ranges import OffsetRange, plan


def part(number: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", number), start, end)


def sizes(groups: list[Group]) -> list[list[int]]:
    return [[offsets.size for offsets in group] for group in groups]


def test_small_neighbours_share_a_task_until_it_is_worth_one() -> None:
    small = [part(number, 0, 3) for number in range(8)]
    assert sizes(pack(small, min_records=1_000)) == [[3] * 8]
    assert sizes(pack(small, min_records=9)) == [[3, 3, 3], [3, 3, 3, 3, 3]]
    assert sizes(pack(small, min_records=1)) == [[3]] * 8


def test_a_large_range_is_not_put_behind_others_of_its_size() -> None:
    assert sizes(pack([part(0, 0, 500), part(1, 0, 500), part(2, 0, 4)], min_records=100)) == [[500], [500, 4]]


def test_a_shared_task_does_not_grow_beyond_the_most() -> None:
    ranges = [part(number, 0, 4) for number in range(5)]
    assert sizes(pack(ranges, min_records=10, max_records=10)) == [[4, 4], [4, 4], [4]]


def test_as_many_tasks_as_wanted_are_kept() -> None:
    ranges = [part(number, 0, 4) for number in range(8)]
    assert sizes(pack(ranges, min_records=1_000, min_partitions=3)) == [[4] * 2, [4] * 2, [4] * 4]
    assert sizes(pack(ranges[:2], min_records=1_000, min_partitions=5)) == [[4], [4]]


def test_without_a_fewest_only_pieces_of_one_log_partition_share_a_task() -> None:
    pieces = [part(0, 0, 2), part(0, 5, 9), part(1, 0, 1)]
    assert pack(pieces) == [(part(0, 0, 2), part(0, 5, 9)), (part(1, 0, 1),)]
    assert sizes(pack(pieces, max_records=4)) == [[2], [4], [1]]


def test_ranges_of_a_task_that_touch_are_one() -> None:
    assert pack([part(0, 0, 2), part(0, 2, 9)], min_records=50) == [(part(0, 0, 9),)]


RANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), max_size=10)
COUNT = st.none() | st.integers(1, 60)


@given(RANGES, COUNT, COUNT, COUNT)
def test_every_offset_is_in_one_task_once_and_in_order(
    given_ranges: list[tuple[int, int]], fewest: int | None, most: int | None, wanted: int | None
) -> None:
    whole = [part(number, start, start + size) for number, (start, size) in enumerate(given_ranges)]
    planned = plan(whole, wanted, most)
    groups = pack(planned, fewest, most, wanted)
    read = [(offsets.partition, offset) for group in groups for offsets in group for offset in range(*offsets[1:])]
    assert read == [(offsets.partition, offset) for offsets in whole for offset in range(*offsets[1:])]
    assert all(groups)
    assert len(groups) >= min(wanted or 1, len(planned)) or not planned
    if most is not None:
        assert all(sum(offsets.size for offsets in group) <= most for group in groups)
    if fewest is not None and most is None and wanted is None:
        assert len(groups) <= 1 or min(sum(offsets.size for offsets in group) for group in groups) >= fewest
