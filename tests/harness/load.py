"""A mixed load of librdkafka clients on a cluster that fails, recorded into a `History`.

Each client is a thread with a bounded rate. What a client may not do (a value that is no record of ours, an offset that is out
of range, an error that nothing explains) ends it, and `Load.stop` raises that. What faults do to a client is part of the history.
"""

import json
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from types import TracebackType
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.harness.history import End, GroupOffset, History, Outcome, Place, Poll, Send, Transaction
from tests.harness.security import Way

ABORT_PROBABILITY = 0.1
DELIVERY_DEADLINE_MS = 60_000
#: Soon enough to free a client that waits for a coordinator which is gone.
TRANSACTION_TIMEOUT_MS = 10_000
_REQUEST_TIMEOUT_MS = 2_500
_SOCKET_TIMEOUT_MS = _REQUEST_TIMEOUT_MS + 500
#: After so long clients give up a broker that does not answer.
SILENCE_S = _SOCKET_TIMEOUT_MS / 1000
STEP_S = 5.0
_IDLE_MS = 2_000
#: A consumer that is given nothing for so long, of a topic that is written all the time, is given up.
_STARVED_S = 5.0
STOP_DEADLINE_S = 90.0

#: Clients that find a new leader quickly and notice a silent one after some seconds.
QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "socket.timeout.ms": _SOCKET_TIMEOUT_MS,
    "socket.connection.setup.timeout.ms": 1_500,
    "topic.metadata.refresh.fast.interval.ms": 50,
    # When no broker at all can be reached, librdkafka else begins anew with its bootstrap servers, and a request to a
    # coordinator that was under way then waits for ever on the broker handle that it has given up.
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}
_ACKS_ALL = {
    "acks": "all",
    "linger.ms": 2,
    "request.timeout.ms": _REQUEST_TIMEOUT_MS,
    "message.timeout.ms": DELIVERY_DEADLINE_MS,
}
#: The broker says so before it writes anything.
_REFUSED = (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.MSG_SIZE_TOO_LARGE)
#: What ends a client: it was given all the rights that it needs.
_DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
#: Of the sentence with which a broker refuses a login.
_BAD_LOGIN = "invalid credentials"
#: What ends a consumer: records that were there are not.
_LOSS = (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._BAD_MSG)


class Client(ABC):
    """One thread of the load."""

    def __init__(self, name: str, way: Way, history: History, seed: int, period_s: float) -> None:
        self.name = name
        self.error: BaseException | None = None
        self._refusals: list[str] = []
        self._settings: dict[str, Any] = {**way.client(name), "client.id": name, **QUICK, "error_cb": self._hear}
        self._history = history
        self._random = random.Random(f"{seed}/{name}")
        self._period_s = period_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _hear(self, error: KafkaError) -> None:
        # librdkafka also calls it so when a broker goes away in the middle of a login.
        if error.code() == KafkaError._AUTHENTICATION and _BAD_LOGIN in error.str():
            self._refusals.append(error.str())

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """It ends what it is at."""
        self._stopped.set()

    def join(self) -> None:
        """Wait for its end. Raises what ended it early."""
        self._thread.join(STOP_DEADLINE_S)
        if self._thread.is_alive():
            raise AssertionError(f"{self.name} did not end within {STOP_DEADLINE_S} s")
        if self.error is not None:
            raise AssertionError(f"{self.name}: {self.error}") from self.error

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self.step()
                if self._refusals:
                    raise AssertionError(f"its login is refused: {self._refusals}")
                self._stopped.wait(self._period_s * self._random.uniform(0.5, 1.5))
            self.finish()
        except BaseException as error:  # noqa: BLE001 - handed over to join
            self.error = error

    @abstractmethod
    def step(self) -> None:
        """Do one thing."""

    @abstractmethod
    def finish(self) -> None:
        """End what was begun."""


class Sender(Client):
    """Sends single records with acks=all.

    Without `idempotent` librdkafka gives up after a lost connection, but after NOT_LEADER_OR_FOLLOWER it sends again; a leader that
    steps down says that of records that its successor may have, too, as in Kafka.

    One request is on its way at a time. Of several, a broker that is just becoming leader can refuse the first for not leading and
    the next for its sequence; librdkafka (2.16) then raises its epoch ("skipped sequence numbers") and sends again what the old
    leader had copied to the new one, where the new epoch hides that it is the same.
    """

    def __init__(
        self, name: str, way: Way, history: History, seed: int, places: Sequence[Place], *,
        idempotent: bool, period_s: float,
    ) -> None:  # fmt: skip
        super().__init__(name, way, history, seed, period_s)
        self._places = places
        own: dict[str, Any] = {"enable.idempotence": True} if idempotent else {"retries": 0}
        own["max.in.flight"] = 1
        self._may_repeat = not idempotent
        statistics = {"statistics.interval.ms": 500, "stats_cb": self._on_statistics}
        self._producer = Producer({**self._settings, **_ACKS_ALL, **own, **statistics})
        self._numbers = count()
        #: Requests that librdkafka sent again.
        self.retries = 0

    def _on_statistics(self, statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"].values()
        self.retries = sum(broker["txretries"] for broker in brokers)

    def step(self) -> None:
        send = begin_send(self._history, self.name, next(self._numbers), self._random.choice(self._places))
        send.may_repeat = self._may_repeat
        produce(self._producer, send)
        self._producer.poll(0)

    def finish(self) -> None:
        self._producer.flush(DELIVERY_DEADLINE_MS / 1000)


class TransactionalSender(Client):
    """Sends a few records a transaction, of which some are aborted."""

    def __init__(
        self, name: str, way: Way, history: History, seed: int, places: Sequence[Place], *, period_s: float
    ) -> None:
        super().__init__(name, way, history, seed, period_s)
        self._places = places
        self._numbers, self._names = count(), count()
        self._producer: Producer | None = None

    def step(self) -> None:
        if self._producer is None:
            self._producer = ready_producer(self._settings, self.name)
            return
        transaction = Transaction(f"{self.name}/{next(self._names)}")
        try:
            self._producer.begin_transaction()
            for _ in range(self._random.randint(1, 5)):
                send = begin_send(self._history, self.name, next(self._numbers), self._random.choice(self._places))
                send.transaction = transaction
                produce(self._producer, send)
            self._producer.flush(self._random.choice((0, STEP_S)))
            end_transaction(self._producer, transaction, abort=self._random.random() < ABORT_PROBABILITY)
        except KafkaException as error:
            if not give_up(self._producer, transaction, error):
                self._producer = None

    def finish(self) -> None:
        if self._producer is not None:
            self._producer.flush(STEP_S)


class Copier(Client):
    """Consume-transform-produce: each committed record of `source` becomes one record of the topic `target`."""

    def __init__(self, name: str, way: Way, history: History, seed: int, source: str, target: str) -> None:
        super().__init__(name, way, history, seed, 0.01)
        # librdkafka asks for a group's coordinator anew only when some connection changes its state; after the coordinator that it
        # remembers has left the cluster, send_offsets_to_transaction else waits for ever (librdkafka 5511, with any broker).
        self._settings["connections.max.idle.ms"] = _IDLE_MS
        self._source, self._target = source, target
        self._numbers, self._names = count(), count()
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._heard_at = 0.0

    def step(self) -> None:
        if self._producer is None:
            self._producer = ready_producer(self._settings, self.name)
            return
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    **self._settings,
                    **READER,
                    "group.id": self.name,
                    # A static member: it gets its partitions at once when it comes back.
                    "group.instance.id": "only",
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                }
            )
            self._consumer.subscribe([self._source])
            self._heard_at = time.monotonic()
        messages = records(self._consumer.consume(20, 0.1))
        if messages:
            self._heard_at = time.monotonic()
            self._copy(self._producer, self._consumer, messages)
        elif time.monotonic() > self._heard_at + _STARVED_S:
            # Its request for metadata was under way to a broker that librdkafka gave up: it waits for ever to join.
            self._give_up_consumer(self._consumer)

    def _copy(self, producer: Producer, consumer: Consumer, messages: list[Message]) -> None:
        transaction = Transaction(f"{self.name}/{next(self._names)}")
        ends = {message.partition(): message.offset() + 1 for message in messages}
        try:
            producer.begin_transaction()
            for message in messages:
                send = begin_send(self._history, self.name, next(self._numbers), (self._target, message.partition()))
                send.source = (message.topic(), message.partition(), message.offset())
                send.transaction = transaction
                produce(producer, send)
            offsets = [TopicPartition(self._source, partition, end) for partition, end in ends.items()]
            again(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), STEP_S))
            end_transaction(producer, transaction, abort=self._random.random() < ABORT_PROBABILITY)
        except KafkaException as error:
            if not give_up(producer, transaction, error):
                self._producer = None
        if transaction.outcome is not Outcome.OK:
            # Back to what is committed: the simplest way is a new consumer.
            self._give_up_consumer(consumer)

    def _give_up_consumer(self, consumer: Consumer) -> None:
        consumer.close()
        self._consumer = None

    def finish(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


READER = {
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "check.crcs": True,
    "fetch.wait.max.ms": 50,
    "fetch.error.backoff.ms": 20,
}


class Reader(Client):
    """Reads all of some partitions from the start, and never goes back."""

    def __init__(
        self, name: str, way: Way, history: History, seed: int, places: Sequence[Place], *, committed_only: bool
    ) -> None:
        super().__init__(name, way, history, seed, 0.02)
        self._committed_only = committed_only
        isolation = "read_committed" if committed_only else "read_uncommitted"
        self._consumer = Consumer({**self._settings, **READER, "group.id": name, "isolation.level": isolation})
        self._consumer.assign([TopicPartition(*place, 0) for place in places])

    def step(self) -> None:
        began = time.monotonic()
        messages = records(self._consumer.consume(100, 0.1))
        record_polls(self._history, self.name, 1, self._committed_only, messages, began)

    def finish(self) -> None:
        self._consumer.close()


class Member(Client):
    """A member of a group that commits what it has read."""

    def __init__(self, name: str, way: Way, history: History, seed: int, topic: str, group: str) -> None:
        super().__init__(name, way, history, seed, 0.05)
        self._group = group
        self._session = 0
        self._consumer = Consumer(
            {
                **self._settings,
                **READER,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._session += 1

    def step(self) -> None:
        began = time.monotonic()
        messages = records(self._consumer.consume(50, 0.1))
        record_polls(self._history, self.name, self._session, True, messages, began)
        if messages:
            ends = {(message.topic(), message.partition()): message.offset() + 1 for message in messages}
            self._commit([TopicPartition(*place, end) for place, end in ends.items()])

    def _commit(self, offsets: list[TopicPartition]) -> None:
        began = time.monotonic()
        outcomes: dict[Place, Outcome] = {}
        try:
            for partition in self._consumer.commit(offsets=offsets, asynchronous=False) or ():
                outcomes[partition.topic, partition.partition] = (
                    Outcome.OK if partition.error is None else Outcome.UNKNOWN
                )
        except KafkaException as error:
            check_allowed(error.args[0])
            outcomes.clear()
        ended = time.monotonic()
        for partition in offsets:
            place = (partition.topic, partition.partition)
            outcome = outcomes.get(place, Outcome.UNKNOWN)
            self._history.group_offsets.append(GroupOffset(self._group, place, partition.offset, began, ended, outcome))

    def finish(self) -> None:
        self._consumer.close()


class Observer(Client):
    """Asks the leaders where their partitions end."""

    def __init__(self, name: str, way: Way, history: History, seed: int, places: Sequence[Place]) -> None:
        super().__init__(name, way, history, seed, 0.1)
        self._admin = AdminClient(self._settings)
        self._wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}

    def step(self) -> None:
        self._admin.poll(0)
        for committed_only in (False, True):
            level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
            began = time.monotonic()
            asked = self._admin.list_offsets(self._wanted, isolation_level=level, request_timeout=2.0)
            for place, future in asked.items():
                try:
                    offset = future.result(STEP_S).offset
                except (KafkaException, TimeoutError):
                    continue
                ended = time.monotonic()
                # Without a leader librdkafka gives a number that is no offset.
                if offset >= 0:
                    self._history.ends.append(End((place.topic, place.partition), committed_only, offset, began, ended))

    def finish(self) -> None:
        """Nothing was begun."""


def begin_send(history: History, producer: str, number: int, place: Place) -> Send:
    """A record that is about to be sent; its value is unique."""
    send = Send(producer, number, place, f"{producer}-{number}", time.monotonic())
    history.sends.append(send)
    return send


def produce(producer: Producer, send: Send) -> None:
    """Hand it to librdkafka; its outcome is noted when it is known."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        send.ended = time.monotonic()
        if error is None:
            send.outcome, send.offset = Outcome.OK, message.offset()
        elif error.code() in _REFUSED:
            send.outcome = Outcome.FAILED
        else:
            check_allowed(error)

    try:
        producer.produce(send.place[0], send.value.encode(), partition=send.place[1], on_delivery=delivered)
    except BufferError:
        send.outcome, send.ended = Outcome.FAILED, time.monotonic()


def ready_producer(settings: dict[str, Any], name: str) -> Producer | None:
    """A transactional producer that has fenced the ones before; None when that has to be tried again."""
    own = {
        "transactional.id": name,
        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
    }
    producer = Producer({**settings, **_ACKS_ALL, **own})
    try:
        producer.init_transactions(STEP_S)
    except KafkaException as error:
        check_allowed(error.args[0])
        return None
    return producer


def end_transaction(producer: Producer, transaction: Transaction, *, abort: bool) -> None:
    """Commit or abort, and note the outcome. Raises KafkaException when it is not known."""
    if abort:
        again(lambda: producer.abort_transaction(STEP_S))
        transaction.outcome = Outcome.FAILED
        return
    transaction.began = time.monotonic()
    again(lambda: producer.commit_transaction(STEP_S))
    transaction.outcome = Outcome.OK


def give_up(producer: Producer, transaction: Transaction, error: KafkaException) -> bool:
    """Abort a transaction that met `error`; whether the producer can go on."""
    check_allowed(error.args[0])
    if not error.args[0].txn_requires_abort():
        return False
    try:
        end_transaction(producer, transaction, abort=True)
    except KafkaException:
        return False
    return True


def again(call: Callable[[], None]) -> None:
    """Call until it works, while librdkafka says that it may and there is time."""
    deadline = time.monotonic() + DELIVERY_DEADLINE_MS / 1000
    while not _worked(call, deadline):
        pass


def _worked(call: Callable[[], None], deadline: float) -> bool:
    try:
        call()
    except KafkaException as error:
        if not error.args[0].retriable() or time.monotonic() > deadline:
            raise
        return False
    return True


def records(messages: Iterable[Message]) -> list[Message]:
    """Those without an error. Raises AssertionError for an error that means that records are gone or damaged."""
    good = []
    for message in messages:
        error = message.error()
        if error is None:
            good.append(message)
            continue
        check_allowed(error)
        if error.code() in _LOSS:
            raise AssertionError(f"{message.topic()}-{message.partition()}@{message.offset()}: {error}")
    return good


def check_allowed(error: KafkaError) -> None:
    """Raise AssertionError for an error that says that the client may not do what it did."""
    if error.code() in _DENIED:
        raise AssertionError(f"denied: {error}")


def record_polls(
    history: History, consumer: str, session: int, committed_only: bool, messages: Iterable[Message], began: float
) -> None:
    """Note what one call gave, for each partition."""
    ended = time.monotonic()
    by_place: defaultdict[Place, list[tuple[int, str]]] = defaultdict(list)
    for message in messages:
        by_place[message.topic(), message.partition()].append((message.offset(), message.value().decode()))
    for place, some in by_place.items():
        history.polls.append(Poll(consumer, session, committed_only, place, tuple(some), began, ended))


class Load:
    """Clients that run together, from `start` or ``with`` to `stop`.

    Parameters
    ----------
    clients : sequence of Client
        Stopped at once.
    last : sequence of Client
        Stopped when the others have ended: they end what those began.
    """

    def __init__(self, clients: Sequence[Client], last: Sequence[Client] = ()) -> None:
        self._clients, self._last = clients, last

    def start(self) -> None:
        """Begin."""
        for client in (*self._clients, *self._last):
            client.start()

    def retries(self) -> int:
        """Requests of producers that were sent again since the start."""
        return sum(client.retries for client in self._clients if isinstance(client, Sender))

    def check_alive(self) -> None:
        """Raise AssertionError when a client met what it must not meet."""
        for client in (*self._clients, *self._last):
            if client.error is not None:
                client.join()

    def stop(self) -> None:
        """End everything that was begun. Raises AssertionError for the first client that could not go on."""
        for clients in (self._clients, self._last):
            for client in clients:
                client.ask_to_stop()
            for client in clients:
                client.join()

    def __enter__(self) -> "Load":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
