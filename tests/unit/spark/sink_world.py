"""A small world for the sink's protocol: one transaction coordinator, one log of decisions, and actors that take turns.

The sink's own code runs in it, over a native module that is made of a few dictionaries. Each request is a place where the actor may be
overtaken by others, may meet an error although the request was carried out, or may die for ever. Who goes on is drawn from
a seeded random generator, so a seed is an interleaving.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pylog_spark.results.topics import CreateTopicResult, PartitionDescription, TopicDescription
from pylog_spark.results.transactions import TransactionDescription, TransactionListing

OPEN, COMMITTED, ABORTED = "Ongoing", "CompleteCommit", "CompleteAbort"
_STEPS_MAX = 20_000
_TIMEOUT_MS = 900_000


class NativeError(Exception):
    """As the native module's."""


class Dead(BaseException):
    """The process of an actor was killed."""


@dataclass
class Span:
    """One transaction of one transactional id."""

    name: str
    state: str = OPEN
    rows: list[Any] = field(default_factory=list)
    prepared: bool = False


@dataclass
class Producer:
    """What the coordinator knows of a transactional id."""

    producer_id: int
    epoch: int = 0
    span: Span | None = None
    ended_epoch: int = -1


class Actor:
    """A process: a thread that runs only while it is its turn."""

    def __init__(self, world: World, name: str, body: Callable[[], Any]) -> None:
        self.name = name
        self.dead = False
        self.done = False
        self.faulty = True
        self.result: Any = None
        self.error: BaseException | None = None
        self.ledger: Any = None
        self._world = world
        self._turn = threading.Semaphore(0)
        self._body = body
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it run to its next request."""
        self._turn.release()
        self._world.back.acquire()

    def pause(self) -> None:
        """Called by itself: the others' turn. Raises `Dead` when it was killed meanwhile."""
        self._world.back.release()
        self._turn.acquire()
        if self.dead:
            raise Dead

    def _run(self) -> None:
        self._turn.acquire()
        _local.actor = self
        try:
            if self.dead:
                raise Dead
            self.result = self._body()
        except BaseException as error:  # noqa: BLE001 - whatever ends it is looked at by the test
            self.error = error
        self.done = True
        self._world.back.release()


_local = threading.local()


def me() -> Actor:
    """The actor whose turn it is."""
    actor = _local.actor
    assert isinstance(actor, Actor)
    return actor


class World:
    """The brokers, and the actors.

    Parameters
    ----------
    seed : int
        Of the interleaving.
    two_phase : bool
        Whether the brokers offer prepared transactions. If not, tasks' transactions have a time-out that is never reached here.
    """

    def __init__(self, seed: int, *, two_phase: bool) -> None:
        self.random = random.Random(seed)
        self.two_phase = two_phase
        self.producers: dict[str, Producer] = {}
        self.decisions: list[tuple[Span, bytes, bytes | None]] = []
        self.visible: list[Any] = []
        self.topic_made = False
        self.back = threading.Semaphore(0)
        self.actors: list[Actor] = []
        self.death = self.fault = 0.0
        self.time_out = 0.01
        #: How likely an open transaction is found to be open for longer than it may be.
        self.old = 0.0
        self.restless = self.random.choice((0.03, 0.1, 0.5))
        self._ids = 0

    def spawn(self, name: str, body: Callable[[], Any]) -> Actor:
        """Start a process."""
        actor = Actor(self, name, body)
        self.actors.append(actor)
        return actor

    def run(self, until: Callable[[], bool]) -> None:
        """Let actors take turns until the answer is true, or all are done. An actor keeps its turn for a while, so that
        some get far ahead of others."""
        favourite: Actor | None = None
        for _ in range(_STEPS_MAX):
            living = [actor for actor in self.actors if not actor.done]
            if until() or not living:
                return
            if favourite is None or favourite.done or self.random.random() < self.restless:
                favourite = self.random.choice(living)
            if self.random.random() < self.death and favourite.faulty:
                favourite.dead = True
            favourite.step()
        raise AssertionError(f"no end after {_STEPS_MAX} steps")

    def kill_all(self) -> None:
        """Kill all actors that still live."""
        for actor in self.actors:
            while not actor.done:
                actor.dead = True
                actor.step()

    def asked(self) -> None:
        """A request is on its way."""
        me().pause()
        if self.random.random() < self.time_out:
            self._time_out()

    def answered(self) -> None:
        """It was carried out; the answer may get lost."""
        me().pause()
        if me().faulty and self.random.random() < self.fault:
            raise NativeError("TIMED_OUT", "no answer")

    def _time_out(self) -> None:
        """The brokers end a transaction that is not prepared."""
        for name in self.open():
            driver = name.endswith(".driver") or name.startswith("pylog-sink.")
            producer = self.producers[name]
            assert producer.span is not None
            if not producer.span.prepared and (driver or self.two_phase):
                self.finish(producer, ABORTED)
                return

    def begin(self, name: str) -> tuple[int, int]:
        """InitProducerId: an open transaction of this id is aborted, its producer before is fenced."""
        producer = self.producers.get(name)
        if producer is None:
            self._ids += 1
            producer = self.producers[name] = Producer(self._ids)
        elif producer.span is not None and producer.span.state == OPEN:
            self.finish(producer, ABORTED)
            producer.ended_epoch = -1
        producer.epoch += 1
        return producer.producer_id, producer.epoch

    def finish(self, producer: Producer, state: str) -> None:
        """End its transaction; its epoch goes up, as with KIP-890."""
        span = producer.span
        assert span is not None
        assert span.state == OPEN
        span.state = state
        producer.ended_epoch = producer.epoch
        producer.epoch += 1
        if state == COMMITTED:
            for each in span.rows:
                assert each not in self.visible, f"{each} is there twice"
                self.visible.append(each)

    def end(self, name: str, producer_id: int, epoch: int, commit: bool) -> str | None:
        """EndTxn: the error's name."""
        wanted = COMMITTED if commit else ABORTED
        producer = self.producers.get(name)
        if producer is None or producer.producer_id != producer_id:
            return "INVALID_PRODUCER_ID_MAPPING"
        if epoch == producer.ended_epoch and producer.span is not None and producer.span.state == wanted:
            return None
        if epoch != producer.epoch:
            return "PRODUCER_FENCED"
        if producer.span is None or producer.span.state != OPEN:
            return "INVALID_TXN_STATE"
        self.finish(producer, wanted)
        return None

    def forget(self) -> None:
        """Brokers of pylog forget ids of tasks whose transactions have ended."""
        if not self.two_phase:
            return
        for name in [n for n, producer in self.producers.items() if producer.span and producer.span.state != OPEN]:
            if name.startswith("pylog-once."):
                del self.producers[name]

    def open(self) -> list[str]:
        """Ids with an open transaction."""
        return [name for name, producer in self.producers.items() if producer.span and producer.span.state == OPEN]

    def stable(self, isolation: str) -> int:
        """The end of the log of decisions."""
        if isolation == "read_committed":
            for offset, (span, _, _) in enumerate(self.decisions):
                if span.state == OPEN:
                    return offset
        return len(self.decisions)


class Native:
    """The native module of a world."""

    NativeError = NativeError

    def __init__(self, world: World) -> None:
        self.RecordWriter = lambda config, topic=None, **more: Writer(world, topic, more["transactional_id"])
        self.Client = lambda config: Client(world)
        self.RangeReader = lambda config, topic, partition, start, end, columns, *more: Reader(world, start, end)

    @staticmethod
    def murmur2(_: bytes) -> int:
        return 0


class Writer:
    """`RecordWriter` with a transactional id."""

    def __init__(self, world: World, topic: str | None, name: str) -> None:
        self._world, self._topic, self._name = world, topic, name
        self._who: tuple[int, int] | None = None
        self._span: Span | None = None

    def begin(self) -> dict[str, Any]:
        self._world.asked()
        self._who = self._world.begin(self._name)
        self._world.answered()
        return {"producer_id": self._who[0], "producer_epoch": self._who[1]}

    def write(self, batch: Any) -> None:
        """Rows are at the brokers at once: that is the harder case."""
        if self._who is None:
            self.begin()
        self._world.asked()
        producer = self._producer()
        if self._span is None:
            self._span = producer.span = Span(self._name)
        elif self._span.state != OPEN:
            raise NativeError("INVALID_TXN_STATE", "it has ended")
        for each in batch.to_pylist():
            if self._name.startswith("pylog-once.") and not self._name.endswith(".driver"):
                self._span.rows.append(each["value"])
            else:
                self._world.decisions.append((self._span, each["key"], each["value"]))

    def flush(self) -> dict[str, Any]:
        self._world.answered()
        self._producer()
        rows = len(self._span.rows) if self._span else 0
        return {"records": rows, "bytes": rows, "offsets": {}}

    def prepare(self) -> dict[str, Any] | None:
        self._world.asked()
        if self._span is None:
            return None
        producer = self._producer()
        if self._span.state != OPEN:
            raise NativeError("INVALID_TXN_STATE", "it has ended")
        if self._world.two_phase:
            self._span.prepared = True
            producer.epoch += 1
            self._who = (producer.producer_id, producer.epoch)
        identity = {
            "transactional_id": self._name,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
        }
        self._world.answered()
        return {**identity, "prepared": self._world.two_phase}

    def end(self, commit: bool) -> None:
        self._world.asked()
        assert self._who is not None
        if self._span is None and not commit:
            return
        error = self._world.end(self._name, *self._who, commit)
        if error is not None:
            raise NativeError(error, "it cannot be ended")
        self._span, self._who = None, None
        self._world.answered()

    def close(self) -> None:
        """Leaves an open transaction open."""

    def _producer(self) -> Producer:
        producer = self._world.producers.get(self._name)
        assert self._who is not None
        if producer is None or (producer.producer_id, producer.epoch) != self._who:
            raise NativeError("PRODUCER_FENCED", "a newer one has the id")
        return producer


class Client:
    """`Client`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        self._world.asked()
        error = None if self._world.topic_made else "UNKNOWN_TOPIC_OR_PARTITION"
        count = 8 if self._world.topic_made else 0
        found = tuple(PartitionDescription(number, 0, 0, (0,), (0,), None) for number in range(count))
        return [asdict(TopicDescription(name, "id", False, error, found)) for name in names]

    def create_topics(self, topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self._world.asked()
        self._world.topic_made = True
        return [asdict(CreateTopicResult(topic["name"], "id", 8, 1, None, None)) for topic in topics]

    def list_offsets(self, wanted: list[tuple[str, int, int]], isolation: str) -> list[tuple[str, int, int, int]]:
        self._world.asked()
        return [(topic, part, 0 if at == -2 else self._world.stable(isolation), -1) for topic, part, at in wanted]

    def request(self, name: str, arguments: str) -> list[dict[str, Any]]:
        self._world.asked()
        found = getattr(self, f"_{name}")(**json.loads(arguments))
        self._world.answered()
        return list(found)

    def end_transactions(
        self, transactions: list[tuple[str, int, int]], commit: bool, timeout_ms: int
    ) -> list[dict[str, Any]]:
        answers = []
        for name, producer_id, epoch in transactions:
            self._world.asked()
            error = self._world.end(name, producer_id, epoch, commit)
            answers.append({"transactional_id": name, "error": error, "message": error})
        self._world.answered()
        return answers

    def close(self) -> None: ...

    def _list_transactions(self, states: list[str], pattern: str, duration_ms: int, **_: Any) -> list[dict[str, Any]]:
        assert states == [OPEN]
        names = [name for name in self._world.open() if re.fullmatch(pattern, name)]
        if duration_ms >= 0:
            names = [name for name in names if self._world.random.random() < self._world.old]
        return [asdict(TransactionListing(name, self._world.producers[name].producer_id, OPEN, 0)) for name in names]

    def _describe_transactions(self, names: list[str]) -> list[dict[str, Any]]:
        return [self._described(name) for name in names]

    def _described(self, name: str) -> dict[str, Any]:
        producer = self._world.producers.get(name)
        if producer is None:
            missing = "TRANSACTIONAL_ID_NOT_FOUND"
            return asdict(TransactionDescription(name, "", -1, -1, 0, -1, (), 0, missing, missing))
        state = producer.span.state if producer.span else "Empty"
        times = _TIMEOUT_MS, 10**15
        return asdict(
            TransactionDescription(name, state, producer.producer_id, producer.epoch, *times, (), 0, None, None)
        )

    def _fence_producers(self, names: list[str]) -> list[dict[str, Any]]:
        for name in names:
            me().pause()
            self._world.begin(name)
        return []


class Reader:
    """`RangeReader` over the decisions, committed ones only."""

    at_end = False

    def __init__(self, world: World, start: int, end: int) -> None:
        self._world, self._start, self._end = world, start, end

    def next_batch(self, _: int) -> Any:
        import pyarrow as pa

        self._world.asked()
        self.at_end = True
        found = [
            (key, value)
            for span, key, value in self._world.decisions[self._start : self._end]
            if span.state == COMMITTED
        ]
        keys, values = (pa.array([pair[index] for pair in found], pa.binary()) for index in (0, 1))
        return pa.record_batch({"key": keys, "value": values})

    def stop(self) -> None: ...
