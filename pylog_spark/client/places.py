"""Where logs begin and end, and where a reader of a topic does: words, offsets and times, as offsets of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import NamedTuple, Protocol

from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.errors import LogError
from pylog_spark.results.topics import PartitionOffset, TopicDescription

#: A place: ``earliest``, ``latest``, an offset, a time with a time zone, or an offset for each partition.
Place = str | int | datetime | Mapping[int, int]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Bounds(NamedTuple):
    """The first offset of a partition and its end, with the id of its topic."""

    start: int
    end: int
    topic_id: str


def bounds_of(admin: Admin, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Bounds]:
    """Give the bounds of each partition that is still there."""
    topics = admin.topics(sorted({topic for topic, _ in partitions})) if partitions else []
    there = {(topic.name, each.partition): topic.topic_id for topic in topics for each in topic.partitions}
    known = [partition for partition in partitions if partition in there]
    starts = admin.offsets([(*partition, EARLIEST) for partition in known]) if known else []
    ends = admin.offsets([(*partition, LATEST) for partition in known]) if known else []
    found = zip(known, starts, ends, strict=True)
    return {partition: Bounds(start.offset, end.offset, there[partition]) for partition, start, end in found}


class Holder(Protocol):
    """Who has topics and is asked for offsets: `Admin`, or a data directory (`pylog_spark.client.ranges.read_directory`)."""

    def topic(self, name: str) -> TopicDescription:
        """Describe one topic. Raises `LogError` when it does not exist."""

    def offsets(self, wanted: Sequence[tuple[str, int, int]], isolation_level: str = ...) -> list[PartitionOffset]:
        """Find offsets by time or at the ends of logs, as `Admin.offsets`."""


class Places:
    """Places in the partitions of a topic that are read.

    Parameters
    ----------
    holder : Holder
        Who is asked; must stay open while places are looked up.
    topic : str
        The topic.
    wanted : sequence of int or None
        The partitions to read; all when None.
    isolation_level : str
        With ``read_committed`` a partition ends where its first open transaction begins.

    Attributes
    ----------
    topic_id : str
        The id of the topic, or "" when the brokers have none.
    partitions : list of int
        The partitions to read.
    ends : dict of int to int
        The ends of the partitions when this was made.

    Raises
    ------
    LogError
        When the topic or a partition does not exist.
    """

    def __init__(
        self, holder: Holder, topic: str, wanted: Sequence[int] | None, isolation_level: str = "read_uncommitted"
    ) -> None:
        described = holder.topic(topic)
        present = sorted(partition.partition for partition in described.partitions)
        missing = sorted(set(wanted or ()) - set(present))
        if missing:
            sentence = f"Topic '{topic}' has no partition {missing[0]}: it has 0 to {len(present) - 1}."
            raise LogError("UNKNOWN_TOPIC_OR_PARTITION", sentence)
        self.topic_id = described.topic_id
        self.partitions = present if wanted is None else sorted(set(wanted))
        self._holder, self._topic = holder, topic
        self.ends = self._at(LATEST, isolation_level)

    @cached_property
    def _earliest(self) -> dict[int, int]:
        return self._at(EARLIEST)

    def offsets(self, place: Place, name: str = "start") -> dict[int, int]:
        """Give the offset of a place in each partition.

        Parameters
        ----------
        place : str, int, datetime or mapping of int to int
            Partitions that a mapping does not name begin at their first record and end at their end.
        name : str
            ``start`` or ``end``, for the sentence of an error.

        Raises
        ------
        LogError
            When it is none of these, or the log does not hold an offset.
        """
        if isinstance(place, datetime):
            if place.tzinfo is None:
                sentence = f"{name}={place} has no time zone: give it one, such as timezone.utc."
                raise LogError("INVALID_ARGUMENT", sentence)
            # Up to the next millisecond: a record of the one before is not at or after the place.
            return self.at_ms(-((_EPOCH - place) // timedelta(milliseconds=1)))
        if place == "latest":
            return dict(self.ends)
        if place == "earliest":
            return dict(self._earliest)
        if isinstance(place, str):
            sentence = f"{name}={place!r} is not earliest, latest, an offset or a datetime."
            raise LogError("INVALID_ARGUMENT", sentence)
        named = dict(place) if isinstance(place, Mapping) else dict.fromkeys(self.partitions, place)
        return {**(self._earliest if name == "start" else self.ends), **self._checked(named)}

    def at_ms(self, timestamp_ms: int) -> dict[int, int]:
        """Give the offset of the first record at or after a time, in ms since 1970; the end where there is none."""
        found = self._at(timestamp_ms)
        return {partition: offset if offset >= 0 else self.ends[partition] for partition, offset in found.items()}

    def _checked(self, offsets: Mapping[int, int]) -> Mapping[int, int]:
        for partition, offset in offsets.items():
            first, end = self._earliest.get(partition), self.ends.get(partition)
            if first is None or end is None:
                sentence = f"Partition {partition} of topic '{self._topic}' is not among those that are read."
                raise LogError("INVALID_ARGUMENT", sentence)
            if not first <= offset <= end:
                sentence = (
                    f"Partition {partition} of topic '{self._topic}' has no offset {offset}: it has {first} to {end}."
                )
                raise LogError("OFFSET_OUT_OF_RANGE", sentence)
        return offsets

    def _at(self, timestamp: int, isolation_level: str = "read_uncommitted") -> dict[int, int]:
        asked = [(self._topic, partition, timestamp) for partition in self.partitions]
        return {partition: offset for _, partition, offset, _ in self._holder.offsets(asked, isolation_level)}
