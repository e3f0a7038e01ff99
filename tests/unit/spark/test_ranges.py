"""Splitting and rate limits: the promises of Spark's KafkaOffsetRangeCalculator and KafkaMicroBatchStream."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.ranges import OffsetRange, by_bytes, in_words, plan
from pylog_spark.offsets.ratelimit import rate_limit, waits_for_more

A, B, C = (TopicPartition("t", number) for number in range(3))


def sizes(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(offsets.start, offsets.end) for offsets in ranges]


def test_without_wishes_there_is_one_range_for_each_partition_and_empty_ones_are_left_out() -> None:
    ranges = [OffsetRange(B, 5, 5), OffsetRange(A, 1, 4), OffsetRange(C, 9, 3)]
    assert plan(ranges) == [OffsetRange(A, 1, 4)]


def test_as_many_ranges_as_wanted_are_left_alone() -> None:
    ranges = [OffsetRange(A, 0, 100), OffsetRange(B, 0, 2)]
    assert plan(ranges, min_partitions=2) == ranges


def test_one_range_is_split_evenly() -> None:
    assert sizes(plan([OffsetRange(A, 0, 10)], min_partitions=4)) == [(0, 2), (2, 4), (4, 7), (7, 10)]


def test_only_large_ranges_are_split() -> None:
    ranges = plan([OffsetRange(A, 0, 100), OffsetRange(B, 0, 5)], min_partitions=5)
    assert len([offsets for offsets in ranges if offsets.partition == B]) == 1
    assert len([offsets for offsets in ranges if offsets.partition == A]) == 4


def test_a_range_is_never_cut_into_more_pieces_than_it_has_offsets() -> None:
    assert sizes(plan([OffsetRange(A, 7, 9)], min_partitions=10)) == [(7, 8), (8, 9)]


def test_the_longest_pieces_come_last_and_a_partition_with_a_small_piece_stays_as_it_is() -> None:
    assert sizes(plan([OffsetRange(A, 0, 11)], max_records=4)) == [(0, 3), (3, 7), (7, 11)]
    ranges = [OffsetRange(A, 0, 5), OffsetRange(B, 0, 50)]
    both = plan(ranges, min_partitions=9, max_records=30)
    # B became two pieces of 25, each worth four of nine; A is too small for a second piece.
    assert [(offsets.partition, offsets.start, offsets.end) for offsets in both] == [
        (A, 0, 5),
        *((B, low, low + size) for low, size in ((0, 6), (6, 6), (12, 6), (18, 7), (25, 6), (31, 6), (37, 6), (43, 7))),
    ]


def test_no_range_holds_more_offsets_than_allowed() -> None:
    ranges = plan([OffsetRange(A, 0, 10), OffsetRange(B, 0, 3)], max_records=4)
    assert max(offsets.size for offsets in ranges) <= 4
    assert len(ranges) == 4


BIG = st.integers(0, 2**60)


@given(
    st.lists(st.tuples(BIG, st.integers(0, 2**40)), max_size=8),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(2**35, 2**40),
)
def test_spark_28489_no_offset_is_dropped_or_read_twice(
    given_ranges: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [
        OffsetRange(TopicPartition("t", number), start, start + size)
        for number, (start, size) in enumerate(given_ranges)
    ]
    planned = plan(ranges, min_partitions, max_records)
    for whole in ranges:
        parts = [offsets for offsets in planned if offsets.partition == whole.partition]
        assert sum(part.size for part in parts) == whole.size
        if parts:
            assert parts[0].start == whole.start
            assert parts[-1].end == whole.end
            assert all(low.end == high.start for low, high in pairwise(parts))


def test_everything_is_taken_when_it_fits() -> None:
    assert rate_limit(10, {A: 0, B: 5}, {A: 4, B: 11}) == {A: 4, B: 11}


def test_the_limit_is_shared_in_proportion() -> None:
    assert rate_limit(30, {A: 0, B: 0, C: 4}, {A: 200, B: 100, C: 4}) == {A: 20, B: 10, C: 4}


def test_a_small_partition_is_never_starved() -> None:
    assert rate_limit(10, {A: 0, B: 0}, {A: 1_000_000, B: 1}) == {A: 9, B: 1}


def test_a_share_is_a_float_rounded_down_as_sparks_connector_computes_it() -> None:
    # 43 * (23 / 43.0) is 22.999999999999996: the connector leaves the last offset for the next batch.
    assert rate_limit(43, {A: 0, B: 0}, {A: 23, B: 20}) == {A: 22, B: 20}
    assert rate_limit(3, {A: 0, B: 0, C: 0}, {A: 1, B: 1, C: 7}) == {A: 1, B: 1, C: 2}
    assert rate_limit(100, {A: 5}, {A: 3}) == {A: 3}


def test_spark_26718_no_overflow_at_the_largest_limit() -> None:
    most = 2**63 - 1
    assert rate_limit(most, {A: most - 10}, {A: most}) == {A: most}


@given(st.integers(1, 2**40), st.lists(st.tuples(BIG, st.integers(0, 2**40)), min_size=1, max_size=10))
def test_a_limited_batch_always_moves_and_never_passes_the_end(limit: int, spans: list[tuple[int, int]]) -> None:
    start = {TopicPartition("t", number): low for number, (low, _) in enumerate(spans)}
    end = {TopicPartition("t", number): low + size for number, (low, size) in enumerate(spans)}
    limited = rate_limit(limit, start, end)
    for partition, offset in limited.items():
        assert offset <= end[partition]
        assert offset > start[partition] or end[partition] == start[partition]
    with_news = sum(end[partition] > start[partition] for partition in end)
    assert sum(limited.values()) - sum(start.values()) <= max(limit, limit + with_news)


def test_a_batch_waits_for_enough_but_not_for_ever() -> None:
    assert waits_for_more(3, min_offsets=5, waited_ms=10, max_delay_ms=100)
    assert not waits_for_more(5, min_offsets=5, waited_ms=10, max_delay_ms=100)
    assert not waits_for_more(3, min_offsets=5, waited_ms=100, max_delay_ms=100)
    assert not waits_for_more(3, min_offsets=None, waited_ms=0, max_delay_ms=100)


def test_ranges_are_those_that_the_class_of_sparks_connector_gives() -> None:
    # Each line: ranges|minPartitions|maxRecordsPerPartition|what KafkaOffsetRangeCalculator of Spark 4.2 made of them.
    lines = (Path(__file__).parent / "connector_ranges.txt").read_text().splitlines()
    assert len(lines) == 120
    for line in lines:
        given_ranges, least, most, made = line.split("|")
        planned = plan(
            _ranges(given_ranges), None if least == "null" else int(least), None if most == "null" else int(most)
        )
        assert planned == sorted(_ranges(made)), line


def _ranges(text: str) -> list[OffsetRange]:
    numbers = [[int(number) for number in words.split(",")] for words in text.split()]
    return [OffsetRange(TopicPartition("t", partition), start, end) for partition, start, end in numbers]


def test_ranges_are_said_in_one_line_by_topic_with_the_first_few_of_each() -> None:
    few = [OffsetRange(TopicPartition("b", 1), 3, 9), OffsetRange(TopicPartition("a", 0), 0, 2)]
    assert in_words(few) == "a, 2 offsets in 0: [0, 2); b, 6 offsets in 1: [3, 9)"
    many = [OffsetRange(TopicPartition("a", number), 0, 1) for number in range(12)]
    assert in_words(many, most=2) == "a, 12 offsets in 0: [0, 1), 1: [0, 1) and 10 more"
    assert in_words([]) == "nothing"


def pieces(part: tuple[int, int], segments: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """The offsets of the pieces of a stored range."""
    return [(each.start, each.end) for each in by_bytes(OffsetRange(A, *part), segments, most)]


def test_a_stored_range_is_cut_at_the_borders_of_its_files_and_within_large_ones() -> None:
    files = [(0, 100), (10, 100), (20, 100), (30, 400)]
    assert pieces((0, 40), files, 1_000) == [(0, 40)]
    assert pieces((0, 40), files, 200) == [(0, 20), (20, 30), (30, 35), (35, 40)]
    assert pieces((5, 35), files, 100) == [(5, 10), (10, 20), (20, 30), (30, 31), (31, 32), (32, 33), (33, 35)]
    assert pieces((35, 40), files, 10_000) == [(35, 40)]
    assert pieces((0, 3), [(0, 0)], 1) == [(0, 3)]
    assert pieces((7, 9), [], 1) == pieces((7, 9), [(9, 5)], 1) == [(7, 9)]


@given(
    bases=st.lists(st.integers(0, 1_000), min_size=1, max_size=8, unique=True).map(sorted),
    sizes=st.lists(st.integers(0, 10_000), min_size=8, max_size=8),
    start=st.integers(0, 1_200),
    length=st.integers(1, 1_200),
    most=st.integers(1, 5_000),
)
def test_the_pieces_of_a_stored_range_cover_it_exactly_once(
    bases: list[int], sizes: list[int], start: int, length: int, most: int
) -> None:
    found = pieces((start, start + length), list(zip(bases, sizes, strict=False)), most)
    assert found[0][0] == start
    assert found[-1][1] == start + length
    assert all(first < end for first, end in found)
    assert all(before[1] == behind[0] for before, behind in pairwise(found))
