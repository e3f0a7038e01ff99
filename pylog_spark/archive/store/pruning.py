"""Removes what is old from an archive, and what writers that were killed have left in it.

A manifest without it comes first, then the objects go: who reads them meanwhile gets an error that says so. Not thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from pylog_spark.archive.store.cuts import all_cuts, kept_from
from pylog_spark.archive.store.layout import partition_folder
from pylog_spark.archive.store.manifest import Manifest, StoredSegment
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.writing import PartitionWriter

#: For how many seconds an object that no manifest names is left alone: its writer may be about to name it.
GRACE_S = 3_600


class Pruned(NamedTuple):
    """What was removed of a partition: segments, their bytes, and objects that nobody named; and where it starts now."""

    topic: str
    partition: int
    start: int
    segments: int
    bytes: int
    unnamed: int


def prune(
    objects: Objects, topic: str, topic_id: str, partitions: int, before_ms: int | None, grace_s: float = GRACE_S
) -> Iterator[Pruned]:
    """Remove the segments of a topic of which all records are older than `before_ms`, but for each partition's last one; none when it is None.

    Raises
    ------
    LogError
        Another process changes the archive.
    OSError
        It cannot be read or written. What was removed stays so.
    """
    for partition in range(partitions):
        with PartitionWriter(objects, topic, topic_id, partition) as writer:
            before = writer.manifest
            if before_ms is not None:
                _remove(objects, writer, before_ms)
            gone = drop_lost(objects, writer, before)
            left = drop_unnamed(objects, writer, grace_s)
            yield Pruned(topic, partition, writer.manifest.start, gone.segments, gone.bytes, left)


class Dropped(NamedTuple):
    """How many segments are gone, and bytes of their objects."""

    segments: int
    bytes: int


def lost(before: Manifest, after: Manifest) -> tuple[StoredSegment, ...]:
    """The segments that a manifest named before, and does not name now: their objects may go."""
    kept = {segment.name for segment in after.segments}
    return tuple(segment for segment in before.segments if segment.name not in kept)


def drop_lost(objects: Objects, writer: PartitionWriter, before: Manifest) -> Dropped:
    """Remove the objects of segments that a partition's manifest named before, and does not now. Raises OSError."""
    after = writer.manifest
    folder = partition_folder(after.topic, after.topic_id, after.partition)
    gone = lost(before, after)
    for segment in gone:
        objects.delete(f"{folder}/{segment.name}")
    return Dropped(len(gone), sum(segment.size for segment in gone))


def drop_unnamed(objects: Objects, writer: PartitionWriter, grace_s: float = GRACE_S) -> int:
    """Remove what writers that were killed have left of a partition; how many objects. Raises OSError."""
    left = [path for path in writer.unnamed() if objects.age_s(path, time.time()) > grace_s]
    for path in left:
        objects.delete(path)
    return len(left)


def _remove(objects: Objects, writer: PartitionWriter, before_ms: int) -> None:
    """Let the manifest be without segments that are older and that no cut needs."""
    before = writer.manifest
    young = next((each.first for each in before.segments if each.max_timestamp >= before_ms), before.copied_until)
    # Behind the claim: who makes a cut from here on refuses this writer (`cuts`).
    needed = kept_from(all_cuts(objects), before.topic, before.topic_id, before.partition)
    writer.change(before.without_before(young if needed is None else min(young, needed)))
