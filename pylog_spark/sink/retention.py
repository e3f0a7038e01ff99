"""Warns when a column `timestamp` lies so far in the past that the topic's retention deletes the rows; once per query or write.

The column is the record's time, and retention by time goes by it: the rows of a backfill may be deleted within minutes of their write.
Spark's Kafka connector ignores the column, so a program that used it does not expect that. The times are known when the rows are
written: tasks report the oldest time that they wrote to each topic, and the driver compares it with the topic's settings
when they are committed. Errors in the comparison never fail a write.

When a batch write is planned its rows are not known yet, and most times are of today. So at that point there is only a line at INFO,
when the topic has a retention by time, which says what to set before a backfill.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pylog_spark.errors import PylogError, native, translated
from pylog_spark.results.configs import ConfigDescription
from pylog_spark.results.decoding import all_decoded

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("pylog_spark")

#: Longest wait in ms for the settings of the topics: a commit should not take longer for a warning.
_DESCRIBE_MS = 5_000
#: Seconds for which the settings of a topic are used again: a query commits many micro-batches in that time.
_SETTINGS_S = 300.0
#: Topics that one process remembers.
_TOPICS_MAX = 1_000
#: Rows younger than this are not compared: only tests of retention itself have such a short one.
_RECENT_MS = 60_000

#: Of which query or write, and for which topic, there was a warning.
_warned: set[tuple[str, str]] = set()
#: By address and topic: when its settings were asked for, and what they were.
_known: dict[tuple[str, str], tuple[float, Mapping[str, str | None]]] = {}


class Oldest:
    """The oldest value of the column `timestamp` that a task has written to each topic.

    Parameters
    ----------
    topic : str or None
        Of all rows; None when the column `topic` says it.
    """

    def __init__(self, topic: str | None) -> None:
        self._topic = topic
        self.times_ms: dict[str, int] = {}

    def seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Look at a batch, whose columns have the record's names, and give it back."""
        if "timestamp" in batch.schema.names and batch.num_rows:
            for topic, time_ms in self._oldest(batch):
                self.times_ms[topic] = min(time_ms, self.times_ms.get(topic, time_ms))
        return batch

    def _oldest(self, batch: pa.RecordBatch) -> Iterable[tuple[str, int]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        stamps = batch.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        found: list[tuple[Any, Any]]
        if self._topic is not None:
            found = [(self._topic, pc.min(stamps).as_py())]
        else:
            table = pa.table({"topic": batch.column("topic"), "stamp": stamps})
            least = table.group_by("topic").aggregate([("stamp", "min")])
            found = list(zip(least.column("topic").to_pylist(), least.column("stamp_min").to_pylist(), strict=True))
        return [(topic, time_ms) for topic, time_ms in found if topic is not None and time_ms is not None]


def warn_of_retention(client: Mapping[str, str], name: str, oldest: Iterable[Mapping[str, int]]) -> None:
    """Warn when the retention of a topic deletes what was just written to it.

    Parameters
    ----------
    client : mapping
        Settings of the native client.
    name : str
        The query or write, which is warned of a topic once.
    oldest : iterable of mapping
        `Oldest.times_ms` of each task.
    """
    now_ms = time.time_ns() // 1_000_000
    times_ms: dict[str, int] = {}
    for task_times_ms in oldest:
        for topic, time_ms in task_times_ms.items():
            times_ms[topic] = min(time_ms, times_ms.get(topic, time_ms))
    old = {topic: time_ms for topic, time_ms in times_ms.items() if now_ms - time_ms > _RECENT_MS}
    topics = sorted(topic for topic in old if (name, topic) not in _warned)
    try:
        settings = _settings(client, topics)
    except PylogError as error:
        _log.debug("The retention of %s is not known: %s", topics, error.sentence)
        return
    for topic in topics:
        sentence = warning(topic, now_ms, old[topic], settings[topic])
        if sentence:
            if len(_warned) >= _TOPICS_MAX:
                _warned.clear()
            _warned.add((name, topic))
            _log.warning("%s", sentence)


def log_retention(client: Mapping[str, str], topic: str | None, columns: Iterable[str]) -> None:
    """Log at INFO, before a write, that its column `timestamp` is what the retention of its topic goes by.

    Parameters
    ----------
    client : mapping
        Settings of the native client.
    topic : str or None
        Of all rows; nothing is logged when the rows say it.
    columns : iterable of str
        That make a record, by the record's names.
    """
    if topic is None or "timestamp" not in columns or not _log.isEnabledFor(logging.INFO):
        return
    try:
        settings = _settings(client, [topic])[topic]
    except PylogError as error:
        _log.debug("The retention of %s is not known: %s", topic, error.sentence)
        return
    retention_ms = _retention_ms(settings)
    if retention_ms is not None:
        _log.info(
            "pylog writes a column timestamp to %r, whose retention.ms of %d (%s) goes by it: older rows are deleted soon after they are "
            "written. %s",
            topic,
            retention_ms,
            _length(retention_ms),
            _advice(topic),
        )


def _retention_ms(settings: Mapping[str, str | None]) -> int | None:
    """How long a topic keeps its records by the time that they were given; None where nothing is deleted for that."""
    retention_ms = int(settings.get("retention.ms") or -1)
    deletes = "delete" in (settings.get("cleanup.policy") or "delete").split(",")
    by_column = settings.get("message.timestamp.type") != "LogAppendTime"
    return retention_ms if deletes and by_column and retention_ms >= 0 else None


def _advice(topic: str) -> str:
    return (
        f"To keep them, set retention.ms (pylog config alter topic {topic} --set retention.ms=-1); or drop the column, and the time of "
        "writing is the record's."
    )


def warning(topic: str, now_ms: int, oldest_ms: int, settings: Mapping[str, str | None]) -> str | None:
    """Give the sentence about a topic whose rows are as old as `oldest_ms`; None when its settings keep them. Pure."""
    retention_ms = _retention_ms(settings)
    if retention_ms is None or retention_ms >= now_ms - oldest_ms:
        return None
    oldest = datetime.fromtimestamp(oldest_ms / 1_000, timezone.utc).isoformat(" ", "seconds")
    return (
        f"Rows for the topic {topic!r} have times as old as {oldest} in their column timestamp, and its retention.ms of {retention_ms} "
        f"({_length(retention_ms)}) goes by that time: the brokers will delete them soon. {_advice(topic)}"
    )


def _length(ms: int) -> str:
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if ms >= size:
            return f"{ms / size:.3g} {unit if ms > size else unit[:-1]}"
    return f"{ms / 1_000:.3g} seconds"


def _settings(client: Mapping[str, str], topics: Iterable[str]) -> dict[str, Mapping[str, str | None]]:
    """The settings of the topics, asked for when they are not known or old."""
    names = {topic: (client["bootstrap.servers"], topic) for topic in topics}
    now_s = time.monotonic()
    unknown = [topic for topic, key in names.items() if key not in _known or now_s - _known[key][0] > _SETTINGS_S]
    if unknown:
        if len(_known) >= _TOPICS_MAX:
            _known.clear()
        described = _described(client, unknown)
        _known.update({names[topic]: (now_s, described.get(topic, {})) for topic in unknown})
    return {topic: _known[key][1] if key in _known else {} for topic, key in names.items()}


def _described(client: Mapping[str, str], topics: list[str]) -> dict[str, dict[str, str | None]]:
    with translated():
        asked = native().Client({**client, "default.api.timeout.ms": str(_DESCRIBE_MS)})
        try:
            described = all_decoded(ConfigDescription, asked.describe_configs("topic", topics))
        finally:
            asked.close()
    return {description.name: {each.name: each.value for each in description.configs} for description in described}
