"""The old part of topics that brokers have archived (`archive.url`), which a query reads in the archive itself: `archiveReads`.

A query finds out by itself where the archive is, where a broker's own log of a partition begins (ListOffsets with -4, KIP-405), and what the archive has
of what lies before. Brokers serve all of that, too, so whatever is in doubt is left to them: an archive that cannot be opened here, a topic that it
has under another id, a gap. What is given up says a line. For one thread.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pylog_spark.client.errors import LogError, translated
from pylog_spark.file_systems import is_url
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.ranges import OffsetRange, parted
from pylog_spark.results.configs import ConfigDescription
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.topics import TopicDescription

if TYPE_CHECKING:
    from pylog_spark._native import Client
    from pylog_spark.archive.store.reading import ArchiveLog

_log = logging.getLogger("pylog_spark")

_ARCHIVE_URL = "archive.url"
#: Stands for the first offset that a broker has itself.
_EARLIEST_LOCAL = -4
#: For how many seconds an archive that could not be read is left alone.
_LEFT_ALONE_S = 60.0


class ColdParts:
    """Parts ranges in what the brokers' archive has and what brokers are asked for.

    Parameters
    ----------
    isolation_level : str
        That of the query.
    monotonic_s : callable
        The clock, in seconds.
    """

    def __init__(self, isolation_level: str, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._isolation_level = isolation_level
        self._monotonic_s = monotonic_s
        #: Where the archive is; "" where brokers have none that can be read here; None before they were asked.
        self._url: str | None = None
        self._archive: ArchiveLog | None = None
        #: Where brokers' own logs began when they were asked last: it only grows, so who is behind it needs no question.
        self._local: dict[TopicPartition, int] = {}
        self._again_s = -float("inf")

    @property
    def url(self) -> str:
        """Where the archive is that `parted` has found; "" before."""
        return self._url or ""

    def parted(self, client: Client, ranges: Iterable[OffsetRange]) -> tuple[list[OffsetRange], list[OffsetRange]]:
        """Give what of `ranges` is read in the archive, and the rest.

        Parameters
        ----------
        client : Client
            Of the brokers.
        ranges : iterable of OffsetRange
            What is to be read.
        """
        ranges = list(ranges)
        if self._url == "" or self._monotonic_s() < self._again_s:
            return [], ranges
        asked = [part for part in ranges if part.start < self._local.get(part.partition, part.end)]
        if not asked:
            return [], ranges
        try:
            with translated():
                ends = self._cold_ends(client, asked)
        except (LogError, ImportError) as error:
            self._give_up(str(error))
            return [], ranges
        return parted(ranges, lambda part: ends.get(part, part.start))

    def segments(self, topic: str, partition: int) -> list[tuple[int, int]]:
        """Give of each archived segment the first offset and the bytes of its batches."""
        assert self._archive is not None
        return self._archive.segments(topic, partition)

    def _cold_ends(self, client: Client, ranges: Sequence[OffsetRange]) -> dict[OffsetRange, int]:
        """Up to where each range is read from the archive, for those that begin there."""
        topics = {
            topic.name: topic
            for topic in all_decoded(
                TopicDescription, client.describe_topics(sorted({part.partition.topic for part in ranges}))
            )
        }
        if self._url is None:
            leaders = [each.leader for topic in topics.values() for each in topic.partitions if each.leader >= 0]
            self._url = _archive_url(client, min(leaders)) if leaders else None
        if not self._url:
            return {}
        partitions = sorted({part.partition for part in ranges})
        firsts = client.list_offsets([(*each, _EARLIEST_LOCAL) for each in partitions])
        self._local.update({each: first for each, (_, _, first, _) in zip(partitions, firsts, strict=True)})
        wanted = [part for part in ranges if part.start < self._local[part.partition]]
        if not wanted:
            return {}
        archive = self._opened()
        return {part: self._cold_end(archive, part, topics[part.partition.topic].topic_id) for part in wanted}

    def _opened(self) -> ArchiveLog:
        """The archive as it is now: opened anew, since where one was a moved one has left an empty place, which a list does not tell."""
        from pylog_spark.archive.store.reading import ArchiveLog

        self._archive = ArchiveLog(self.url, self._isolation_level)
        return self._archive

    def _cold_end(self, archive: ArchiveLog, part: OffsetRange, topic_id: str) -> int:
        topic, partition = part.partition
        stored = archive.stored_topic(topic)
        if stored is None or stored.topic_id != topic_id or partition >= stored.partitions:
            return part.start
        manifest = archive.manifest(topic, partition)
        end = min(part.end, self._local[part.partition], manifest.end)
        if part.start < manifest.start or manifest.missing(part.start, end):
            return part.start
        return end

    def _give_up(self, why: str) -> None:
        self._again_s = self._monotonic_s() + _LEFT_ALONE_S
        # Asked for again then: it may have moved.
        self._archive = self._url = None
        _log.warning(
            "%s Old records are read through the brokers, for %.0f s at least (archiveReads).",
            _sentence(why),
            _LEFT_ALONE_S,
        )


def _archive_url(client: Client, node: int) -> str:
    """Where a broker's archive is; "" where it has none, does not say it to this user, or it is a path that has a meaning only for the broker."""
    (answer,) = all_decoded(ConfigDescription, client.describe_configs("broker", [str(node)], [_ARCHIVE_URL]))
    if answer.error is not None:
        _log.info(
            "The brokers do not say whether they have an archive (%s): old records are read through them.", answer.error
        )
        return ""
    url = next((entry.value for entry in answer.configs if entry.name == _ARCHIVE_URL), None) or ""
    if url and not is_url(url) and not os.path.isabs(url):
        _log.info("The brokers' archive is %s, a relative path: old records are read through them.", url)
        return ""
    return url


def _sentence(why: str) -> str:
    return f"{why.rstrip('. ')}."
