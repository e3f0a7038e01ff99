"""Deletes objects of segments that the partitions led here have lost to retention or to clients, and knows which are still to go, for monitoring.

A manifest is without a segment before its object goes. What could not be deleted is tried again at each turn; who is killed, or leads no more, leaves
it to the sweep of the next leader. Thread-safe: one thread changes it, and any may read `lag`. Memory: what manifests named.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from pylog_spark.archive.store.layout import partition_folder
from pylog_spark.archive.store.manifest import Manifest, StoredSegment
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import Dropped, lost
from pylog_spark.archive.tiered.broker import Partition
from pylog_spark.archive.tiered.counting import Counting

_Key = tuple[str, int]
_Segments = tuple[StoredSegment, ...]


class Removals:
    """What is deleted, and is to be.

    Parameters
    ----------
    objects : Objects
        The archive.
    counting : Counting
        Where it is counted.
    """

    def __init__(self, objects: Objects, counting: Counting) -> None:
        self._objects, self._counting = objects, counting
        self._lock = threading.Lock()
        self._topics: dict[_Key, str] = {}
        self._due: dict[_Key, _Segments] = {}
        self._left: dict[_Key, _Segments] = {}

    def expect(self, at: Partition, manifest: Manifest, start: int) -> None:
        """The log is to begin at an offset: the segments before that are to go, but for the last one of all."""
        self._note(self._due, at, tuple(each for each in manifest.segments[:-1] if each.next <= start))

    def is_behind(self, at: Partition) -> bool:
        """Whether something of a partition is to go."""
        return at.key in self._due or at.key in self._left

    def lost(self, at: Partition, before: Manifest, after: Manifest) -> None:
        """A manifest was changed: what only the one before names is to go now."""
        self._note(self._due, at, ())
        self._note(self._left, at, (*self._left.get(at.key, ()), *lost(before, after)))

    def drop(self, at: Partition) -> Dropped:
        """Delete the objects that no manifest names any more. Raises OSError: the rest is tried the next time."""
        left = self._left.get(at.key, ())
        size = 0
        for number, segment in enumerate(left):
            self._objects.delete(f"{partition_folder(at.topic, at.topic_id, at.partition)}/{segment.name}")
            self._counting.deleted()
            size += segment.size
            self._note(self._left, at, left[number + 1 :])
        return Dropped(len(left), size)

    def keep(self, led: Collection[_Key]) -> None:
        """Forget all partitions but those that are led here."""
        with self._lock:
            for key in self._topics.keys() - set(led):
                del self._topics[key]
                self._due.pop(key, None)
                self._left.pop(key, None)

    def lag(self) -> dict[str, tuple[int, int]]:
        """By topic the segments that are to go, and the bytes of batches in them."""
        found: dict[str, tuple[int, int]] = {}
        with self._lock:
            for key, topic in self._topics.items():
                behind = (*self._due.get(key, ()), *self._left.get(key, ()))
                count, size = found.get(topic, (0, 0))
                found[topic] = (count + len(behind), size + sum(each.bytes for each in behind))
        return found

    def _note(self, where: dict[_Key, _Segments], at: Partition, segments: _Segments) -> None:
        with self._lock:
            self._topics[at.key] = at.topic
            if segments:
                where[at.key] = segments
            else:
                where.pop(at.key, None)
