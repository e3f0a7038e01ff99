"""What the tests of the audit share: a topic, its audit topic, and damage to one record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from pylog_spark.audit import AuditedProducer, Difference, Report, check

MINUTE = 60_000
#: The start of a minute, some days before the tests are likely to run: all windows have ended.
BEGIN_MS = 1_767_225_600_000
_FLUSH_S = 30


@dataclass(frozen=True)
class Audited:
    """A topic, and the topic with what its producers say."""

    servers: str
    topic: str
    audit: str

    def producer(self, **config: Any) -> AuditedProducer:
        """A producer that counts by the minute."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        return AuditedProducer({"bootstrap.servers": self.servers, **named}, self.audit, window_ms=MINUTE)

    def check(self, *topics: str, **more: Any) -> Report:
        """The audit of `topics`, else of all that the audit topic names."""
        return check(self.servers, self.audit, topics, **{"window_ms": MINUTE, **more})

    def difference(self, window: int, producers: int, log: int) -> Difference:
        """What an audit should find in the window of that number."""
        return Difference(self.topic, BEGIN_MS + window * MINUTE, MINUTE, producers, log)

    def fill(self, producer: Producer, windows: Iterable[int], count: int = 50) -> None:
        """Write `count` records in each window."""
        for window in windows:
            for number in range(count):
                producer.produce(self.topic, b"%d" % number, b"%d" % (number % 7), timestamp=at(window, number))
        assert producer.flush(_FLUSH_S) == 0

    def lose(self, window: int) -> None:
        """One record that its producer believes to be written: it asks for no acknowledgement, and the record is too large."""
        loser = self.producer(acks=0)
        loser.produce(self.topic, b"x" * 100_000, timestamp=at(window))
        assert loser.flush(_FLUSH_S) == 0

    def double(self, window: int) -> None:
        """One record that is there once more than its producer says."""
        producer = Producer({"bootstrap.servers": self.servers})
        producer.produce(self.topic, b"1", b"1", timestamp=at(window, 1))
        assert producer.flush(_FLUSH_S) == 0


def at(window: int, number: int = 0) -> int:
    """A time in a window."""
    return BEGIN_MS + window * MINUTE + number
