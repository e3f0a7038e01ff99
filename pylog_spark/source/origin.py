"""Where the log of a query is: at brokers, or in a data directory that is read without them.

Both are asked in the same way (topics, offsets, how far limits reach), and give records to the same native reader.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.errors import native

if TYPE_CHECKING:
    from pylog_spark._native import Client, LogDirectory

    #: What questions go to.
    Asked = Client | LogDirectory

_log = logging.getLogger("pylog_spark")


@dataclass(frozen=True)
class Origin:
    """Where the records are; plain values, pickled with a reader.

    Attributes
    ----------
    client : mapping of str to str
        Settings of the native client; of a directory only ``isolation.level``.
    path : str or None
        The data directory; None at brokers.
    skip_damaged : bool
        Whether bytes of the directory that are no batches are left out, with a warning, instead of failing the read.
    """

    client: Mapping[str, str]
    path: str | None = None
    skip_damaged: bool = False

    def open(self) -> Asked:
        """Give what answers questions; nothing is connected yet, a directory is looked at. The caller closes it.

        Raises
        ------
        NativeError
            The directory is none, or the settings are wrong.
        """
        return native().Client(dict(self.client)) if self.path is None else self.directory(self.path)

    def directory(self, path: str) -> LogDirectory:
        """Give the data directory at `path` as this query reads it."""
        return native().LogDirectory(path, self.client.get("isolation.level", "read_uncommitted"), self.skip_damaged)

    def __str__(self) -> str:
        return self.path or self.client["bootstrap.servers"]


def warn(directory: LogDirectory) -> None:
    """Say in the log of this process what was left out of a directory, and why logs of it end where they do."""
    for line in directory.take_notices():
        _log.warning("%s", line)
