"""Copies the closed segments of the partitions that are led here into the archive, and deletes there what is older than retention allows.

One thread. An object is in the archive, read back and named by the manifest before the broker hears of it; only then may the broker delete its
own. So a broker that is killed at any moment leaves at most an object that nobody names, which the next one sweeps. Memory: one object.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pylog_spark.archive.store.copying import CopyOptions, PartitionCopy, store_topic
from pylog_spark.archive.store.cuts import all_cuts, kept_from
from pylog_spark.archive.store.layout import StoredTopic
from pylog_spark.archive.store.manifest import Manifest
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import drop_unnamed
from pylog_spark.archive.store.writing import PartitionWriter
from pylog_spark.archive.tiered.broker import Partition, Question, led_partitions
from pylog_spark.archive.tiered.counting import Counting
from pylog_spark.archive.tiered.known import KnownArchive
from pylog_spark.archive.tiered.removing import Removals
from pylog_spark.client.errors import LogError, translated

if TYPE_CHECKING:
    from pylog_spark._native import BrokerArchives

log = logging.getLogger("pylog.broker.archive")


@dataclass(frozen=True, slots=True)
class CopierSettings:
    """How a broker copies.

    Attributes
    ----------
    options : CopyOptions
        Level and sizes.
    bytes_per_second : int
        Most bytes of batches that are copied in a second.
    """

    options: CopyOptions
    bytes_per_second: int


class Copier:
    """Copies what is there to copy, whenever it is asked to.

    Parameters
    ----------
    objects : Objects
        The archive.
    archives : BrokerArchives
        The broker.
    known : KnownArchive
        What the archive has.
    settings : CopierSettings
        How.
    counting : Counting
        Where it is counted.
    removals : Removals
        What deletes objects.
    topic_of : callable
        Gives a topic of the cluster by its name, as it is written into the archive; None when it is gone.
    closing : threading.Event
        Ends a pass, between two objects.
    """

    def __init__(
        self,
        objects: Objects,
        archives: BrokerArchives,
        known: KnownArchive,
        settings: CopierSettings,
        counting: Counting,
        removals: Removals,
        topic_of: Callable[[str], StoredTopic | None],
        closing: threading.Event,
    ) -> None:
        self._objects, self._archives, self._known, self._settings = objects, archives, known, settings
        self._counting, self._removals, self._topic_of, self._closing = counting, removals, topic_of, closing
        self._stored: dict[str, StoredTopic] = {}
        self._swept: set[tuple[str, int, int]] = set()
        self._failing: dict[tuple[str, int], str] = {}
        self._not_deleting: dict[tuple[str, int], str] = {}
        #: Questions of clients that want records to be deleted.
        self.deletions: queue.SimpleQueue[Question] = queue.SimpleQueue()

    def turn(self) -> None:
        """Copy and delete all that is due; what fails is said, and tried again the next time."""
        self.delete_asked()
        led = led_partitions(self._archives)
        self._removals.keep({at.key for at in led})
        for at in led:
            if self._closing.is_set():
                return
            if not at.is_known or not self._known.may_copy(at):
                continue
            try:
                self._keep_up(at)
                self._failing.pop(at.key, None)
            except (LogError, OSError) as error:
                self._say_failure(at, error)
            self._drop(at)
            self.delete_asked()

    def delete_asked(self) -> None:
        """Do what clients wait for."""
        with suppress(queue.Empty):
            while True:
                question = self.deletions.get_nowait()
                try:
                    self._delete(question)
                except (LogError, OSError) as error:
                    log.warning("%s: records cannot be deleted from the archive: %s", question.name, error)
                    kind = error.kind if isinstance(error, LogError) else ""
                    if not kind:
                        self._counting.delete_failed()
                    self._archives.refuse(question.number, kind)
                else:
                    self._archives.answer_offset(question.number)

    def _keep_up(self, at: Partition) -> None:
        manifest = self._known.manifest(at.key)
        if manifest is None:
            return
        start = start_to_keep(at, manifest, time.time_ns() // 1_000_000)
        self._removals.expect(at, manifest, start)
        if start > manifest.start:
            start = self._where_no_cut_needs_more(at, start)
            self._removals.expect(at, manifest, start)
        if not _lacks(manifest, at) and start <= manifest.start:
            return
        self._store_topic(at)
        with PartitionWriter(self._objects, at.topic, at.topic_id, at.partition) as writer:
            if writer.manifest != manifest:
                # 'pylog archive' or 'pylog cut' has changed it.
                self._known.take(at, writer.manifest)
            self._sweep(at, writer)
            if start > writer.manifest.start:
                self._remove_before(at, writer, start)
            for segment in self._copied(at, writer):
                log.info(
                    "%s: the offsets %d to %d are in the archive now (%d bytes, in %d).",
                    at.name, segment[0], segment[1] - 1, segment[2], segment[3],
                )  # fmt: skip
                if self._closing.is_set() or not self.deletions.empty():
                    return

    def _copied(self, at: Partition, writer: PartitionWriter) -> Iterator[tuple[int, int, int, int]]:
        """Copy; gives each segment, when the broker knows of it: first offset, the one behind, bytes of batches and of the object."""
        if at.closed_until is None or not _lacks(writer.manifest, at):
            return
        say = partial(log.warning, "Archiving %s: %s.", at.name)
        copy = PartitionCopy(partial(self._fetch, at), writer, self._settings.options, at.start, at.closed_until, say)
        for segment in copy.segments():
            self._known.take(at, writer.manifest)
            self._counting.copied(segment.bytes)
            yield segment.first, segment.next, segment.bytes, segment.size

    def _fetch(self, at: Partition, position: int, most: int) -> tuple[bytes, int]:
        began = time.monotonic()
        with translated():
            found = self._archives.read(at.topic_id, at.partition, at.leader_epoch, position, most)
        if found is None:
            raise LogError("NOT_LEADER_OR_FOLLOWER", f"{at.name} is not led here any more.")
        if not found[0]:
            sentence = f"There is nothing to read of {at.name} at offset {position}, before {at.closed_until}."
            raise LogError("OFFSET_OUT_OF_RANGE", sentence)
        wanted_s = len(found[0]) / self._settings.bytes_per_second
        self._closing.wait(max(0.0, wanted_s - (time.monotonic() - began)))
        return found

    def _remove_before(self, at: Partition, writer: PartitionWriter, offset: int) -> None:
        """Let the archive begin at an offset, or where a cut needs it to: one that was made a moment ago, too."""
        before = writer.manifest
        try:
            writer.change(before.without_before(self._where_no_cut_needs_more(at, offset)))
        finally:
            self._removals.lost(at, before, writer.manifest)
        self._known.take(at, writer.manifest)
        log.info("%s: the log begins at %d now.", at.name, writer.manifest.start)

    def _drop(self, at: Partition) -> None:
        """Delete the objects of what the log has lost; what fails is said, and tried again at the next turn."""
        try:
            gone = self._removals.drop(at)
        except OSError as error:
            self._counting.delete_failed()
            if self._not_deleting.get(at.key) != str(error):
                log.warning(
                    "%s: what is too old cannot be deleted from the archive now; it is tried again: %s", at.name, error
                )
                self._not_deleting[at.key] = str(error)
            return
        self._not_deleting.pop(at.key, None)
        if gone.segments:
            log.info("%s: %d segments (%d bytes) are deleted from the archive.", at.name, gone.segments, gone.bytes)

    def _where_no_cut_needs_more(self, at: Partition, offset: int) -> int:
        needed = kept_from(all_cuts(self._objects), at.topic, at.topic_id, at.partition)
        return offset if needed is None else min(offset, needed)

    def _delete(self, question: Question) -> None:
        """Let nothing before an offset be read. Raises `LogError` (POLICY_VIOLATION: a cut needs it), OSError."""
        at = next((each for each in led_partitions(self._archives) if each.key == question.key), None)
        if at is None:
            raise LogError("NOT_LEADER_OR_FOLLOWER", f"{question.name} is not led here any more.")
        manifest = self._known.manifest(at.key) if at.is_known else self._known.learn(at)
        if manifest is None or question.value <= manifest.start or not manifest.segments:
            return
        needed = self._where_no_cut_needs_more(at, question.value)
        if needed < question.value:
            sentence = f"a cut needs the offsets from {needed} on: delete that first ('pylog cut list')."
            raise LogError("POLICY_VIOLATION", sentence)
        with PartitionWriter(self._objects, at.topic, at.topic_id, at.partition) as writer:
            self._remove_before(at, writer, question.value)
        self._drop(at)

    def _store_topic(self, at: Partition) -> None:
        topic = self._topic_of(at.topic)
        if topic is None or topic.topic_id != at.topic_id:
            return
        known = replace(topic, created_at_ms=0)
        if self._stored.get(at.topic_id) != known:
            store_topic(self._objects, topic)
            self._stored[at.topic_id] = known

    def _sweep(self, at: Partition, writer: PartitionWriter) -> None:
        """Once in a leadership, remove what writers that were killed have left."""
        if (*at.key, at.leader_epoch) in self._swept:
            return
        if left := drop_unnamed(self._objects, writer):
            log.info("%s: %d objects that nobody named are removed from the archive.", at.name, left)
        self._swept.add((*at.key, at.leader_epoch))

    def _say_failure(self, at: Partition, error: LogError | OSError) -> None:
        if isinstance(error, LogError) and error.kind in ("NOT_LEADER_OR_FOLLOWER", "FENCED"):
            # Another broker leads, and goes on.
            log.info("Archiving %s ends here: %s", at.name, error)
            return
        self._counting.copy_failed()
        if self._removals.is_behind(at):
            self._counting.delete_failed()
        if self._failing.get(at.key) != str(error):
            log.warning(
                "%s cannot be archived now, and nothing of it is deleted here; it is tried again: %s", at.name, error
            )
            self._failing[at.key] = str(error)


def _lacks(manifest: Manifest, at: Partition) -> bool:
    """Whether there is something to copy."""
    return at.closed_until is not None and manifest.copied_until < at.closed_until


def start_to_keep(at: Partition, manifest: Manifest, now_ms: int) -> int:
    """The first offset that retention keeps: segments go from the front, whole, and of what groups need only what is beyond the limits of that.

    Nothing, when the topic is not copied any more and retention has removed records behind the archive's: as in Kafka a log begins in one place.
    Pure.
    """
    if at.closed_until is None and at.start > manifest.copied_until:
        return manifest.copied_until
    start = _start_within(at, manifest, now_ms, at.retention_ms, at.retention_bytes)
    if at.needed is None or start <= at.needed[0]:
        return start
    needed, most_ms, most_bytes = at.needed
    most = _start_within(at, manifest, now_ms, most_ms, most_bytes)
    whole = max((each.first for each in manifest.segments if each.first <= needed), default=manifest.start)
    return max(manifest.start, min(start, max(whole, most)))


def _start_within(at: Partition, manifest: Manifest, now_ms: int, most_ms: int, most_bytes: int) -> int:
    """The first offset of what is within an age and a size; -1 is no limit."""
    kept = [each for each in manifest.segments if each.next > manifest.start]
    if most_ms >= 0:
        while kept and kept[0].max_timestamp < now_ms - most_ms:
            del kept[0]
    if most_bytes >= 0:
        surplus = sum(each.bytes for each in kept) + at.bytes_here - most_bytes
        while kept and surplus >= kept[0].bytes:
            surplus -= kept[0].bytes
            del kept[0]
    return max(manifest.start, kept[0].first if kept else manifest.copied_until)
