"""The objects of an archive: written whole, never changed, read in parts. Not thread-safe for writers; reading is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from copy import copy
from typing import TypeVar

from pylog_spark.archive.store.stores import open_store
from pylog_spark.client.errors import LogError

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

    Attributes
    ----------
    where : str
        The same, for messages.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: nobody opens such a URL, or it has credentials in it.
    """

    def __init__(self, url: str) -> None:
        self.where = url
        scheme, _, rest = url.partition("://")
        if "@" in rest.partition("/")[0]:
            sentence = f"The {scheme} URL has credentials in it, which plans and logs would show: leave them to the environment."
            raise LogError("INVALID_ARGUMENT", sentence)
        self._store, self._root = open_store(url)

    def below(self, folder: str) -> Objects:
        """Give the objects of a folder, as names relative to it."""
        found = copy(self)
        found.where = f"{self.where}/{folder}"
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
        return self._names(folder, are_folders=False)

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder. Raises OSError."""
        return self._names(folder, are_folders=True)

    def exists(self, name: str) -> bool:
        """Whether there is such an object. Raises OSError."""
        found = self._again(lambda: self._store.entry(self._path(name)))
        return found is not None and not found.is_folder

    def age_s(self, name: str, now_s: float) -> float:
        """For how many seconds the object has been there; 0 where the file system does not say. Raises OSError."""
        found = self._again(lambda: self._store.entry(self._path(name)))
        return 0.0 if found is None or found.changed_s is None else now_s - found.changed_s

    def read(self, name: str) -> bytes:
        """All of an object. Raises FileNotFoundError, OSError."""
        return self._again(lambda: self._store.read(self._path(name)))

    def read_part(self, name: str, position: int, size: int) -> bytes:
        """A part of an object; less where it ends. Raises FileNotFoundError, OSError."""
        return self._again(lambda: self._store.read_part(self._path(name), position, size))

    def put(self, name: str, content: bytes | bytearray) -> None:
        """Make an object. When this returns, it is there after a loss of power, too, as far as the file system promises that. Raises OSError."""
        self._again(lambda: self._store.put(self._path(name), content))

    def make_durable(self, folder: str) -> None:
        """Let the objects of a folder that are seen be there after a loss of power, too: who has put them may have been killed before they were.

        Raises OSError."""
        self._again(lambda: self._store.make_durable(self._path(folder)))

    def delete(self, name: str) -> None:
        """Remove an object; one that is gone already is none. Raises OSError."""
        try:
            self._again(lambda: self._store.delete(self._path(name)))
        except FileNotFoundError:
            return

    def _again(self, operation: Callable[[], Answer]) -> Answer:
        """Do what may be done twice, and do it again when a store over the network fails. Raises OSError."""
        tries = TRIES if self._store.is_remote else 1
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

    def _names(self, folder: str, *, are_folders: bool) -> list[str]:
        found = self._again(lambda: self._store.entries(self._path(folder)))
        return sorted(each.name for each in found if each.is_folder == are_folders)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
