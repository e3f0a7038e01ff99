"""Copies the logs of topics into an archive: record batches as they are stored, up to the last stable offset, each once.

A transaction that ended may have its marker behind the end of a copy; then readers see the archive up to its first record (`Manifest.end`).

What is read are the brokers' bytes, by Kafka's protocol, so the topic may be one of Apache Kafka. The archive's end is the position: nothing else is
remembered, and a copy that was cut goes on there. Memory: one segment, and what is read back of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from pylog_spark.archive.runs import Run
from pylog_spark.archive.store.layout import (
    TOPIC,
    StoredTopic,
    decode_topic,
    encode_topic,
    topic_folder,
)
from pylog_spark.archive.store.manifest import Aborted, ManifestError, StoredSegment
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.segment import FRAME_BYTES, LONG_FRAME_BYTES, SegmentBuilder
from pylog_spark.archive.store.writing import PartitionWriter, read_manifest
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError, translated
from pylog_spark.client.places import bounds_of
from pylog_spark.mirror.topics import read_topics

#: Bytes of a segment's object at which it is complete.
SEGMENT_BYTES = 64 << 20
#: Most bytes of batches that are fetched at once.
FETCH_BYTES = 2 << 20
_COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """How logs are copied.

    Attributes
    ----------
    level : int
        zstandard's, 1 to 22.
    segment_bytes : int
        Bytes of an object at which it is complete, beside one frame.
    long_range : bool
        Whether zstandard looks for what repeats at long distances, in frames of `LONG_FRAME_BYTES`.
    frame_bytes : int or None
        Bytes of batches in a frame, beside one larger batch; None: as `long_range` says.
    least_bytes : int
        A partition with less to copy than so many bytes of batches waits for more.
    is_cut : bool
        Whether it is copied once, so that a compacted topic may be.
    """

    level: int = 3
    segment_bytes: int = SEGMENT_BYTES
    long_range: bool = False
    frame_bytes: int | None = None
    least_bytes: int = 0
    is_cut: bool = False

    @property
    def in_frame(self) -> int:
        """Bytes of batches in a frame."""
        return self.frame_bytes or (LONG_FRAME_BYTES if self.long_range else FRAME_BYTES)


class Copied(NamedTuple):
    """A segment that is in the archive now."""

    topic: str
    partition: int
    segment: StoredSegment


def copy_topic(
    admin: Admin, objects: Objects, name: str, options: CopyOptions, say: Callable[[str], None]
) -> Iterator[Copied]:
    """Copy what is new of a topic; gives each segment when it is in the archive.

    Raises
    ------
    LogError
        The topic is not there or is compacted, another process copies it, or brokers do not answer.
    OSError
        The archive cannot be written. What was copied stays, and the same call goes on.
    """
    described = read_topics(admin, [admin.topic(name)])[name]
    if "compact" in described.configs.get("cleanup.policy", "") and not options.is_cut:
        sentence = f"Topic {name} is compacted: its records change places over time, so an archive cannot follow them. Use 'pylog cut create' or 'pylog archive export'."
        raise LogError("INVALID_ARGUMENT", sentence)
    stored = StoredTopic(
        name,
        described.topic_id,
        admin.cluster().cluster_id or "",
        len(described.leaders),
        dict(sorted(described.configs.items())),
        time.time_ns() // 1_000_000,
    )
    store_topic(objects, stored)
    numbers = range(len(described.leaders))
    bounds = bounds_of(admin, [(name, number) for number in numbers])
    ends = {
        each.partition: each.offset for each in admin.offsets([(name, number, -1) for number in numbers], _COMMITTED)
    }
    for number in numbers:
        _, manifest = read_manifest(objects, name, described.topic_id, number)
        if manifest.copied_until >= ends[number]:
            continue
        with PartitionWriter(objects, name, described.topic_id, number) as writer:
            fetch = partial(_fetch, admin, name, number, ends[number])
            copy = PartitionCopy(fetch, writer, options, bounds[name, number].start, ends[number], say)
            for segment in copy.segments():
                yield Copied(name, number, segment)


def store_topic(objects: Objects, wanted: StoredTopic) -> None:
    """Write down what a topic is, when that is new; the time at which it was archived first stays.

    Raises
    ------
    LogError
        CORRUPT_ARCHIVE: what stands there makes no sense.
    OSError
        The file system cannot be read or written.
    """
    path = f"{topic_folder(wanted.topic, wanted.topic_id)}/{TOPIC}"
    try:
        known = decode_topic(objects.read(path))
    except FileNotFoundError:
        known = None
    except ManifestError as error:
        raise LogError("CORRUPT_ARCHIVE", f"{path} cannot be used: {error}.") from None
    if known is not None:
        wanted = replace(wanted, created_at_ms=known.created_at_ms)
    if known != wanted:
        objects.put(path, encode_topic(wanted))


class PartitionCopy:
    """Copies a partition into an archive from where that ends.

    Parameters
    ----------
    fetch : callable
        Gives batches from an offset on, at most so many bytes beside one batch, and the offset behind them.
    writer : PartitionWriter
        Of the partition; nobody else uses it meanwhile.
    options : CopyOptions
        How.
    start, end : int
        The offsets [start, end) that there are to copy.
    say : callable
        Is called with a sentence when records were removed before they were archived.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], tuple[bytes, int]],
        writer: PartitionWriter,
        options: CopyOptions,
        start: int,
        end: int,
        say: Callable[[str], None],
    ) -> None:
        self._fetch, self._writer, self._options, self._end = fetch, writer, options, end
        manifest = writer.manifest
        self._topic, self._topic_id, self._partition = manifest.topic, manifest.topic_id, manifest.partition
        self._position = max(manifest.copied_until, start)
        if manifest.segments and manifest.copied_until < start:
            say(
                f"partition {self._partition} of topic {self._topic}: the offsets {manifest.copied_until} to {start - 1} were removed before they were archived"
            )

    def segments(self) -> Iterator[StoredSegment]:
        """Copy; gives each segment when the manifest names it. Raises what `fetch` raises, `LogError`, OSError."""
        while self._position < self._end:
            built = self._build()
            if built is None:
                return
            self._writer.add(*built)
            # Two objects are never in memory.
            del built
            self._position = self._writer.manifest.copied_until
            yield self._writer.manifest.segments[-1]

    def _build(self) -> tuple[bytearray, StoredSegment, dict[int, int]] | None:
        """The next segment; None when there is too little for one."""
        options = self._options
        builder = SegmentBuilder(self._topic, self._topic_id, self._partition, options.level, options.long_range)
        first = position = self._position
        manifest, found = self._writer.manifest, _Found()
        # How a transaction ended whose records were removed is not to be learned any more.
        still_open = dict(manifest.open) if position == manifest.copied_until else {}
        while position < self._end and builder.size < options.segment_bytes:
            data, position = self._fetch(position, min(FETCH_BYTES, options.segment_bytes))
            runs, aborted, still_open, epochs = _survey(data, options.in_frame, still_open)
            builder.add(data, runs)
            found.add(runs, aborted, epochs)
        if builder.bytes < options.least_bytes and position >= self._end:
            return None
        segment = StoredSegment(
            "", first, position, 0, 0, builder.bytes, found.batches, found.records, found.max_timestamp,
            tuple(found.aborted), tuple(found.epochs),
        )  # fmt: skip
        return builder.finish(), segment, still_open


def _fetch(admin: Admin, topic: str, partition: int, end: int, position: int, most: int) -> tuple[bytes, int]:
    return admin.fetch_batches(topic, partition, position, end, most)


class _Found:
    """What stands in the batches of a segment."""

    def __init__(self) -> None:
        self.batches, self.records, self.max_timestamp = 0, 0, -1
        self.aborted: list[Aborted] = []
        self.epochs: list[tuple[int, int]] = []

    def add(self, runs: list[Run], aborted: list[Aborted], epochs: list[tuple[int, int]]) -> None:
        self.batches += sum(run.batches for run in runs)
        self.records += sum(run.records for run in runs)
        self.max_timestamp = max([self.max_timestamp, *(run.max_timestamp for run in runs)])
        self.aborted += aborted
        self.epochs += [each for each in epochs if not self.epochs or each[0] != self.epochs[-1][0]]


def _survey(
    data: bytes, most: int, still_open: dict[int, int]
) -> tuple[list[Run], list[Aborted], dict[int, int], list[tuple[int, int]]]:
    from pylog_spark._native import survey_batches

    with translated():
        runs, aborted, after, epochs, _ = survey_batches(data, most, still_open)
    return [Run(*run) for run in runs], aborted, after, epochs
