"""The new offsets of a group that is reset: a pure decision for each partition, with the words and limits of Kafka's tool.

A position outside the log is moved to its nearer end; a time after the last record is the end.
"""

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,3})?)S)?)?"
)
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class How(enum.Enum):
    """How the new position is found."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    TIME = "to-datetime"


@dataclass(frozen=True, slots=True)
class ResetScenario:
    """The wanted position. `value`: the offset, the shift, or milliseconds since 1970."""

    how: How
    value: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a partition. An end is the offset after the last record.

    Attributes
    ----------
    current : int or None
        The offset that the group has committed, None when it has none.
    at_time : int or None
        Offset of the first record at or after the wanted time, None when there is none.
    """

    start: int
    end: int
    current: int | None = None
    at_time: int | None = None


def new_offset(scenario: ResetScenario, known: Known) -> int | None:
    """The offset at which the group goes on; None when it depends on the committed offset and there is none."""
    if scenario.how is How.EARLIEST:
        return known.start
    if scenario.how is How.LATEST:
        return known.end
    if scenario.how is How.TIME:
        return known.end if known.at_time is None else known.at_time
    if scenario.how is How.OFFSET:
        return _within(scenario.value, known)
    if known.current is None:
        # Without a committed offset, Kafka's tool takes the end as the current position, and refuses to shift it.
        return known.end if scenario.how is How.CURRENT else None
    return _within(known.current + (scenario.value if scenario.how is How.SHIFT else 0), known)


def _within(offset: int, known: Known) -> int:
    return max(known.start, min(offset, known.end))


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration: ``P1DT2H``, ``PT30M``. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip().upper())
    parts = {unit: number for unit, number in match.groupdict().items() if number} if match else {}
    if not parts:
        raise ValueError(f"{text!r} is not a duration such as P1D, PT12H or PT30M")
    return round(sum(float(number) * _UNITS_MS[unit] for unit, number in parts.items()))


def selected(selection: Sequence[str]) -> Iterator[tuple[str, list[int] | None]]:
    """(topic, partitions or None for all) of each ``TOPIC`` or ``TOPIC:0,2``. Raises ValueError."""
    for text in selection:
        topic, colon, numbers = text.partition(":")
        words = numbers.split(",") if colon else []
        if not topic or not all(word.strip().isdigit() for word in words):
            raise ValueError(f"{text!r} is not TOPIC or TOPIC:PARTITION,PARTITION")
        yield topic, sorted({int(word) for word in words}) if colon else None
