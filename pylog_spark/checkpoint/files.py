"""The files of a checkpoint, on any file system that `pyarrow.fs` opens: a local folder, ``s3://``, ``gs://``, ``hdfs://``.

A file is replaced by a rename, so that a reader sees the old or the new one; in an object store, which has no rename, it is copied to its name, where
it appears whole, too. Where Hadoop keeps a checksum beside a file (``.NAME.crc``, on
local disks) it goes before the file does: Hadoop reads a file without one, and refuses one that does not fit. Nothing is deleted: what no
longer counts is moved. Not thread-safe.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog_spark.client.errors import LogError
from pylog_spark.file_systems import open_folder

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo


class CheckpointFiles:
    """A folder; names are relative to it, with slashes. Each method raises `LogError` when the file system refuses or is not there.

    Parameters
    ----------
    location : str
        A path of this machine, or a URL.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: the URL is of a kind that `pyarrow` does not open.
    """

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/") or location
        self._system, self._root = open_folder(location)

    def names(self, folder: str) -> list[str]:
        """The names of the files and folders in a folder; none when it does not exist."""
        return sorted(info.base_name for info in self._infos(folder, recursive=False))

    def all_files(self, folder: str = "") -> Iterator[str]:
        """All files below a folder."""
        from pyarrow.fs import FileType

        below = len(self._root) + 1
        for info in self._infos(folder, recursive=True):
            if info.type == FileType.File:
                yield info.path[below:]

    def newest_s(self, folder: str) -> float:
        """When the newest file of a folder was written, in seconds since 1970; 0 when there is none or the file system does not say."""
        times = [info.mtime.timestamp() for info in self._infos(folder, recursive=False) if info.mtime is not None]
        return max(times, default=0.0)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        with self._asked("read"), self._system.open_input_stream(self._path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Make a file, or replace it."""
        path, part = self._path(name), self._path(f"{_folder(name)}.pylog-{_base(name)}.tmp")
        with self._asked("written"):
            self._system.create_dir(os.path.dirname(path), recursive=True)
            with self._system.open_output_stream(part) as stream:
                stream.write(content)
            self._drop_checksum(name)
            self._system.move(part, path)

    def move(self, name: str, to: str) -> None:
        """Give a file another name in another folder, which is made."""
        path = self._path(to)
        with self._asked("written"):
            self._system.create_dir(os.path.dirname(path), recursive=True)
            self._drop_checksum(name)
            self._system.move(self._path(name), path)

    def _drop_checksum(self, name: str) -> None:
        from pyarrow.fs import FileType

        path = self._path(f"{_folder(name)}.{_base(name)}.crc")
        if self._system.get_file_info(path).type == FileType.File:
            self._system.delete_file(path)

    def _infos(self, folder: str, *, recursive: bool) -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(self._path(folder), allow_not_found=True, recursive=recursive)
        with self._asked("read"):
            return list(self._system.get_file_info(selector))

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            sentence = f"The checkpoint {self.location} cannot be {what}: {str(error).splitlines()[0].rstrip('.')}."
            raise LogError("CHECKPOINT_UNAVAILABLE", sentence) from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


def _folder(name: str) -> str:
    folder = os.path.dirname(name)
    return f"{folder}/" if folder else ""


def _base(name: str) -> str:
    return os.path.basename(name)
