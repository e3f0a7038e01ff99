"""The store of a single broker: one file for each document under ``<data directory>/.pylog``.

A document is a file of two lines, its JSON and a trailer: ``{"revision": 3, "crc32": 123}``, the checksum over the
first line and the revision. A change
is written to a temporary file, synced, renamed over the old one, and the directory is synced: after a kill or power loss
the old or the new document is there, whole. Names ending in ``.tmp`` are left-overs of such a kill and are ignored.

Not guaranteed: several processes on one directory; the native server's lock of the data directory keeps them out, so take
it first. Not thread-safe: the control loop is its only caller.
"""

import json
import os
import zlib
from pathlib import Path

from pylog_spark.cluster.store import RevisionConflict, Stored, StoreError, Watcher

DIRECTORY = ".pylog"
_SUFFIX = ".json"
_TEMPORARY = "document.tmp"


class FileStore:
    """Documents as files. See the module for the promises and limits."""

    def __init__(self, data_dir: str | os.PathLike[str]) -> None:
        self._root = Path(data_dir) / DIRECTORY
        self._ephemeral: dict[str, bytes] = {}
        self._watchers: list[tuple[str, Watcher]] = []

    def get(self, path: str) -> Stored | None:
        if path in self._ephemeral:
            return Stored(self._ephemeral[path], 1)
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

    def compare_and_set(self, path: str, data: bytes, revision: int) -> int:
        self._expect(path, revision)
        file = self._file(path)
        try:
            _make_directory(file.parent)
            _replace(file, _seal(data, revision + 1))
        except OSError as error:
            raise StoreError(
                f"{file} cannot be written ({error.strerror}): check the disk and its permissions."
            ) from error
        self._tell(path)
        return revision + 1

    def delete(self, path: str, revision: int) -> None:
        self._expect(path, revision)
        file = self._file(path)
        try:
            file.unlink()
            _sync_directory(file.parent)
        except OSError as error:
            raise StoreError(
                f"{file} cannot be deleted ({error.strerror}): check the disk and its permissions."
            ) from error
        self._tell(path)

    def list(self, prefix: str) -> list[str]:
        found = [path for path in self._ephemeral if path.startswith(prefix)]
        start = self._root / prefix.rpartition("/")[0]
        for folder, _, names in os.walk(start):
            base = Path(folder).relative_to(self._root)
            found += [(base / name[: -len(_SUFFIX)]).as_posix() for name in names if name.endswith(_SUFFIX)]
        return sorted(path for path in found if path.startswith(prefix))

    def watch(self, prefix: str, watcher: Watcher) -> None:
        self._watchers.append((prefix, watcher))

    def put_ephemeral(self, path: str, data: bytes) -> None:
        self._expect(path, 0)
        self._ephemeral[path] = data
        self._tell(path)

    def close(self) -> None:
        self._ephemeral.clear()
        self._watchers.clear()

    def _file(self, path: str) -> Path:
        if not path or any(part in ("", ".", "..") or "\0" in part for part in path.split("/")):
            raise StoreError(f"{path!r} is not a path of a document.")
        return self._root / (path + _SUFFIX)

    def _expect(self, path: str, revision: int) -> None:
        stored = self.get(path)
        actual = stored.revision if stored is not None else 0
        if actual != revision:
            raise RevisionConflict(f"The document {path} is at revision {actual}, not {revision}: read it again.")

    def _tell(self, path: str) -> None:
        for prefix, watcher in self._watchers:
            if path.startswith(prefix):
                watcher(path)


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


def _replace(file: Path, content: bytes) -> None:
    """Write `content` so that after a crash `file` is the old one or the new one, whole."""
    temporary = file.parent / _TEMPORARY
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, file)
    _sync_directory(file.parent)


def _make_directory(directory: Path) -> None:
    """Create `directory` and its parents, each one synced into its parent."""
    if directory.is_dir():
        return
    _make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    _sync_directory(directory.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
