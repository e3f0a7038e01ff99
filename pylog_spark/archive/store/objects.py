"""The objects of an archive: written whole, never changed, read in parts. Not thread-safe for writers; reading is."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, TypeVar

from pylog_spark.client.errors import LogError
from pylog_spark.file_systems import open_folder

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo


_log = logging.getLogger("pylog_spark")

#: How often an operation of a store over the network is tried, beside what its own client does.
TRIES = 5
_PAUSE_S = 0.05

Answer = TypeVar("Answer")


class Objects:
    """A folder of a file system; names are relative to it, with slashes.

    Parameters
    ----------
    url : str
        A path of this machine, or a URL that `pyarrow.fs` opens.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: nobody opens such a URL, or it has credentials in it.
    """

    def __init__(self, url: str) -> None:
        from pyarrow.fs import LocalFileSystem

        scheme, _, rest = url.partition("://")
        if "@" in rest.partition("/")[0]:
            sentence = f"The {scheme} URL has credentials in it, which plans and logs would show: leave them to the environment."
            raise LogError("INVALID_ARGUMENT", sentence)
        self._system, self._root = open_folder(url)
        self._is_local = isinstance(self._system, LocalFileSystem)

    def below(self, folder: str) -> Objects:
        """Give the objects of a folder, as names relative to it."""
        found = copy(self)
        found._root = self._path(folder)
        return found

    def all_files(self, folder: str) -> Iterator[str]:
        """Give the names of all objects below a folder. Raises OSError."""
        prefix = f"{folder}/" if folder else ""
        yield from (prefix + name for name in self.files(folder))
        for each in self.folders(folder):
            yield from self.all_files(prefix + each)

    def files(self, folder: str) -> list[str]:
        """The names of the objects in a folder, without the folder's own; none when there is no such folder. Raises OSError."""
        from pyarrow.fs import FileType

        return sorted(info.base_name for info in self._infos(folder) if info.type == FileType.File)

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder. Raises OSError."""
        from pyarrow.fs import FileType

        return sorted(info.base_name for info in self._infos(folder) if info.type == FileType.Directory)

    def exists(self, name: str) -> bool:
        """Whether there is such an object. Raises OSError."""
        from pyarrow.fs import FileType

        return self._again(lambda: bool(self._system.get_file_info(self._path(name)).type == FileType.File))

    def age_s(self, name: str, now_s: float) -> float:
        """For how many seconds the object has been there; 0 where the file system does not say. Raises OSError."""
        changed = self._again(lambda: self._system.get_file_info(self._path(name))).mtime
        return 0.0 if changed is None else now_s - changed.timestamp()

    def read(self, name: str) -> bytes:
        """All of an object. Raises FileNotFoundError, OSError."""
        return self._again(lambda: self._read(self._path(name)))

    def read_part(self, name: str, position: int, size: int) -> bytes:
        """A part of an object; less where it ends. Raises FileNotFoundError, OSError."""
        return self._again(lambda: self._read_part(self._path(name), position, size))

    def put(self, name: str, content: bytes | bytearray) -> None:
        """Make an object. When this returns, it is there after a loss of power, too, as far as the file system promises that. Raises OSError."""
        path = self._path(name)
        if self._is_local:
            _put_file(path, content)
            return
        # An object store shows an object when it is whole; HDFS needs the folder, and a rename.
        if self._system.type_name in ("s3", "gcs", "abfs"):
            self._again(lambda: self._write(path, content))
            return
        self._again(lambda: self._write_and_move(path, content))

    def delete(self, name: str) -> None:
        """Remove an object; one that is gone already is none. Raises OSError."""
        try:
            self._again(lambda: self._system.delete_file(self._path(name)))
        except FileNotFoundError:
            return

    def _again(self, operation: Callable[[], Answer]) -> Answer:
        """Do what may be done twice, and do it again when a store over the network fails. Raises OSError."""
        tries = 1 if self._is_local else TRIES
        while True:
            tries -= 1
            try:
                return operation()
            except FileNotFoundError:
                raise
            except OSError as error:
                if tries == 0:
                    raise
                pause_s = _PAUSE_S * 2 ** (TRIES - tries - 1)
                _log.info("The store of an archive failed, and is asked again in %.2g s: %s", pause_s, error)
                time.sleep(pause_s)

    def _read(self, path: str) -> bytes:
        with self._system.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())

    def _read_part(self, path: str, position: int, size: int) -> bytes:
        with self._system.open_input_file(path) as file:
            return bytes(file.read_at(size, position))

    def _write_and_move(self, path: str, content: bytes | bytearray) -> None:
        self._system.create_dir(os.path.dirname(path), recursive=True)
        self._write(f"{path}.part", content)
        self._system.move(f"{path}.part", path)

    def _write(self, path: str, content: bytes | bytearray) -> None:
        with self._system.open_output_stream(path, compression=None) as stream:
            stream.write(content)

    def _infos(self, folder: str) -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(self._path(folder), allow_not_found=True, recursive=False)
        return self._again(lambda: list(self._system.get_file_info(selector)))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


def _put_file(path: str, content: bytes | bytearray) -> None:
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    part = f"{path}.part"
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(part, path)
    # The name, too.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
