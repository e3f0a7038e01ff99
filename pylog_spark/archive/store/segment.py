"""A segment of an archive: record batches in frames of zstandard, and where each frame is.

::

    frame*    whole batches, about `FRAME_BYTES` of them, or one larger batch; with the frame's size and checksum
    footer    a skippable frame (RFC 8878, 3.1.2): JSON, its length and CRC-32 (little-endian), `MARK`

So `zstd -d` gives the batches, as in a file of a log, and a reader takes the end of the object, then the frames that it wants. Not thread-safe.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pylog_spark.archive.runs import Run
from pylog_spark.client.errors import LogError

#: Bytes of batches in a frame, beside one larger batch: what a reader decompresses to get one record.
FRAME_BYTES = 1 << 20
#: The same where what repeats at long distances is looked for: a distance ends with the frame.
LONG_FRAME_BYTES = 8 << 20
#: Most bytes of a frame's content. A frame says how much is in it, and one that says more is refused before it is decompressed.
FRAME_BYTES_MAX = 256 << 20
#: The end of every segment.
MARK = b"PYLOGSEG"
#: How much of the end of an object is read to find the footer; more when it is larger.
TAIL_BYTES = 64 << 10
#: Most bytes of a footer.
FOOTER_BYTES_MAX = 64 << 20
_SKIPPABLE = 0x184D2A5E
_HEADER = struct.Struct("<II")
_TRAILER = struct.Struct(f"<II{len(MARK)}s")
_VERSION = 1
_LONG_RANGE = {"enable_ldm": True, "window_log": LONG_FRAME_BYTES.bit_length() - 1}


class SegmentError(LogError):
    """An object is no whole segment."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__("CORRUPT_BATCH", f"{name} of the archive cannot be read: {why}.")


class Frame(NamedTuple):
    """A frame of a segment.

    Attributes
    ----------
    position, size : int
        Where it is in the object.
    bytes : int
        How much is in it.
    first, next : int
        First offset of its first batch, and the one behind its last batch.
    records : int
        Markers of transactions among them.
    max_timestamp : int
        Milliseconds since 1970.
    """

    position: int
    size: int
    bytes: int
    first: int
    next: int
    records: int
    max_timestamp: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What the end of a segment says."""

    topic: str
    topic_id: str
    partition: int
    frames: tuple[Frame, ...]


class SegmentBuilder:
    """Makes the bytes of a segment; they are kept in memory.

    Parameters
    ----------
    topic, topic_id, partition
        Whose it is.
    level : int
        zstandard's, 1 to 22.
    long_range : bool
        Whether what repeats at long distances is looked for (zstandard's long distance matching).
    """

    def __init__(self, topic: str, topic_id: str, partition: int, level: int, long_range: bool = False) -> None:
        import zstandard

        parameters = zstandard.ZstdCompressionParameters.from_level(
            level, **(_LONG_RANGE if long_range else {}), write_checksum=True, write_content_size=True
        )
        self._compressor = zstandard.ZstdCompressor(compression_params=parameters)
        self._topic, self._topic_id, self._partition = topic, topic_id, partition
        self._content = bytearray()
        self._frames: list[Frame] = []
        #: Bytes of batches so far.
        self.bytes = 0

    def add(self, data: bytes, runs: Iterable[Run]) -> None:
        """Add batches, each run of them as a frame."""
        begin, view = 0, memoryview(data)
        for run in runs:
            frame = self._compressor.compress(view[begin : run.end])
            size = run.end - begin
            self._frames.append(
                Frame(self.size, len(frame), size, run.first_offset, run.next_offset, run.records, run.max_timestamp)
            )
            self._content += frame
            self.bytes += size
            begin = run.end

    @property
    def size(self) -> int:
        """Bytes of the object so far."""
        return len(self._content)

    def finish(self) -> bytearray:
        """The bytes of the object; nothing may be added any more."""
        document = {
            "format": "pylog-segment",
            "version": _VERSION,
            "topic": self._topic,
            "topic_id": self._topic_id,
            "partition": self._partition,
            "frames": self._frames,
        }
        text = json.dumps(document).encode()
        trailer = _TRAILER.pack(len(text), zlib.crc32(text), MARK)
        self._content += _HEADER.pack(_SKIPPABLE, len(text) + len(trailer)) + text + trailer
        return self._content


def footer_bytes(tail: bytes, name: str) -> int:
    """How many bytes at the end of an object its footer takes. Raises `SegmentError`."""
    if len(tail) < _TRAILER.size:
        raise SegmentError(name, "it is too short")
    length, _, mark = _TRAILER.unpack(tail[-_TRAILER.size :])
    if mark != MARK or length > FOOTER_BYTES_MAX:
        raise SegmentError(name, "its end is none of a segment")
    return int(length) + _TRAILER.size


def read_footer(tail: bytes, name: str) -> Footer:
    """Read the footer of an object from its end, which has at least `footer_bytes`. Raises `SegmentError`."""
    size = footer_bytes(tail, name)
    text = tail[-size : -_TRAILER.size]
    _, checksum, _ = _TRAILER.unpack(tail[-_TRAILER.size :])
    if len(tail) < size or zlib.crc32(text) != checksum:
        raise SegmentError(name, "its footer is damaged")
    found = json.loads(text)
    if found.get("version") != _VERSION:
        raise SegmentError(
            name, f"it has version {found.get('version')!r} of the format, and this pylog reads {_VERSION}"
        )
    frames = tuple(Frame(*each) for each in found["frames"])
    return Footer(found["topic"], found["topic_id"], found["partition"], frames)


def open_frame(data: bytes, frame: Frame, name: str) -> bytes:
    """The batches of a frame. Raises `SegmentError`."""
    import zstandard

    if not 0 < frame.bytes <= FRAME_BYTES_MAX:
        raise SegmentError(name, f"the frame at byte {frame.position} is none of a segment, by its size")
    try:
        if zstandard.get_frame_parameters(data).content_size != frame.bytes:
            raise SegmentError(name, f"the frame at byte {frame.position} has another size than the footer says")
        return bytes(zstandard.ZstdDecompressor().decompress(data))
    except zstandard.ZstdError as error:
        raise SegmentError(name, f"the frame at byte {frame.position} is damaged ({error})") from None
