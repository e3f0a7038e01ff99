"""The clients of the matrix behind one face: produce a list of records with a codec, consume them all again.

Each is used as its users use it and knows nothing of pylog, but for the last, which is pylog's own. One partition, offsets
from 0; no consumer group where the client can do without. `given` are further settings, in the client's own words, such as how it
logs in (`secured_clients.py`).
"""

import asyncio
import atexit
import json
import os
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tests.harness.children import ChildEnded, PipedChild
from tests.harness.waiting import until
from tests.peers.javascript import modules
from tests.peers.tools import java

DEADLINE_S = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = (("source", b"interop"), ("kind", b"text"))


def create_topic(servers: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """A topic of its own, once its leaders serve it: Apache Kafka answers a little before, and may not know it then."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics([NewTopic(topic, partitions, config=dict(config or {}))]).values():
        made.result(30)
    ends = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}

    def served() -> bool:
        try:
            return all(
                future.result(30).offset >= 0 for future in admin.list_offsets(ends, request_timeout=30).values()
            )
        except KafkaException:
            return False

    until(served, f"the leaders of {topic} serve it")


def until_transactions_end(servers: str) -> None:
    """Wait until each transaction that was ended is: several brokers write the markers after the answer, and readers wait for those."""
    from pylog_spark.client import Admin

    with Admin(servers) as admin:
        until(lambda: admin.transactions(["PrepareCommit", "PrepareAbort"]) == [], "all that was ended is complete")


def values_seen(
    servers: str,
    topic: str,
    partition: int,
    isolation: str,
    deadline_s: float,
    settings: Mapping[str, object] | None = None,
) -> list[bytes]:
    """What librdkafka's reader of `isolation` sees in a partition, to its end."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    common = {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": isolation, "log_level": 0}
    # At the end of a partition it shall not wait for more.
    reading = {"enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({**common, **reading, **(settings or {})})
    values = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(deadline_s)
            assert message is not None, f"nothing came within {deadline_s} s"
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return values
            values.append(message.value())
    finally:
        consumer.close()


class Record(NamedTuple):
    """What was written and what must come back."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = HEADERS


#: Settings in a client's own words.
Given = Mapping[str, Any]
NONE: Given = MappingProxyType({})


class Client(Protocol):
    """One client library or tool."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = ...) -> None:
        """Write `records` to partition 0 and return when all are acknowledged."""

    def consume(self, servers: str, topic: str, count: int, given: Given = ...) -> list[Record]:
        """The first `count` records of partition 0."""


class ConfluentKafka:
    """librdkafka, as confluent-kafka brings it."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        from confluent_kafka import Producer

        failed: list[object] = []
        settings = {"bootstrap.servers": servers, "compression.type": codec, "enable.idempotence": True}
        producer = Producer({**settings, **given})
        for record in records:
            producer.produce(
                topic, record.value, record.key, 0, headers=list(record.headers),
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )  # fmt: skip
        unsent = producer.flush(DEADLINE_S)
        assert (unsent, failed) == (0, [])

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        from confluent_kafka import Consumer, TopicPartition

        reading = {"group.id": "interop", "enable.auto.commit": False, "check.crcs": True}
        consumer = Consumer({"bootstrap.servers": servers, **reading, **given})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            messages = consumer.consume(count, timeout=DEADLINE_S)
            assert [message.offset() for message in messages] == list(range(count))
            return [Record(message.key(), message.value(), tuple(message.headers() or ())) for message in messages]
        finally:
            consumer.close()


class AioKafka:
    """aiokafka: pure Python asyncio, old request versions only."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        compression = {} if codec == "none" else {"compression_type": codec}
        settings = {"bootstrap_servers": servers, "acks": "all", **compression, **given}
        asyncio.run(self._produce(topic, records, settings))

    async def _produce(self, topic: str, records: Sequence[Record], settings: Given) -> None:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(**settings) as producer:
            sent = [
                await producer.send(topic, record.value, record.key, 0, headers=list(record.headers))
                for record in records
            ]
            offsets = [(await future).offset for future in sent]
        assert offsets == list(range(len(records)))

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        settings = {"bootstrap_servers": servers, "group_id": None, **given}
        return asyncio.run(asyncio.wait_for(self._consume(topic, count, settings), DEADLINE_S))

    async def _consume(self, topic: str, count: int, settings: Given) -> list[Record]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async with AIOKafkaConsumer(**settings) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek_to_beginning()
            messages = [await consumer.getone() for _ in range(count)]
        return [Record(message.key, message.value, tuple(message.headers)) for message in messages]


class Kcat:
    """The Debian package kcat, an older librdkafka. Its records are lines of text."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        headers = [word for name, value in records[0].headers for word in ("-H", f"{name}={value.decode()}")]
        options = ["-P", "-p", "0", "-K", "\\t", "-z", codec, "-X", "acks=all", *headers]
        lines = b"".join(record.key + b"\t" + record.value + b"\n" for record in records)
        self._run(servers, topic, options, given, lines)

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        options = ["-C", "-p", "0", "-o", "beginning", "-c", str(count), "-e", "-q", "-J", "-X", "check.crcs=true"]
        lines = self._run(servers, topic, options, given).decode().splitlines()
        return [self._record(json.loads(line)) for line in lines]

    @staticmethod
    def _record(envelope: dict[str, object]) -> Record:
        flat = envelope.get("headers", [])
        assert isinstance(flat, list)
        headers = tuple((name, value.encode()) for name, value in zip(flat[::2], flat[1::2], strict=True))
        return Record(str(envelope["key"]).encode(), str(envelope["payload"]).encode(), headers)

    @staticmethod
    def _run(servers: str, topic: str, options: Sequence[str], given: Given, stdin: bytes = b"") -> bytes:
        settings = [word for name, value in given.items() for word in ("-X", f"{name}={value}")]
        command = ["kcat", "-b", servers, "-t", topic, *settings, *options]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


class Java:
    """Apache Kafka's own client, through its console tools, all in one Java process. Further settings: `secured_clients.Java`."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        assert not given
        properties = ["parse.key=true", "parse.headers=true", "key.separator=|", "headers.delimiter=|"]
        options = [word for setting in properties for word in ("--reader-property", setting)]
        headers = b",".join(name.encode() + b":" + value for name, value in records[0].headers)
        lines = b"".join(headers + b"|" + record.key + b"|" + record.value + b"\n" for record in records)
        command = ["--bootstrap-server", servers, "--topic", topic, "--compression-codec", codec]
        java("org.apache.kafka.tools.ConsoleProducer", *command, *options, stdin=lines)

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        assert not given
        properties = ["print.key=true", "print.headers=true", "key.separator=|", "headers.separator=,"]
        options = [word for setting in properties for word in ("--formatter-property", setting)]
        where = ["--bootstrap-server", servers, "--topic", topic, "--partition", "0", "--offset", "earliest"]
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        lines = java(main, *where, "--max-messages", str(count), *options).encode().splitlines()
        return [self._record(line) for line in lines]

    @staticmethod
    def _record(line: bytes) -> Record:
        headers, key, value = line.split(b"|")
        pairs = [pair.split(b":") for pair in headers.split(b",")]
        return Record(key, value, tuple((name.decode(), text) for name, text in pairs))


class KafkaJs:
    """kafkajs, which always reads as a member of a group, in one process of Node's. It has no codec for lz4 and zstd."""

    def __init__(self) -> None:
        self._node: PipedChild | None = None

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        listed = [self._listed(record) for record in records]
        assert self.ask("produce", servers, topic, codec, listed, dict(given)) is True

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        answer = self.ask("consume", servers, topic, count, f"{topic}-kafkajs", dict(given))
        return [self._record(*fields) for fields in answer]

    @staticmethod
    def _listed(record: Record) -> list[object]:
        headers = [(name, b64encode(value).decode()) for name, value in record.headers]
        return [b64encode(record.key).decode(), b64encode(record.value).decode(), headers]

    @staticmethod
    def _record(key: str, value: str, headers: list[tuple[str, str]]) -> Record:
        return Record(b64decode(key), b64decode(value), tuple((name, b64decode(text)) for name, text in headers))

    def ask(self, what: str, *words: object) -> Any:
        """The answer of the process to one request; it ends when it fails, with what is wrong on its standard error."""
        if self._node is None:
            command = ["node", str(Path(__file__).parent / "kafkajs_client.cjs")]
            environment = {**os.environ, "NODE_PATH": str(modules())}
            self._node = PipedChild(command, env=environment)
            atexit.register(self._stop)
        try:
            return json.loads(self._node.ask(json.dumps({what: words}), DEADLINE_S))
        except (AssertionError, ChildEnded, BrokenPipeError) as error:
            self._stop()
            raise RuntimeError("kafkajs failed: its standard error says more") from error

    def _stop(self) -> None:
        node, self._node = self._node, None
        atexit.unregister(self._stop)
        if node is not None:
            node.kill()


class Pylog:
    """pylog's own client, which speaks the same protocol."""

    def produce(self, servers: str, topic: str, records: Sequence[Record], codec: str, given: Given = NONE) -> None:
        from pylog_spark.client import Producer

        with Producer(servers, topic, {"compression.type": codec, **given}) as producer:
            for record in records:
                producer.send(record.value, record.key, partition=0, headers=record.headers)

    def consume(self, servers: str, topic: str, count: int, given: Given = NONE) -> list[Record]:
        from pylog_spark.client import Consumer

        with Consumer(servers, topic, partitions=[0], start="earliest", follow=False, config=given) as consumer:
            records = list(consumer)
        assert [record.offset for record in records] == list(range(count))
        return [Record(record.key or b"", record.value or b"", tuple(record.headers)) for record in records]


CLIENTS: dict[str, Client] = {
    "confluent-kafka": ConfluentKafka(),
    "aiokafka": AioKafka(),
    "kcat": Kcat(),
    "java": Java(),
    "kafkajs": KafkaJs(),
    "pylog": Pylog(),
}
