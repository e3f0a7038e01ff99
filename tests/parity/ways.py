"""One PySpark program, three ways, and what is seen of it.

A *way* is a format and a broker: Spark's own connector on Apache Kafka, pylog on Apache Kafka, pylog on pylog. A *scenario* is a
function of a way that makes topics, fills them, runs Spark, and gives back what it saw as plain values; `compare.Ways` runs it and
compares. Topics have other names on each way (`Way.name`); what a scenario gives back is compared with the names as the scenario
said them, with times in UTC, and without the key ``@pylog`` of our offsets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer

from pylog_spark._native import Client, NativeError
from tests.harness.waiting import until
from tests.parity import without_spark

#: Time of records that say none: rows must be equal on all ways.
BASE_MS = 1_700_000_000_000
WAIT_S = 30
#: Columns of a row in most comparisons; the timestamp is not among them where brokers set it.
PLACE = ("topic", "partition", "offset", "value")


class Record(NamedTuple):
    """A record to be written without Spark."""

    value: bytes | str | None
    key: bytes | str | None = None
    timestamp: int = BASE_MS
    headers: Sequence[tuple[str, bytes | None]] | None = None


class Batch(NamedTuple):
    """One micro-batch as it is compared."""

    number: int
    rows: list[tuple[Any, ...]]
    input_rows: int
    end: dict[str, dict[str, int]]


@dataclass
class Way:
    """One format on one broker, for one test.

    Attributes
    ----------
    label : str
        For messages.
    format : str
        What Spark is given.
    servers : str
        Bootstrap servers.
    prefix : str
        Of all topics of this test on this way.
    folder : Path
        For checkpoints.
    through_spark : bool
        Whether `stream` runs in Spark's engine, as all else does.
    """

    label: str
    format: str
    servers: str
    spark: Any
    client: Client
    prefix: str
    folder: Path
    through_spark: bool = True

    @property
    def is_connector(self) -> bool:
        """Whether this is Spark's own connector."""
        return self.format == "kafka"

    def name(self, word: str = "t") -> str:
        """The topic that a scenario calls `word`."""
        return self.prefix + word

    def topic(self, word: str = "t", partitions: int = 1, **configs: str) -> str:
        """Create a topic and wait until it can be used; gives its name."""
        name = self.name(word)
        named = {key.replace("_", "."): text for key, text in configs.items()}
        wish = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": named}
        (answer,) = self.client.create_topics([wish])
        assert answer["error"] is None, answer
        self.wait_until(lambda: self._led(name) == partitions)
        return name

    def delete(self, word: str = "t") -> None:
        """Delete a topic and wait until the brokers do not know it any more."""
        (answer,) = self.client.delete_topics([self.name(word)])
        assert answer["error"] is None, answer
        self.wait_until(lambda: self._led(self.name(word)) == 0)

    def add_partitions(self, word: str, count: int) -> None:
        """Let the topic have `count` partitions."""
        (answer,) = self.client.create_partitions({self.name(word): count})
        assert answer["error"] is None, answer
        self.wait_until(lambda: self._led(self.name(word)) == count)

    def delete_before(self, word: str, partition: int, offset: int) -> None:
        """Take away the records before `offset`, as retention does."""
        (answer,) = self.client.delete_records([(self.name(word), partition, offset)])
        assert answer["error"] is None, answer

    def put(self, word: str, records: Sequence[Record | str | bytes | None], partition: int = 0) -> None:
        """Append to one partition, with an ordinary client; few records are there all at once."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 1_000, "log_level": 0})
        # Before it knows the topic, it could send some of them while it sorts the others in.
        producer.list_topics(self.name(word), WAIT_S)
        send(producer, self.name(word), records, partition)
        assert producer.flush(WAIT_S) == 0

    def transactional(self) -> Producer:
        """A producer for transactions, ready."""
        settings = {"bootstrap.servers": self.servers, "transactional.id": f"{self.prefix}id", "log_level": 0}
        producer = Producer(settings)
        producer.init_transactions(WAIT_S)
        return producer

    def ends(self, word: str, isolation: str = "read_uncommitted") -> list[int]:
        """The end of each partition of a topic."""
        wanted = [(self.name(word), number, -1) for number in range(self._led(self.name(word)))]
        return [offset for _, _, offset, _ in self.client.list_offsets(wanted, isolation)]

    def await_markers(self, word: str = "t") -> None:
        """Wait until readers of committed records see that no transaction is open: a coordinator answers before they do."""
        self.wait_until(lambda: self.ends(word, "read_committed") == self.ends(word))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Ask until `condition` holds."""
        until(condition, f"{self.label}: what the test waits for", WAIT_S, 0.005)

    def _led(self, name: str) -> int:
        """How many partitions of a topic have a leader; 0 when one has none."""
        (topic,) = self.client.describe_topics([name])
        leaders = [partition["leader"] for partition in topic["partitions"]]
        if topic["error"] is not None or min(leaders, default=-1) < 0:
            return 0
        try:
            self.client.list_offsets([(name, number, -1) for number in range(len(leaders))])
        except NativeError:
            return 0
        return len(leaders)

    # Spark

    def reader(self, **options: Any) -> Any:
        """A DataFrameReader with the brokers and `options`; the topic ``t`` unless they say another."""
        return self.spark.read.format(self.format).options(**self.given(options))

    def read(self, columns: Sequence[str] = PLACE, **options: Any) -> list[tuple[Any, ...]]:
        """The rows of a batch read, sorted by place."""
        return self.rows(self.reader(**options).load(), columns)

    def rows(self, frame: Any, columns: Sequence[str] = PLACE) -> list[tuple[Any, ...]]:
        """The rows of a frame, sorted by place."""
        found = frame.select("topic", "partition", "offset", *columns).collect()
        return [tuple(row)[3:] for row in sorted(found, key=lambda row: tuple(row)[:3])]

    def stream_reader(self, **options: Any) -> Any:
        """A DataStreamReader with the brokers and `options`; the topic ``t`` unless they say another."""
        return self.spark.readStream.format(self.format).options(**self.given(options))

    def lines(self, *lines: str) -> Any:
        """A streaming frame of these lines and those of earlier calls, in the column `value`, for tests of the sink alone."""
        folder = self.folder / "lines"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len([*folder.iterdir()])}.txt").write_text("".join(f"{line}\n" for line in lines))
        return self.spark.readStream.text(str(folder))

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a read: the brokers too, and the topic ``t`` unless they say another."""
        given = {name.replace("_", "."): value for name, value in options.items() if value is not None}
        if not {name.lower() for name in given} & {"assign", "subscribe", "subscribepattern"}:
            given["subscribe"] = self.name()
        given.setdefault("kafka.bootstrap.servers", self.servers)
        return given

    def writer(self, writer: Any, **options: Any) -> Any:
        """A DataFrameWriter or DataStreamWriter to the brokers; to the topic ``t`` unless `options` say another."""
        given = {"topic": self.name(), "kafka.bootstrap.servers": self.servers, **options}
        return writer.format(self.format).options(**{name: value for name, value in given.items() if value is not None})

    def json(self, places: Mapping[str, Any]) -> str:
        """An option's JSON, with the topics as the scenario calls them."""
        return json.dumps({self.name(word): value for word, value in places.items()})

    def plain(self, value: Any) -> Any:
        """A value as it is compared: topics as the scenario calls them, without ``@pylog``."""
        if isinstance(value, str):
            return value.replace(self.prefix, "")
        if isinstance(value, bytearray):
            return bytes(value)
        if isinstance(value, datetime):
            return value.astimezone(timezone.utc)  # Spark gives local time
        if isinstance(value, Batch):
            return Batch(*(self.plain(item) for item in value))
        if isinstance(value, Mapping):
            return {self.plain(key): self.plain(item) for key, item in value.items() if key != "@pylog"}
        if isinstance(value, tuple):
            return tuple(self.plain(item) for item in value)
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        return value


def send(producer: Producer, topic: str, records: Sequence[Record | str | bytes | None], partition: int = 0) -> None:
    """Queue records for one partition."""
    failures: list[str] = []
    for given in records:
        record = given if isinstance(given, Record) else Record(given)
        extra: dict[str, Any] = {} if record.headers is None else {"headers": list(record.headers)}
        producer.produce(
            topic,
            record.value,
            record.key,
            partition,
            timestamp=record.timestamp,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            **extra,
        )
    assert producer.flush(WAIT_S) == 0
    assert failures == []


def outcome(action: Callable[[], Any], says: str) -> Any:
    """What `action` gives, or "refused" when it fails with a message that has `says` (a pattern) in it."""
    try:
        return action()
    except Exception as error:
        if not re.search(says, str(error), re.IGNORECASE):
            raise
        return "refused"


@dataclass
class Query:
    """A streaming query into ``foreachBatch``; its checkpoint outlives it."""

    way: Way
    checkpoint: Path
    columns: Sequence[str] = PLACE
    query: Any = None
    _rows: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    _input: dict[int, int] = field(default_factory=dict)
    _seen: int = 0

    def run(self, frame: Any, **trigger: Any) -> list[Batch]:
        """Run to the end of what is there; the batches of this run."""
        self.start(frame, **(trigger or {"availableNow": True}))
        try:
            assert self.query.awaitTermination(WAIT_S * 2), "the query did not end"
        finally:
            self.stop()
        return self.batches()

    def start(self, frame: Any, **trigger: Any) -> None:
        """Start it, or start it again from its checkpoint."""
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self.checkpoint))
        self._seen = len(self.ends())
        self.query = (writer.trigger(**trigger) if trigger else writer).start()

    def catch_up(self) -> list[Batch]:
        """Wait until a running query has read all there is; the batches since the last look."""
        self.query.processAllAvailable()
        return self.batches()

    def stop(self) -> None:
        """Stop it, whatever state it is in."""
        for progress in self.query.recentProgress:
            self._input[progress["batchId"]] = max(self._input.get(progress["batchId"], 0), progress["numInputRows"])
        self.query.stop()

    def batches(self) -> list[Batch]:
        """The batches that were planned since the last look, with their rows."""
        if self.query.isActive:
            for progress in self.query.recentProgress:
                number = progress["batchId"]
                self._input[number] = max(self._input.get(number, 0), progress["numInputRows"])
        ends = self.ends()
        fresh = range(self._seen, len(ends))
        self._seen = len(ends)
        return [Batch(number, self._rows.get(number, []), self._input.get(number, 0), ends[number]) for number in fresh]

    def ends(self) -> list[dict[str, Any]]:
        """The end offsets of all batches, out of the checkpoint."""
        return [json.loads(text) for text in without_spark.load(self.checkpoint).offsets]

    def _keep(self, frame: Any, number: int) -> None:
        self._rows[number] = self.way.rows(frame, self.columns)


def stream(way: Way, checkpoint: str = "checkpoint", columns: Sequence[str] = PLACE, **options: Any) -> list[Batch]:
    """Run a streaming read with Trigger.AvailableNow; its batches."""
    if not way.through_spark:
        kept = without_spark.available_now(way.folder / checkpoint, columns, way.given(options))
        return [Batch(number, rows, len(rows), end) for number, rows, end in kept]
    return Query(way, way.folder / checkpoint, columns).run(way.stream_reader(**options).load())


@contextmanager
def running(
    way: Way, checkpoint: str = "checkpoint", columns: Sequence[str] = PLACE, **options: Any
) -> Iterator[Query]:
    """A streaming read that goes on until the block ends."""
    query = Query(way, way.folder / checkpoint, columns)
    query.start(way.stream_reader(**options).load())
    try:
        yield query
    finally:
        query.stop()
