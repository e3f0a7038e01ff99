"""Data directories of real brokers with all that a log may hold, what a client of the running broker saw of them, and reading them without it."""

from __future__ import annotations

import random
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.datasource import PylogDataSource
from tests.harness.waiting import until
from tests.interop.clients import create_topic, until_transactions_end
from tests.reading.support import batches, schema

_DEADLINE_S = 30
_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
LEVELS = ("read_committed", "read_uncommitted")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Row(NamedTuple):
    """One record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


def consumed(servers: str, topic: str, partitions: int, isolation: str) -> list[Row]:
    """All that librdkafka's reader of `isolation` sees, partition after partition."""
    common = {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": isolation, "log_level": 0}
    reading = {"enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({**common, **reading})
    rows: list[Row] = []
    left = set(range(partitions))
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            message = consumer.poll(_DEADLINE_S)
            assert message is not None, f"nothing came within {_DEADLINE_S} s"
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(message.partition())
                continue
            kind, stamp = message.timestamp()
            assert kind != TIMESTAMP_NOT_AVAILABLE
            found = tuple(message.headers() or ())
            rows.append(Row(message.partition(), message.offset(), message.key(), message.value(), stamp, found))
    finally:
        consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def reader(path: Path | str, topic: str, /, **options: Any) -> Any:
    """The batch reader that Spark's planner would make, of a topic or of what the option `assign` names."""
    given = {"path": str(path), "includeHeaders": "true", **({} if "assign" in options else {"subscribe": topic})}
    texts = {name: str(text) for name, text in options.items()}
    return PylogDataSource({**given, **texts}).reader(schema(*_COLUMNS))


def stored(path: Path | str, topic: str, /, **options: Any) -> list[Row]:
    """What a read of the directory gives, by partition and offset."""
    rows = []
    for batch in batches(reader(path, topic, **options)):
        for row in batch.to_pylist():
            assert row["topic"] == topic
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            stamp = round(row["timestamp"].timestamp() * 1_000)
            rows.append(Row(row["partition"], row["offset"], row["key"], row["value"], stamp, headers))
    return sorted(rows, key=lambda row: row[:2])


@dataclass
class Logs:
    """The data directory of a broker, in a state, and what a client saw of it.

    `seen` has the rows by topic and isolation level.
    """

    path: Path
    seen: dict[tuple[str, str], list[Row]] = field(default_factory=dict)

    def copy(self, folder: Path) -> Logs:
        """The same at another place, to be harmed."""
        return Logs(Path(shutil.copytree(self.path, folder / "copy")), self.seen)

    def segments(self, topic: str, partition: int = 0, suffix: str = "log") -> list[Path]:
        """Files of a partition."""
        return sorted((self.path / f"{topic}-{partition}").glob(f"*.{suffix}"))


def fill(servers: str) -> dict[str, int]:
    """Topics with all that a log may hold; their numbers of partitions. One transaction stays open."""
    _plain(servers)
    _transactions(servers)
    _compacted(servers)
    return {"plain": 2, "stamped": 1, "transactions": 2, "compacted": 1}


def _producer(servers: str, **settings: Any) -> Producer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": servers, "log_level": 0, "linger.ms": 1, **named})


def _plain(servers: str) -> None:
    """Every codec, several segments, batches of one record and of many, odd records; and timestamps of the broker."""
    create_topic(servers, "plain", 2, {"segment.bytes": str(1 << 20), "retention.ms": "-1"})
    create_topic(servers, "stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    drawn = random.Random(7)
    stamp = 1_700_000_000_000
    for codec in CODECS * 2:
        producer = _producer(servers, compression_type=codec, batch_num_messages=drawn.choice([1, 50, 1000]))
        for number in range(300):
            partition, value = drawn.randrange(2), drawn.randbytes(drawn.choice([0, 10, 5_000]))
            # Not in order: a broker looks for the first that is not older.
            stamp += drawn.randrange(-50, 100)
            headers = [("h", b"%d" % number), ("h", None), ("ü", b"")] if number % 7 == 0 else None
            key = None if number % 3 == 0 else b"key-%d" % (number % 20)
            producer.produce("plain", value if number % 11 else None, key, partition, timestamp=stamp, headers=headers)
            producer.produce("stamped", b"%d" % number, timestamp=stamp)
        assert producer.flush(_DEADLINE_S) == 0
    producer = _producer(servers, message_max_bytes=2 << 20)
    producer.produce(
        "plain", drawn.randbytes(900_000), partition=0, timestamp=stamp
    )  # a batch larger than what is read at once
    assert producer.flush(_DEADLINE_S) == 0


def _transactions(servers: str) -> None:
    """Two transactional producers and one without, mixed; commits, aborts, and at the end one that is open."""
    create_topic(servers, "transactions", 2, {"segment.bytes": str(1 << 20)})
    free = _producer(servers)
    writers = [
        _producer(servers, transactional_id=f"writer-{number}", transaction_timeout_ms=600_000) for number in (0, 1)
    ]
    drawn = random.Random(8)
    for writer in writers:
        writer.init_transactions(_DEADLINE_S)
    for number in range(24):
        for writer in writers:
            writer.begin_transaction()
        for place in range(10):
            for which, writer in enumerate(writers):
                for partition in (0, 1):
                    value = b"%d-%d-%d:" % (number, which, place) + drawn.randbytes(4_000)
                    writer.produce("transactions", value, partition=partition)
                writer.flush(_DEADLINE_S)
            free.produce("transactions", b"free-%d-%d" % (number, place), partition=place % 2)
            free.flush(_DEADLINE_S)
        for writer in writers:
            (writer.abort_transaction if drawn.random() < 0.5 else writer.commit_transaction)(_DEADLINE_S)
    until_transactions_end(servers)
    writers[0].begin_transaction()
    writers[0].produce("transactions", b"open", partition=1)
    writers[0].flush(_DEADLINE_S)
    free.produce("transactions", b"behind", partition=1)
    assert free.flush(_DEADLINE_S) == 0
    _left_open.append(writers[0])


#: Producers whose transaction is to stay open: one that is collected would abort it.
_left_open: list[Producer] = []


def _compacted(servers: str) -> None:
    """A log of which compaction has taken most records."""
    quick = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "delete.retention.ms": "1",
    }
    create_topic(servers, "compacted", 1, quick)
    producer = _producer(servers)

    def is_clean() -> bool:
        # A log is cleaned up to the segment that is written, and a new one begins with a record.
        producer.produce("compacted", b"last", b"last", 0)
        assert producer.flush(_DEADLINE_S) == 0
        rows = consumed(servers, "compacted", 1, "read_uncommitted")
        return sum(row.key != b"last" for row in rows) <= 37 + 15

    for number in range(600):
        key = b"rare-%d" % number if number % 40 == 0 else b"key-%d" % (number % 37)
        producer.produce("compacted", b"%d" % number, key, 0)
        if number % 100 == 99:
            assert producer.flush(_DEADLINE_S) == 0
    producer.produce("compacted", None, b"key-3", 0)
    until(is_clean, "the log is compacted", deadline_s=60)
    # From here on nothing more is taken, so that the directory has what clients see.
    with Admin(servers) as admin:
        admin.alter_configs("topic", "compacted", {"cleanup.policy": "delete", "retention.ms": "-1"})


def see(servers: str, partitions: dict[str, int]) -> dict[tuple[str, str], list[Row]]:
    """What a client sees of all topics."""
    return {
        (topic, level): consumed(servers, topic, count, level)
        for topic, count in partitions.items()
        for level in LEVELS
    }


class Batch(NamedTuple):
    """Where a record batch stands in a file."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    is_control: bool


def record_batches(file: Path) -> list[Batch]:
    """The batches of a segment, by their headers."""
    data, position, found = file.read_bytes(), 0, []
    while position + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, position)
        attributes, last_delta = struct.unpack_from(">hi", data, position + 21)
        if length <= 0:
            break  # the zeros of a file that was made larger than it is
        found.append(Batch(position, 12 + length, base, base + last_delta, bool(attributes & 32)))
        position += 12 + length
    return found


def flip(file: Path, position: int) -> None:
    """Change one byte."""
    with file.open("r+b") as changed:
        changed.seek(position)
        (byte,) = changed.read(1)
        changed.seek(position)
        changed.write(bytes([byte ^ 0x55]))
