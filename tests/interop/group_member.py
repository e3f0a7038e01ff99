"""A member of a consumer group as a process of its own, so that it can be killed: ``python -m tests.interop.group_member``.

Arguments: the client, the broker's address, the group, the topic, and the client's own settings as JSON. Prints a line for each
record, ``partition offset value``, and commits after it, synchronously; a line ``assigned N`` whenever its partitions change.
SIGTERM makes it leave.
"""

import asyncio
import json
import signal
import sys
from typing import Any


def say(*words: object) -> None:
    """Print one line at once, because the reader may kill this process at any time."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def confluent(servers: str, group: str, topic: str, settings: dict[str, Any]) -> None:
    """librdkafka, through confluent-kafka."""
    from confluent_kafka import Consumer, KafkaException

    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    # KIP-848: the coordinator sets the time-outs, and assigns step by step.
    new_protocol = settings.get("group.protocol") == "consumer"
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **({} if new_protocol else {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}),
            **settings,
        }
    )
    cooperative = new_protocol or settings.get("partition.assignment.strategy") == "cooperative-sticky"

    def assigned(member: Consumer, partitions: list[Any]) -> None:
        (member.incremental_assign if cooperative else member.assign)(partitions)
        say("assigned", len(member.assignment()))

    def revoked(member: Consumer, partitions: list[Any]) -> None:
        say("revoked", len(partitions))
        if cooperative:
            member.incremental_unassign(partitions)
        else:
            member.unassign()

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    while not stopping:
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        say(message.partition(), message.offset(), message.value().decode())
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            say("uncommitted", error.args[0].name())
    consumer.close()


def aio(servers: str, group: str, topic: str, settings: dict[str, Any]) -> None:
    """aiokafka: old versions of every request."""
    asyncio.run(_aio(servers, group, topic, settings))


async def _aio(servers: str, group: str, topic: str, settings: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.errors import KafkaError

    class Telling(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            say("revoked", len(revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            say("assigned", len(assigned))

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        partition_assignment_strategy=[RangePartitionAssignor],
        **settings,
    )
    consumer.subscribe([topic], listener=Telling())
    await consumer.start()
    while not stop.is_set():
        for partition, messages in (await consumer.getmany(timeout_ms=100, max_records=50)).items():
            for message in messages:
                say(partition.partition, message.offset, message.value.decode())
            try:
                await consumer.commit({partition: messages[-1].offset + 1})
            except KafkaError as error:
                say("uncommitted", type(error).__name__)
    await consumer.stop()


if __name__ == "__main__":
    client, *where, given = sys.argv[1:]
    {"confluent": confluent, "aiokafka": aio}[client](*where, json.loads(given))  # type: ignore[arg-type]
