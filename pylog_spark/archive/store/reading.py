"""An archive as a log that is read: answers as a broker gives them, and batches for a native reader.

What an archive has of a partition is found out once, so that all answers are of one moment; what was pruned since is an error when it is read.
Nothing is cached but footers. An `ArchiveLog` is for one thread, as is each `Feed` of it, which a reader's thread uses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from pylog_spark.archive.store.cuts import own_archive, read_cut
from pylog_spark.archive.store.layout import (
    NO_ID,
    TOPIC,
    TOPICS,
    StoredTopic,
    decode_topic,
    partition_folder,
    topic_folder,
)
from pylog_spark.archive.store.manifest import Aborted, Manifest, ManifestError, StoredSegment
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.root import open_archive
from pylog_spark.archive.store.segment import (
    TAIL_BYTES,
    Footer,
    Frame,
    SegmentError,
    footer_bytes,
    open_frame,
    read_footer,
)
from pylog_spark.archive.store.writing import read_manifest
from pylog_spark.client.errors import LogError, translated

_log = logging.getLogger("pylog_spark")

#: Bytes of neighbouring frames that are read at once.
READ_BYTES = 8 << 20
_UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"
_LATEST = -1
_EARLIEST = -2


Answer = TypeVar("Answer")


class _Part(NamedTuple):
    """Neighbouring frames of a segment, which are read at once."""

    path: str
    frames: tuple[Frame, ...]


class ArchiveLog:
    """The logs of an archive; the methods are those of `pylog_spark._native.LogDirectory`.

    Parameters
    ----------
    url : str
        Where the archive is.
    isolation_level : str
        With ``read_committed`` readers leave out records of aborted transactions. No transaction is open before the end (`Manifest.end`).
    skip_damaged : bool
        Whether frames that are damaged are left out, with a notice, instead of failing the read.
    cut : str or None
        The name of a cut; the log has only what is in it then.
    objects : Objects or None
        The archive when it is open already.

    Raises
    ------
    LogError
        INVALID_ARGUMENT: there is no archive. KAFKA_STORAGE_ERROR: it cannot be read.
    """

    def __init__(
        self,
        url: str,
        isolation_level: str = "read_uncommitted",
        skip_damaged: bool = False,
        cut: str | None = None,
        objects: Objects | None = None,
    ) -> None:
        self.url = url
        self._objects = objects or _stored(lambda: open_archive(url))
        self._cut = None if cut is None else _stored(lambda: read_cut(self._objects, cut))
        if self._cut is not None and self._cut.is_own:
            self._objects = _stored(lambda: own_archive(self._objects, str(cut)))
        self._committed = isolation_level == "read_committed"
        self._skips = skip_damaged
        self._topics: dict[str, StoredTopic] = {}
        self._manifests: dict[tuple[str, int], Manifest] = {}
        self._footers: dict[str, Footer] = {}
        self._notices: list[str] = []

    def describe_topics(self, names: Sequence[str] | None) -> list[dict[str, Any]]:
        """Give the topics with these names, or all; as documents of `pylog_spark.results.topics.TopicDescription`."""
        return [self._described(name) for name in (self._names() if names is None else names)]

    def list_partitions(self, names: Sequence[str] | None) -> list[tuple[str, str, bool, str | None, list[int]]]:
        """Give the topics with these names, or all; as `pylog_spark.results.topics.ListedTopic`."""
        return [self._listed(name) for name in (self._names() if names is None else names)]

    def stored_topics(self, names: Sequence[str] | None) -> list[StoredTopic]:
        """Give the topics with these names, or all. Raises `LogError` for one that is not there."""
        wanted = self._names() if names is None else names
        found = {name: self.stored_topic(name) for name in wanted}
        missing = [name for name, topic in found.items() if topic is None]
        if missing and names is not None:
            raise LogError(_UNKNOWN, f"{self.url} has no topic {missing[0]!r}.")
        return [topic for topic in found.values() if topic is not None]

    def list_offsets(
        self, wanted: Sequence[tuple[str, int, int]], isolation_level: str = "read_uncommitted"
    ) -> list[tuple[str, int, int, int]]:
        """Find offsets by time (milliseconds), or at the ends (-1, -2); each as topic, partition, offset, timestamp."""
        del isolation_level  # All transactions have ended.
        return [(topic, partition, *self._offset(topic, partition, time_ms)) for topic, partition, time_ms in wanted]

    def advance(
        self, ranges: Sequence[tuple[str, int, int, int, int | None, int | None, bool]]
    ) -> list[tuple[int, int, int]]:
        """Look at the batches of each range, and say how far its limits reach, as `pylog_spark._native.Client.advance`."""
        from pylog_spark._native import advance_fed

        with translated():
            return advance_fed(self.feed(), list(ranges))

    def segments(self, topic: str, partition: int) -> list[tuple[int, int]]:
        """Give of each segment the first offset and the bytes of its batches."""
        return [(segment.first, segment.bytes) for segment in self.manifest(topic, partition).segments]

    def inspect(self, topic: str, partition: int) -> dict[str, Any]:
        """Say where a partition begins and ends, how many segments and bytes of objects it has."""
        manifest = self.manifest(topic, partition)
        start, end = self.bounds(topic, partition)
        return {
            "log_start_offset": start,
            "last_stable_offset": end,
            "log_end_offset": end,
            "segments": len(manifest.segments),
            "bytes": manifest.bytes,
        }

    def verify(self, topic: str, partition: int) -> dict[str, Any]:
        """Read all of a partition, and look at each checksum; damage is a notice when it is skipped."""
        from pylog_spark._native import survey_batches

        batches = records = 0
        codecs: set[str] = set()
        parts = self.present(topic, partition, *self.bounds(topic, partition))
        for piece in (piece for part in parts for piece in self.pieces(topic, partition, *part)):
            with translated():
                runs, _, _, _, found = survey_batches(piece, len(piece))
            batches += sum(run[3] for run in runs)
            records += sum(run[4] for run in runs)
            codecs |= set(found)
        return {"batches": batches, "records": records, "codecs": sorted(codecs)}

    def take_notices(self) -> list[str]:
        """Give what was left out since this was asked last."""
        notices, self._notices = self._notices, []
        return notices

    def close(self) -> None:
        """Close nothing: objects are opened when they are read."""

    def refresh(self) -> None:
        """Forget what was found out, so that the next answers are of a later moment; footers stay, since objects do not change."""
        self._topics.clear()
        self._manifests.clear()

    def feed(self) -> Feed:
        """Give what brings the batches of ranges to a native reader."""
        return Feed(self)

    def manifest(self, topic: str, partition: int) -> Manifest:
        """What the archive has of a partition. Raises `LogError` when there is none."""
        stored = self.stored_topic(topic)
        if stored is None or not 0 <= partition < stored.partitions:
            raise LogError(_UNKNOWN, f"{self.url} has no partition {topic}-{partition}.")
        if (topic, partition) not in self._manifests:
            found = _stored(lambda: read_manifest(self._objects, topic, stored.topic_id, partition))
            self._manifests[topic, partition] = found[1]
        return self._manifests[topic, partition]

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Where a partition starts and ends. Raises `LogError` when there is none."""
        manifest = self.manifest(topic, partition)
        return (manifest.start, manifest.end) if self._cut is None else self._cut.bounds(partition)

    def present(self, topic: str, partition: int, start: int, end: int) -> list[tuple[int, int]]:
        """Give the parts of [start, end) that the archive has; a gap is a notice. Raises `LogError` when gaps are not skipped.

        A gap may begin or end inside of a batch, so a reader that skips it reads each part by itself.
        """
        if not self._skips:
            return [(start, end)]
        manifest, parts = self.manifest(topic, partition), []
        for gap in manifest.missing(start, end):
            self._notices.append(_nothing_of(topic, partition, gap, manifest))
            if gap[0] > start:
                parts.append((start, gap[0]))
            start = gap[1]
        return [*parts, (start, end)] if start < end else parts

    def batches(self, topic: str, partition: int, start: int, end: int) -> Iterator[bytes]:
        """Give the stored batches that have offsets in [start, end), one by one. Raises `LogError`."""
        for piece in self.pieces(topic, partition, start, end):
            at = 0
            while at < len(piece):
                size = 12 + int.from_bytes(piece[at + 8 : at + 12], "big")
                first = int.from_bytes(piece[at : at + 8], "big")
                last = first + int.from_bytes(piece[at + 23 : at + 27], "big")
                if last >= start and first < end:
                    yield piece[at : at + size]
                at += size

    def aborted(self, topic: str, partition: int, start: int, end: int) -> list[Aborted]:
        """The transactions that are hidden from a reader of [start, end)."""
        return self.manifest(topic, partition).aborted_in(start, end) if self._committed else []

    def pieces(self, topic: str, partition: int, start: int, end: int) -> Iterator[bytes]:
        """Give the batches that have offsets in [start, end), some at once; the next ones are read meanwhile. Raises `LogError`."""
        manifest = self.manifest(topic, partition)
        for gap in manifest.missing(start, end):
            raise LogError("OFFSET_OUT_OF_RANGE", f"{_nothing_of(topic, partition, gap, manifest)}.")
        segments = manifest.covering(start, end)
        folder = partition_folder(topic, manifest.topic_id, partition)
        parts = (part for segment in segments for part in self._parts(folder, segment, start, end))
        for part, data in _read_ahead(parts, self._read):
            for frame in part.frames:
                begin = frame.position - part.frames[0].position
                try:
                    yield open_frame(data[begin : begin + frame.size], frame, part.path)
                except SegmentError as error:
                    if not self._skips:
                        raise
                    self._notices.append(
                        f"{error.sentence.rstrip('.')}; the offsets {frame.first} to {frame.next - 1} are left out"
                    )

    def _parts(self, folder: str, segment: StoredSegment, start: int, end: int) -> Iterator[_Part]:
        path = f"{folder}/{segment.name}"
        wanted = [
            frame for frame in self._footer(path, segment.size).frames if frame.next > start and frame.first < end
        ]
        while wanted:
            many = 1
            while many < len(wanted) and wanted[many].position + wanted[many].size - wanted[0].position <= READ_BYTES:
                many += 1
            yield _Part(path, tuple(wanted[:many]))
            del wanted[:many]

    def _read(self, part: _Part) -> bytes:
        first, last = part.frames[0], part.frames[-1]
        return _stored(
            lambda: self._objects.read_part(part.path, first.position, last.position + last.size - first.position)
        )

    def _footer(self, path: str, size: int) -> Footer:
        if path not in self._footers:
            self._footers[path] = _stored(lambda: load_footer(self._objects, path, size))
        return self._footers[path]

    def _offset(self, topic: str, partition: int, time_ms: int) -> tuple[int, int]:
        start, end = self.bounds(topic, partition)
        if time_ms in (_LATEST, _EARLIEST):
            return (end if time_ms == _LATEST else start), -1
        if time_ms < 0:
            raise LogError("INVALID_ARGUMENT", f"{time_ms} is no time in ms, nor -1 or -2.")
        found = first_at(self.manifest(topic, partition), start, time_ms, self._footer, self._batches_of)
        return found if found is not None and found[0] < end else (-1, -1)

    def _batches_of(self, path: str, _size: int, frame: Frame) -> bytes:
        return open_frame(self._read(_Part(path, (frame,))), frame, path)

    def _described(self, name: str) -> dict[str, Any]:
        _, topic_id, is_internal, error, numbers = self._listed(name)
        return {
            "name": name,
            "topic_id": topic_id,
            "is_internal": is_internal,
            "error": error,
            "partitions": [
                {"partition": each, "leader": -1, "leader_epoch": -1, "replicas": [], "isr": [], "error": None}
                for each in numbers
            ],
        }

    def _listed(self, name: str) -> tuple[str, str, bool, str | None, list[int]]:
        stored = self.stored_topic(name)
        if stored is None:
            return name, "", False, _UNKNOWN, []
        return name, stored.topic_id, False, None, list(range(stored.partitions))

    def stored_topic(self, name: str) -> StoredTopic | None:
        """Give the topic, of several that had the name the one that was archived last; None when there is none. Raises `LogError`."""
        if self._cut is not None and name != self._cut.topic:
            return None
        if name not in self._topics:
            found = [
                self._read_topic(name, folder) for folder in _stored(lambda: self._objects.folders(f"{TOPICS}/{name}"))
            ]
            there = [each for each in found if each is not None and self._may_be(each)]
            newest = max(there, key=lambda topic: topic.created_at_ms, default=None)
            if newest is None:
                return None
            self._topics[name] = newest
        return self._topics[name]

    def _names(self) -> list[str]:
        return _stored(lambda: self._objects.folders(TOPICS)) if self._cut is None else [self._cut.topic]

    def _may_be(self, topic: StoredTopic) -> bool:
        return self._cut is None or topic.topic_id == self._cut.topic_id

    def _read_topic(self, name: str, folder: str) -> StoredTopic | None:
        path = f"{topic_folder(name, '' if folder == NO_ID else folder)}/{TOPIC}"
        try:
            return decode_topic(_stored(lambda: self._objects.read(path))) if self._objects.exists(path) else None
        except ManifestError as error:
            raise LogError("CORRUPT_BATCH", f"{path} of the archive cannot be used: {error}.") from None


def load_footer(objects: Objects, path: str, size: int) -> Footer:
    """Read the footer of the object of a segment, which has `size` bytes. Raises `SegmentError`, OSError."""

    def tail(wanted: int) -> bytes:
        begin = max(0, size - wanted)
        return objects.read_part(path, begin, size - begin)

    found = tail(TAIL_BYTES)
    if (wanted := footer_bytes(found, path)) > len(found):
        found = tail(wanted)
    return read_footer(found, path)


def first_at(
    manifest: Manifest,
    start: int,
    time_ms: int,
    footer: Callable[[str, int], Footer],
    batches: Callable[[str, int, Frame], bytes],
) -> tuple[int, int] | None:
    """The first record at offset `start` or behind with a timestamp (ms) or a later one: its offset and timestamp.

    `footer` gives that of an object with a size, `batches` those of a frame of it. Raises what they raise, and `LogError`.
    """
    from pylog_spark._native import first_record_at

    folder = partition_folder(manifest.topic, manifest.topic_id, manifest.partition)
    for segment in manifest.segments:
        if segment.max_timestamp < time_ms or segment.next <= start:
            continue
        path = f"{folder}/{segment.name}"
        for frame in footer(path, segment.size).frames:
            if frame.max_timestamp < time_ms or frame.next <= start:
                continue
            data = batches(path, segment.size, frame)
            with translated():
                found = first_record_at(data, time_ms, max(start, segment.first))
            if found is not None:
                return found
    return None


def _nothing_of(topic: str, partition: int, gap: tuple[int, int], manifest: Manifest) -> str:
    return f"the archive has nothing of the offsets {gap[0]} to {gap[1] - 1} of {topic}-{partition}; it holds {manifest.start} to {manifest.end - 1}"


class Feed:
    """Brings the batches of ranges to a native reader, which calls it from a thread of its own."""

    def __init__(self, log: ArchiveLog) -> None:
        self._log = log
        self._pieces: Iterator[bytes] = iter(())

    def turn_to(self, topic: str, partition: int, topic_id: str, start: int, end: int) -> list[Aborted]:
        """Turn to a range; gives the aborted transactions in it. Raises `LogError`."""
        manifest = self._log.manifest(topic, partition)
        if topic_id and manifest.topic_id and topic_id != manifest.topic_id:
            sentence = f"the topic of {topic}-{partition} in {self._log.url} has the id {manifest.topic_id}, and the read was planned for {topic_id}."
            raise LogError("INCONSISTENT_TOPIC_ID", sentence)
        self._pieces = self._log.pieces(topic, partition, start, end)
        return self._log.aborted(topic, partition, start, end)

    def next_piece(self) -> bytes | None:
        """Give the next batches of the range; None at its end. Raises `LogError`."""
        return next(self._pieces, None)


def _read_ahead(parts: Iterable[_Part], read: Callable[[_Part], bytes]) -> Iterator[tuple[_Part, bytes]]:
    """Give each part with its bytes; the next one is read while a part is used."""
    with ThreadPoolExecutor(1, thread_name_prefix="pylog-archive") as pool:
        waiting: tuple[_Part, Future[bytes]] | None = None
        for part in parts:
            before, waiting = waiting, (part, pool.submit(read, part))
            if before is not None:
                yield before[0], before[1].result()
        if waiting is not None:
            yield waiting[0], waiting[1].result()


def _stored(question: Callable[[], Answer]) -> Answer:
    """Ask the file system; its errors as the kinds that brokers have. What is gone was pruned. Raises `LogError`."""
    try:
        return question()
    except FileNotFoundError as error:
        raise LogError("OFFSET_OUT_OF_RANGE", f"An object of the archive is gone: {error}.") from error
    except OSError as error:
        raise LogError("KAFKA_STORAGE_ERROR", f"The archive cannot be read: {error}.") from error
