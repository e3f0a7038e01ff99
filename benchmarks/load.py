"""Loads on a broker, made with confluent-kafka (librdkafka): the same client for both sides."""

import random
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, islice

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_CHUNK_RECORDS = 10_000
_DEADLINE_S = 300
_QUEUED_MAX = 1_000_000
_DIFFERENT_TEXTS = 5_000
_WORDS = 2_000


@cache
def texts(value_bytes: int) -> tuple[bytes, ...]:
    """Different values of `value_bytes` bytes, made of random words: lz4 makes them 1.5 and zstd 2.6 times smaller."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(_WORDS)]
    # A word and its space are four bytes at least.
    count = value_bytes // 4 + 1
    return tuple(" ".join(chance.choices(words, k=count))[:value_bytes].encode() for _ in range(_DIFFERENT_TEXTS))


def create_topic(bootstrap_servers: str, topic: str, partitions: int, replicas: int = 1) -> None:
    """Create a topic and wait until the broker leads all its partitions (Apache Kafka answers before it does)."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    for future in admin.create_topics([NewTopic(topic, partitions, replicas)]).values():
        future.result(timeout=_DEADLINE_S)
    until(lambda: _is_led(bootstrap_servers, topic, partitions))


def _is_led(bootstrap_servers: str, topic: str, partitions: int) -> bool:
    consumer = _consumer(bootstrap_servers)
    try:
        assignment = _assignment(consumer, topic)
        for part in assignment:
            consumer.get_watermark_offsets(part, timeout=30)
        return len(assignment) == partitions
    except KafkaException:
        return False
    finally:
        consumer.close()


def delete_topic(bootstrap_servers: str, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    for future in admin.delete_topics([topic]).values():
        future.result(timeout=_DEADLINE_S)


def fill(bootstrap_servers: str, topic: str, records: int, value: bytes, partitions: int) -> None:
    """Put `records` times `value` into a topic in full batches, the same number into each of its `partitions`."""
    settings: dict[str, object] = {"linger.ms": 50, "batch.num.messages": 10_000}
    for partition in range(partitions):
        produce(bootstrap_servers, topic, records // partitions, [value], settings, partition)


def produce(
    bootstrap_servers: str,
    topic: str,
    records: int,
    values: Sequence[bytes],
    settings: dict[str, object],
    partition: int = -1,
) -> float:
    """Produce `records` records, `values` in turn, into `partition` or spread by librdkafka; seconds until all are acknowledged.

    Raises
    ------
    RuntimeError
        When a record was not acknowledged.
    """
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "queue.buffering.max.messages": _QUEUED_MAX, "acks": 1, **settings}
    )
    before = count(bootstrap_servers, topic)
    started = time.perf_counter()
    left, turn = records, cycle(values)
    while left:
        while len(producer) > _QUEUED_MAX - _CHUNK_RECORDS:
            producer.poll(0.01)
        chunk = [{"value": value} for value in islice(turn, min(left, _CHUNK_RECORDS))]
        left -= producer.produce_batch(topic, chunk, partition)
        producer.poll(0)
    unsent = producer.flush(_DEADLINE_S)
    took = time.perf_counter() - started
    arrived = count(bootstrap_servers, topic) - before
    if unsent or arrived != records:
        raise RuntimeError(f"{arrived} of {records} records arrived at {bootstrap_servers}, {unsent} are still unsent")
    return took


def _assignment(consumer: Consumer, topic: str) -> list[TopicPartition]:
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    return [TopicPartition(topic, partition, 0) for partition in sorted(partitions)]


def _consumer(bootstrap_servers: str, settings: dict[str, object] | None = None) -> Consumer:
    fixed = {"bootstrap.servers": bootstrap_servers, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
    return Consumer({**fixed, **(settings or {})})


def count(bootstrap_servers: str, topic: str) -> int:
    """Offsets between the beginning and the end of `topic`, all partitions."""
    consumer = _consumer(bootstrap_servers)
    try:
        marks = [consumer.get_watermark_offsets(part, timeout=30) for part in _assignment(consumer, topic)]
        return sum(high - low for low, high in marks)
    finally:
        consumer.close()


def consume(bootstrap_servers: str, topic: str, records: int, settings: dict[str, object] | None = None) -> float:
    """Consume `records` of `topic` from its beginning; seconds it took."""
    fixed = {"fetch.message.max.bytes": 1_048_576, "queued.min.messages": 100_000}
    consumer = _consumer(bootstrap_servers, {**fixed, **(settings or {})})
    try:
        consumer.assign(_assignment(consumer, topic))
        started = time.perf_counter()
        left = records
        while left > 0:
            got = len(consumer.consume(_CHUNK_RECORDS, timeout=1.0))
            left -= got
            if not got and time.perf_counter() - started > _DEADLINE_S:
                raise RuntimeError(f"{left} of {records} records did not come from {bootstrap_servers}")
        return time.perf_counter() - started
    finally:
        consumer.close()


def round_trips_ms(bootstrap_servers: str, topic: str, value: bytes, times: int) -> list[float]:
    """Milliseconds from produce to receive, `times` times one after the other; the consumer's long poll is waiting."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": 1, "linger.ms": 0})
    consumer = _consumer(bootstrap_servers, {"fetch.wait.max.ms": 500, "fetch.min.bytes": 1})
    try:
        consumer.assign([TopicPartition(topic, 0, -1)])
        until(lambda: _trip(producer, consumer, topic, value, 1.0) is not None)
        trips = [_trip(producer, consumer, topic, value, 30.0) for _ in range(times)]
        return [trip for trip in trips if trip is not None]
    finally:
        producer.flush(10)
        consumer.close()


def _trip(producer: Producer, consumer: Consumer, topic: str, value: bytes, timeout_s: float) -> float | None:
    started = time.perf_counter()
    producer.produce(topic, value, partition=0)
    message = consumer.poll(timeout_s)
    took_ms = (time.perf_counter() - started) * 1_000
    producer.poll(0)
    return None if message is None or message.error() else took_ms


def until(ready: Callable[[], bool]) -> None:
    """Ask again and again until `ready`; RuntimeError when that takes too long."""
    deadline = time.perf_counter() + _DEADLINE_S
    while not ready():
        if time.perf_counter() > deadline:
            raise RuntimeError(f"what was waited for did not happen within {_DEADLINE_S} s")
