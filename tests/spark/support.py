"""What the Spark tests share: a topic with short words for reading, writing and streaming it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from pylog_spark._native import Client, RecordWriter
from tests.harness.kafka import is_served
from tests.harness.waiting import until
from tests.interop.clients import until_transactions_end

#: The first query of a session takes most of a minute on a machine that is busy otherwise.
_DEADLINE_S = 200


@dataclass
class Topic:
    """A topic of a test's own."""

    spark: Any
    servers: str
    client: Client
    name: str
    partitions: int

    def create(self, **configs: str) -> str:
        """Create it; its id, once it is served."""
        named = {key.replace("_", "."): text for key, text in configs.items()}
        wish = {"name": self.name, "num_partitions": self.partitions, "replication_factor": -1, "configs": named}
        (answer,) = self.client.create_topics([wish])
        assert answer["error"] is None, answer
        until(lambda: is_served(self.client, self.name, self.partitions), f"{self.name} is served")
        return str(answer["topic_id"])

    def recreate(self) -> None:
        """Delete and create again: the same name, another id, once every broker knows it."""
        (answer,) = self.client.delete_topics([self.name])
        assert answer["error"] is None, answer
        topic_id = self.create()
        for server in self.servers.split(","):
            until(lambda server=server: self._shown_by(server)["topic_id"] == topic_id, f"{server} knows the new topic")

    def grow(self, partitions: int) -> None:
        """More partitions, once every broker knows of them."""
        (answer,) = self.client.create_partitions({self.name: partitions})
        assert answer["error"] is None, answer
        for server in self.servers.split(","):
            until(
                lambda server=server: len(self._shown_by(server)["partitions"]) == partitions,
                f"{server} knows all partitions",
            )
        self.partitions = partitions

    def _shown_by(self, server: str) -> dict[str, Any]:
        client = Client({"bootstrap.servers": server})
        try:
            (shown,) = client.describe_topics([self.name])
            return dict(shown)
        finally:
            client.close()

    def put(self, values: Iterable[str | bytes | None], partition: int = 0, **columns: Any) -> None:
        """Append one record for each value, without Spark."""
        raw = [value.encode() if isinstance(value, str) else value for value in values]
        writer = RecordWriter({"bootstrap.servers": self.servers}, self.name)
        columns.setdefault("partition", pa.array([partition] * len(raw), pa.int32()))
        writer.write(pa.record_batch({"value": pa.array(raw, pa.binary()), **columns}))
        writer.flush()
        writer.close()

    def read(self, schema: str | None = None, **options: Any) -> Any:
        """The frame of a batch read."""
        reader = self.spark.read.format("pylog")
        return self._load(reader.schema(schema) if schema else reader, options)

    def read_stream(self, schema: str | None = None, **options: Any) -> Any:
        """The frame of a streaming read, by default from the beginning."""
        reader = self.spark.readStream.format("pylog")
        options = {"startingOffsets": "earliest", **options}
        return self._load(reader.schema(schema) if schema else reader, options)

    def values(self, **options: Any) -> list[str]:
        """All values, by partition and offset."""
        rows = self.read(**options).orderBy("partition", "offset").collect()
        return [row.value.decode() for row in rows]

    def save(self, frame: Any, **options: Any) -> None:
        """Append a frame."""
        self._write(frame.write, options).mode("append").save()

    def save_stream(self, frame: Any, checkpoint: str, output_mode: str = "append", **options: Any) -> Any:
        """Run a streaming write to the end of what is there; the query."""
        writer = self._write(frame.writeStream, options).option("checkpointLocation", checkpoint)
        query = writer.outputMode(output_mode).trigger(availableNow=True).start()
        assert query.awaitTermination(_DEADLINE_S)
        return query

    def offsets(self, timestamp: int = -1) -> list[int]:
        """The ends (or with -2 the beginnings) of the partitions."""
        wanted = [(self.name, partition, timestamp) for partition in range(self.partitions)]
        return [offset for _, _, offset, _ in self.client.list_offsets(wanted)]

    def _load(self, reader: Any, options: dict[str, Any]) -> Any:
        if not any(name in options for name in ("assign", "subscribe", "subscribePattern")):
            options["subscribe"] = self.name
        return reader.option("kafka.bootstrap.servers", self.servers).options(**options).load()

    def _write(self, writer: Any, options: dict[str, Any]) -> Any:
        if "topic" not in options:
            options["topic"] = self.name
        given = {name: text for name, text in options.items() if text is not None}
        return writer.format("pylog").option("kafka.bootstrap.servers", self.servers).options(**given)


def topic_maker(spark: Any, servers: str, name: str) -> Callable[..., Topic]:
    """Makes topics: ``make_topic(partitions=3)``; their names begin with `name`."""
    client = Client({"bootstrap.servers": servers})
    numbers = itertools.count()

    def make(partitions: int = 1, **configs: str) -> Topic:
        topic = Topic(spark, servers, client, f"{name}-{next(numbers)}", partitions)
        topic.create(**configs)
        return topic

    return make


def transactions(topic: Topic, *ends: tuple[int, bool]) -> None:
    """Write transactions of so many records each, committed or aborted, one after the other, to partition 0."""
    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": topic.name, "linger.ms": 5})
    producer.init_transactions()
    for number, (records, commit) in enumerate(ends):
        producer.begin_transaction()
        for record in range(records):
            producer.produce(topic.name, f"{number}-{record}", partition=0)
        producer.flush()
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    # Several brokers may write markers after the answer.
    until_transactions_end(topic.servers)


class Batches:
    """The rows of each batch of a query, by its number."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Any]] = {}

    @property
    def values(self) -> list[str]:
        """The values of all batches, sorted: a batch has no order over partitions."""
        return sorted(row.value.decode() for rows in self.batches.values() for row in rows)

    @property
    def sizes(self) -> list[int]:
        """How many rows each batch had."""
        return [len(rows) for _, rows in sorted(self.batches.items())]


class Collector(Batches):
    """Runs a streaming read with ``foreachBatch`` and keeps the rows of each batch."""

    def __init__(self, checkpoint: str) -> None:
        super().__init__()
        self.checkpoint = checkpoint

    def run(self, frame: Any) -> Any:
        """Read to the end of what is there (Trigger.AvailableNow); the query."""
        query = self.start(frame, availableNow=True)
        assert query.awaitTermination(_DEADLINE_S)
        return query

    def start(self, frame: Any, **trigger: Any) -> Any:
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", self.checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _keep(self, frame: Any, batch_id: int) -> None:
        self.batches[batch_id] = frame.collect()


def committed(checkpoint: str) -> list[int]:
    """The numbers of the batches that Spark committed."""
    folder = Path(checkpoint) / "commits"
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal()) if folder.exists() else []


def error_of(action: Any) -> tuple[str, str]:
    """Run `action`, which must fail with an error of pylog; (condition, sentence) as Spark's message shows them last.

    The sentence must be the last line before Spark's own epilogue: nothing may hide the cause.
    """
    with pytest.raises(Exception) as caught:
        action()
    return sentence_in(str(caught.value))


def sentence_in(text: str) -> tuple[str, str]:
    """The last pylog error in Spark's message; no other Python exception may follow it."""
    found = re.findall(r"^pylog_spark\.errors\.PylogError: \[(\w+)\] (.*)$", text, re.MULTILINE)
    assert found, text
    after = text.rpartition(found[-1][1])[2]
    assert not re.search("(Error|Exception):", after), text
    return found[-1]
