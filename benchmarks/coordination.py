"""Loads on a broker's coordinators, made with confluent-kafka: transactions, commits of offsets, members of a group."""

import time

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from benchmarks.load import until

_DEADLINE_S = 120
_VALUE = b"x" * 100


def transactions(bootstrap_servers: str, topic: str, number: int, records: int) -> float:
    """Commit `number` transactions of `records` records each, one after the other; seconds it took.

    Raises
    ------
    RuntimeError
        When the committed records are not all there for a reader of committed data.
    """
    settings = {"bootstrap.servers": bootstrap_servers, "transactional.id": topic, "linger.ms": 0, "log_level": 3}
    producer = Producer(settings)
    producer.init_transactions(_DEADLINE_S)
    started = time.perf_counter()
    for _ in range(number):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, _VALUE, partition=0)
        producer.commit_transaction(_DEADLINE_S)
    took = time.perf_counter() - started
    seen = _committed(bootstrap_servers, topic)
    if seen != number * records:
        raise RuntimeError(f"{seen} of {number * records} committed records are there at {bootstrap_servers}")
    return took


def _committed(bootstrap_servers: str, topic: str) -> int:
    """Records of partition 0 that a `read_committed` consumer sees."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": f"{topic}-count", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    try:
        # One by one: a larger read would wait for more behind the end.
        while (message := consumer.poll(30)) is not None and message.error() is None:
            seen += 1
        return seen
    finally:
        consumer.close()


def commits(bootstrap_servers: str, topic: str, number: int) -> float:
    """Commit the offset of one partition `number` times, each answered before the next; seconds it took."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": topic, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        until(lambda: _can_commit(consumer, topic))
        started = time.perf_counter()
        for offset in range(number):
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        took = time.perf_counter() - started
        kept = consumer.committed([TopicPartition(topic, 0)], timeout=30)[0].offset
        if kept != number - 1:
            raise RuntimeError(f"offset {kept} is committed at {bootstrap_servers}, not {number - 1}")
        return took
    finally:
        consumer.close()


def _can_commit(consumer: Consumer, topic: str) -> bool:
    """Whether a commit goes through; not before the coordinator has come up."""
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    except KafkaException:
        return False
    return True


def join(bootstrap_servers: str, topic: str, members: int, protocol: str) -> float:
    """Let `members` consumers join a new group of `topic` (as many partitions) at once; seconds until each has its own.

    Raises
    ------
    RuntimeError
        When that has not come about in time.
    """
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": f"{topic}-{protocol}",
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "log_level": 0,
    }
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 500
    consumers = [Consumer(settings) for _ in range(members)]
    try:
        started = time.perf_counter()
        for consumer in consumers:
            consumer.subscribe([topic])
        while not _all_have_one(consumers):
            if time.perf_counter() - started > _DEADLINE_S:
                raise RuntimeError(f"{members} members did not share {topic} of {bootstrap_servers} in {_DEADLINE_S} s")
        return time.perf_counter() - started
    finally:
        for consumer in consumers:
            consumer.close()


def _all_have_one(consumers: list[Consumer]) -> bool:
    for consumer in consumers:
        message: Message | None = consumer.poll(0.001)
        if message is not None and message.error():
            raise RuntimeError(str(message.error()))
    return all(len(consumer.assignment()) == 1 for consumer in consumers)
