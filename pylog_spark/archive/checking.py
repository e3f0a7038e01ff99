"""Reads an archive from its beginning to its end and says whether all is there and right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pylog_spark.archive.container import NotAnArchive, members
from pylog_spark.archive.document import (
    END,
    STARTS,
    Beginning,
    DocumentError,
    Ending,
    PartitionTotal,
    decode_beginning,
    decode_ending,
    segment_of,
)
from pylog_spark.archive.runs import Run, counted, cut


class Segment(NamedTuple):
    """A segment of an archive: whose it is, its batches, and where they can be parted."""

    partition: int
    data: bytes
    runs: list[Run]


class ArchiveReader:
    """Reads an archive once, from its beginning to its end.

    Parameters
    ----------
    path : str
        The file.

    Attributes
    ----------
    beginning : Beginning
        What was to be exported.
    ending : Ending or None
        What was exported; known when all segments were read.

    Raises
    ------
    NotAnArchive
        It is another file, or of another version of the format.
    OSError
        The file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._members = members(path)
        self.ending: Ending | None = None
        first = next(self._members, None)
        if first is None:
            raise NotAnArchive(path, "nothing is in it")
        self.beginning: Beginning = beginning_in(path, first.data)

    def segments(self) -> Iterator[Segment]:
        """Give each segment, in the order of the file, and compare everything with what the documents say.

        Raises
        ------
        NotAnArchive
            At what is missing, damaged, doubled or not where it belongs.
        """
        positions = {each.partition: -1 for each in self.beginning.ranges}
        totals = {number: PartitionTotal(number) for number in positions}
        for member in self._members:
            if member.name == STARTS:
                continue
            if member.name == f"{self.beginning.topic}{END}":
                self.ending = ending_in(self._path, member.data, tuple(totals.values()))
                continue
            found = segment_of(member.name)
            if self.ending is not None or found is None or found[0] != self.beginning.topic or found[1] not in totals:
                raise NotAnArchive(self._path, f"{member.name} does not belong there")
            number, first = found[1], found[2]
            runs = cut(member.data, f"{self._path}, {member.name}")
            if first < positions[number] or (runs and runs[0].first_offset != first):
                raise NotAnArchive(self._path, f"{member.name} is not where it belongs")
            positions[number] = runs[-1].next_offset if runs else first
            totals[number] = counted(totals[number], runs, len(member.data))
            yield Segment(number, member.data, runs)
        if self.ending is None:
            raise NotAnArchive(self._path, "its last document is missing")


def beginning_in(path: str, document: bytes) -> Beginning:
    """What the first document of a file says. Raises `NotAnArchive`."""
    try:
        return decode_beginning(document)
    except DocumentError as error:
        raise NotAnArchive(path, str(error)) from None


def ending_in(path: str, document: bytes, read: tuple[PartitionTotal, ...]) -> Ending:
    """What the last document of a file says, of which so much was read. Raises `NotAnArchive` when that is not the same."""
    try:
        ending = decode_ending(document)
    except DocumentError as error:
        raise NotAnArchive(path, str(error)) from None
    if ending.totals != read:
        raise NotAnArchive(path, "there is not in it what its last document says")
    return ending


def verify(path: str) -> tuple[Beginning, Ending]:
    """Read all of an archive: its checksums and those of its batches. Raises `NotAnArchive`, `LogError`, OSError."""
    reader = ArchiveReader(path)
    for _ in reader.segments():
        pass
    assert reader.ending is not None
    return reader.beginning, reader.ending
