"""How the text of an option becomes a value. Each function raises ValueError with the rest of the sentence "The option x ..."."""

from __future__ import annotations

import os
import re

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.limits import parse_times
from pylog_spark.offsets.pattern import compile_pattern


def nonempty(text: str) -> str:
    """Any text but a blank one."""
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


def directory(text: str) -> str:
    """A directory of this machine's file system, as an absolute path; the URL of an archive as it is."""
    scheme, colon, rest = text.strip().partition(":")
    is_url = bool(colon) and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme) is not None
    if is_url and scheme.lower() != "file" and rest.startswith("//"):
        return text.strip()
    if is_url and (scheme.lower() != "file" or re.match(r"///|/(?!/)", rest) is None):
        raise ValueError(
            f"must be a directory that all machines see as a local path (file:/// or none before it), not {text!r}; mount or copy it"
        )
    path = re.sub("^/+", "/", rest) if is_url else text.strip()
    if not path:
        raise ValueError("must not be empty")
    return os.path.abspath(path)


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


def number(text: str) -> int:
    """A whole number, 0 or more."""
    if not re.fullmatch(r"\+?\d+", text.strip()):
        raise ValueError(f"must be a whole number, 0 or more, not {text!r}")
    return int(text)


def time_ms(text: str) -> int:
    """A time in ms since 1970."""
    if not re.fullmatch(r"\d+", text.strip()):
        raise ValueError(f"must be a time in ms since 1970-01-01 UTC, a whole number, not {text!r}")
    return int(text)


_SIZES = {
    "": 1,
    "b": 1,
    "k": 2**10,
    "kb": 2**10,
    "m": 2**20,
    "mb": 2**20,
    "g": 2**30,
    "gb": 2**30,
    "t": 2**40,
    "tb": 2**40,
}


def size(text: str) -> int:
    """``64m``, ``1g``, ``100kb`` as Spark writes sizes (powers of 1024), or a plain number of bytes."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _SIZES or int(found[1]) < 1:
        raise ValueError(f"must be a size such as 64m, 1g or 500000 (bytes), at least 1, not {text!r}")
    return int(found[1]) * _SIZES[found[2]]


def size_or_none(text: str) -> int:
    """A size as in `size`, or 0."""
    return 0 if text.strip() == "0" else size(text)


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int:
    """``15m``, ``30s``, ``500ms`` or a plain number of ms; gives ms."""
    found = re.fullmatch(r"(\d+)\s*([a-z]+)?", text.strip().lower())
    if found is None or (found[2] or "ms") not in _UNITS_MS:
        raise ValueError(f"must be a duration such as 15m, 30s or 500ms, not {text!r}")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


_TIMEOUT_MS = (1_000, 365 * _UNITS_MS["d"])


def timeout(text: str) -> int:
    """A duration from one second to a year; gives ms."""
    found = duration_ms(text)
    if not _TIMEOUT_MS[0] <= found <= _TIMEOUT_MS[1]:
        raise ValueError(f"must be a duration from 1s to 365d, not {text!r}")
    return found


def topics(text: str) -> tuple[str, ...]:
    """Names between commas; blanks around them and repeated names are dropped."""
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
    return parse_times(text)


def strategy(text: str) -> str:
    """What to do with a partition that has no record at or after a time."""
    if text.strip().lower() not in ("error", "latest"):
        raise ValueError(f"must be error or latest, not {text!r}")
    return text.strip().lower()


EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"
SKIP, ERROR = "skip", "error"
_APP_ID_MAX = 200


def delivery(text: str) -> str:
    """A delivery guarantee."""
    word = text.strip().lower()
    if word not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise ValueError(f"must be {EXACTLY_ONCE} or {AT_LEAST_ONCE}, not {text!r}")
    return word


def app_id(text: str) -> str:
    """The name of an application, which becomes a part of transactional ids."""
    if not text.strip() or len(text) > _APP_ID_MAX or not text.isprintable():
        raise ValueError(f"must be 1 to {_APP_ID_MAX} printable characters, not {text!r}")
    return text


def version(text: str) -> int:
    """A version of a write."""
    if not re.fullmatch(r"\d{1,18}", text.strip()):
        raise ValueError(f"must be a whole number of at least 0, not {text!r}")
    return int(text)


def skip_or_error(text: str) -> str:
    """Give ``skip`` or ``error``."""
    if text not in (SKIP, ERROR):
        raise ValueError(f"must be {SKIP} or {ERROR}, not {text!r}")
    return text


def ledger(text: str) -> str:
    """Give the name of a ledger, which is a part of a topic's name."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", text):
        raise ValueError(f"must have 1 to 100 letters, digits, dots, underscores or dashes, not {text[:100]!r}")
    return text


def auto_or_never(text: str) -> bool:
    """Whether a way to read is taken where it is possible."""
    word = text.strip().lower()
    if word not in ("auto", "never"):
        raise ValueError(f"must be auto or never, not {text!r}")
    return word == "auto"


def isolation(text: str) -> str:
    """Which records of transactions are read."""
    word = text.strip().lower()
    if word not in ("read_committed", "read_uncommitted"):
        raise ValueError(f"must be read_committed or read_uncommitted, not {text!r}")
    return word
