"""Where the log of a query is: at brokers, or in a data directory or an archive that is read without them.

All are asked in the same way (topics, offsets, how far limits reach), and give records to the same native reader.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylog_spark.archive.store.opening import open_stored
from pylog_spark.errors import native
from pylog_spark.source.joined import JoinedLog

if TYPE_CHECKING:
    from pylog_spark._native import Client
    from pylog_spark.archive.store.opening import StoredLog
    from pylog_spark.archive.store.reading import ArchiveLog

    #: What questions go to.
    Asked = Client | StoredLog | JoinedLog

_log = logging.getLogger("pylog_spark")


class Archive(NamedTuple):
    """The archive of the brokers' topics: where it is, and whether the brokers serve what is in it."""

    url: str
    is_served: bool


@dataclass(frozen=True)
class Origin:
    """Where the records are; plain values, pickled with a reader.

    Attributes
    ----------
    client : mapping of str to str
        Settings of the native client; of a directory only ``isolation.level``.
    path : str or None
        The data directory, or the archive; None at brokers.
    skip_damaged : bool
        Whether bytes of it that are no batches are left out, with a warning, instead of failing the read.
    archive : str or None
        An archive of the brokers' topics.
    cut : str or None
        Of the archive at `path` the cut that is read.
    """

    client: Mapping[str, str]
    path: str | None = None
    skip_damaged: bool = False
    archive: str | None = None
    cut: str | None = None

    def open(self) -> Asked:
        """Give what answers questions; nothing is connected yet, a directory is looked at. The caller closes it.

        Raises
        ------
        NativeError, LogError
            There is no directory or archive, or the settings are wrong.
        """
        if self.path is not None:
            return self.stored(self.path)
        client = native().Client(dict(self.client))
        return client if self.archive is None else JoinedLog(client, self._opened(self.archive))

    def _opened(self, url: str) -> ArchiveLog:
        from pylog_spark.archive.store.reading import ArchiveLog

        return ArchiveLog(url, self.client.get("isolation.level", "read_uncommitted"), self.skip_damaged)

    def stored(self, path: str) -> StoredLog:
        """Give the data directory or the archive at `path` as this query reads it. Raises as `open`."""
        return open_stored(path, self.client.get("isolation.level", "read_uncommitted"), self.skip_damaged, self.cut)

    def __str__(self) -> str:
        return self.path or self.client["bootstrap.servers"]


def warn(stored: StoredLog | JoinedLog) -> None:
    """Say in the log of this process what was left out of a directory or an archive, and why logs of it end where they do."""
    for line in stored.take_notices():
        _log.warning("%s", line)
