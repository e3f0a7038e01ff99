"""How a broker proves to ZooKeeper who it is, and who else may read and change its documents there.

With `protect`, a document can be changed only by who logs in as the same user; everybody may read it, except those with secrets
(`documents.PRIVATE`), which only that user may read. ZooKeeper's superuser may do everything.
"""

import os
from dataclasses import dataclass, field

from pylog_spark.cluster.store import StoreError


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a connection with TLS: the certificates that are trusted (`truststore`; without it the system's), the broker's own key with
    its certificates (`keystore`), all in PEM; whether the server's certificate must have its host name."""

    truststore: str | None = None
    keystore: str | None = None
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class Access:
    """See the module. `digest` is ``USER:PASSWORD``; without `tls` the connection is plain."""

    digest: str | None = field(default=None, repr=False)
    protect: bool = False
    tls: Tls | None = None


OPEN = Access()


def read_digest(path: str) -> str:
    """The first line of the file at `path`, which is ``USER:PASSWORD``. Raises `StoreError`, whose sentence has nothing of it."""
    try:
        with open(path, encoding="utf-8") as file:
            line = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise StoreError(f"zookeeper.digest.file={os.fspath(path)} cannot be read: {why}.") from None
    user, colon, password = line.partition(":")
    if not (user and colon and password):
        raise StoreError(f"The first line of zookeeper.digest.file={os.fspath(path)} must be USER:PASSWORD.")
    return line
