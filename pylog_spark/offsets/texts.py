"""How the text of an option becomes a value. Each raises ValueError with the rest of the sentence "The option x ..."."""

from __future__ import annotations

import re

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.limits import parse_per_partition
from pylog_spark.offsets.pattern import compile_pattern


def nonempty(text: str) -> str:
    """Any text but a blank one."""
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


def boolean(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"must be true or false, not {text!r}")
    return word == "true"


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not re.fullmatch(r"\+?\d+", text.strip()) or int(text) < 1:
        raise ValueError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def time_ms(text: str) -> int:
    """A time in ms since 1970."""
    if not re.fullmatch(r"\d+", text.strip()):
        raise ValueError(f"must be a time in ms since 1970-01-01 UTC, a whole number, not {text!r}")
    return int(text)


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int:
    """``15m``, ``30s``, ``500ms`` or a plain number of ms; gives ms."""
    found = re.fullmatch(r"(\d+)\s*([a-z]+)?", text.strip().lower())
    if found is None or (found[2] or "ms") not in _UNITS_MS:
        raise ValueError(f"must be a duration such as 15m, 30s or 500ms, not {text!r}")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


def topics(text: str) -> tuple[str, ...]:
    """Names between commas, without blanks and repetitions."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ValueError("must name at least one topic")
    return names


def pattern(text: str) -> str:
    """A Java regular expression that Python can express; gives it as it was written."""
    compile_pattern(nonempty(text))
    return text.strip()


def times(text: str) -> dict[TopicPartition, int]:
    """A time in ms for each partition, as JSON."""
    return parse_per_partition(text, "time in ms")


def strategy(text: str) -> str:
    """What to do with a partition that has no record at or after a time."""
    if text.strip().lower() not in ("error", "latest"):
        raise ValueError(f"must be error or latest, not {text!r}")
    return text.strip().lower()
