"""Brings an archive up to what another one has, so that it can take its place, or be its copy in another store.

Objects go first, each read back and compared with its checksum, then the manifest that names them: so the copy is at each moment an archive, as the other
one was a moment before, while brokers write to that. What was cut goes on: an object that is there already is looked at, not copied. Memory: one object.
Not thread-safe.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pylog_spark.archive.store.cuts import all_cuts, encode_cut, own_archive
from pylog_spark.archive.store.layout import NO_ID, TOPIC, TOPICS, decode_topic, partition_folder, topic_folder
from pylog_spark.archive.store.manifest import Manifest, ManifestError
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import drop_lost, lost
from pylog_spark.archive.store.writing import PartitionWriter, read_manifest
from pylog_spark.client.errors import LogError

#: How often a partition is looked at again whose objects were deleted meanwhile: retention and prune do that.
_LOOKS = 5


class Synced(NamedTuple):
    """What a partition of the copy has now, and how much of that was brought."""

    topic: str
    partition: int
    start: int
    end: int
    copied: int
    bytes: int


def sync(source: Objects, target: Objects, report: Callable[[int], None]) -> Iterator[Synced]:
    """Bring all topics and cuts of `source` to `target`; what `target` has besides stays.

    Parameters
    ----------
    source, target : Objects
        Two archives.
    report : callable
        Called with the bytes of each object that is copied or found.

    Yields
    ------
    Synced
        Each partition, when it is whole.

    Raises
    ------
    LogError
        CORRUPT_ARCHIVE: `source` is damaged, or what is read back is not what was written. FENCED: `target` has records that `source` has not, because
        brokers or copies write there already.
    OSError
        One of them cannot be read or written; what was copied stays.
    """
    for name in source.folders(TOPICS):
        for folder in source.folders(f"{TOPICS}/{name}"):
            yield from _sync_topic(source, target, name, "" if folder == NO_ID else folder, report)
    for cut in all_cuts(source):
        if cut.is_own:
            yield from sync(own_archive(source, cut.name), own_archive(target, cut.name, create=True), report)
        target.put(cut.path, encode_cut(cut))


def _sync_topic(
    source: Objects, target: Objects, name: str, topic_id: str, report: Callable[[int], None]
) -> Iterator[Synced]:
    path = f"{topic_folder(name, topic_id)}/{TOPIC}"
    if not source.exists(path):
        return
    content = source.read(path)
    try:
        stored = decode_topic(content)
    except ManifestError as error:
        raise LogError("CORRUPT_ARCHIVE", f"{path} cannot be used: {error}.") from None
    if not target.exists(path) or target.read(path) != content:
        target.put(path, content)
    for partition in range(stored.partitions):
        yield _Partition(source, target, (name, topic_id, partition), report).sync()


class _Partition:
    """A partition in both archives."""

    def __init__(
        self, source: Objects, target: Objects, key: tuple[str, str, int], report: Callable[[int], None]
    ) -> None:
        self._source, self._target, self._key, self._report = source, target, key, report
        self._folder = partition_folder(*key)
        self._copied = self._bytes = 0

    def sync(self) -> Synced:
        """Bring it. Raises `LogError`, OSError."""
        for look in range(_LOOKS):
            _, wanted = read_manifest(self._source, *self._key)
            try:
                self._bring(wanted)
            except FileNotFoundError:
                # It was deleted since, with a newer manifest; or the source is damaged.
                if look + 1 == _LOOKS or read_manifest(self._source, *self._key)[1] == wanted:
                    raise
            else:
                return Synced(self._key[0], self._key[2], wanted.start, wanted.end, self._copied, self._bytes)
        raise AssertionError

    def _bring(self, wanted: Manifest) -> None:
        _, there = read_manifest(self._target, *self._key)
        self._check(wanted, there)
        if wanted == there:
            return
        with PartitionWriter(self._target, *self._key) as writer:
            self._check(wanted, there := writer.manifest)
            for segment in lost(wanted, there):
                path = f"{self._folder}/{segment.name}"
                if not self._has(path, segment.checksum):
                    content = self._source.read(path)
                    if zlib.crc32(content) != segment.checksum:
                        raise LogError("CORRUPT_ARCHIVE", f"{path} is damaged, and is not copied: look at the storage.")
                    writer.put(path, content)
                    self._copied, self._bytes = self._copied + 1, self._bytes + segment.size
                self._report(segment.size)
            writer.change(wanted)
            drop_lost(self._target, writer, there)

    def _check(self, wanted: Manifest, there: Manifest) -> None:
        """Raise `LogError` when the target goes on by itself."""
        own = [segment for segment in lost(there, wanted) if segment.next > wanted.start]
        if own:
            sentence = (
                f"{self._folder} of the copy has a segment at offset {own[0].first} that the other archive has not: brokers, or 'pylog archive copy', "
                "write there already, so nothing more is brought."
            )
            raise LogError("FENCED", sentence)

    def _has(self, path: str, checksum: int) -> bool:
        """Whether the target has an object, whole, that nobody has named yet."""
        try:
            return zlib.crc32(self._target.read(path)) == checksum
        except FileNotFoundError:
            return False
