"""What is stored in an audit topic: one record for what one producer has written to one topic in one window. Pure.

The key is the topic's name. The value is JSON:

    {"version": 1, "topic": "orders", "windowStartMs": 1767225600000, "windowMs": 600000, "records": 4711, "producer": "..."}

A window begins at a multiple of its length since 1970 (UTC). Several audit records of one producer, topic and window add up: a producer
says what it has written since it last said something. What is not such a record is not a count, and the checkers name it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

#: Of the stored form. A reader takes no other.
VERSION = 1
#: Larger numbers are no times, and no counts.
_MOST = 1 << 53
#: Default length of a window.
WINDOW_MS = 600_000
#: Every so often a producer that goes on says what it has written.
PUBLISH_EVERY_S = 60.0
#: How long after its end a window is compared: its last counts, and late records, should have come by then.
DELAY_MS = 600_000

#: Topic, start of the window in ms since 1970, records.
Count = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Audit:
    """Where a producer says what it has written, and in which windows it counts.

    Attributes
    ----------
    topic : str
        The audit topic.
    window_ms : int
        Length of the windows.
    """

    topic: str
    window_ms: int = WINDOW_MS


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What one producer has written to one topic in one window, since it last said something of them.

    Attributes
    ----------
    topic : str
        The topic that was written to.
    start_ms, window_ms : int
        Where the window begins, in milliseconds since 1970, and its length.
    records : int
        How many.
    producer : str
        Who wrote: the key of a write by Spark, else a client id.
    """

    topic: str
    start_ms: int
    window_ms: int
    records: int
    producer: str

    @property
    def key(self) -> bytes:
        """The record's key."""
        return self.topic.encode()

    @property
    def value(self) -> bytes:
        """The record's value."""
        document = {
            "version": VERSION,
            "topic": self.topic,
            "windowStartMs": self.start_ms,
            "windowMs": self.window_ms,
            "records": self.records,
            "producer": self.producer,
        }
        return json.dumps(document, separators=(",", ":")).encode()


def audit_records(counts: Iterable[Count], window_ms: int, producer: str) -> list[AuditRecord]:
    """Give the audit records of some counts."""
    return [AuditRecord(topic, start_ms, window_ms, records, producer) for topic, start_ms, records in counts]


def parse(value: bytes | None) -> AuditRecord | None:
    """Read the value of a record in an audit topic; None when it is not an audit record of this version."""
    try:
        document = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        return None
    topic, producer = document.get("topic"), document.get("producer")
    numbers = [document.get(name) for name in ("windowStartMs", "windowMs", "records")]
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    if not isinstance(topic, str) or not isinstance(producer, str) or len(whole) < len(numbers):
        return None
    start_ms, window_ms, records = whole
    sound = 1 <= window_ms < _MOST and start_ms % window_ms == 0 and abs(start_ms) < _MOST and 0 <= records < _MOST
    return AuditRecord(topic, start_ms, window_ms, records, producer) if sound else None


def window_start(time_ms: int, window_ms: int) -> int:
    """Give the start of the window in which a time lies."""
    return time_ms - time_ms % window_ms


def count_in(value: bytes | None, window_ms: int) -> Count | None:
    """Read an audit record as a count in windows of `window_ms`; None when it is none, or when its windows do not make up such ones."""
    record = parse(value)
    if record is None or window_ms % record.window_ms:
        return None
    return record.topic, window_start(record.start_ms, window_ms), record.records
