"""Sets of whole numbers (the partitions, offsets or timestamps that a filter wants) as spans ``[start, end)``.

A text names them as numbers and ranges between commas: ``7``, ``0,3,8..12``, ``100..``, ``..200``; ``a..b`` is ``[a, b)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final

#: Signed 64-bit numbers lie in ``[LOWEST, BEYOND)``.
LOWEST = -(2**63)
BEYOND = 2**63

#: Longest text that an error message repeats in full.
_MOST_SHOWN = 80


@dataclass(frozen=True)
class Spans:
    """A set of numbers: ascending spans ``[start, end)`` that neither overlap nor touch. Made by `of`."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Spans:
        """Give the set of all numbers that lie in one of `spans`."""
        joined: list[tuple[int, int]] = []
        for start, end in sorted(span for span in spans if span[0] < span[1]):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return cls(tuple(joined))

    @classmethod
    def only(cls, numbers: Iterable[int]) -> Spans:
        """Give the set of these numbers."""
        return cls.of((number, number + 1) for number in numbers)

    def __and__(self, other: Spans) -> Spans:
        """The numbers that are in both."""
        return Spans(tuple(_common(self.spans, other.spans)))

    def __contains__(self, number: int) -> bool:
        return any(start <= number < end for start, end in self.spans)

    def inclusive(self) -> list[tuple[int, int]]:
        """Give the first and the last number of each span."""
        return [(start, end - 1) for start, end in self.spans]

    def __bool__(self) -> bool:
        return bool(self.spans)


EVERY: Final = Spans(((LOWEST, BEYOND),))


def compared(comparison: str, values: list[int]) -> Spans:
    """Give the numbers that are, by one of ``= < <= > >=`` and ``in``, so to the one value of `values` (to one of them)."""
    if comparison in ("=", "in"):
        return Spans.only(values)
    (value,) = values
    bounds = {
        "<": (LOWEST, value),
        "<=": (LOWEST, value + 1),
        ">": (value + 1, BEYOND),
        ">=": (value, BEYOND),
    }
    return EVERY & Spans.of([bounds[comparison]])


def parse_numbers(text: str) -> Spans:
    """Read numbers of at least 0 and ranges of them. Raises ValueError with the rest of the sentence "The option x ..."."""
    return _parse(text, _number, "numbers and ranges such as 0,3,8..12 or 100.. (the end of a range is exclusive)")


def parse_times(text: str) -> Spans:
    """Read times in ms since 1970 or in ISO 8601 with a zone, and ranges of them. Raises ValueError as `parse_numbers`."""
    example = "2026-01-01T00:00:00Z..2026-01-02T00:00:00Z or 1767225600000.. (the end of a range is exclusive)"
    return _parse(
        text, _time_ms, f"times in ms since 1970 or in ISO 8601 with a zone, and ranges of them, such as {example}"
    )


def _parse(text: str, value: Callable[[str], int | None], wanted: str) -> Spans:
    spans: list[tuple[int, int]] = []
    for item in text.split(","):
        low, dots, high = (part.strip() for part in item.partition(".."))
        start = value(low) if low else LOWEST
        end = (value(high) if high else BEYOND) if dots else None if start is None else start + 1
        if not (low or high) or start is None or end is None:
            raise ValueError(f"must be {wanted}, not {_shown(text)}")
        if start >= end:
            raise ValueError(f"has the empty range {_shown(item.strip())}; its start must be lower than its end")
        spans.append((start, end))
    return Spans.of(spans)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and int(text) < BEYOND else None


def _time_ms(text: str) -> int | None:
    number = _number(text)
    if number is not None:
        return number
    try:
        # Python 3.10 does not know the Z.
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.microsecond % 1_000:
        return None
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


def _common(left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, int]]:
    at_left = at_right = 0
    while at_left < len(left) and at_right < len(right):
        start = max(left[at_left][0], right[at_right][0])
        end = min(left[at_left][1], right[at_right][1])
        if start < end:
            yield start, end
        if left[at_left][1] < right[at_right][1]:
            at_left += 1
        else:
            at_right += 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")
