"""What an archive says of the topic in it: pure, without files and brokers.

The first member, ``TOPIC.archive.json``, is written before any record; the last one, ``TOPIC.end.json``, says what was written, and only a
whole archive has it. Between them are the segments, named as in a data directory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = "pylog-archive"
VERSION = 1
BEGIN = ".archive.json"
END = ".end.json"
#: Kafka's file of where logs start, so that an unpacked archive is a data directory that starts where the export did.
STARTS = "log-start-offset-checkpoint"
_SEGMENT = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)/(?P<first>\d{20})\.log")


class DocumentError(ValueError):
    """A document of an archive cannot be used. `args[0]` says why, without a dot."""


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The offsets [start, end) of a partition."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is exported.

    Attributes
    ----------
    topic, topic_id : str
        The topic's name and id.
    cluster_id : str
        Where it comes from; empty when that cluster has none.
    partitions, replication_factor : int
        Its partitions, also those of which nothing is exported, and their replicas.
    configs : mapping of str to str
        The settings that were given to it.
    ranges : tuple of PartitionRange
        The offsets that are exported.
    exported_at_ms : int
        When the export began, milliseconds since 1970.
    """

    topic: str
    topic_id: str
    cluster_id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    ranges: tuple[PartitionRange, ...]
    exported_at_ms: int

    @property
    def member(self) -> str:
        """Name of the member that has it."""
        return f"{self.topic}{BEGIN}"


@dataclass(frozen=True, slots=True)
class PartitionTotal:
    """What is in the archive of one partition."""

    partition: int
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0

    def and_segment(self, batches: int, records: int, size: int) -> PartitionTotal:
        """The same with one segment more, of so many batches, records and bytes."""
        return PartitionTotal(
            self.partition, self.segments + 1, self.batches + batches, self.records + records, self.bytes + size
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """What was exported."""

    topic: str
    totals: tuple[PartitionTotal, ...] = field(default=())

    @property
    def member(self) -> str:
        """Name of the member that has it."""
        return f"{self.topic}{END}"


def segment_name(topic: str, partition: int, first: int) -> str:
    """Name of the member with the batches from `first` on."""
    return f"{topic}-{partition}/{first:020d}.log"


def segment_of(name: str) -> tuple[str, int, int] | None:
    """Topic, partition and first offset of a segment's member; None for another member."""
    match = _SEGMENT.fullmatch(name)
    return None if match is None else (match["topic"], int(match["partition"]), int(match["first"]))


def encode(document: Beginning | Ending) -> bytes:
    """The bytes of a document."""
    fields = asdict(document)
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=2, sort_keys=True).encode() + b"\n"


def starts(beginning: Beginning) -> bytes:
    """The content of `STARTS`."""
    rows = [f"{beginning.topic} {each.partition} {each.start}" for each in beginning.ranges]
    return "\n".join(["0", str(len(rows)), *rows, ""]).encode()


def decode_beginning(data: bytes) -> Beginning:
    """Read the first document. Raises `DocumentError`."""
    found = _decoded(data)
    try:
        beginning = Beginning(
            topic=_text(found, "topic"),
            topic_id=_text(found, "topic_id"),
            cluster_id=_text(found, "cluster_id"),
            partitions=_number(found, "partitions"),
            replication_factor=_number(found, "replication_factor"),
            configs={str(name): str(value) for name, value in found["configs"].items()},
            ranges=tuple(
                PartitionRange(_number(each, "partition"), _number(each, "start"), _number(each, "end"))
                for each in found["ranges"]
            ),
            exported_at_ms=_number(found, "exported_at_ms"),
        )
    except (KeyError, AttributeError, TypeError) as error:
        raise DocumentError(f"its first document lacks {error}") from None
    numbers = [each.partition for each in beginning.ranges]
    if numbers != sorted(set(numbers)) or not all(0 <= number < beginning.partitions for number in numbers):
        raise DocumentError("its first document names partitions that there cannot be")
    if any(each.start > each.end for each in beginning.ranges):
        raise DocumentError("its first document has a range that ends before it starts")
    return beginning


def decode_ending(data: bytes) -> Ending:
    """Read the last document. Raises `DocumentError`."""
    found = _decoded(data)
    try:
        names = ("partition", "segments", "batches", "records", "bytes")
        totals = tuple(PartitionTotal(*(_number(each, name) for name in names)) for each in found["totals"])
        return Ending(_text(found, "topic"), totals)
    except (KeyError, TypeError) as error:
        raise DocumentError(f"its last document lacks {error}") from None


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        raise DocumentError("a document of it is no JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DocumentError("it is no archive of a topic")
    if found.get("version") != VERSION:
        raise DocumentError(f"it has version {found.get('version')!r} of the format, and this pylog reads {VERSION}")
    return found


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found[name]
    if not isinstance(value, str):
        raise DocumentError(f"{name} of a document of it is no text")
    return value


def _number(found: Mapping[str, Any], name: str) -> int:
    value = found[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DocumentError(f"{name} of a document of it is no number from 0 on")
    return value
