"""What the tests of the exactly-once sink share: attempts and commits in this process, and what a foreign reader sees."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from pylog_spark._native import Client
from pylog_spark.sink import commit
from pylog_spark.sink.attempt import Attempt
from pylog_spark.sink.decision import TOPIC, Decision
from pylog_spark.sink.identity import Write, fresh_job
from pylog_spark.sink.ledger import Ledger
from pylog_spark.sink.protocol import Outcome
from tests.harness.waiting import turns

_DEADLINE_S = 60


def read_committed(servers: str, topic: str, *, waiting: bool = False) -> list[tuple[int, bytes | None, bytes | None]]:
    """All records that librdkafka gives a reader of committed data, as (partition, key, value), in order.

    Checks that no transaction is open, unless `waiting`: then what stands behind one is left out.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        left, found = set(partitions), []
        for _ in turns(lambda: not left, f"the end of {topic}", _DEADLINE_S):
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                left.discard(message.partition())
            else:
                found.append((message.partition(), message.key(), message.value()))
    finally:
        consumer.close()
    assert waiting or open_ends(servers, topic) == {}
    return sorted(found, key=lambda record: record[0])


def open_ends(servers: str, topic: str) -> dict[int, tuple[int, int]]:
    """Partitions in which a transaction is open: (last stable offset, high watermark)."""
    client = Client({"bootstrap.servers": servers})
    (described,) = client.describe_topics([topic])
    wanted = [(topic, partition["partition"], -1) for partition in described["partitions"]]
    stable, high = (
        {partition: offset for _, partition, offset, _ in client.list_offsets(wanted, level)}
        for level in ("read_committed", "read_uncommitted")
    )
    client.close()
    return {
        partition: (stable[partition], high[partition]) for partition in stable if stable[partition] != high[partition]
    }


def committed_values(servers: str, topic: str, *, waiting: bool = False) -> list[str]:
    """The values that a reader of committed data sees, sorted."""
    return sorted((value or b"").decode() for _, _, value in read_committed(servers, topic, waiting=waiting))


def digest(values: Iterable[str]) -> tuple[int, str]:
    """Count and hash of a multiset of values."""
    counted = Counter(values)
    text = "\n".join(f"{value} {count}" for value, count in sorted(counted.items()))
    return sum(counted.values()), hashlib.sha256(text.encode()).hexdigest()


def stored_keys(servers: str) -> dict[str, dict[str, Any]]:
    """What the sink's topic holds after compaction: key -> document, as a foreign reader of committed data sees it."""
    found: dict[str, dict[str, Any]] = {}
    for _, key, value in read_committed(servers, TOPIC, waiting=True):
        assert key is not None
        if value is None:
            found.pop(key.decode(), None)
        else:
            found[key.decode()] = json.loads(value)
    return found


@dataclass
class Job:
    """One attempt at a whole write, in this process: what Spark's tasks and driver would do, step by step."""

    servers: str
    topic: str
    write: Write
    name: str = field(default_factory=fresh_job)
    settings: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.servers, **self.settings}

    def task(self, partition: int, *values: str) -> Outcome:
        """Run a task to its end."""
        raw = pa.array([value.encode() for value in values], pa.binary())
        attempt = Attempt(self.client, self.topic, self.write, partition, self.name)
        done = attempt.run(iter([pa.record_batch({"value": raw})]))
        late = done.transaction is None and done.flushed.records > 0
        outcome = Outcome(self.write, self.name, done.transaction, skipped=late, topic_ids=done.topic_ids)
        self.outcomes.append(outcome)
        return outcome

    def commit(self) -> None:
        """What the driver does when all tasks are done."""
        commit.commit(self.client, self.write, self.outcomes)

    def abort(self) -> None:
        """What the driver does when one has failed."""
        transactions = [outcome.transaction for outcome in self.outcomes if outcome.transaction]
        commit.abort(self.client, self.write, self.name, transactions)

    def decision(self) -> Decision | None:
        """The stored decision about the key."""
        ledger = Ledger(self.client)
        try:
            return ledger.decision(self.write.key, until_stable=True)
        finally:
            ledger.close()

    def open_transactions(self) -> list[str]:
        """Of tasks of the key."""
        ledger = Ledger(self.client)
        try:
            return ledger.open_transactions(self.write.key)
        finally:
            ledger.close()
