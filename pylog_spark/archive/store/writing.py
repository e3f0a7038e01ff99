"""Adds segments to a partition of an archive: one writer at a time, and what a killed one left is in nobody's way.

An object is put, read again and compared, and only then named by a manifest. A writer that finds a later one stops, and one whose archive is
gone: where a disk was mounted an empty folder may be left. Not thread-safe.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from pylog_spark.archive.store.layout import SEGMENT_SUFFIX, partition_folder
from pylog_spark.archive.store.manifest import (
    Claim,
    Manifest,
    ManifestError,
    ManifestName,
    StoredSegment,
    claim,
    decode,
    encode,
    manifest_name,
)
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.root import open_root
from pylog_spark.client.errors import LogError

#: How many manifests before the newest stay, for readers that have listed them a moment ago.
_KEPT = 2
#: Bytes of an object that are read back at once.
_READ_BACK_BYTES = 2 << 20
#: How often a manifest is looked for again, that was listed and is gone.
_LOOKS = 5


def newest(objects: Objects, folder: str) -> ManifestName | None:
    """The name of the manifest of a partition that counts. Raises OSError."""
    return max(filter(None, map(manifest_name, objects.files(folder))), default=None)


def read_manifest(objects: Objects, topic: str, topic_id: str, partition: int) -> tuple[ManifestName | None, Manifest]:
    """What an archive has of a partition; an empty manifest when it has nothing.

    Raises
    ------
    LogError
        CORRUPT_ARCHIVE: the newest manifest makes no sense. INVALID_ARGUMENT: there is no archive.
    OSError
        The file system cannot be read.
    """
    folder = partition_folder(topic, topic_id, partition)
    for look in range(_LOOKS):
        name = newest(objects, folder)
        if name is None:
            open_root(objects, objects.where)
            return None, Manifest(topic, topic_id, partition)
        try:
            return name, decode(objects.read(f"{folder}/{name}"))
        except FileNotFoundError:
            # A writer has made newer ones and removed it.
            if look + 1 == _LOOKS:
                raise
        except ManifestError as error:
            raise LogError("CORRUPT_ARCHIVE", f"{folder}/{name} cannot be used: {error}.") from None
    raise AssertionError


class PartitionWriter:
    """Changes what an archive has of a partition; a context manager.

    From its making on earlier writers are refused.

    Parameters
    ----------
    objects : Objects
        The archive.
    topic, topic_id, partition
        Which one.

    Attributes
    ----------
    manifest : Manifest
        What it has.

    Raises
    ------
    LogError
        As `read_manifest`.
    OSError
        The file system cannot be read or written.
    """

    def __init__(self, objects: Objects, topic: str, topic_id: str, partition: int) -> None:
        self._objects = objects
        self._folder = partition_folder(topic, topic_id, partition)
        self._where = f"partition {partition} of topic {topic}"
        earlier = self._claims()
        if not earlier:
            # Before a claim is put where no archive is.
            open_root(objects, objects.where)
        self._claim = Claim(max((each.epoch for each in earlier), default=-1) + 1, secrets.token_hex(4))
        self._generation = 0
        objects.put(f"{self._folder}/{self._claim}", b"")
        # Behind the claim: who writes a manifest from here on sees it.
        _, self.manifest = read_manifest(objects, topic, topic_id, partition)

    def __enter__(self) -> PartitionWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What it has written stands above earlier writers without its claim, too.
        with suppress(OSError):
            self._objects.delete(f"{self._folder}/{self._claim}")

    def add(self, content: bytes | bytearray, segment: StoredSegment, still_open: Mapping[int, int]) -> None:
        """Put the object of a segment, whose name, size and checksum are filled in here, and name it in the manifest.

        Raises
        ------
        LogError
            FENCED: another writer has begun. CORRUPT_ARCHIVE: what is read back is not what was written.
        OSError
            The file system cannot be written; the object may be there, named or not.
        """
        name = f"{segment.first:020d}-{secrets.token_hex(4)}{SEGMENT_SUFFIX}"
        self.put(f"{self._folder}/{name}", content)
        named = replace(segment, name=name, size=len(content), checksum=zlib.crc32(content))
        self.change(self.manifest.with_segment(named, still_open))

    def put(self, path: str, content: bytes | bytearray) -> None:
        """Put an object of a segment that is named later.

        Raises
        ------
        LogError
            CORRUPT_ARCHIVE: what is read back is not what was written.
        OSError
            The file system cannot be written; the object may be there.
        """
        self._objects.put(path, content)
        if not self._is_stored(path, content):
            raise LogError("CORRUPT_ARCHIVE", f"{path} is not what was written: look at the storage.")

    def _is_stored(self, path: str, content: bytes | bytearray) -> bool:
        """Whether what is read back is `content`, part by part, so that it is not in memory twice."""
        parts = range(0, len(content), _READ_BACK_BYTES)
        view = memoryview(content)
        same = all(
            self._objects.read_part(path, begin, _READ_BACK_BYTES) == view[begin : begin + _READ_BACK_BYTES]
            for begin in parts
        )
        return same and not self._objects.read_part(path, len(content), 1)

    def change(self, manifest: Manifest) -> None:
        """Let the partition be what a manifest says. Raises `LogError` (FENCED), OSError; then it may be so or not."""
        self._check()
        name = ManifestName(*self._claim, self._generation)
        self._objects.put(f"{self._folder}/{name}", encode(manifest))
        self._check()
        self._generation += 1
        self.manifest = manifest
        self._drop_old(name)

    def unnamed(self) -> list[str]:
        """The objects of segments in the partition's folder that no manifest names, with the folder: of a writer that was killed, or still writes."""
        named = {segment.name for segment in self.manifest.segments}
        every = self._objects.files(self._folder)
        return [f"{self._folder}/{each}" for each in every if SEGMENT_SUFFIX in each and each not in named]

    def _claims(self) -> list[Claim]:
        return [*filter(None, map(claim, self._objects.files(self._folder)))]

    def _check(self) -> None:
        claims = self._claims()
        if any(each > self._claim for each in claims):
            sentence = f"Another process archives {self._where}, and has begun later: this one stops."
            raise LogError("FENCED", sentence)
        if self._claim not in claims:
            # A list of a store may be an old one; without the claim this is not the archive that it was put into.
            self._objects.read(f"{self._folder}/{self._claim}")

    def _drop_old(self, newest: ManifestName) -> None:
        """Remove manifests that do not count any more but for the newest of them, and claims of earlier writers."""
        names = self._objects.files(self._folder)
        known = sorted(filter(None, map(manifest_name, names)))
        old = [str(each) for each in known if each < newest][:-_KEPT]
        old += [
            each for each in names if manifest_name(each) is None and (found := claim(each)) and found < self._claim
        ]
        for name in old:
            self._objects.delete(f"{self._folder}/{name}")
