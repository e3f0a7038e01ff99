"""What an audit finds: counts of producers beside counts of the log, and which topics cannot be compared. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: A topic, and the start of a window in ms since 1970.
Window = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """A window in which the log does not have what the producers say.

    Attributes
    ----------
    topic : str
        The topic; an audit topic when something in it is not an audit record.
    start_ms, window_ms : int
        Where the window begins, in milliseconds since 1970, and its length.
    producers : int
        How many records the producers say that they have written.
    log : int
        How many the log has. Fewer: records were lost. More: some are there twice, or were written by somebody who does not count.
    """

    topic: str
    start_ms: int
    window_ms: int
    producers: int
    log: int


@dataclass(frozen=True, slots=True)
class Report:
    """What was compared.

    Attributes
    ----------
    differences : tuple of Difference
        By topic and window; empty when all is well.
    windows : int
        How many windows were compared.
    records : int
        How many records of the log lie in them.
    begins_ms : mapping of str to int
        The topics from which records were deleted, each with the time from which on its windows are compared.
    ends_ms : int or None
        Windows that end later were left out; None when none were.
    """

    differences: tuple[Difference, ...]
    windows: int
    records: int
    begins_ms: Mapping[str, int]
    ends_ms: int | None


def compare(
    producers: Mapping[Window, int],
    log: Mapping[Window, int],
    window_ms: int,
    begins_ms: Mapping[str, int],
    ends_ms: int | None,
) -> Report:
    """Compare counts in the windows that begin at or after their topic's `begins_ms`, and end at or before `ends_ms`."""
    compared = [
        (topic, start_ms)
        for topic, start_ms in sorted({*producers, *log})
        if start_ms >= begins_ms.get(topic, start_ms) and (ends_ms is None or start_ms + window_ms <= ends_ms)
    ]
    different = tuple(
        Difference(topic, start_ms, window_ms, said, there)
        for topic, start_ms in compared
        if (said := producers.get((topic, start_ms), 0)) != (there := log.get((topic, start_ms), 0))
    )
    return Report(different, len(compared), sum(log.get(window, 0) for window in compared), begins_ms, ends_ms)


def why_not(topic: str, settings: Mapping[str, str | None]) -> str | None:
    """Give the sentence that says why a topic with these settings cannot be compared; None when it can.

    Parameters
    ----------
    topic : str
        Its name.
    settings : mapping of str to str
        Its settings by Kafka's names.
    """
    if settings.get("message.timestamp.type") == "LogAppendTime":
        return (
            f"The topic {topic!r} has message.timestamp.type=LogAppendTime, so its records do not keep the times by which their producers "
            f"count; set it to CreateTime (pylog config alter topic {topic} --set message.timestamp.type=CreateTime) or leave the topic out."
        )
    if "compact" in (settings.get("cleanup.policy") or ""):
        return f"The topic {topic!r} is compacted: its records are removed one by one, so nobody can say how many it should have; leave it out."
    return None
