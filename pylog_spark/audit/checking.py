"""`check`: the topics and the audit topic read once, without Spark. It reads what is there when it is called, and only timestamps."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pylog_spark.audit.comparing import Report, Window, compare, why_not
from pylog_spark.audit.counting import count_windows
from pylog_spark.audit.document import DELAY_MS, WINDOW_MS, count_in, window_start
from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.errors import LogError, translated

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("pylog_spark")

#: Topic, partition, first offset, offset after the last.
_Span = tuple[str, int, int, int]


def check(
    bootstrap_servers: str,
    audit_topic: str,
    topics: Sequence[str] = (),
    *,
    window_ms: int = WINDOW_MS,
    delay_ms: int | None = DELAY_MS,
    config: Mapping[str, str] | None = None,
) -> Report:
    """Count what is in the topics, and compare it with what their producers say.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    audit_topic : str
        Where the producers say what they have written.
    topics : sequence of str
        The topics to look at; when there are none, all that the audit topic names.
    window_ms : int
        Length of the windows: that of the producers, or a multiple of it.
    delay_ms : int or None
        Windows that ended less than so long ago are left out; None compares every window.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names.

    Returns
    -------
    Report
        Something in the audit topic that is not an audit record, or counts in windows that do not make up such of `window_ms`, is a
        difference of the audit topic itself.

    Raises
    ------
    LogError
        No broker can be reached, a topic does not exist or cannot be compared, since it is compacted or has the brokers' timestamps.
    """
    settings = {**(config or {}), "bootstrap.servers": bootstrap_servers, "isolation.level": "read_committed"}
    ends_ms = None if delay_ms is None else time.time_ns() // 1_000_000 - delay_ms
    with Admin(bootstrap_servers, config) as admin:
        _spans(admin, [audit_topic])  # it must exist
        spans = _spans(admin, topics)
        producers, strange = _said(settings, _spans(admin, [audit_topic]), audit_topic, window_ms)
        if topics:
            producers = Counter({window: said for window, said in producers.items() if window[0] in topics})
        else:
            spans = _spans(admin, _existing(admin, {topic for topic, _ in producers}))
        _refuse(admin, sorted({topic for topic, *_ in spans}))
    begins_ms = _begins_ms(settings, spans, window_ms)
    log = _counted(settings, spans, window_ms)
    log.update(strange)
    return compare(producers, log, window_ms, begins_ms, ends_ms)


def _existing(admin: Admin, topics: set[str]) -> list[str]:
    return [described.name for described in admin.topics(sorted(topics)) if not described.error] if topics else []


def _spans(admin: Admin, topics: Sequence[str]) -> list[_Span]:
    """What can be read of the topics now."""
    partitions = [(topic, each.partition) for topic in topics for each in admin.topic(topic).partitions]
    first = admin.offsets([(*place, EARLIEST) for place in partitions])
    after = admin.offsets([(*place, LATEST) for place in partitions], "read_committed")
    return [(*place, start.offset, end.offset) for place, start, end in zip(partitions, first, after, strict=True)]


def _refuse(admin: Admin, topics: Sequence[str]) -> None:
    for described in admin.configs("topic", topics) if topics else []:
        sentence = why_not(described.name, {each.name: each.value for each in described.configs})
        if sentence:
            raise LogError("INVALID_ARGUMENT", sentence)


def _said(
    settings: Mapping[str, str], spans: Sequence[_Span], audit_topic: str, window_ms: int
) -> tuple[Counter[Window], Counter[Window]]:
    """What the producers say by window; and what in the audit topic is no count, by the window in which it was written."""
    said: Counter[Window] = Counter()
    strange: Counter[Window] = Counter()
    for batch in _batches(settings, spans, ["value", "timestamp"]):
        times_us = batch.column("timestamp").cast("int64").to_pylist()
        for value, time_us in zip(batch.column("value").to_pylist(), times_us, strict=True):
            count = count_in(value, window_ms)
            if count is None:
                strange[audit_topic, window_start(time_us // 1_000, window_ms)] += 1
            else:
                said[count[:2]] += count[2]
    if strange:
        _log.warning(
            "%d records of %s are no audit records, or count in windows that do not make up such of %d ms",
            strange.total(),
            audit_topic,
            window_ms,
        )
    return said, strange


def _counted(settings: Mapping[str, str], spans: Sequence[_Span], window_ms: int) -> Counter[Window]:
    found: Counter[Window] = Counter()
    for topic in sorted({topic for topic, *_ in spans}):
        of_topic = [span for span in spans if span[0] == topic]
        for batch in _batches(settings, of_topic, ["timestamp"]):
            for start_ms, count in count_windows(batch.column(0), window_ms):
                found[topic, start_ms] += count
    return found


def _begins_ms(settings: Mapping[str, str], spans: Sequence[_Span], window_ms: int) -> dict[str, int]:
    """From which time on the windows of topics are whole, from which records were deleted: after that of the oldest record."""
    begins_ms: dict[str, int] = {}
    for topic, partition, start, end in spans:
        if start > 0:
            first = next(iter(_batches(settings, [(topic, partition, start, end)], ["timestamp"], limit=1)), None)
            if first is not None and len(first):
                oldest_ms = first.column(0).cast("int64")[0].as_py() // 1_000
                begins_ms[topic] = max(begins_ms.get(topic, 0), window_start(oldest_ms, window_ms) + window_ms)
    return begins_ms


def _batches(
    settings: Mapping[str, str], spans: Sequence[_Span], columns: Sequence[str], limit: int | None = None
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from pylog_spark._native import RangeReader

    with translated():
        for topic, partition, start, end in spans:
            if start < end:
                reader = RangeReader(settings, topic, partition, start, end, columns, limit=limit)
                yield from pa.RecordBatchReader.from_stream(reader)
