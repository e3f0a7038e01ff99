"""Which segments of a partition are in an archive: pure, without files.

A manifest is never changed: each change is a further object, ``manifest-EPOCH-WRITER-GENERATION.json``. The last one in the order of
(epoch, writer, generation) counts. A writer puts a claim first, ``claim-EPOCH-WRITER``, with a larger epoch than all that it finds, and looks at
the manifests then. Whoever has put a manifest looks for a larger claim, and has changed nothing for sure if there is one: the other writer may have
looked before. So of two writers one knows of the other, with no more from the store than that it lists what was put before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

FORMAT = "pylog-manifest"
VERSION = 1
_CLAIM = re.compile(r"claim-(?P<epoch>\d{8})-(?P<writer>[0-9a-f]{8})")
_NAME = re.compile(r"manifest-(?P<epoch>\d{8})-(?P<writer>[0-9a-f]{8})-(?P<generation>\d{8})\.json")

#: Of an aborted transaction the producer's id, its first offset and that of its marker.
Aborted = tuple[int, int, int]


class ManifestError(ValueError):
    """A manifest cannot be used. `args[0]` says why, without a dot."""


class ManifestName(NamedTuple):
    """What the name of a manifest says; the largest is the newest.

    Attributes
    ----------
    epoch : int
        Of the writer.
    writer : str
        Eight hexadecimal digits, drawn at random.
    generation : int
        Its changes so far.
    """

    epoch: int
    writer: str
    generation: int

    def __str__(self) -> str:
        return f"manifest-{self.epoch:08d}-{self.writer}-{self.generation:08d}.json"


def manifest_name(name: str) -> ManifestName | None:
    """Read the name of an object; None for another object."""
    match = _NAME.fullmatch(name)
    return None if match is None else ManifestName(int(match["epoch"]), match["writer"], int(match["generation"]))


class Claim(NamedTuple):
    """Who may change a partition: the largest one.

    Attributes
    ----------
    epoch : int
        One more than that of the writer before.
    writer : str
        Eight hexadecimal digits, drawn at random.
    """

    epoch: int
    writer: str

    def __str__(self) -> str:
        return f"claim-{self.epoch:08d}-{self.writer}"


def claim(name: str) -> Claim | None:
    """Read the name of an object, a claim or a manifest, as the claim of its writer; None for another object."""
    match = _CLAIM.fullmatch(name) or _NAME.fullmatch(name)
    return None if match is None else Claim(int(match["epoch"]), match["writer"])


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment in an archive.

    Attributes
    ----------
    name : str
        Of its object, in the partition's folder.
    first, next : int
        It has all records of the partition from offset `first` on, before `next`. A record before `first` may be in it, too, of the first batch.
    size : int
        Bytes of the object.
    checksum : int
        CRC-32 of the object.
    bytes, batches, records : int
        What is in it; markers of transactions are records, too.
    max_timestamp : int
        Largest timestamp of its records, milliseconds since 1970.
    aborted : tuple of (int, int, int)
        Aborted transactions whose marker is in it.
    epochs : tuple of (int, int)
        Leader epochs and the first offset of each.
    """

    name: str
    first: int
    next: int
    size: int
    checksum: int
    bytes: int
    batches: int
    records: int
    max_timestamp: int
    aborted: tuple[Aborted, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive has of a partition.

    Attributes
    ----------
    topic, topic_id, partition
        Which one.
    start : int
        First offset that may be read.
    segments : tuple of StoredSegment
        By offset.
    open : mapping of int to int
        Transactions of which the segments have no end: producer -> first offset.
    """

    topic: str
    topic_id: str
    partition: int
    start: int = 0
    segments: tuple[StoredSegment, ...] = ()
    open: Mapping[int, int] = field(default_factory=dict)

    @property
    def copied_until(self) -> int:
        """The offset behind the last one that is in the archive: there the next copy goes on."""
        return self.segments[-1].next if self.segments else self.start

    @property
    def end(self) -> int:
        """The offset up to which the archive is read: before it lies no record of a transaction of which the archive does not know how it ended."""
        return max(self.start, min([self.copied_until, *self.open.values()]))

    @property
    def bytes(self) -> int:
        """Bytes of all objects."""
        return sum(segment.size for segment in self.segments)

    def with_segment(self, segment: StoredSegment, still_open: Mapping[int, int]) -> Manifest:
        """The same with a segment more. It may begin behind the end, when the records between were gone already; never before it."""
        if segment.first < self.copied_until or segment.next <= segment.first:
            raise ManifestError(
                f"a segment [{segment.first}, {segment.next}) does not follow offset {self.copied_until}"
            )
        # Where all that it had was deleted, the log begins with the new one.
        start = self.start if self.start < self.copied_until else segment.first
        return replace(self, start=start, segments=(*self.segments, segment), open=dict(still_open))

    def without_before(self, offset: int) -> Manifest:
        """The same without what lies before `offset`: the log starts there, and segments that end before it are not in it. The last one stays."""
        start = max(self.start, min(offset, self.copied_until))
        kept = tuple(each for each in self.segments[:-1] if each.next > start) + self.segments[-1:]
        return replace(self, start=start, segments=kept)

    def covering(self, start: int, end: int) -> list[StoredSegment]:
        """The segments with records in [start, end), by offset."""
        return [segment for segment in self.segments if segment.next > start and segment.first < end]

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """The ranges [start, end) of offsets in [start, end) that the archive does not have."""
        found, expected = [], start
        for segment in self.covering(start, end):
            begin = max(segment.first, self.start)
            if begin > expected:
                found.append((expected, min(begin, end)))
            expected = max(expected, segment.next)
        return [*found, (expected, end)] if expected < end else found

    def aborted_in(self, start: int, end: int) -> list[Aborted]:
        """The aborted transactions with records in [start, end)."""
        every = (each for segment in self.segments if segment.next > start for each in segment.aborted)
        return [each for each in every if each[2] >= start and each[1] < end]


def encode(manifest: Manifest) -> bytes:
    """The bytes of a manifest."""
    fields = asdict(manifest)
    fields["open"] = sorted(manifest.open.items())
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, sort_keys=True).encode() + b"\n"


def decode(data: bytes) -> Manifest:
    """Read a manifest. Raises `ManifestError`."""
    found = decoded(data, FORMAT, VERSION)
    try:
        segments = tuple(
            StoredSegment(
                **{
                    **each,
                    "aborted": tuple((int(a), int(b), int(c)) for a, b, c in each["aborted"]),
                    "epochs": tuple((int(a), int(b)) for a, b in each["epochs"]),
                }
            )
            for each in found["segments"]
        )
        opened = {int(producer): int(first) for producer, first in found["open"]}
        manifest = Manifest(found["topic"], found["topic_id"], found["partition"], found["start"], segments, opened)
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"a manifest lacks {error}") from None
    expected = 0
    for segment in segments:
        if segment.first < expected or segment.next <= segment.first:
            raise ManifestError(f"the segment at offset {segment.first} of a manifest is not where it belongs")
        if "/" in segment.name:
            raise ManifestError(f"the segment at offset {segment.first} of a manifest is in another folder")
        expected = segment.next
    return manifest


def decoded(data: bytes, kind: str, version: int) -> dict[str, Any]:
    """The JSON object of a document of an archive. Raises `ManifestError`."""
    try:
        found = json.loads(data)
    except ValueError:
        raise ManifestError("a document is no JSON") from None
    if not isinstance(found, dict) or found.get("format") != kind:
        raise ManifestError(f"a document is no {kind}")
    if found.get("version") != version:
        raise ManifestError(f"a {kind} has version {found.get('version')!r}, and this pylog reads {version}")
    return found
