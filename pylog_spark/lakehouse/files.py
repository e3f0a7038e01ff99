"""Files and folders of a table: what a commit needs of a file system, which is that a file appears whole, and once.

In a local folder a commit is written under another name, brought to the device, and given its own name by a link, which fails where
that name exists. Data files are on the device before a commit names them.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from pylog_spark.errors import PylogError


class LocalFiles:
    """A folder of this machine; names are relative to it."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).absolute()

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none when it does not exist."""
        try:
            return os.listdir(self.root / folder)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.root / name).read_text()

    def put_if_absent(self, name: str, text: str) -> bool:
        """Make a file, unless there is one of this name; whether it was made. Nobody sees a part of it."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{uuid.uuid4().hex}")
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, target)
        except FileExistsError:
            return False
        finally:
            part.unlink()
        _sync(target.parent)
        return True

    def data_files(self, folder: str) -> Iterator[tuple[str, int]]:
        """The files of a folder, and of those below, that readers of Parquet would take: path below `folder`, and size."""
        top = self.root / folder
        for place, folders, names in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(("_", "."))]
            for name in names:
                if not name.startswith(("_", ".")):
                    path = Path(place, name)
                    yield str(path.relative_to(top)), path.stat().st_size

    def move(self, name: str, to: str) -> None:
        """Bring a file to the device, and give it another name in another folder."""
        target = self.root / to
        target.parent.mkdir(parents=True, exist_ok=True)
        _sync(self.root / name)
        os.rename(self.root / name, target)
        _sync(target.parent)

    def remove_tree(self, folder: str) -> None:
        """Remove a folder with all that is in it, if it exists."""
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        (self.root / name).unlink(missing_ok=True)


def files_of(path: str) -> LocalFiles:
    """Give the files of a table.

    Raises
    ------
    PylogError
        ``PYLOG_INVALID_OPTION`` for a file system that is not local.
    """
    parsed = urlparse(path)
    if parsed.scheme not in ("", "file"):
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"A table of Parquet files lies in a local folder, not in {parsed.scheme}: yet; give a path such as /data/orders.",
        )
    return LocalFiles(unquote(parsed.path) if parsed.scheme else path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
