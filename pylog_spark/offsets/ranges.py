"""The ranges of offsets that Spark's tasks read, and their splitting (Spark's KafkaOffsetRangeCalculator)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.ratelimit import pieces


class OffsetRange(NamedTuple):
    """Offsets ``[start, end)`` of one partition."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets, which is at least the number of records."""
        return max(0, self.end - self.start)


def plan(
    ranges: Iterable[OffsetRange], min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Leave out empty ranges, and split large ones when asked to.

    Parameters
    ----------
    ranges : iterable of OffsetRange
        One for each log partition.
    min_partitions : int, optional
        Wanted number of ranges: when there are fewer, the larger ones are split in proportion to their size.
    max_records : int, optional
        Most offsets in one range; applied before `min_partitions`.

    Returns
    -------
    list of OffsetRange
        Sorted; together they cover every offset of the given ranges exactly once.
    """
    found = sorted(offsets for offsets in ranges if offsets.size > 0)
    if max_records is not None:
        found = [part for offsets in found for part in _split(offsets, -(-offsets.size // max_records))]
    if min_partitions is None or len(found) >= min_partitions:
        return found
    total = sum(offsets.size for offsets in found)
    # Ranges too small for a piece of their own do not take part: the large ones share the pieces that remain.
    small = [offsets for offsets in found if pieces(offsets.size, total, min_partitions) == 1]
    large = [offsets for offsets in found if pieces(offsets.size, total, min_partitions) > 1]
    total_large = sum(offsets.size for offsets in large)
    wanted = min_partitions - len(small)
    split = [part for offsets in large for part in _split(offsets, pieces(offsets.size, total_large, wanted))]
    return sorted(small + split)


def _split(offsets: OffsetRange, count: int) -> list[OffsetRange]:
    """Cut into `count` ranges whose sizes differ by at most one; fewer when there are fewer offsets."""
    count = min(count, offsets.size)
    bounds = [offsets.start + offsets.size * index // count for index in range(count + 1)]
    return [OffsetRange(offsets.partition, low, high) for low, high in pairwise(bounds)]
