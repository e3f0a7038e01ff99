"""A topic into a pandas frame: `read_range` beside the loop that other clients need, in turns, on the same broker."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from benchmarks.bench import PARTITIONS, Bench, Runs

_MILLION = 1_000_000
_COLUMNS = ["partition", "offset", "timestamp", "key", "value"]

CONFLUENT, AIOKAFKA, KAFKA_PYTHON = "confluent-kafka", "aiokafka", "kafka-python"
_Row = tuple[Any, ...]


def into_frame(bench: Bench, client: str, records: int, value_bytes: int) -> Runs:
    """Million rows a second, from the first request to the frame."""
    records, servers = bench.records(records), bench.broker("pylog").bootstrap_servers
    topic = bench.loaded_topic("pylog", records, value_bytes)

    def once(frame_of: Callable[[str, str, int], pd.DataFrame]) -> float:
        started = time.perf_counter()
        frame = frame_of(servers, topic, records)
        rate = records / _MILLION / (time.perf_counter() - started)
        assert len(frame) == records
        assert set(map(len, frame["value"])) == {value_bytes}
        return rate

    return bench.take_turns({client: lambda: once(_CLIENTS[client]), "pylog": lambda: once(_pylog)})


def _pylog(servers: str, topic: str, _records: int) -> pd.DataFrame:
    from pylog_spark.client import read_range

    # As docs/python.md says of keys and values that are mostly distinct; the other clients make an object for each, too.
    return read_range(servers, topic, columns=_COLUMNS).read_pandas(deduplicate_objects=False)


def _confluent(servers: str, topic: str, records: int) -> pd.DataFrame:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "frames", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    rows: list[_Row] = []
    while len(rows) < records:
        rows += [
            (each.partition(), each.offset(), each.timestamp()[1], each.key(), each.value())
            for each in consumer.consume(10_000, 1)
        ]
    consumer.close()
    return _frame(rows)


def _aiokafka(servers: str, topic: str, records: int) -> pd.DataFrame:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read() -> list[_Row]:
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            rows: list[_Row] = []
            while len(rows) < records:
                found = await consumer.getmany(timeout_ms=1_000, max_records=10_000)
                rows += _of_records(each for batch in found.values() for each in batch)
            return rows
        finally:
            await consumer.stop()

    return _frame(asyncio.run(read()))


def _kafka_python(servers: str, topic: str, records: int) -> pd.DataFrame:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, max_poll_records=10_000)
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    rows: list[_Row] = []
    while len(rows) < records:
        rows += _of_records(each for batch in consumer.poll(1_000).values() for each in batch)
    consumer.close()
    return _frame(rows)


def _of_records(records: Iterable[Any]) -> list[_Row]:
    return [(each.partition, each.offset, each.timestamp, each.key, each.value) for each in records]


def _frame(rows: list[_Row]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="ms", utc=True)
    return frame


_CLIENTS = {CONFLUENT: _confluent, AIOKAFKA: _aiokafka, KAFKA_PYTHON: _kafka_python}
