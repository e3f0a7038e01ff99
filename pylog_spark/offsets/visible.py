"""How much of the new records one micro-batch takes, counted in what a reader sees: rows, and stored bytes.

Gaps of compaction, aborted transactions and markers are no rows, so offsets do not say how many rows there are. A function that
reads the batches' headers is called (`advance`), in rounds: what is left of the limits is shared over the partitions in
proportion to their new offsets; what a partition could not use is shared again. The number of rows is met exactly while there
are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pylog_spark.offsets import Offsets, TopicPartition


class Wish(NamedTuple):
    """Go from `start` towards `end`, past at most `records` rows and `size` stored bytes.

    Attributes
    ----------
    partition, start, end
        The range.
    records, size : int or None
        The limits; None is no limit.
    at_least_one : bool
        Whether a stored batch is taken even when it alone is larger than `size`.
    """

    partition: TopicPartition
    start: int
    end: int
    records: int | None
    size: int | None
    at_least_one: bool = False


class Taken(NamedTuple):
    """How far a wish came: the offset reached, and the rows and stored bytes up to it."""

    offset: int
    records: int
    size: int


Advance = Callable[[Sequence[Wish]], Sequence[Taken]]


def cut_visible(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    records: int | None,
    size: int | None,
    advance: Advance,
) -> Offsets:
    """Cut the ends so that at most `records` rows and `size` stored bytes are taken.

    Stored batches are taken whole where `size` binds; when no batch fits into `size`, one is taken all the same.

    Parameters
    ----------
    start, end : mapping
        The new offsets of each partition.
    records, size : int or None
        The limits.
    advance : callable
        Reads the headers of batches and says how far each wish came.
    """
    cut = _Cut(start, end, records, size, advance)
    if size is None and records is not None and cut.new_offsets <= records:
        return dict(end)
    while cut.wants_more:
        if cut.round(cut.shares()):
            continue
        # No share holds a whole stored batch: let one partition after the other have all that is left.
        if any(cut.round([cut.wish(each, cut.records, cut.size)]) for each in cut.open):
            continue
        if not cut.moved:
            cut.round([cut.wish(cut.open[0], cut.records, cut.size)._replace(at_least_one=True)])
        break
    return {**end, **cut.reached}


class _Cut:
    """How far the partitions with new offsets have come, and what is left of the limits."""

    def __init__(
        self,
        start: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        records: int | None,
        size: int | None,
        advance: Advance,
    ) -> None:
        self.reached = {each: start[each] for each in sorted(end) if start[each] < end[each]}
        self.records, self.size = records, size
        self.moved = False
        self._end = end
        self._advance = advance
        #: Which partition comes first. It changes with the position, so that each gets rows when there are fewer rows than partitions.
        self._turn = sum(self.reached.values()) % max(1, len(self.reached))

    @property
    def new_offsets(self) -> int:
        return sum(self._end[each] - offset for each, offset in self.reached.items())

    @property
    def open(self) -> list[TopicPartition]:
        """Partitions that have more, in the order in which they are served."""
        partitions = list(self.reached)
        turned = partitions[self._turn :] + partitions[: self._turn]
        return [each for each in turned if self.reached[each] < self._end[each]]

    @property
    def wants_more(self) -> bool:
        return bool(self.open) and (self.records is None or self.records > 0) and (self.size is None or self.size > 0)

    def wish(self, partition: TopicPartition, records: int | None, size: int | None) -> Wish:
        return Wish(partition, self.reached[partition], self._end[partition], records, size)

    def shares(self) -> list[Wish]:
        """One wish for each partition that has a share."""
        partitions = self.open
        weights = [self._end[each] - self.reached[each] for each in partitions]
        records = [None] * len(partitions) if self.records is None else shares(self.records, weights)
        sizes = [None] * len(partitions) if self.size is None else shares(self.size, weights)
        wishes = zip(partitions, records, sizes, strict=True)
        return [self.wish(each, rows, size) for each, rows, size in wishes if rows != 0 and size != 0]

    def round(self, wishes: list[Wish]) -> bool:
        """Carry out `wishes`; give whether any partition moved on."""
        progress = False
        for wish, taken in zip(wishes, self._advance(wishes), strict=True):
            progress = progress or taken.offset > wish.start
            self.reached[wish.partition] = taken.offset
            if self.records is not None:
                self.records = max(0, self.records - taken.records)
            if self.size is not None:
                self.size = max(0, self.size - taken.size)
        self.moved = self.moved or progress
        return progress


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Divide `total` in proportion to `weights` (each at least 1); the sum is `total`.

    Each gets at least 1; when there is not enough for that, only the first ones do.
    """
    count = len(weights)
    if total <= count:
        return [1] * total + [0] * (count - total)
    rest, whole = total - count, sum(weights)
    given = [1 + rest * weight // whole for weight in weights]
    for index in range(total - sum(given)):
        given[index] += 1
    return given
