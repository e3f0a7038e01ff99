"""What the archive has of the partitions that are led here. Read when leadership begins, then changed by the copier alone.

Thread-safe: a manifest is never changed, only put in place of another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from pylog_spark.archive.store.layout import partition_folder
from pylog_spark.archive.store.manifest import Manifest
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.reading import load_footer
from pylog_spark.archive.store.segment import open_frame
from pylog_spark.archive.store.writing import read_manifest
from pylog_spark.archive.tiered.broker import Partition
from pylog_spark.client.errors import LogError, translated

if TYPE_CHECKING:
    from pylog_spark._native import BrokerArchives

log = logging.getLogger("pylog.broker.archive")


class Size(NamedTuple):
    """How large a part of an archive is: segments, bytes of batches in them, and bytes of their objects."""

    segments: int
    bytes: int
    stored_bytes: int


class KnownArchive:
    """The manifests of the partitions that are led here.

    Parameters
    ----------
    objects : Objects
        The archive.
    archives : BrokerArchives
        The broker, which hears of them.
    """

    def __init__(self, objects: Objects, archives: BrokerArchives) -> None:
        self._objects, self._archives = objects, archives
        self._manifests: dict[tuple[str, int], Manifest] = {}
        self._sizes: dict[tuple[str, int], Size] = {}
        self._stopped: dict[tuple[str, int], int] = {}

    def manifest(self, key: tuple[str, int]) -> Manifest | None:
        """What the archive has, as was known last."""
        return self._manifests.get(key)

    def sizes(self, led: Iterable[Partition]) -> dict[str, Size]:
        """By topic, how much the archive has of those of some partitions of which that is known."""
        found: dict[str, Size] = {}
        for at in led:
            if at.is_known and (size := self._sizes.get(at.key)) is not None:
                found[at.topic] = Size(*map(sum, zip(found.get(at.topic, Size(0, 0, 0)), size, strict=True)))
        return found

    def may_copy(self, at: Partition) -> bool:
        """Whether the archive and the log are one history, as far as is known in this leadership."""
        return self._stopped.get(at.key) != at.leader_epoch

    def learn(self, at: Partition) -> Manifest:
        """Read what the archive has of a partition, and tell the broker. Raises `LogError`, OSError."""
        # What is in a manifest is removed here: one that a killed writer has left is to survive that.
        self._objects.make_durable(partition_folder(at.topic, at.topic_id, at.partition))
        _, manifest = read_manifest(self._objects, at.topic, at.topic_id, at.partition)
        end = self._common_end(at, manifest)
        if end < manifest.copied_until:
            self._stopped[at.key] = at.leader_epoch
            log.error(
                "%s: the archive has the offsets up to %d, and from offset %d on others than the log, which has lost records since they "
                "were archived. Nothing of it is copied any more, nor deleted here: set remote.storage.enable=false, or use another "
                "archive.url.",
                at.name,
                manifest.copied_until,
                end,
            )
        else:
            self._stopped.pop(at.key, None)
        self.take(at, manifest, min(end, manifest.end))
        return manifest

    def take(self, at: Partition, manifest: Manifest, end: int | None = None) -> None:
        """This is what the archive has now. Raises `LogError` when the partition is not led here any more."""
        self._manifests[at.key] = manifest
        segments = manifest.segments
        self._sizes[at.key] = Size(len(segments), sum(each.bytes for each in segments), manifest.bytes)
        end = manifest.end if end is None else end
        start = min(manifest.start, end)
        # Epochs of another history would hide from consumers that the log was truncated.
        epochs = [each for each in epochs_of(manifest) if each[1] < end]
        if not self._archives.set_archived(at.topic_id, at.partition, at.leader_epoch, (start, end), epochs):
            raise LogError("NOT_LEADER_OR_FOLLOWER", f"{at.name} is not led here any more.")

    def _common_end(self, at: Partition, manifest: Manifest) -> int:
        """The offset up to which the archive has the same records as the log, as far as that is found out; raises `LogError`, OSError."""
        end = common_end(manifest, lambda epoch: self._archives.epoch_end(at.topic_id, at.partition, epoch))
        if end < manifest.copied_until or self._has_last_batch(at, manifest):
            return end
        # Where the log has other records is not known: what it has itself counts.
        return max(manifest.start, min(at.start, end))

    def _has_last_batch(self, at: Partition, manifest: Manifest) -> bool:
        """Whether the last batch of the archive stands in the log, or is not there any more.

        A broker alone has one leader epoch for ever, so after a loss of records that does not tell its histories apart.
        """
        if not manifest.segments or manifest.copied_until <= max(at.start, manifest.start):
            return True
        with translated():
            found = self._archives.read(at.topic_id, at.partition, at.leader_epoch, manifest.copied_until - 1, 1)
        if found is None or not found[0]:
            return True
        segment = manifest.segments[-1]
        folder = partition_folder(manifest.topic, manifest.topic_id, manifest.partition)
        path = f"{folder}/{segment.name}"
        frame = load_footer(self._objects, path, segment.size).frames[-1]
        stored = self._objects.read_part(path, frame.position, frame.size)
        return open_frame(stored, frame, path).endswith(found[0])


def common_end(manifest: Manifest, epoch_end: Callable[[int], tuple[int, int] | None]) -> int:
    """The offset up to which an archive and a log are one history by their leader epochs (KIP-101).

    `epoch_end` gives of a leader epoch the largest one up to it that the log knows, and where that ends; None for one that is newer than all of them.
    """
    epochs = epochs_of(manifest)
    if not epochs:
        return manifest.copied_until
    ends = [start for _, start in epochs[1:]] + [manifest.copied_until]
    for (epoch, start), end in zip(reversed(epochs), reversed(ends), strict=True):
        found = epoch_end(epoch)
        if found is not None and (found[0] == epoch or found[1] >= end):
            return min(end, found[1])
        if start <= manifest.start:
            break
    return manifest.start


def epochs_of(manifest: Manifest) -> list[tuple[int, int]]:
    """The leader epochs of all segments, each with its first offset."""
    found: list[tuple[int, int]] = []
    for segment in manifest.segments:
        found += [each for each in segment.epochs if not found or each[0] > found[-1][0]]
    return found
