"""The file of an archive: a tar archive (POSIX ustar) of which each member is a zstandard frame of its own, with its checksum.

So `zstd` and `tar` read it, a reader needs the memory of one member, and a file that was cut goes on behind its last whole frame. The end
of the tar archive, two blocks of zeros, is a last frame. Here as elsewhere zstandard is imported by the functions that use it: a broker and a
Spark worker without an archive start without it. Not thread-safe.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pylog_spark.client.errors import LogError

#: Most bytes of a member. A frame says how much is in it, and one that says more is refused before it is decompressed.
MEMBER_BYTES_MAX = 128 << 20
_BLOCK = tarfile.BLOCKSIZE
_END = b"\0" * (2 * _BLOCK)
_CHUNK = 1 << 20
# Enough for the header of any frame.
_HEADER = 18
_MODE = 0o644


class NotAnArchive(LogError):
    """The file is not one of `pylog archive`, or it is damaged."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__("CORRUPT_ARCHIVE", f"{path} cannot be read as an archive: {why}.")


@dataclass(frozen=True, slots=True)
class Member:
    """A file in the archive.

    Attributes
    ----------
    name : str
        Its path.
    data : bytes
        What is in it.
    end : int
        Where its frame ends in the archive, in bytes.
    """

    name: str
    data: bytes
    end: int


class ArchiveWriter:
    """Writes members to the end of `file`, which is at its end.

    Parameters
    ----------
    file : binary file
        Open for writing.
    level : int
        zstandard's, 1 to 22.
    modified_s : int
        The members' time, seconds since 1970.
    """

    def __init__(self, file: BinaryIO, level: int, modified_s: int) -> None:
        import zstandard

        self._file = file
        self._modified_s = modified_s
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)

    def add(self, name: str, data: bytes) -> None:
        """Write a member. Raises OSError."""
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = len(data), self._modified_s, _MODE
        padding = b"\0" * (-len(data) % _BLOCK)
        self._write(b"".join((info.tobuf(tarfile.USTAR_FORMAT), data, padding)))

    def end(self) -> None:
        """Write the end of the tar archive, and have the system write everything to the device. Raises OSError."""
        self._write(_END)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write(self, content: bytes) -> None:
        self._file.write(self._compressor.compress(content))


def members(path: str) -> Iterator[Member]:
    """The members of an archive, in their order, each checked against its frame's checksum.

    Raises
    ------
    NotAnArchive
        At the first frame that is cut, damaged, or of something else; so behind the last member of a file whose end is missing.
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as file:
        for content, end in _frames(path, file):
            if content == _END:
                if file.read(1):
                    raise NotAnArchive(path, f"something follows behind its end, at byte {end}")
                return
            yield _member(path, content, end)
    raise NotAnArchive(path, "its end is missing")


def _member(path: str, content: bytes, end: int) -> Member:
    try:
        info = tarfile.TarInfo.frombuf(content[:_BLOCK], "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise NotAnArchive(path, f"the frame before byte {end} has no file ({error})") from None
    if not info.isreg() or _BLOCK + info.size + -info.size % _BLOCK != len(content):
        raise NotAnArchive(path, f"the frame before byte {end} is not one whole file")
    return Member(info.name, content[_BLOCK : _BLOCK + info.size], end)


def _frames(path: str, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """The content of each frame, and where it ends; afterwards the file is there."""
    while (content := read_frame(path, file)) is not None:
        yield content, file.tell()


def read_frame(path: str, file: BinaryIO) -> bytes | None:
    """The content of the next frame of a file, which is behind it then; None at the end of the file.

    Raises
    ------
    NotAnArchive
        The frame is cut, damaged, too large or none.
    OSError
        The file cannot be read.
    """
    import zstandard

    at = file.tell()
    header = file.read(_HEADER)
    if not header:
        return None
    try:
        size = zstandard.get_frame_parameters(header).content_size
    except zstandard.ZstdError:
        raise NotAnArchive(path, f"there is no whole zstandard frame at byte {at}") from None
    if not 0 < size <= MEMBER_BYTES_MAX + 2 * _BLOCK:
        raise NotAnArchive(path, f"the frame at byte {at} is none of an archive, by its size")
    content = io.BytesIO()
    decompressor, piece = zstandard.ZstdDecompressor().decompressobj(), header
    while True:
        if not piece:
            raise NotAnArchive(path, f"it is cut inside of the frame at byte {at}")
        try:
            content.write(decompressor.decompress(piece))
        except zstandard.ZstdError as error:
            raise NotAnArchive(path, f"the frame at byte {at} is damaged ({error})") from None
        if decompressor.eof:
            break
        piece = file.read(_CHUNK)
    file.seek(-len(decompressor.unused_data), os.SEEK_CUR)
    return content.getvalue()
