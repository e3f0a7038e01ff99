"""Cuts: ranges of a topic under a name, kept against every pruning and read bit for bit, years later.

A cut is the object ``cuts/NAME.json`` of an archive. Of a compacted topic, whose records an archive cannot follow, the cut has the batches, too: an archive of
their own in ``cuts/NAME/``. Its hash is SHA-256 of the stored batches that have offsets of the cut, partition after partition. Not thread-safe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pylog_spark.archive.store.layout import CUTS
from pylog_spark.archive.store.manifest import ManifestError, decoded
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.root import open_root
from pylog_spark.client.errors import LogError

FORMAT = "pylog-cut"
VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Cut:
    """Ranges of a topic under a name.

    Attributes
    ----------
    name : str
        Its name.
    topic, topic_id : str
        Of which topic.
    ranges : tuple of (int, int, int)
        Of each partition its number, the first offset, and the one behind the last.
    sha256 : str
        Of the stored batches, in hexadecimal digits.
    is_own : bool
        Whether the cut has the batches itself.
    created_at_ms : int
        Milliseconds since 1970.
    """

    name: str
    topic: str
    topic_id: str
    ranges: tuple[tuple[int, int, int], ...]
    sha256: str
    is_own: bool
    created_at_ms: int

    @property
    def path(self) -> str:
        """The name of its object."""
        return cut_path(self.name)

    def bounds(self, partition: int) -> tuple[int, int]:
        """The offsets [start, end) of a partition; (0, 0) when it is not in the cut."""
        return next(((start, end) for number, start, end in self.ranges if number == partition), (0, 0))


def check_name(name: str) -> str:
    """Give the name of a cut. Raises `LogError` when there can be no such."""
    if _NAME.fullmatch(name) is None:
        sentence = f"{name!r} is no name of a cut: it has 1 to 200 of the characters a-z A-Z 0-9 . _ -, and begins with a letter or a digit."
        raise LogError("INVALID_ARGUMENT", sentence)
    return name


def cut_path(name: str) -> str:
    """The name of the object of a cut. Raises `LogError` when there can be no such cut."""
    return f"{CUTS}/{check_name(name)}{_SUFFIX}"


def encode_cut(cut: Cut) -> bytes:
    """The bytes of a cut's object."""
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(cut)}).encode() + b"\n"


def read_cut(objects: Objects, name: str) -> Cut:
    """Read a cut. Raises `LogError` when there is none or it makes no sense, OSError."""
    path = cut_path(name)
    try:
        found = decoded(objects.read(path), FORMAT, VERSION)
        ranges = tuple((int(number), int(start), int(end)) for number, start, end in found["ranges"])
        return Cut(
            name, str(found["topic"]), str(found["topic_id"]), ranges,
            str(found["sha256"]), bool(found["is_own"]), int(found["created_at_ms"]),
        )  # fmt: skip
    except FileNotFoundError:
        known = ", ".join(names(objects)[:10]) or "none"
        raise LogError("INVALID_ARGUMENT", f"The archive has no cut {name!r}; there are: {known}.") from None
    except (ManifestError, KeyError, TypeError, ValueError) as error:
        raise LogError("CORRUPT_ARCHIVE", f"{path} cannot be used: {error}.") from None


def names(objects: Objects) -> list[str]:
    """The names of all cuts. Raises OSError."""
    return [name.removesuffix(_SUFFIX) for name in objects.files(CUTS) if name.endswith(_SUFFIX)]


def all_cuts(objects: Objects) -> Iterator[Cut]:
    """Give all cuts. Raises as `read_cut`."""
    return (read_cut(objects, name) for name in names(objects))


def own_archive(objects: Objects, name: str, *, create: bool = False) -> Objects:
    """The archive in a cut of a compacted topic. Raises `LogError`, OSError."""
    found = objects.below(f"{CUTS}/{check_name(name)}")
    try:
        return open_root(found, f"The cut {name!r}", create=create)
    except LogError:
        raise LogError("CORRUPT_ARCHIVE", f"The batches of the cut {name!r} are not in the archive.") from None


def kept_from(cuts: Iterator[Cut], topic: str, topic_id: str, partition: int) -> int | None:
    """The first offset of a partition that a cut needs in the archive; None when none does."""
    starts = [
        start
        for cut in cuts
        if (cut.topic, cut.topic_id) == (topic, topic_id) and not cut.is_own
        for number, start, end in cut.ranges
        if number == partition and start < end
    ]
    return min(starts, default=None)
