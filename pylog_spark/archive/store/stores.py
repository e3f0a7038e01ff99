"""What a file system does for an archive, each operation once: a local disk by the standard library alone, all else by `pyarrow.fs`.

A broker whose archive is on a disk does not load pyarrow, which takes 40 MiB. Reading is thread-safe; no two threads put the same object.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from pylog_spark.file_systems import is_url, open_folder

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

#: Folders of which is remembered that they are on the device; with more it is begun anew.
_MOST_DURABLE = 10_000


class Entry(NamedTuple):
    """What is in a folder: its name there, whether it is a folder, and when it was changed (seconds since 1970; None where nobody says)."""

    name: str
    is_folder: bool
    changed_s: float | None


class Store(Protocol):
    """A file system. Paths are whole; each method raises OSError."""

    #: Whether an operation that failed may succeed when it is done again.
    is_remote: bool

    def entries(self, folder: str) -> list[Entry]:
        """Give what is in a folder; nothing when there is none."""

    def entry(self, path: str) -> Entry | None:
        """Give what is at a path; None when nothing is."""

    def read(self, path: str) -> bytes:
        """Give all of an object. Raises FileNotFoundError."""

    def read_part(self, path: str, position: int, size: int) -> bytes:
        """Give a part of an object; less where it ends. Raises FileNotFoundError."""

    def put(self, path: str, content: bytes | bytearray) -> None:
        """Make an object, or one that is there another one; nobody sees a part of it."""

    def make_durable(self, folder: str) -> None:
        """Let what stands in a folder, and the folder itself, be there after a loss of power, whoever has put it."""

    def delete(self, path: str) -> None:
        """Remove an object. Raises FileNotFoundError."""


def open_store(url: str) -> tuple[Store, str]:
    """Give the file system of a path or URL, and the path there, without a slash at its end.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: a URL of a kind that nobody opens.
    """
    if not is_url(url):
        return LocalStore(), os.path.abspath(url)
    if url.startswith("file:"):
        return LocalStore(), os.path.abspath(unquote(urlsplit(url).path))
    system, root = open_folder(url)
    return ArrowStore(system), root


class LocalStore:
    """A disk of this machine, or one that is mounted. What is put is there after a loss of power, as far as the disk promises that.

    A folder that is there may be one of a process that was killed before it was on the device: so the first object that is put into it
    lets it be there, with all folders above.
    """

    is_remote = False

    def __init__(self) -> None:
        self._durable: set[str] = set()

    def entries(self, folder: str) -> list[Entry]:
        """See `Store`."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
            return [Entry(each.name, each.is_dir(), None) for each in found]
        return []

    def entry(self, path: str) -> Entry | None:
        """See `Store`."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return Entry(os.path.basename(path), os.path.isdir(path), os.stat(path).st_mtime)
        return None

    def read(self, path: str) -> bytes:
        """See `Store`."""
        with open(path, "rb") as file:
            return file.read()

    def read_part(self, path: str, position: int, size: int) -> bytes:
        """See `Store`."""
        with open(path, "rb") as file:
            file.seek(position)
            return file.read(size)

    def put(self, path: str, content: bytes | bytearray) -> None:
        """See `Store`."""
        folder = os.path.dirname(path)
        if folder not in self._durable or not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            self.make_durable(folder)
        part = f"{path}.part"
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, path)
        # The name, too.
        _sync(folder)

    def make_durable(self, folder: str) -> None:
        """See `Store`."""
        with suppress(FileNotFoundError):
            _sync(folder)
            for above in PurePath(folder).parents:
                # Somebody else's folders far above may be closed to this process, or on a file system that does not sync any.
                with suppress(OSError):
                    _sync(above)
            if len(self._durable) >= _MOST_DURABLE:
                self._durable.clear()
            self._durable.add(folder)

    def delete(self, path: str) -> None:
        """See `Store`."""
        os.unlink(path)


def _sync(folder: str | PurePath) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class ArrowStore:
    """A file system of `pyarrow.fs`."""

    is_remote = True

    def __init__(self, system: FileSystem) -> None:
        self._system = system
        # An object store shows an object when it is whole; HDFS needs the folder, and a rename.
        self._shows_whole = system.type_name in ("s3", "gcs", "abfs")
        # Of GCS pyarrow shows only folders that have an object of their own.
        self._hides_folders = system.type_name == "gcs"

    def entries(self, folder: str) -> list[Entry]:
        """See `Store`."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(folder, allow_not_found=True, recursive=self._hides_folders)
        if self._hides_folders:
            return _first_names(folder, self._system.get_file_info(selector))
        return [each for info in self._system.get_file_info(selector) if (each := _entry(info)) is not None]

    def entry(self, path: str) -> Entry | None:
        """See `Store`."""
        return _entry(self._system.get_file_info(path))

    def read(self, path: str) -> bytes:
        """See `Store`."""
        with self._system.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())

    def read_part(self, path: str, position: int, size: int) -> bytes:
        """See `Store`."""
        with self._system.open_input_file(path) as file:
            return bytes(file.read_at(size, position))

    def put(self, path: str, content: bytes | bytearray) -> None:
        """See `Store`."""
        if self._shows_whole:
            self._write(path, content)
            return
        self._system.create_dir(os.path.dirname(path), recursive=True)
        part = f"{path}.part"
        self._write(part, content)
        with suppress(OSError):
            self._system.move(part, path)
        if self.entry(part) is not None:
            # HDFS moves nothing onto a file that is there, and WebHDFS does not say so.
            if self.entry(path) is not None:
                self._system.delete_file(path)
            self._system.move(part, path)

    def make_durable(self, folder: str) -> None:
        """See `Store`: what such a store shows is there."""

    def delete(self, path: str) -> None:
        """See `Store`."""
        self._system.delete_file(path)

    def _write(self, path: str, content: bytes | bytearray) -> None:
        with self._system.open_output_stream(path, compression=None) as stream:
            stream.write(content)


def _first_names(folder: str, below: Iterable[FileInfo]) -> list[Entry]:
    """What is in a folder, of all that is below it."""
    found: dict[str, Entry] = {}
    for info in below:
        name, is_deeper, _ = info.path[len(folder) + 1 :].partition("/")
        entry = Entry(name, True, None) if is_deeper else _entry(info)
        if entry is not None:
            found[entry.name] = entry
    return [*found.values()]


def _entry(info: FileInfo) -> Entry | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    changed = info.mtime
    return Entry(info.base_name, info.type == FileType.Directory, None if changed is None else changed.timestamp())
