"""The store of a single broker: one file for each document under ``<data directory>/.pylog``.

A document is a file of two lines, its JSON and a trailer: ``{"revision": 3, "crc32": 123}``, the checksum over the
first line and the revision. A change
is written to a temporary file, synced, renamed over the old one, and the directory is synced: after a kill or power loss
the old or the new document is there, whole. Those with secrets (`documents.PRIVATE`) are readable by the owner alone. Names ending in ``.tmp`` are left-overs of such a kill and are ignored.

Not guaranteed: several processes on one directory; the native server's lock of the data directory keeps them out, so take
it first. Not thread-safe: the control loop is its only caller.
"""

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from pylog_spark.cluster.documents import PRIVATE
from pylog_spark.cluster.store import Guard, RevisionConflict, Stored, StoreError, Write
from pylog_spark.cluster.store.durable import make_directory, replace_file, sync_directory

DIRECTORY = ".pylog"
_SUFFIX = ".json"


class FileStore:
    """Documents as files. See the module for the promises and limits."""

    def __init__(self, data_dir: str | os.PathLike[str]) -> None:
        self._root = Path(data_dir) / DIRECTORY

    def get(self, path: str) -> Stored | None:
        file = self._file(path)
        try:
            raw = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"{file} cannot be read ({error.strerror}): check its permissions and the disk."
            ) from error
        return _unseal(file, raw)

    def get_all(self, paths: Sequence[str]) -> list[Stored | None]:
        return [self.get(path) for path in paths]

    def write_all(
        self, writes: Sequence[Write], guard: Guard | None = None, notification: bytes | None = None
    ) -> list[int]:
        """Write one after the other: after a kill in between only the first ones are written. A single broker needs no notification."""
        for path, revision in [
            *((write.path, write.revision) for write in writes),
            *([(guard.path, guard.revision)] if guard else []),
        ]:
            self._expect(path, revision)
        return [self._write(write) for write in writes]

    def _write(self, write: Write) -> int:
        if write.data is None:
            self.delete(write.path, write.revision)
            return 0
        return self.compare_and_set(write.path, write.data, write.revision)

    def compare_and_set(self, path: str, data: bytes, revision: int) -> int:
        self._expect(path, revision)
        file = self._file(path)
        try:
            make_directory(file.parent)
            replace_file(file, _seal(data, revision + 1), private=path.startswith(PRIVATE))
        except OSError as error:
            raise StoreError(
                f"{file} cannot be written ({error.strerror}): check the disk and its permissions."
            ) from error
        return revision + 1

    def delete(self, path: str, revision: int) -> None:
        self._expect(path, revision)
        file = self._file(path)
        try:
            file.unlink()
            sync_directory(file.parent)
        except OSError as error:
            raise StoreError(
                f"{file} cannot be deleted ({error.strerror}): check the disk and its permissions."
            ) from error

    def paths(self, prefix: str) -> list[str]:
        found: list[str] = []
        start = self._root / prefix.rpartition("/")[0]
        for folder, _, names in os.walk(start):
            base = Path(folder).relative_to(self._root)
            found += [(base / name[: -len(_SUFFIX)]).as_posix() for name in names if name.endswith(_SUFFIX)]
        return sorted(path for path in found if path.startswith(prefix))

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def _file(self, path: str) -> Path:
        if not path or any(part in ("", ".", "..") or "\0" in part for part in path.split("/")):
            raise StoreError(f"{path!r} is not a path of a document.")
        return self._root / (path + _SUFFIX)

    def _expect(self, path: str, revision: int) -> None:
        stored = self.get(path)
        actual = stored.revision if stored is not None else 0
        if actual != revision:
            raise RevisionConflict(f"The document {path} is at revision {actual}, not {revision}: read it again.")


def _seal(data: bytes, revision: int) -> bytes:
    trailer = json.dumps({"revision": revision, "crc32": _checksum(data, revision)}).encode()
    return data + b"\n" + trailer + b"\n"


def _checksum(data: bytes, revision: int) -> int:
    return zlib.crc32(b"%d" % revision, zlib.crc32(data))


def _unseal(file: Path, raw: bytes) -> Stored:
    data, _, trailer = raw.rstrip(b"\n").rpartition(b"\n")
    try:
        fields = json.loads(trailer)
        revision, checksum = int(fields["revision"]), int(fields["crc32"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} is damaged (its last line is not a trailer): restore it from a copy.") from error
    if _checksum(data, revision) != checksum:
        raise StoreError(f"{file} is damaged (its checksum does not match): restore it from a copy.")
    return Stored(data, revision)
