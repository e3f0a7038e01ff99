"""A log of which brokers have the end and an archive the beginning, asked as one.

Where both have an offset, either may be read: their records are the same. A topic of the archive with another id than the brokers' is another topic,
and is not looked at. An archive that ends before the brokers' logs begin leaves a gap, and is not looked at either: records are missing then, as
without it. For one thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog_spark.offsets.limits import EARLIEST
from pylog_spark.offsets.ranges import OffsetRange, parted

if TYPE_CHECKING:
    from pylog_spark._native import Client
    from pylog_spark.archive.store.reading import ArchiveLog

_log = logging.getLogger("pylog_spark")

#: For how many seconds what was found of the archive is used, unless it ends before the brokers begin.
_BELIEVED_S = 60.0

#: A topic, a partition, a time or a mark.
Wanted = tuple[str, int, int]
#: A topic, a partition, an offset, a timestamp.
Found = tuple[str, int, int, int]


class _Held(NamedTuple):
    """Where the archive starts and ends, and the first offset that brokers have."""

    start: int
    end: int
    first: int


class JoinedLog:
    """Brokers with an archive; the methods are those of `pylog_spark._native.Client` that readers use.

    Parameters
    ----------
    client : Client
        Of the brokers.
    archive : ArchiveLog
        What was archived of their topics.
    monotonic_s : callable
        The clock, in seconds, by which the archive is looked at again.
    """

    def __init__(self, client: Client, archive: ArchiveLog, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._archive = archive
        self._monotonic_s = monotonic_s
        self._looked_s = monotonic_s()
        #: The partitions that were asked for, and of which the archive is read.
        self._held: dict[tuple[str, int], _Held] = {}
        #: Partitions whose gap was said.
        self._said: set[tuple[str, int]] = set()

    def describe_topics(self, names: Sequence[str] | None) -> list[Any]:
        """Give what the brokers say."""
        return self._client.describe_topics(None if names is None else list(names))

    def list_partitions(self, names: Sequence[str] | None) -> list[tuple[str, str, bool, str | None, list[int]]]:
        """Give what the brokers say."""
        return self._client.list_partitions(names)

    def list_offsets(self, wanted: Sequence[Wanted], isolation_level: str = "read_uncommitted") -> list[Found]:
        """Find offsets by time or at the ends: in the archive what the brokers do not have any more."""
        answers = self._client.list_offsets(list(wanted), isolation_level)
        if all(mark < 0 and mark != EARLIEST for _, _, mark in wanted):
            return answers
        held = self._look({(topic, partition) for topic, partition, _ in wanted})
        return [self._older(each, answer, held) for each, answer in zip(wanted, answers, strict=True)]

    def advance(self, ranges: Sequence[Any]) -> list[tuple[int, int, int]]:
        """Say how far limits reach, by what has the begin of each range."""
        found: dict[int, tuple[int, int, int]] = {}
        hot = []
        for place, wish in enumerate(ranges):
            held = self._held.get((wish[0], wish[1]))
            if held is not None and held.start <= wish[2] < held.end:
                # What comes behind the archive is for the next batch.
                topic, partition, first, last, *limits = wish
                (found[place],) = self._archive.advance([(topic, partition, first, min(last, held.end), *limits)])
            else:
                hot.append(place)
        answers = self._client.advance([ranges[place] for place in hot]) if hot else []
        found.update(zip(hot, answers, strict=True))
        return [found[place] for place in range(len(ranges))]

    def parted(self, ranges: Iterable[OffsetRange], *, all_of_it: bool) -> tuple[list[OffsetRange], list[OffsetRange]]:
        """Part ranges in what is read from the archive and what brokers are asked for.

        Parameters
        ----------
        ranges : iterable of OffsetRange
            What is to be read.
        all_of_it : bool
            Whether everything that is archived is read there; else what the brokers do not have any more, and what is a segment or more, so that the end of
            a log, which brokers have in memory, is read from them.
        """
        ranges = list(ranges)
        held = self._look({(part.partition.topic, part.partition.partition) for part in ranges})

        def cold_end(part: OffsetRange) -> int:
            return self._cold_end(part, held.get((part.partition.topic, part.partition.partition)), all_of_it)

        return parted(ranges, cold_end)

    def segments(self, topic: str, partition: int) -> list[tuple[int, int]]:
        """Give of each archived segment the first offset and the bytes of its batches."""
        return self._archive.segments(topic, partition)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def take_notices(self) -> list[str]:
        """Give what the archive has to say."""
        return self._archive.take_notices()

    def _cold_end(self, part: OffsetRange, held: _Held | None, all_of_it: bool) -> int:
        """Up to where a range is read from the archive."""
        if held is None or not held.start <= part.start < held.end:
            return part.start
        if all_of_it:
            return min(part.end, held.end)
        ends = [each.next for each in self._archive.manifest(*part.partition).covering(part.start, part.end)]
        whole = max((each for each in ends if each <= part.end), default=part.start)
        return min(held.end, max(whole, min(held.first, part.end)))

    def _look(self, partitions: set[tuple[str, int]]) -> dict[tuple[str, int], _Held]:
        """Where the archive starts and ends for those partitions that it has with the same id, up to where the brokers go on."""
        if not partitions:
            return {}
        topics = self._client.describe_topics(sorted({name for name, _ in partitions}))
        ids = {str(topic["name"]): str(topic["topic_id"]) for topic in topics}
        if self._monotonic_s() - self._looked_s > _BELIEVED_S:
            self._refresh()
        there = [each for each in sorted(partitions) if self._has(*each, ids[each[0]])]
        firsts = self._client.list_offsets([(*each, EARLIEST) for each in there]) if there else []
        for (topic, partition), (_, _, first, _) in zip(there, firsts, strict=True):
            if self._archive.manifest(topic, partition).end < first:
                # It may have got more since.
                self._refresh()
            manifest = self._archive.manifest(topic, partition)
            self._held.pop((topic, partition), None)
            if manifest.end >= first and not manifest.missing(manifest.start, manifest.end):
                self._held[topic, partition] = _Held(manifest.start, manifest.end, first)
                continue
            if (topic, partition) in self._said:
                continue
            self._said.add((topic, partition))
            _log.warning(
                "The archive %s has %s-%d up to offset %d, and the brokers from %d on: it is not read.",
                self._archive.url, topic, partition, manifest.end, first,
            )  # fmt: skip
        return {each: self._held[each] for each in there if each in self._held}

    def _has(self, topic: str, partition: int, topic_id: str) -> bool:
        stored = self._archive.stored_topic(topic)
        return stored is not None and stored.topic_id == topic_id and partition < stored.partitions

    def _refresh(self) -> None:
        self._archive.refresh()
        self._looked_s = self._monotonic_s()

    def _older(self, wanted: Wanted, answer: Found, held: Mapping[tuple[str, int], _Held]) -> Found:
        topic, partition, mark = wanted
        if (topic, partition) not in held:
            return answer
        start, end, _ = held[topic, partition]
        if mark == EARLIEST:
            return (topic, partition, min(start, answer[2]) if end > start else answer[2], -1)
        if mark < 0:
            return answer
        (older,) = self._archive.list_offsets([wanted])
        return older if older[2] >= 0 and (answer[2] < 0 or older[2] < answer[2]) else answer
