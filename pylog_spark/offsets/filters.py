"""Which records a query wants, as plain values. Conditions on topic, partition and offset cut the planned ranges; those on
timestamp and key are checked by the native reader before it builds a row.

Texts of the options `filterKey` and `filterKeyPrefix` are read here. Keys and topics are compared byte by byte, unsigned, as
Spark compares BINARY and STRING.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.offsets.spans import EVERY, Spans

IN = "in"
PREFIX = "prefix"
RANGE = "range"


@dataclass(frozen=True)
class BytesTest:
    """A condition on a key (or on a topic's name in UTF-8).

    Attributes
    ----------
    how : str
        `IN`: the key is one of `values`, in which None stands for no key. `PREFIX`: it begins with one of them. `RANGE`: there
        is a key and it lies in ``[values[0], values[1])``, where None is no bound.
    values : tuple
        See `how`.
    """

    how: str
    values: tuple[bytes | None, ...]

    def takes(self, value: bytes | None) -> bool:
        """Whether `value` meets the condition."""
        if self.how == IN or value is None:
            return self.how == IN and value in self.values
        if self.how == PREFIX:
            return any(prefix is not None and value.startswith(prefix) for prefix in self.values)
        low, high = self.values
        return (low is None or low <= value) and (high is None or value < high)


def compared_bytes(comparison: str, values: list[bytes]) -> BytesTest:
    """Give the test of keys that are, by one of ``= < <= > >=`` and ``in``, so to the one value of `values` (to one of them)."""
    if comparison in ("=", "in"):
        return BytesTest(IN, tuple(values))
    (value,) = values
    # The next larger text is the same with a zero byte.
    after = value + b"\0"
    bounds = {"<": (None, value), "<=": (None, after), ">": (after, None), ">=": (value, None)}
    return BytesTest(RANGE, bounds[comparison])


class NativeFilter(TypedDict, total=False):
    """The native reader's arguments for filters; an argument that would leave out no row is absent."""

    timestamps: list[tuple[int, int]]
    keys: list[tuple[str, list[bytes | None]]]


@dataclass(frozen=True)
class RecordFilter:
    """Which records a query wants: those for which all of these conditions hold."""

    partitions: Spans = EVERY
    offsets: Spans = EVERY
    timestamps: Spans = EVERY
    keys: tuple[BytesTest, ...] = ()
    topics: tuple[BytesTest, ...] = ()

    def __and__(self, other: RecordFilter) -> RecordFilter:
        """The records that both want."""
        return RecordFilter(
            self.partitions & other.partitions,
            self.offsets & other.offsets,
            self.timestamps & other.timestamps,
            self.keys + other.keys,
            self.topics + other.topics,
        )

    def cut(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Leave out partitions that are not wanted, and keep the wanted offsets of the others."""
        if not self.timestamps:
            return []
        return [part for offsets in ranges if self._takes(offsets) for part in self._parts(offsets)]

    @property
    def first_ms(self) -> int | None:
        """The lowest wanted timestamp; None when looking up an offset by time would not help (no record is older than 0)."""
        lowest = self.timestamps.spans[0][0] if self.timestamps else 0
        return lowest if lowest > 0 else None

    def native(self) -> NativeFilter:
        """Give the native reader's arguments for timestamps and keys."""
        given: NativeFilter = {}
        if self.timestamps != EVERY:
            given["timestamps"] = self.timestamps.inclusive()
        if self.keys:
            given["keys"] = [(test.how, list(test.values)) for test in self.keys]
        return given

    def _takes(self, offsets: OffsetRange) -> bool:
        topic, partition = offsets.partition
        return partition in self.partitions and all(test.takes(topic.encode()) for test in self.topics)

    def _parts(self, offsets: OffsetRange) -> list[OffsetRange]:
        inside = self.offsets & Spans.of([(offsets.start, offsets.end)])
        return [OffsetRange(offsets.partition, start, end) for start, end in inside.spans]


def parse_keys(text: str) -> BytesTest:
    """Read a key as text, or several as a JSON array. Raises ValueError with the rest of the sentence "The option x ..."."""
    return BytesTest(IN, tuple(_keys(text, null=True)))


def parse_prefixes(text: str) -> BytesTest:
    """Read a prefix of keys, or several, as `parse_keys` does."""
    return BytesTest(PREFIX, tuple(_keys(text, null=False)))


def _keys(text: str, *, null: bool) -> list[bytes | None]:
    if not text.lstrip().startswith("["):
        return [text.encode()]
    try:
        items = json.loads(text)
    except ValueError:
        raise ValueError(
            f'begins with [ and is not a JSON array, {text!r}; write a key that begins with [ as ["[..."]'
        ) from None
    return [_key(item, null=null) for item in items]


def _key(item: object, *, null: bool) -> bytes | None:
    if isinstance(item, str):
        return item.encode()
    if item is None and null:
        return None
    if isinstance(item, dict) and list(item) == ["hex"] and isinstance(item["hex"], str):
        try:
            return bytes.fromhex(item["hex"])
        except ValueError:
            pass
    absent = ', null for "no key"' if null else ""
    raise ValueError(f'takes texts{absent} and {{"hex":"00ff"}} in its array, not {json.dumps(item)}')
