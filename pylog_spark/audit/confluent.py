"""`AuditedProducer`: confluent-kafka's `Producer`, which counts what was delivered and says so in an audit topic.

It counts by delivery reports: a record counts when the brokers have acknowledged it, with the timestamp that it has there. In a
transaction the counts are a part of it. A process that is killed has not said what it wrote since it last said something: those windows
will be named, as the log has more than the producers say. Callable from several threads, as the producer itself.

A report only notes topic and time, and notes are counted many at once, at `poll`: a report is a call of Python for each record, which is
most of what counting costs here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, Message, Producer

from pylog_spark.audit.counting import count_windows
from pylog_spark.audit.document import PUBLISH_EVERY_S, WINDOW_MS, AuditRecord

_log = logging.getLogger("pylog_spark")

#: After so many reports they are counted at the next `poll`.
_NOTES_MAX = 10_000

_Report = Callable[[KafkaError | None, Message], None]


class AuditedProducer(Producer):
    """A `confluent_kafka.Producer` whose records are counted.

    Every `publish_every_s`, at `flush`, at `commit_transaction` and at the end of a ``with`` block the counts go into the audit topic.
    Call `flush` before the process ends.

    Parameters
    ----------
    config : mapping of str to object
        As of `confluent_kafka.Producer`. ``client.id`` names the producer in the audit.
    audit_topic : str
        The audit topic.
    window_ms : int
        Length of the windows in which it counts.
    publish_every_s : float
        How often it says what it has written, in seconds.

    Examples
    --------
    >>> with AuditedProducer({"bootstrap.servers": "localhost:9092"}, "audit") as producer:  # doctest: +SKIP
    ...     producer.produce("orders", b"one")
    """

    _send = Producer.produce  # without the search that `super` is, for each record

    def __init__(
        self,
        config: Mapping[str, Any],
        audit_topic: str,
        *,
        window_ms: int = WINDOW_MS,
        publish_every_s: float = PUBLISH_EVERY_S,
    ) -> None:
        super().__init__(dict(config))
        self._audit_topic = audit_topic
        self._window_ms = window_ms
        self._every_s = publish_every_s
        self._name = str(config.get("client.id", "confluent-kafka"))
        self._lock = threading.Lock()
        self._noted: list[tuple[str | None, int]] = []
        self._counts: Counter[tuple[str, int]] = Counter()
        self._report = _noting(self._noted)
        self._next_s = time.monotonic() + publish_every_s

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: _Report | None = None,
        on_delivery: _Report | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """As of `confluent_kafka.Producer`; the record counts when it is delivered."""
        then = on_delivery or callback
        report = self._report if then is None else _both(self._report, then)
        if headers is None:
            self._send(topic, value, key, partition, report, None, timestamp)
        else:
            self._send(topic, value, key, partition, report, None, timestamp, headers)

    def produce_batch(self, *arguments: Any, **named: Any) -> Any:
        """Refused, whatever `arguments` and `named` are: it gives no report of each record."""
        raise NotImplementedError("AuditedProducer counts by delivery reports: call produce for each record.")

    def poll(self, timeout: float = -1) -> int:
        """As of `confluent_kafka.Producer`."""
        served = super().poll(timeout)
        if len(self._noted) >= _NOTES_MAX:
            self._count()
        if time.monotonic() >= self._next_s:
            self.publish()
        return served

    def flush(self, timeout: float = -1) -> int:
        """As of `confluent_kafka.Producer`; the counts of all that was delivered are delivered, too."""
        until_s = time.monotonic() + timeout
        left = super().flush(timeout)
        if left == 0 and self.publish():
            left = super().flush(timeout if timeout < 0 else max(until_s - time.monotonic(), 0))
        return left

    def commit_transaction(self, *timeout: float) -> None:
        """As of `confluent_kafka.Producer`; the counts are a part of the transaction."""
        self.flush(*timeout)
        super().commit_transaction(*timeout)

    def abort_transaction(self, *timeout: float) -> None:
        """As of `confluent_kafka.Producer`; what was delivered in the transaction does not count."""
        super().abort_transaction(*timeout)
        with self._lock:
            self._noted.clear()
            self._counts.clear()

    def __enter__(self) -> AuditedProducer:
        return self

    def __exit__(self, *error: Any) -> Any:
        self.flush()
        return super().__exit__(*error)

    def publish(self) -> int:
        """Queue audit records with what was delivered since the last time; how many. `flush` does so, too."""
        self._count()
        with self._lock:
            counts, self._counts = self._counts, Counter()
            self._next_s = time.monotonic() + self._every_s
        waiting = list(counts.items())
        while waiting:
            (topic, start_ms), records = waiting[-1]
            said = AuditRecord(topic, start_ms, self._window_ms, records, self._name)
            try:
                super().produce(self._audit_topic, said.value, said.key, on_delivery=_published)
            except BufferError:  # the queue is full: said the next time
                break
            waiting.pop()
        with self._lock:
            self._counts.update(dict(waiting))
        return len(counts) - len(waiting)

    def _count(self) -> None:
        """Count what was noted."""
        with self._lock:
            many = len(self._noted)
            noted = self._noted[:many]
            del self._noted[:many]  # reports go on meanwhile, in other threads
            if noted:
                topics, times_ms = zip(*noted, strict=True)
                stamps = pa.array(times_ms, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
                names = set(topics)
                if len(names) == 1:
                    self._add(topics[0], stamps)
                else:
                    of = pa.array(topics)
                    for name in names:
                        self._add(name, stamps.filter(pc.equal(of, name)))

    def _add(self, topic: str, stamps: Any) -> None:
        for start_ms, records in count_windows(stamps, self._window_ms):
            self._counts[topic, start_ms] += records


def _noting(noted: list[tuple[str | None, int]]) -> _Report:
    append = noted.append

    def report(error: KafkaError | None, message: Message) -> None:
        if error is None:
            append((message.topic(), message.timestamp()[1]))

    return report


def _both(first: _Report, then: _Report) -> _Report:
    def report(error: KafkaError | None, message: Message) -> None:
        first(error, message)
        then(error, message)

    return report


def _published(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        _log.warning(
            "An audit record was not delivered, so its window will be named: %s %s", error.str(), message.value()
        )
