"""Opens folders on any file system that `pyarrow.fs` knows: a local path, ``s3://``, ``gs://``, ``hdfs://``; and what fsspec opens, where it is installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def is_url(location: str) -> bool:
    """Whether a location is a URL, not a path of this machine."""
    return "://" in location or location.startswith("file:")


def open_folder(location: str) -> tuple[FileSystem, str]:
    """Give the file system of a location, and the path of the location there, without a slash at its end.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: a URL of a kind that nobody opens.
    """
    from pyarrow.fs import FileSystem, LocalFileSystem

    if not is_url(location):
        return LocalFileSystem(), os.path.abspath(location)
    try:
        system, root = FileSystem.from_uri(location)
    except (OSError, ValueError) as error:
        found = _by_fsspec(location)
        if found is None:
            from pylog_spark.client.errors import LogError

            raise LogError("INVALID_ARGUMENT", f"{location} cannot be opened: {error}.") from None
        system, root = found
    return system, root.rstrip("/")


def _by_fsspec(location: str) -> tuple[FileSystem, str] | None:
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from fsspec.core import url_to_fs
    except ImportError:
        return None
    try:
        system, root = url_to_fs(location)
    except (OSError, ValueError, ImportError):
        return None
    return PyFileSystem(FSSpecHandler(system)), root
