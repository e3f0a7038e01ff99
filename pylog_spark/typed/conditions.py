"""Conditions of a query on the columns of a typed read, which its decoder checks before it keeps a row.

Pure. Only conditions that the decoder evaluates exactly as Spark does: comparisons with numbers, booleans, dates, times, texts and bytes.
Those on decimals, intervals, lists, maps and structs stay with Spark.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

from pylog_spark.offsets.filters import IN, PREFIX, RANGE, BytesTest, compared_bytes
from pylog_spark.offsets.spans import EVERY, Spans, compared

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = (1 << 63) - 1

#: How a condition compares, by the name of Spark's class.
COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


@dataclass(frozen=True)
class NumberTest:
    """The number that stands for a value lies in `spans`, or the value is null, and `null` says that this is wanted."""

    spans: Spans
    null: bool = False


Test = NumberTest | BytesTest


def as_test(condition: object, kinds: Mapping[str, str]) -> tuple[str, Test] | None:
    """Give the column and the test that takes exactly the rows for which `condition` is true; None when Spark must evaluate it.

    Parameters
    ----------
    condition : pyspark.sql.datasource.Filter
        Spark's.
    kinds : mapping of str to str
        The columns that are decoded: their names -> the names of Spark's types (`DataType.typeName`).
    """
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    column = attribute[0] if len(attribute) == 1 else ""
    kind = kinds.get(column, "")
    name = type(condition).__name__
    if kind in _BYTES:
        test: Test | None = _of_bytes(name, _BYTES[kind], getattr(condition, "value", None))
    elif kind in _NUMBERS:
        test = _of_number(name, _NUMBERS[kind], getattr(condition, "value", None))
    else:
        test = None
    return None if test is None else (column, test)


def _of_bytes(name: str, to_bytes: Callable[[Any], bytes | None], value: Any) -> Test | None:
    if name in ("IsNull", "IsNotNull"):
        return BytesTest(IN, (None,)) if name == "IsNull" else BytesTest(RANGE, (None, None))
    values = _all(to_bytes, value if name == "In" else [value])
    if not values:
        return None
    if name == "In":
        return BytesTest(IN, tuple(values))
    if name == "StringStartsWith":
        return BytesTest(PREFIX, tuple(values))
    return compared_bytes(COMPARISONS[name], values) if name in COMPARISONS else None


def _of_number(name: str, to_number: Callable[[Any], int | None], value: Any) -> Test | None:
    if name in ("IsNull", "IsNotNull"):
        return NumberTest(Spans.of([]), null=True) if name == "IsNull" else NumberTest(EVERY)
    values = _all(to_number, value if name == "In" else [value])
    if not values:
        return None
    if name == "In":
        return NumberTest(Spans.only(values))
    return NumberTest(compared(COMPARISONS[name], values)) if name in COMPARISONS else None


def _all(change: Callable[[Any], Any], values: Any) -> list[Any] | None:
    """All values but nulls, changed: with a null in IN the condition is null where it would be false, which selects the same rows. None
    where one is not of the column's type."""
    changed = [change(value) for value in values if value is not None]
    return None if None in changed else changed


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _truth(value: Any) -> int | None:
    return int(value) if isinstance(value, bool) else None


def _order(value: Any) -> int | None:
    """The place of a number among all, as the decoder has it: -0.0 is 0.0, and NaN is above all others."""
    if not isinstance(value, float):
        return None
    number = math.nan if math.isnan(value) else value + 0.0
    (bits,) = struct.unpack(">q", struct.pack(">d", number))
    return int(bits) if bits >= 0 else bits ^ _LARGEST


def _order_of_single(value: Any) -> int | None:
    """The same of FLOAT, whose literals may come with the digits of the shortest text."""
    try:
        return _order(struct.unpack(">f", struct.pack(">f", value))[0]) if isinstance(value, float) else None
    except OverflowError:
        return None


def _days(value: Any) -> int | None:
    return (value - _EPOCH.date()).days if isinstance(value, date) and not isinstance(value, datetime) else None


def _micros(value: Any) -> int | None:
    aware = isinstance(value, datetime) and value.tzinfo is not None
    return (value - _EPOCH) // _MICROSECOND if aware else None


def _naive_micros(value: Any) -> int | None:
    naive = isinstance(value, datetime) and value.tzinfo is None
    return (value - _EPOCH.replace(tzinfo=None)) // _MICROSECOND if naive else None


_NUMBERS: dict[str, Callable[[Any], int | None]] = {
    "byte": _whole,
    "short": _whole,
    "integer": _whole,
    "long": _whole,
    "boolean": _truth,
    "float": _order_of_single,
    "double": _order,
    "date": _days,
    "timestamp": _micros,
    "timestamp_ntz": _naive_micros,
}
_BYTES: dict[str, Callable[[Any], bytes | None]] = {
    "string": lambda value: value.encode() if isinstance(value, str) else None,
    "binary": lambda value: bytes(value) if isinstance(value, (bytes, bytearray)) else None,
}
