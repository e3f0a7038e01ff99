"""What a checkpoint says of one micro-batch: a file of Spark's offset log, ``offsets/N``. Pure functions.

Two formats. ``v1`` (Spark's OffsetSeq) has a line of JSON about the query, then one line for each source in their order, ``-`` where a source
has no offset. ``v2`` (OffsetMap, Spark 4.2 and later) has lines ``NAME:OFFSET`` for them; a source without a name has its number. An offset
is JSON, of a form that belongs to the source: pylog's and the Kafka connector's are read as a `Position`, others are kept as they stand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pylog_spark.offsets import Offsets
from pylog_spark.offsets.position import META, Position, PositionError

_BY_NUMBER, _BY_NAME = "v1", "v2"
_NONE = "-"


class OffsetLogError(ValueError):
    """A file that Spark did not write, or a later Spark did; the argument is the end of a sentence that begins with its name."""


@dataclass(frozen=True)
class OffsetEntry:
    """Where the sources of a query are at the end of one micro-batch.

    Attributes
    ----------
    version : str
        The format, ``v1`` or ``v2``.
    about : str
        The line about the query: watermark, time and settings, as JSON.
    sources : dict of str to str or None
        The offset of each source, as JSON; by its number, or by its name where it has one. None where it has no offset yet.
    """

    version: str
    about: str
    sources: Mapping[str, str | None]

    @classmethod
    def of_text(cls, text: str) -> OffsetEntry:
        """Read a file. Raises `OffsetLogError`."""
        version, *lines = text.rstrip("\n").split("\n")
        if version not in (_BY_NUMBER, _BY_NAME):
            raise OffsetLogError(f"begins with {version[:20]!r}; known are the formats v1 and v2 of Spark's offset log")
        if not lines or not isinstance(_json(lines[0]), dict):
            raise OffsetLogError("has no line about the query")
        about, *offsets = lines
        if version == _BY_NUMBER:
            pairs = [(str(number), offset) for number, offset in enumerate(offsets)]
        else:
            pairs = [(name, offset) for name, _, offset in (line.partition(":") for line in offsets)]
        return cls(version, about, {name: None if offset == _NONE else offset for name, offset in pairs})

    def text(self) -> str:
        """The file; of an entry that was read and not changed, what was read."""
        offsets = {name: _NONE if offset is None else offset for name, offset in self.sources.items()}
        by_name = self.version == _BY_NAME
        return "\n".join(
            [self.version, self.about, *(f"{name}:{text}" if by_name else text for name, text in offsets.items())]
        )

    @property
    def watermark_ms(self) -> int:
        """The watermark of the batch, in milliseconds since 1970; 0 when there is none."""
        return int(_json(self.about).get("batchWatermarkMs", 0))

    @property
    def timestamp_ms(self) -> int:
        """When the batch was planned, in milliseconds since 1970."""
        return int(_json(self.about).get("batchTimestampMs", 0))

    def positions(self) -> dict[str, Position]:
        """The positions of those sources that read a log: pylog's, and those of Spark's Kafka connector."""
        read = {name: _position(offset) for name, offset in self.sources.items()}
        return {name: position for name, position in read.items() if position is not None}

    def moved(self, offsets: Mapping[str, Offsets]) -> OffsetEntry:
        """The entry with other offsets of some partitions, by source."""
        changed = {name: _with_offsets(str(self.sources[name]), moved) for name, moved in offsets.items() if moved}
        return replace(self, sources={**self.sources, **changed})


def _position(offset: str | None) -> Position | None:
    document = _json(offset or "")
    # An offset without a topic could be of any source.
    if not isinstance(document, dict) or not document:
        return None
    try:
        return Position.from_document(document)
    except PositionError:
        return None


def _with_offsets(text: str, moved: Offsets) -> str:
    document = _json(text)
    for (topic, partition), offset in moved.items():
        document[topic][str(partition)] = offset
    # Each source compares offsets as text, and has its own way to write them.
    return json.dumps(document) if META in document else json.dumps(document, separators=(",", ":"))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
