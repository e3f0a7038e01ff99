"""Opens what has logs without brokers: a data directory, or an archive. Both answer in the same way.

Every task of Spark imports this file, so it imports little itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pylog_spark.file_systems import is_url

if TYPE_CHECKING:
    from pylog_spark._native import LogDirectory
    from pylog_spark.archive.store.reading import ArchiveLog

    #: A data directory or an archive.
    StoredLog = LogDirectory | ArchiveLog


def is_archive(location: str) -> bool:
    """Whether a location is to be opened as an archive: a URL, or a folder that says it is one."""
    from pylog_spark.archive.store.layout import ROOT

    return is_url(location) or os.path.exists(os.path.join(location, ROOT))


def open_stored(location: str, isolation_level: str, skip_damaged: bool, cut: str | None = None) -> StoredLog:
    """Open a data directory or an archive, or of an archive a cut.

    Raises
    ------
    LogError, NativeError
        INVALID_ARGUMENT: it is neither, or a directory with a cut. KAFKA_STORAGE_ERROR: it cannot be read.
    """
    if is_archive(location):
        from pylog_spark.archive.store.reading import ArchiveLog

        return ArchiveLog(location, isolation_level, skip_damaged, cut)
    if cut is not None:
        from pylog_spark.client.errors import LogError

        raise LogError("INVALID_ARGUMENT", f"{location} is no archive, so there is no cut {cut!r} in it.")
    from pylog_spark._native import LogDirectory

    return LogDirectory(location, isolation_level, skip_damaged)


def present(stored: StoredLog | None, topic: str, partition: int, start: int, end: int) -> list[tuple[int, int]]:
    """Give the parts of [start, end) that are read: all of it, but for gaps of an archive that are to be skipped. Raises `LogError`."""
    from pylog_spark._native import LogDirectory

    if stored is None or isinstance(stored, LogDirectory):
        return [(start, end)]
    return stored.present(topic, partition, start, end)


def of_reader(stored: StoredLog | None) -> dict[str, Any]:
    """The argument by which a `RangeReader` reads it; none of brokers."""
    from pylog_spark._native import LogDirectory

    if stored is None:
        return {}
    return {"directory": stored} if isinstance(stored, LogDirectory) else {"feed": stored.feed()}
