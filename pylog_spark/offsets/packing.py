"""Which ranges of offsets one Spark task reads.

A task takes about 30 ms before it reads its first record, so ranges that are read in less time may share one. A task reads its
ranges one after the other; those of one log partition in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from pylog_spark.offsets.ranges import OffsetRange

#: The ranges of one Spark task.
Group = tuple[OffsetRange, ...]


def pack(
    ranges: Iterable[OffsetRange],
    min_records: int | None = None,
    max_records: int | None = None,
    min_partitions: int | None = None,
    work: Callable[[OffsetRange], float] | None = None,
) -> list[Group]:
    """Put neighbours together until a group has `min_records` offsets.

    Parameters
    ----------
    ranges : iterable of OffsetRange
        Sorted, none empty.
    min_records : int, optional
        Fewest offsets that are worth a task. Without it only ranges of the same log partition are put together: the parts
        that a filter has left of it.
    max_records : int, optional
        Most offsets of a group of several ranges.
    min_partitions : int, optional
        Wanted number of groups; met as far as there are ranges enough.
    work : callable, optional
        How many offsets a range counts as when groups are compared with `min_records`; without it, as many as it has.

    Returns
    -------
    list of tuple of OffsetRange
        Every offset once, in the order given; ranges of a group that touch are one.
    """
    groups: list[list[OffsetRange]] = []
    size, worth = 0, 0.0  # of the last group
    work = work or _offsets
    for offsets in ranges:
        fits = max_records is None or size + offsets.size <= max_records
        if groups and fits and _joins(groups[-1][-1], offsets, worth, min_records):
            groups[-1].append(offsets)
            size, worth = size + offsets.size, worth + work(offsets)
        else:
            groups.append([offsets])
            size, worth = offsets.size, work(offsets)
    if min_records is not None and len(groups) > 1 and worth < min_records:
        rest = groups[-1]
        if max_records is None or _size(groups[-2]) + _size(rest) <= max_records:
            groups[-2:] = [groups[-2] + rest]
    return [tuple(_joined(group)) for group in _at_least(groups, min_partitions or 1)]


def _offsets(offsets: OffsetRange) -> float:
    return offsets.size


def _joins(last: OffsetRange, offsets: OffsetRange, worth: float, min_records: int | None) -> bool:
    return last.partition == offsets.partition if min_records is None else worth < min_records


def _at_least(groups: list[list[OffsetRange]], wanted: int) -> list[list[OffsetRange]]:
    """Cut the largest groups in two until there are `wanted`, or no group has two ranges."""
    while len(groups) < wanted:
        several = [index for index, group in enumerate(groups) if len(group) > 1]
        if not several:
            return groups
        at = max(several, key=lambda index: _size(groups[index]))
        groups[at : at + 1] = _halves(groups[at])
    return groups


def _halves(group: list[OffsetRange]) -> list[list[OffsetRange]]:
    """Cut between two ranges, where the larger part becomes as small as possible; neither part is empty."""
    before = list(accumulate(offsets.size for offsets in group))
    at = min(range(1, len(group)), key=lambda index: max(before[index - 1], before[-1] - before[index - 1]))
    return [group[:at], group[at:]]


def _joined(group: Iterable[OffsetRange]) -> list[OffsetRange]:
    joined: list[OffsetRange] = []
    for offsets in group:
        if joined and joined[-1].partition == offsets.partition and joined[-1].end == offsets.start:
            joined[-1] = joined[-1]._replace(end=offsets.end)
        else:
            joined.append(offsets)
    return joined


def _size(group: Sequence[OffsetRange]) -> int:
    return sum(offsets.size for offsets in group)
