"""The ranges of offsets that Spark's tasks read, and how they are split: at the same offsets as by Spark's KafkaOffsetRangeCalculator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pylog_spark.offsets import TopicPartition


class OffsetRange(NamedTuple):
    """Offsets ``[start, end)`` of one partition."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets, which is at least the number of records."""
        return max(0, self.end - self.start)


def in_words(ranges: Iterable[OffsetRange], most: int = 5) -> str:
    """Describe ranges in a log line: for each topic the number of its offsets, and its first `most` ranges."""
    topics: dict[str, list[OffsetRange]] = {}
    for offsets in sorted(ranges):
        topics.setdefault(offsets.partition.topic, []).append(offsets)
    return "; ".join(_topic_in_words(topic, found, most) for topic, found in topics.items()) or "nothing"


def _topic_in_words(topic: str, ranges: list[OffsetRange], most: int) -> str:
    named = ", ".join(f"{part.partition.partition}: [{part.start}, {part.end})" for part in ranges[:most])
    more = f" and {len(ranges) - most} more" if len(ranges) > most else ""
    return f"{topic}, {sum(offset_range.size for offset_range in ranges)} offsets in {named}{more}"


def parted(
    ranges: Iterable[OffsetRange], end_of: Callable[[OffsetRange], int]
) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Part each range at an offset: give what lies before `end_of` it, and the rest; neither has empty ranges."""
    before, behind = [], []
    for part in ranges:
        end = end_of(part)
        if end > part.start:
            before.append(part._replace(end=end))
        if end < part.end:
            behind.append(part._replace(start=max(part.start, end)))
    return before, behind


def plan(
    ranges: Iterable[OffsetRange], min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Leave out empty ranges, and split large ones when asked to.

    Parameters
    ----------
    ranges : iterable of OffsetRange
        One for each log partition.
    min_partitions : int, optional
        Wanted number of ranges: when there are fewer, the larger ones are split in proportion to their size. Rounding may
        make one more or one less.
    max_records : int, optional
        Most offsets in one range; applied before `min_partitions`.

    Returns
    -------
    list of OffsetRange
        Sorted; together they cover every offset of the given ranges exactly once.
    """
    found = sorted(offsets for offsets in ranges if offsets.size > 0)
    if max_records is not None:
        found = [part for offsets in found for part in _split(offsets, math.ceil(offsets.size / max_records))]
    if min_partitions is None or len(found) >= min_partitions:
        return found
    total = sum(offsets.size for offsets in found)
    # Ranges too small to be split are left out: the large ones share the number that remains. They are left out by partition,
    # so that a partition that was split by `max_records` and has one small part is not split further.
    small = [offsets for offsets in found if _pieces(offsets.size, total, min_partitions) == 1]
    whole = {offsets.partition for offsets in small}
    total_large = total - sum(offsets.size for offsets in small)
    wanted = max(min_partitions - len(small), 1)
    return [
        part
        for offsets in found
        for part in _split(offsets, 1 if offsets.partition in whole else _pieces(offsets.size, total_large, wanted))
    ]


def by_bytes(part: OffsetRange, segments: Sequence[tuple[int, int]], most: int) -> list[OffsetRange]:
    """Cut a range of a stored log into pieces of about `most` bytes, at the borders of its files where these are near.

    Parameters
    ----------
    part : OffsetRange
        What is to be read.
    segments : sequence of (int, int)
        Of each file of the log the first offset and its bytes, in order. Within a file records count as equally large.
    most : int
        Bytes that a piece has at most, estimated.

    Returns
    -------
    list of OffsetRange
        In order; together they cover every offset of `part` exactly once.
    """
    inner = [(first, size) for first, size in segments if first < part.end]
    if not inner:
        return [part]
    borders = [max(part.start, first) for first, _ in inner[1:]] + [part.end]
    cut: list[OffsetRange] = []
    held, begin = 0.0, part.start
    for (first, size), end in zip(inner, borders, strict=True):
        piece = OffsetRange(part.partition, begin, end)
        begin = end
        wanted = size * piece.size / max(1, end - min(first, piece.start))
        count = math.ceil(wanted / most)
        for each in _split(piece, max(1, count)):
            share = wanted * each.size / piece.size
            if cut and held + share <= most:
                cut[-1] = cut[-1]._replace(end=each.end)
                held += share
            else:
                cut.append(each)
                held = share
    return cut


def _split(offsets: OffsetRange, count: int) -> list[OffsetRange]:
    """Cut into `count` ranges whose sizes differ by at most one, the later ones being the larger; none is empty."""
    parts: list[OffsetRange] = []
    start = offsets.start
    for index in range(count):
        end = start + (offsets.end - start) // (count - index)
        if end > start:
            parts.append(OffsetRange(offsets.partition, start, end))
        start = end
    return parts


def _pieces(size: int, total: int, wanted: int) -> int:
    """The number of pieces for a range of `size` offsets out of `total` when `wanted` pieces are wanted in all; half up."""
    return max(1, math.floor(size / total * wanted + 0.5))
