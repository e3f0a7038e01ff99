"""What a task says in the audit topic: how many rows it has written to which topic, in which window of their timestamps.

The native writer counts rows as it takes them, and the counts are written by the same writer: exactly once, in the transaction of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pylog_spark.audit.comparing import why_not
from pylog_spark.audit.counting import write_counts
from pylog_spark.audit.document import Audit
from pylog_spark.errors import PylogError, native, translated
from pylog_spark.results.configs import ConfigDescription
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.writes import FlushResult
from pylog_spark.spark.contact import require_topic

if TYPE_CHECKING:
    from pylog_spark._native import RecordWriter


class Auditing:
    """One writer's part in the audit; does nothing where `audit` is None.

    Parameters
    ----------
    audit : Audit or None
        Where to say what was written.
    producer : str
        As whom.
    """

    def __init__(self, audit: Audit | None, producer: str) -> None:
        self._audit = audit
        self._producer = producer
        self._said = 0

    @property
    def window_ms(self) -> int | None:
        """The windows in which the writer has to count."""
        return None if self._audit is None else self._audit.window_ms

    def say(self, writer: RecordWriter) -> bool:
        """Write what `writer` has counted; whether that was anything."""
        if self._audit is None:
            return False
        said = write_counts(writer, self._audit, self._producer)
        self._said += said
        return said > 0

    def without(self, flushed: FlushResult) -> FlushResult:
        """Take what was said off the rows that were written."""
        if self._audit is None or not self._said:
            return flushed
        offsets = {place: span for place, span in flushed.offsets.items() if place[0] != self._audit.topic}
        return replace(flushed, records=flushed.records - self._said, offsets=offsets)


def require_audit(client: Mapping[str, str], topic: str | None, audit: Audit) -> None:
    """Check that the audit topic can be written to, and that the counts of `topic`, if it is there, can be compared.

    Raises
    ------
    PylogError
        ``PYLOG_UNKNOWN_TOPIC``; ``PYLOG_INVALID_OPTION`` when the topic is compacted, or has the brokers' timestamps.
    """
    require_topic(client, audit.topic)
    if topic is None:
        return
    with translated():
        asked = native().Client(dict(client))
        try:
            described = all_decoded(ConfigDescription, asked.describe_configs("topic", [topic]))
        finally:
            asked.close()
    for each in described:
        sentence = why_not(topic, {entry.name: entry.value for entry in each.configs})
        if sentence:
            raise PylogError("PYLOG_INVALID_OPTION", sentence)
