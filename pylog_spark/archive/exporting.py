"""Writes a topic into a file: its record batches as they are stored, up to its last stable offset.

What is read are the brokers' bytes, by Kafka's protocol, so the topic may be one of Apache Kafka. The file is written as FILE.part and gets its
name when it is whole and on the device. An export that was cut goes on behind the last whole frame.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import BinaryIO, TypeVar

from pylog_spark.archive.container import ArchiveWriter, Member, NotAnArchive, members
from pylog_spark.archive.document import (
    STARTS,
    Beginning,
    DocumentError,
    Ending,
    PartitionRange,
    PartitionTotal,
    decode_beginning,
    encode,
    segment_name,
    segment_of,
    starts,
)
from pylog_spark.archive.runs import Run, counted, cut
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.places import Places
from pylog_spark.mirror.topics import read_topics

#: Bytes of record batches in a segment of the archive, beside one larger batch.
SEGMENT_BYTES = 32 << 20
_FETCH_BYTES = 8 << 20
_COMMITTED = "read_committed"

#: Told how many offsets are written, and of how many.
Report = Callable[[int, int], None]

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What is exported, and how.

    Attributes
    ----------
    since_ms, until_ms : int or None
        The first batch is that of the first record at or after the one, the last one is before the first record at or after the other.
    level : int
        zstandard's, 1 to 22.
    resume : bool
        Go on with an export that was cut.
    segment_bytes : int
        Bytes of record batches in a segment, beside one larger batch; a reader needs memory for one.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    level: int = 3
    resume: bool = False
    segment_bytes: int = SEGMENT_BYTES


def export(admin: Admin, topic: str, path: str, options: ExportOptions, report: Report) -> Ending:
    """Write `topic` into the new file `path`.

    Returns
    -------
    Ending
        What is in it.

    Raises
    ------
    LogError
        The file is there, the topic is not, records were removed meanwhile, or brokers do not answer: what was written stays in
        FILE.part, and `options.resume` goes on with it.
    OSError
        The file cannot be written.
    """
    with opened(admin, topic, path, options, _nothing, _found) as (file, beginning, done):
        return _Export(admin, beginning, done, options, report).write(file)


@contextmanager
def opened(
    admin: Admin,
    topic: str,
    path: str,
    options: ExportOptions,
    nothing: Callable[[Beginning], State],
    found: Callable[[str], tuple[Beginning, State, int] | None],
) -> Iterator[tuple[BinaryIO, Beginning, State]]:
    """Open the file of an export behind what is whole of it; it gets its name when the block ends without an error.

    Parameters
    ----------
    admin, topic, path, options
        As of `export`.
    nothing : callable
        How far an export is that begins.
    found : callable
        Gives of a file that was cut what it begins with, how far it is and where that ends; None when it is to be begun anew.

    Raises
    ------
    LogError, OSError
        As of `export`.
    """
    part = _part_of(path, options.resume)
    beginning = _beginning_of(admin, topic, options)
    with open(part, "r+b" if os.path.exists(part) else "xb") as file:
        done = nothing(beginning)
        if options.resume and (before := found(part)) is not None:
            beginning, done, end = before
            _check_same(admin, beginning, part)
            file.seek(end)
        file.truncate()
        yield file, beginning, done
    os.rename(part, path)


def _part_of(path: str, resume: bool) -> str:
    """Give the name of the file until it is whole. Raises `LogError` when `path` is there, or without `resume` that file."""
    if os.path.exists(path):
        raise LogError("INVALID_ARGUMENT", f"{path} is there: delete it, or name another file.")
    part = f"{path}.part"
    if os.path.exists(part) and not resume:
        sentence = f"{part} is there, from an export that was cut: go on with --resume, or delete it."
        raise LogError("INVALID_ARGUMENT", sentence)
    return part


@dataclass(frozen=True, slots=True)
class Done:
    """What the archive has of a partition: up to which offset, and how much."""

    position: int
    total: PartitionTotal

    def and_then(self, runs: list[Run], size: int) -> Done:
        """What it has after a further segment."""
        return Done(runs[-1].next_offset if runs else self.position, counted(self.total, runs, size))


def _nothing(beginning: Beginning) -> dict[int, Done]:
    return {each.partition: Done(each.start, PartitionTotal(each.partition)) for each in beginning.ranges}


def _beginning_of(admin: Admin, topic: str, options: ExportOptions) -> Beginning:
    """Give what is to be exported. Raises `LogError`."""
    places = Places(admin, topic, None, _COMMITTED)
    first = places.offsets("earliest") if options.since_ms is None else places.at_ms(options.since_ms)
    last = dict(places.ends) if options.until_ms is None else places.at_ms(options.until_ms)
    ranges = []
    for number in places.partitions:
        # A time may be found behind the last stable offset.
        end = min(last[number], places.ends[number])
        ranges.append(PartitionRange(number, min(first[number], end), end))
    described = read_topics(admin, [admin.topic(topic)])[topic]
    return Beginning(
        topic,
        described.topic_id,
        admin.cluster().cluster_id or "",
        len(described.leaders),
        described.replication_factor,
        dict(sorted(described.configs.items())),
        tuple(ranges),
        time.time_ns() // 1_000_000,
    )


def _check_same(admin: Admin, beginning: Beginning, part: str) -> None:
    """Raise `LogError` when the topic of an export that was cut is another one now."""
    now = admin.topic(beginning.topic).topic_id
    if now != beginning.topic_id:
        sentence = (
            f"{part} has records of another topic {beginning.topic}, which was deleted meanwhile: delete the file."
        )
        raise LogError("UNKNOWN_TOPIC_ID", sentence)


def _found(part: str) -> tuple[Beginning, dict[int, Done], int] | None:
    """What a file that was cut has, and where its last whole frame ends; None when it was cut before any segment could be written."""
    found = members(part)
    with suppress(NotAnArchive, StopIteration):
        first, second = next(found), next(found)
        try:
            beginning = decode_beginning(first.data)
        except DocumentError as error:
            raise LogError("CORRUPT_ARCHIVE", f"{part} cannot be gone on with: {error}.") from None
        return beginning, *_segments(part, found, _nothing(beginning), second.end)
    return None


def _segments(part: str, following: Iterator[Member], done: dict[int, Done], end: int) -> tuple[dict[int, Done], int]:
    """What there is with the whole segments among the members that follow, and where the last of them ends."""
    with suppress(NotAnArchive):
        for member in following:
            segment = segment_of(member.name)
            if segment is None or segment[1] not in done:
                # The last document: what is left is to be written again.
                break
            done[segment[1]] = done[segment[1]].and_then(cut(member.data, part), len(member.data))
            end = member.end
    return done, end


class _Export:
    def __init__(
        self, admin: Admin, beginning: Beginning, done: dict[int, Done], options: ExportOptions, report: Report
    ) -> None:
        self._admin, self._beginning, self._done, self._report = admin, beginning, done, report
        self._options = options
        self._whole = sum(each.end - each.start for each in beginning.ranges)

    def write(self, file: BinaryIO) -> Ending:
        """Write what is missing at the end of `file`."""
        beginning = self._beginning
        writer = ArchiveWriter(file, self._options.level, beginning.exported_at_ms // 1000)
        if file.tell() == 0:
            writer.add(beginning.member, encode(beginning))
            writer.add(STARTS, starts(beginning))
        for wanted in beginning.ranges:
            self._write_partition(writer, wanted)
        ending = Ending(beginning.topic, tuple(self._done[each.partition].total for each in beginning.ranges))
        writer.add(ending.member, encode(ending))
        writer.end()
        return ending

    def _write_partition(self, writer: ArchiveWriter, wanted: PartitionRange) -> None:
        number = wanted.partition
        while (done := self._done[number]).position < wanted.end or done.total.segments == 0:
            data, position = self._segment(number, done.position, wanted.end)
            runs = cut(data, f"partition {number} of topic {self._beginning.topic}")
            if data or done.total.segments == 0:
                first = runs[0].first_offset if runs else done.position
                writer.add(segment_name(self._beginning.topic, number, first), data)
                done = done.and_then(runs, len(data))
            self._done[number] = replace(done, position=position)
            self._report(sum(self._written(each) for each in self._beginning.ranges), self._whole)

    def _written(self, wanted: PartitionRange) -> int:
        """Of how many offsets the batches are written."""
        return max(0, min(self._done[wanted.partition].position, wanted.end) - wanted.start)

    def _segment(self, partition: int, position: int, end: int) -> tuple[bytes, int]:
        """The batches of the next segment, and the offset behind them."""
        most = min(_FETCH_BYTES, self._options.segment_bytes)
        pieces: list[bytes] = []
        size = 0
        while position < end and size < self._options.segment_bytes:
            data, position = self._admin.fetch_batches(self._beginning.topic, partition, position, end, most)
            pieces.append(data)
            size += len(data)
        return b"".join(pieces), position
