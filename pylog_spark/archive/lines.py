"""A topic as lines of JSON in a file, ``FILE.jsonl.zst``: for people, and for programs that know neither Kafka nor pylog.

::

    document   a skippable frame (RFC 8878, 3.1.2): `MARK`, a CRC-32 and what is exported (`pylog_spark.archive.document.Beginning`)
    frame*     zstandard with size and checksum: whole lines of one partition, some MiB of them
    document   what was exported (`Ending`); only a whole file has it

So `zstd -dc FILE` gives the lines alone, each as `pylog consume --json` prints it. Records of aborted transactions are not in it, nor are batches, markers and
producers' ids: `pylog_spark.archive.exporting` keeps those. A reader needs the memory of one frame.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from pylog_spark.archive.checking import beginning_in, ending_in
from pylog_spark.archive.container import NotAnArchive, read_frame
from pylog_spark.archive.document import (
    Beginning,
    Ending,
    PartitionRange,
    PartitionTotal,
    encode,
)
from pylog_spark.archive.exporting import ExportOptions, Report, opened
from pylog_spark.client.admin import Admin
from pylog_spark.client.consumer import Record
from pylog_spark.client.json_lines import from_line, to_line

#: How the name of such a file ends.
SUFFIX = ".jsonl.zst"
#: What a document of the file begins with.
MARK = b"PYLOGTXT"
#: Bytes of lines in a frame, beside one more record.
FRAME_BYTES = 4 << 20
_DOCUMENT_BYTES_MAX = 64 << 20
_SKIPPABLE = 0x184D2A5D
_HEADER = struct.Struct("<II")
_CHECKSUM = struct.Struct("<I")
_BEFORE_TEXT = len(MARK) + _CHECKSUM.size
_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")


@dataclass(frozen=True, slots=True)
class Piece:
    """A frame: its partition, how many bytes its lines have, its records, and where it ends in the file."""

    partition: int
    bytes: int
    records: list[Record]
    end: int


def is_lines(path: str) -> bool:
    """Whether a file begins as one of lines. Raises OSError."""
    with open(path, "rb") as file:
        head = file.read(_HEADER.size + len(MARK))
    return head[:4] == _HEADER.pack(_SKIPPABLE, 0)[:4] and head[_HEADER.size :] == MARK


def export_lines(settings: Mapping[str, str], topic: str, path: str, options: ExportOptions, report: Report) -> Ending:
    """Write the committed records of `topic` into the new file `path`.

    Parameters
    ----------
    settings : mapping of str to str
        The client's settings, with ``bootstrap.servers``.
    topic, path, options, report
        As of `pylog_spark.archive.exporting.export`.

    Raises
    ------
    LogError, OSError
        As of `export`.
    """
    with (
        Admin(settings["bootstrap.servers"], settings) as admin,
        opened(admin, topic, path, options, _Done, _found) as (file, beginning, done),
    ):
        writer = _Writer(file, options.level)
        if file.tell() == 0:
            writer.document(encode(beginning))
        whole = sum(each.end - each.start for each in beginning.ranges)
        for wanted in beginning.ranges:
            for lines, records, position in _frames_of(settings, beginning, wanted, done.positions[wanted.partition]):
                writer.frame(lines)
                done.add(wanted.partition, records, len(lines), position)
                report(done.offsets, whole)
            done.positions[wanted.partition] = wanted.end
            report(done.offsets, whole)
        ending = done.ending
        writer.document(encode(ending))
        writer.sync()
    return ending


class LinesReader:
    """Reads a file of lines once, from its beginning to its end.

    Parameters
    ----------
    path : str
        The file.

    Attributes
    ----------
    beginning : Beginning
        What was to be exported.
    ending : Ending or None
        What was exported; known when all `pieces` were read.

    Raises
    ------
    NotAnArchive
        It is another file, or of another version of the format.
    OSError
        The file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.ending: Ending | None = None
        with open(path, "rb") as file:
            document = _document(path, file)
        if document is None:
            raise NotAnArchive(path, "it does not begin with a document")
        self.beginning: Beginning = beginning_in(path, document)

    def pieces(self) -> Iterator[Piece]:
        """Give the records of each frame, and compare what was read with what the last document says.

        Raises
        ------
        NotAnArchive
            At what is missing, damaged, doubled or not where it belongs.
        """
        done = _Done(self.beginning)
        with open(self._path, "rb") as file:
            _document(self._path, file)
            while (document := _document(self._path, file)) is None:
                lines = read_frame(self._path, file)
                if lines is None:
                    raise NotAnArchive(self._path, "its end is missing")
                piece = self._piece(lines, file.tell(), done)
                done.add(piece.partition, len(piece.records), piece.bytes, piece.records[-1].offset + 1)
                yield piece
            if file.read(1):
                raise NotAnArchive(self._path, f"something follows behind its end, at byte {file.tell() - 1}")
        self.ending = ending_in(self._path, document, done.ending.totals)

    def _piece(self, lines: bytes, end: int, done: _Done) -> Piece:
        try:
            records = [from_line(line) for line in lines.splitlines()]
        except ValueError as error:
            raise NotAnArchive(self._path, f"a line of the frame before byte {end} cannot be read: {error}") from None
        at = done.positions.get(records[0].partition, -1) if records else -1
        for record in records:
            if at < 0 or record.partition != records[0].partition or record.offset < at:
                raise NotAnArchive(self._path, f"a record of the frame before byte {end} is not where it belongs")
            at = record.offset + 1
        if not records:
            raise NotAnArchive(self._path, f"the frame before byte {end} is empty")
        return Piece(records[0].partition, len(lines), records, end)


def verify_lines(path: str) -> tuple[Beginning, Ending]:
    """Read all of a file of lines. Raises `NotAnArchive`, OSError."""
    reader = LinesReader(path)
    for _ in reader.pieces():
        pass
    assert reader.ending is not None
    return reader.beginning, reader.ending


class _Done:
    """How far a file is: the next offset and the totals of each partition."""

    def __init__(self, beginning: Beginning) -> None:
        self._topic = beginning.topic
        self._starts = {each.partition: each.start for each in beginning.ranges}
        self.positions = dict(self._starts)
        self._totals = {number: PartitionTotal(number) for number in self._starts}

    def add(self, partition: int, records: int, size: int, position: int) -> None:
        self._totals[partition] = self._totals[partition].and_segment(0, records, size)
        self.positions[partition] = position

    @property
    def offsets(self) -> int:
        return sum(self.positions[number] - start for number, start in self._starts.items())

    @property
    def ending(self) -> Ending:
        return Ending(self._topic, tuple(self._totals.values()))


class _Writer:
    def __init__(self, file: BinaryIO, level: int) -> None:
        import zstandard

        self._file = file
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)

    def document(self, text: bytes) -> None:
        checksum = _CHECKSUM.pack(zlib.crc32(text))
        self._file.write(_HEADER.pack(_SKIPPABLE, _BEFORE_TEXT + len(text)) + MARK + checksum + text)

    def frame(self, lines: bytes) -> None:
        self._file.write(self._compressor.compress(lines))

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _frames_of(
    settings: Mapping[str, str], beginning: Beginning, wanted: PartitionRange, start: int
) -> Iterator[tuple[bytes, int, int]]:
    """The lines of a partition in pieces of some `FRAME_BYTES`, each with its number of records and the offset behind the last one."""
    from pylog_spark.client.ranges import read_range

    if start >= wanted.end:
        return
    number = wanted.partition
    batches = read_range(
        settings["bootstrap.servers"],
        beginning.topic,
        start={number: start},
        end={number: wanted.end},
        partitions=[number],
        columns=_COLUMNS,
        config={**settings, "isolation.level": "read_committed"},
    )
    lines: list[bytes] = []
    size, position = 0, start
    for batch in batches:
        for row in zip(*(_values(batch, name) for name in _COLUMNS), strict=True):
            key, value, position, stamp, kind, headers = row
            lines.append(to_line(Record(beginning.topic, number, position, stamp, kind, key, value, headers)))
            size += len(lines[-1])
            if size >= FRAME_BYTES:
                yield b"".join(lines), len(lines), position + 1
                lines, size = [], 0
    if lines:
        yield b"".join(lines), len(lines), position + 1


def _values(batch: object, name: str) -> Iterator[object]:
    """The values of a column as a `Record` has them."""
    import pyarrow as pa

    assert isinstance(batch, pa.RecordBatch)
    column = batch.column(name)
    if name == "timestamp":
        return (-1 if stamp is None else stamp // 1_000 for stamp in column.cast(pa.int64()).to_pylist())
    if name == "headers":
        return (tuple((each["key"], each["value"]) for each in headers or ()) for headers in column.to_pylist())
    return iter(column.to_pylist())


def _document(path: str, file: BinaryIO) -> bytes | None:
    """The document that is next in a file, which is behind it then; None when something else is."""
    at = file.tell()
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or _HEADER.unpack(head)[0] != _SKIPPABLE:
        file.seek(at)
        return None
    size = _HEADER.unpack(head)[1]
    if not _BEFORE_TEXT <= size <= _DOCUMENT_BYTES_MAX + _BEFORE_TEXT:
        raise NotAnArchive(path, f"the document at byte {at} is none of an export, by its size")
    content = file.read(size)
    if len(content) < size:
        raise NotAnArchive(path, f"it is cut inside of the document at byte {at}")
    text = content[_BEFORE_TEXT:]
    if content[:_BEFORE_TEXT] != MARK + _CHECKSUM.pack(zlib.crc32(text)):
        raise NotAnArchive(path, f"the document at byte {at} is damaged, or none of an export")
    return text


def _found(part: str) -> tuple[Beginning, _Done, int] | None:
    """What a file that was cut has, and where its last whole frame ends; None when not even the first document is whole."""
    try:
        reader = LinesReader(part)
    except NotAnArchive:
        return None
    done = _Done(reader.beginning)
    with open(part, "rb") as file:
        _document(part, file)
        end = file.tell()
    try:
        for piece in reader.pieces():
            done.add(piece.partition, len(piece.records), piece.bytes, piece.records[-1].offset + 1)
            end = piece.end
    except NotAnArchive:
        pass
    return reader.beginning, done, end
