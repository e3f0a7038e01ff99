"""From the offsets that a read covers to the Spark tasks that read them: filters, splitting, sharing, the limit.

Asks the brokers for the first record at or after the lowest wanted time (all records before it are older, even if timestamps behind it
are not in order), and how large records are where ranges may share a task (`sizes`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.filters import RecordFilter
from pylog_spark.offsets.packing import Group, pack
from pylog_spark.offsets.ranges import OffsetRange, by_bytes, in_words, plan
from pylog_spark.options.read import FILE_BYTES
from pylog_spark.source.partition import PlannedRange, RangePartition
from pylog_spark.source.sizes import RecordSizes

if TYPE_CHECKING:
    from pylog_spark.options import ReadOptions
    from pylog_spark.source.log import Log


_log = logging.getLogger("pylog_spark")


class TaskPlanner:
    """Makes the tasks of a batch or of each micro-batch.

    Parameters
    ----------
    options : ReadOptions
        The options of the query.
    log : Log
        Asks the brokers about the query's partitions.
    is_batch : bool
        Whether all that an archive has is read there, and not only what brokers do not have any more or what is much.
    monotonic_s : callable
        The clock, in seconds, by which estimates of records' sizes expire.
    """

    def __init__(
        self,
        options: ReadOptions,
        log: Log,
        *,
        is_batch: bool = False,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._is_batch = is_batch
        self._log = log
        self._sizes = RecordSizes(log, monotonic_s)
        #: Partitions, each with its topic's id, that are past the first wanted time and need not be asked for again.
        self._past: set[tuple[TopicPartition, str]] = set()

    def parts(
        self, ranges: Iterable[OffsetRange], topic_ids: Mapping[str, str], wanted: RecordFilter
    ) -> list[OffsetRange]:
        """Give what of `ranges`, which has each log partition at most once, may hold `wanted` records."""
        return self._from_first_time(wanted.cut(ranges), topic_ids, wanted.first_ms)

    def tasks(self, parts: list[OffsetRange], topic_ids: Mapping[str, str]) -> list[RangePartition]:
        """Give the tasks that read `parts`."""
        return self.tasks_of(*self.parted(parts), topic_ids)

    def tasks_of(
        self, archived: list[OffsetRange], rest: list[OffsetRange], topic_ids: Mapping[str, str]
    ) -> list[RangePartition]:
        """Give the tasks that read what was `parted`."""
        if self._options.limit is not None and archived:
            both = sorted([*archived, *rest])
            self.note("in one task", both)
            places = (both.index(each) for each in archived)
            return [RangePartition(self._named(both, topic_ids), self._log.archive, places)]
        groups = self._groups(rest)
        cold = [
            RangePartition(self._named([part], topic_ids), self._log.archive, [0])
            for part in self._by_bytes(archived, FILE_BYTES)
        ]
        if cold:
            self.note(f"from the archive in {len(cold)} tasks", archived)
        self.note(f"in {len(groups)} tasks", (part for group in groups for part in group))
        return [*cold, *(self.whole(group, topic_ids) for group in groups)]

    def parted(self, parts: list[OffsetRange]) -> tuple[list[OffsetRange], list[OffsetRange]]:
        """Part what is read in what comes from the archive of the topics and what does not."""
        return self._log.parted(parts, all_of_it=self._is_batch)

    def whole(self, parts: Iterable[OffsetRange], topic_ids: Mapping[str, str]) -> RangePartition:
        """Give one task that reads all of `parts`."""
        return RangePartition(self._named(parts, topic_ids))

    def _named(self, parts: Iterable[OffsetRange], topic_ids: Mapping[str, str]) -> list[PlannedRange]:
        return [(part, topic_ids.get(part.partition.topic, "")) for part in parts]

    def note(self, way: str, parts: Iterable[OffsetRange]) -> None:
        """Say in the log what is read in which way."""
        if _log.isEnabledFor(logging.INFO):
            _log.info("pylog reads %s from %s: %s", way, self._log.origin, in_words(parts))

    def _groups(self, found: list[OffsetRange]) -> list[Group]:
        options = self._options
        if options.limit is not None:
            return [tuple(found)] if found else []
        planned = plan(found, options.min_partitions, options.max_records)
        if options.max_bytes is not None:
            planned = self._by_bytes(planned, options.max_bytes)
        in_pieces = len({part.partition for part in found}) < len(found)
        if options.min_records is None and not in_pieces:
            return [(part,) for part in planned]
        return pack(planned, options.min_records, options.max_records, options.min_partitions, self._work(planned))

    def _by_bytes(self, parts: list[OffsetRange], most: int) -> list[OffsetRange]:
        sizes = self._log.segments({part.partition for part in parts}) if parts else {}
        return [piece for part in parts for piece in by_bytes(part, sizes[part.partition], most)]

    def _work(self, planned: list[OffsetRange]) -> Callable[[OffsetRange], float] | None:
        """A function that says for how many offsets a range counts: each large record counts for several offsets."""
        fewest, size = self._options.min_records, self._options.min_bytes
        if fewest is None or size is None:
            return None
        small = [part for part in planned if part.size < fewest]
        if len(small) < 2:
            return None
        offsets_per_byte, bytes_each = fewest / size, self._sizes.of(small)
        return lambda part: part.size * max(1.0, bytes_each.get(part.partition.topic, 0.0) * offsets_per_byte)

    def _from_first_time(
        self, ranges: list[OffsetRange], topic_ids: Mapping[str, str], first_ms: int | None
    ) -> list[OffsetRange]:
        if first_ms is None:
            return plan(ranges)
        names = {part.partition: (part.partition, topic_ids.get(part.partition.topic, "")) for part in ranges}
        unknown = [partition for partition, name in names.items() if name not in self._past]
        first = self._log.first_at(unknown, first_ms) if unknown else {}
        begins = {part.partition: part.start for part in reversed(ranges)}
        for partition in unknown:
            if 0 <= first[partition] <= begins[partition] and names[partition][1]:
                self._past.add(names[partition])
        # -1: no record that can be read yet is young enough.
        cut = [
            part if (at := first.get(part.partition, 0)) == 0 else part._replace(start=max(part.start, at))
            for part in ranges
            if first.get(part.partition, 0) >= 0
        ]
        return plan(cut)
