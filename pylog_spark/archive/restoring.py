"""Makes a topic of an archive: the same batches at the same offsets, in a cluster of pylog.

While it lasts the topic is a mirror of the archive (`mirror.source`), so nobody else writes to it; in the end it is promoted. Nothing is
remembered: a restore that was cut goes on where the topic's logs end. Records keep their age, so the topic does not get the archived limits
of retention, by which it would lose them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pylog_spark.archive.checking import Segment
from pylog_spark.archive.document import Beginning, PartitionRange
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.places import bounds_of
from pylog_spark.mirror.promotion import promote
from pylog_spark.mirror.topics import ENDED, MIRROR_SOURCE, Topic, changes, copy_of, read_topics

#: Settings by which records would be removed; a restored topic has them unlimited unless they are named.
_KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}

#: Told how many offsets are restored, and of how many.
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """What the restored topic is.

    Attributes
    ----------
    topic : str or None
        Its name; that of the archive when None.
    configs : mapping of str to str
        Settings that are to be other than in the archive.
    replication_factor : int or None
        Replicas; None: as in the archive, as far as there are brokers.
    """

    topic: str | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    replication_factor: int | None = None


class Restorable(Protocol):
    """A topic in an archive, read once: an `ArchiveReader` of a file, or a `StoredTopicReader`."""

    beginning: Beginning

    def segments(self) -> Iterator[Segment]:
        """Give its batches, each partition's by offset. Raises `LogError` at what is missing or damaged."""


def restore(
    admin: Admin, reader: Restorable, options: RestoreOptions, say: Callable[[str], None], report: Report
) -> tuple[str, int]:
    """Make the topic of an archive, or go on with it.

    Returns
    -------
    tuple of str and int
        The topic's name, and how many batches it has got now.

    Raises
    ------
    LogError
        The topic is there and no unfinished import of this archive, the archive is damaged, or brokers do not answer. What was restored stays;
        the same call goes on.
    OSError
        The archive cannot be read.
    """
    beginning = reader.beginning
    name = options.topic or beginning.topic
    source = f"archive-{beginning.topic_id}"
    _make(admin, name, source, beginning, options, say)
    batches = _fill(admin, name, source, reader, report)
    _cut_starts(admin, name, beginning)
    promote(admin, name)
    return name, batches


def _make(
    admin: Admin, name: str, source: str, beginning: Beginning, options: RestoreOptions, say: Callable[[str], None]
) -> None:
    """Create the topic, or see that it is an unfinished import of this archive."""
    present = admin.topics([name])[0]
    found: Topic | None
    if not present.error:
        found = read_topics(admin, [present])[name]
        if found.source not in (source, ENDED):
            sentence = f"Topic {name} is there, and no unfinished import of this archive: delete it, or give another name with --topic."
            raise LogError("TOPIC_ALREADY_EXISTS", sentence)
    else:
        found = None
    make_topic(admin, name, beginning, options, found, {MIRROR_SOURCE: source}, say)


def make_topic(
    admin: Admin,
    name: str,
    beginning: Beginning,
    options: RestoreOptions,
    present: Topic | None,
    marks: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    """Create a topic as the archive says it was, or give one that is `present` the same settings; it keeps all records.

    Parameters
    ----------
    admin, name, beginning, options, say
        As of `restore`.
    present : Topic or None
        The topic, when it is there.
    marks : mapping of str to str
        Settings with which it is created.

    Raises
    ------
    LogError
        The cluster refuses the topic. Settings that it does not take are said.
    """
    archived = Topic(
        name, beginning.topic_id, (-1,) * beginning.partitions, beginning.replication_factor, beginning.configs
    )
    copy = copy_of(archived, {**_KEPT, **options.configs}, len(admin.cluster().brokers), options.replication_factor)
    if present is None:
        admin.create_topic(name, beginning.partitions, copy.replication_factor, dict(marks))
    for note in copy.notes:
        say(note.replace("in the source", "in the archive").replace("in the target", "here"))
    _configure(admin, name, changes(copy.configs, {} if present is None else present.configs), say)
    limits = {setting: beginning.configs[setting] for setting in _KEPT if setting in beginning.configs}
    if left := {setting: text for setting, text in limits.items() if setting not in options.configs}:
        shown = ", ".join(f"{setting}={text}" for setting, text in left.items())
        say(
            f"topic {name} keeps all records: {shown} of the archive is not set; 'pylog config alter topic {name}' sets it"
        )


def _configure(admin: Admin, name: str, changed: Mapping[str, str | None], say: Callable[[str], None]) -> None:
    """Set what the cluster takes, and name what it does not."""
    for setting, text in changed.items():
        why = _refused(admin, name, setting, text)
        if why is not None:
            say(f"topic {name}: {setting}={text} of the archive is not taken here: {why}")


def _refused(admin: Admin, name: str, setting: str, text: str | None) -> str | None:
    """Set it; why the cluster does not take it, without a dot."""
    try:
        admin.alter_configs("topic", name, {setting: text})
    except LogError as error:
        if error.kind != "INVALID_CONFIG":
            raise
        return error.sentence.rstrip(".")
    return None


def _fill(admin: Admin, name: str, source: str, reader: Restorable, report: Report) -> int:
    """Append what is missing; how many batches that were."""
    ranges = {each.partition: each for each in reader.beginning.ranges}
    ends = {
        partition: bounds.end
        for (_, partition), bounds in bounds_of(admin, [(name, number) for number in ranges]).items()
    }
    whole, done, appended = sum(each.end - each.start for each in ranges.values()), 0, 0
    positions: dict[int, int] = {}
    for segment in reader.segments():
        number = segment.partition
        if number not in positions and ends[number] == 0:
            first = segment.runs[0].first_offset if segment.runs else ranges[number].start
            if first > 0:
                ends[number] = admin.append_batches(source, name, number, first)
        appended += _append(admin, name, source, segment, positions.get(number), ends)
        before = positions.get(number, ranges[number].start)
        positions[number] = segment.runs[-1].next_offset if segment.runs else before
        done += max(0, _within(positions[number], ranges[number]) - _within(before, ranges[number]))
        report(done, whole)
    return appended


def _append(admin: Admin, name: str, source: str, segment: Segment, position: int | None, ends: dict[int, int]) -> int:
    """Append those runs of a segment that the log does not have; how many batches those were."""
    begin, appended = 0, 0
    for run in segment.runs:
        if run.next_offset > ends[segment.partition]:
            start = run.first_offset if position is None else position
            data = segment.data[begin : run.end]
            ends[segment.partition] = admin.append_batches(source, name, segment.partition, start, data)
            appended += run.batches
        begin, position = run.end, run.next_offset
    return appended


def _cut_starts(admin: Admin, name: str, beginning: Beginning) -> None:
    """Let each log start where the export did, which may be inside of a batch."""
    bounds = bounds_of(admin, [(name, each.partition) for each in beginning.ranges])
    for wanted in beginning.ranges:
        found = bounds[name, wanted.partition]
        if found.start < wanted.start <= found.end:
            (deleted,) = admin.delete_records([(name, wanted.partition, wanted.start)])
            # What is only compacted keeps what is before its start.
            if deleted.error not in (None, "POLICY_VIOLATION"):
                sentence = f"Partition {wanted.partition} of {name} cannot start at {wanted.start}: {deleted.error}."
                raise LogError(str(deleted.error), sentence)


def _within(offset: int, wanted: PartitionRange) -> int:
    return min(max(offset, wanted.start), wanted.end)
