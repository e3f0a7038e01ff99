"""Which records a request wants, and the token by which a later one goes on. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pylog_spark.web.console.call import Call
from pylog_spark.web.console.refusals import bad_request

LIMIT = 50
LIMIT_MAX = 500
_OFFSET_MAX = 2**63 - 1
_PARTITION_MAX = 2**31 - 1
_TOKEN = re.compile(r"\d{1,10}-\d{1,19}(\.\d{1,10}-\d{1,19})*")
_ISOLATION = ("read_uncommitted", "read_committed")


@dataclass(frozen=True)
class Start:
    """Where reading begins: at an end of the log, at an offset, or at the first record at or after a time in ms since 1970."""

    kind: Literal["earliest", "latest", "offset", "time"]
    number: int = 0


@dataclass(frozen=True)
class Wanted:
    """What is wanted.

    Attributes
    ----------
    topic : str
        The topic.
    partition : int or None
        Its only partition that is wanted; None: all.
    start : Start
        Where to begin, unless `after` says it.
    after : mapping of int to int or None
        By partition, the offsets from which to go on.
    before : mapping of int to int or None
        By partition, the offsets before which to go back. Not together with `after`, nor in a search.
    key, contains : bytes or None
        Only records with this key; only those that have this somewhere in key or value.
    limit : int
        Most records of the answer.
    isolation : str
        ``read_committed`` leaves out what is not committed.
    """

    topic: str
    partition: int | None
    start: Start
    after: Mapping[int, int] | None
    before: Mapping[int, int] | None
    key: bytes | None
    contains: bytes | None
    limit: int
    isolation: str

    @property
    def is_search(self) -> bool:
        """Whether records are passed over."""
        return self.key is not None or self.contains is not None


def wanted(call: Call) -> Wanted:
    """Read the parameters. Raises `ConsoleRefusal`."""
    (topic,), query = call.named, call.query
    isolation = query.get("isolation") or _ISOLATION[0]
    if isolation not in _ISOLATION:
        raise bad_request(f"isolation is {' or '.join(_ISOLATION)}.")
    found = Wanted(
        topic,
        call.whole("partition", None, 0, _PARTITION_MAX),
        _start(query.get("from") or "latest"),
        _positions(query["after"], "after", "next") if query.get("after") else None,
        _positions(query["before"], "before", "previous") if query.get("before") else None,
        query["key"].encode() if "key" in query else None,
        query["contains"].encode() if query.get("contains") else None,
        call.whole("limit", LIMIT, 1, LIMIT_MAX) or LIMIT,
        isolation,
    )
    if found.before is not None and (found.after is not None or found.is_search):
        raise bad_request("before goes back in all records: give it without after, key and contains.")
    return found


def token(positions: Mapping[int, int]) -> str:
    """The token that says where to go on."""
    return ".".join(f"{partition}-{offset}" for partition, offset in sorted(positions.items()))


def _positions(text: str, name: str, given_as: str) -> dict[int, int]:
    if not _TOKEN.fullmatch(text):
        raise bad_request(f"{name} is the word that an answer gave as {given_as}.")
    pairs = (pair.split("-") for pair in text.split("."))
    return {int(partition): min(int(offset), _OFFSET_MAX) for partition, offset in pairs}


def _start(text: str) -> Start:
    kind, _, place = text.partition(":")
    if text == "earliest" or text == "latest":
        return Start("earliest" if text == "earliest" else "latest")
    if kind == "offset" and place.isascii() and place.isdigit() and len(place) < 20:
        return Start("offset", min(int(place), _OFFSET_MAX))
    if kind == "time" and (found := _time_ms(place)) is not None:
        return Start("time", found)
    raise bad_request(
        "from is earliest, latest, offset:N or time:T, with T as in 2026-01-31T12:00:00Z or in milliseconds since 1970."
    )


def _time_ms(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    try:
        # Python before 3.11 does not know Z.
        found = datetime.fromisoformat(text.removesuffix("Z") + ("+00:00" if text.endswith("Z") else ""))
        return None if found.tzinfo is None else max(int(found.timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        return None
