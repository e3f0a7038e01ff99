"""A consume-transform-produce loop, as a process that is killed: each batch of `in` becomes one transaction on `out`.

Prints a line for each transaction whose records are written and each that it committed; stands still in one when it is asked to. Ends with FENCED when it may not go on, to be
started again.
"""

import os
import signal
import sys
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

FENCED = 3
#: After this signal the next transaction stands still (SIGSTOP) once its records are written.
STAND_STILL = signal.SIGUSR1
BATCH = 20
_TIMEOUT_S = 30
_RECONNECT = {
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    # When no broker at all can be reached, librdkafka 2.16 else begins anew with its bootstrap servers, and a request to a
    # coordinator that was under way then waits for ever on the broker handle that it has given up.
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


#: Not empty: it was asked to.
_asked_to_stand_still: list[int] = []


def main(servers: str) -> None:
    """Transform until killed."""
    signal.signal(STAND_STILL, lambda number, _: _asked_to_stand_still.append(number))
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "transform", **_RECONNECT})
    producer.init_transactions(_TIMEOUT_S)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "transform",
            # A static member: it gets its partitions at once when it comes back.
            "group.instance.id": "only",
            "session.timeout.ms": 30_000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            **_RECONNECT,
        }
    )
    consumer.subscribe(["in"])
    while True:
        messages = [message for message in consumer.consume(BATCH, timeout=0.2) if message.error() is None]
        if messages:
            transform(producer, consumer, messages)


def transform(producer: Producer, consumer: Consumer, messages: list) -> None:
    """One transaction; when it has to be aborted, its messages come again."""
    places = [TopicPartition(message.topic(), message.partition()) for message in messages]
    ends = {(message.topic(), message.partition()): message.offset() + 1 for message in messages}
    try:
        producer.begin_transaction()
        for message in messages:
            producer.produce("out", message.value(), message.key(), message.partition())
        producer.flush(_TIMEOUT_S)
        print("written", flush=True)
        if _asked_to_stand_still:
            _asked_to_stand_still.clear()
            os.kill(os.getpid(), signal.SIGSTOP)
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in ends.items()]
        again(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _TIMEOUT_S))
        again(lambda: producer.commit_transaction(_TIMEOUT_S))
        print("committed", flush=True)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        again(lambda: producer.abort_transaction(_TIMEOUT_S))
        rewind(consumer, places)


def again(call: Callable[[], None]) -> None:
    """Call until it works, while librdkafka says that it can."""
    while not worked(call):
        pass


def worked(call: Callable[[], None]) -> bool:
    """Whether it worked; raises when it never will."""
    try:
        call()
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        return False
    return True


def rewind(consumer: Consumer, places: list[TopicPartition]) -> None:
    """Go back to what was committed."""
    for place in consumer.committed(list({(p.topic, p.partition): p for p in places}.values()), _TIMEOUT_S):
        consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KafkaException as reason:
        print(reason, file=sys.stderr, flush=True)
        fenced = (KafkaError._FENCED, KafkaError._FATAL, KafkaError._STATE, KafkaError._TIMED_OUT)
        sys.exit(FENCED if reason.args[0].fatal() or reason.args[0].code() in fenced else 1)
