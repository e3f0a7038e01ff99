"""Compatibility levels and modes: which earlier versions a new schema is compared with, and in which direction. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pylog_spark.web.refusal import Refusal

BACKWARD, FORWARD, FULL, NONE = "BACKWARD", "FORWARD", "FULL", "NONE"
_TRANSITIVE = "_TRANSITIVE"
#: Every level. BACKWARD: the new schema reads what the last one wrote; FORWARD: the other way round; FULL: both.
LEVELS = (NONE, BACKWARD, BACKWARD + _TRANSITIVE, FORWARD, FORWARD + _TRANSITIVE, FULL, FULL + _TRANSITIVE)
#: Where nothing is set.
DEFAULT_LEVEL = BACKWARD

READWRITE, READONLY, READONLY_OVERRIDE, IMPORT = "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"
#: Every mode. READONLY_OVERRIDE of the whole registry wins over those of subjects; IMPORT takes ids and versions as they are given.
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)
DEFAULT_MODE = READWRITE

_Item = TypeVar("_Item")


def read_level(given: object) -> str:
    """Give the level of this name, in whatever case. Raises `Refusal`."""
    if isinstance(given, str) and given.upper() in LEVELS:
        return given.upper()
    raise Refusal(422, 42203, f"{str(given)[:40]!r} is no compatibility level: give {', '.join(LEVELS)}.")


def read_mode(given: object) -> str:
    """Give the mode of this name, in whatever case. Raises `Refusal`."""
    if isinstance(given, str) and given.upper() in MODES:
        return given.upper()
    raise Refusal(422, 42204, f"{str(given)[:40]!r} is no mode: give {', '.join(MODES)}.")


def compared(level: str, earlier: Sequence[_Item]) -> Sequence[_Item]:
    """Give those of `earlier` (oldest first) that a new schema is compared with, the newest first."""
    if level == NONE:
        return ()
    return tuple(reversed(earlier)) if level.endswith(_TRANSITIVE) else tuple(earlier[-1:])


def new_reads_old(level: str) -> bool:
    """Whether the new schema must read what the old one wrote."""
    return level.startswith((BACKWARD, FULL))


def old_reads_new(level: str) -> bool:
    """Whether the old schema must read what the new one writes."""
    return level.startswith((FORWARD, FULL))
