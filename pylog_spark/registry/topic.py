"""The topic `_schemas`: read from its beginning to its end into a `RegistryState`, and written by one broker at a time.

A thread follows the topic and applies what is committed. A write is a transaction under one transactional id that all brokers of a
cluster share: to begin it fences every writer before it and ends what that left open; then the topic is read to its end, the decision is
made, written, and committed. So a decision that counts was made with everything before it known, whichever brokers write at the same time;
who is fenced in between decides anew. What a broker answers, it has also read.

Thread-safe. Belongs to the process that made it.
"""

from __future__ import annotations

import contextvars
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.consumer import Record as TopicRecord
from pylog_spark.client.consumer import read_records, record_reader
from pylog_spark.client.errors import LogError, translated
from pylog_spark.client.producer import record_batch
from pylog_spark.registry.decisions import Decision
from pylog_spark.registry.judged import answered
from pylog_spark.registry.state import RegistryState
from pylog_spark.registry.stored import TOPIC, Record, UnreadableError, decode, encode_key, encode_value
from pylog_spark.web.refusal import Refusal

log = logging.getLogger("pylog.registry")

#: The transactional id of all writers.
TRANSACTIONAL_ID = "pylog-schema-registry"
#: How many replicas the topic gets, where there are as many brokers.
REPLICAS = 3
#: How long a request waits until the topic is read, and until it is written, the tries of other brokers included.
READ_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 20.0
# How long the brokers keep a transaction whose writer is gone, if no other writer ends it before.
_TRANSACTION_TIMEOUT_MS = 15_000
# How long the reader waits for a record at most; after one came, less for a while, since the marker that ends its transaction is no record.
_POLL_MS, _POLL_SOON_MS, _SOON = 200, 5, 100
_PAUSE_S = 0.5
# Another writer came in between.
_FENCED = frozenset(
    {
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "CONCURRENT_TRANSACTIONS",
        "INVALID_TXN_STATE",
        "INVALID_PRODUCER_ID_MAPPING",
    }
)
_TOO_LARGE = frozenset({"MESSAGE_TOO_LARGE", "RECORD_TOO_LARGE"})
_GONE = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "OFFSET_OUT_OF_RANGE", "LOG_TRUNCATED"})
_UNREADABLE_LINES_MAX = 20

_Found = TypeVar("_Found")


class SchemasTopic:
    """The topic, followed from `start` to `close`.

    Parameters
    ----------
    client : mapping of str to str
        Settings of a client by Kafka's names, ``bootstrap.servers`` among them.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = {**client, "isolation.level": "read_committed"}
        servers = self._client["bootstrap.servers"]
        self._admin = Admin(servers, {name: text for name, text in self._client.items() if name != "bootstrap.servers"})
        self._state = RegistryState()
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)
        # Up to where the topic is applied; -1 while it is not there.
        self._position, self._topic_id = -1, ""
        # Whether all is applied that was there when somebody first asked.
        self._is_complete = False
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._failing, self._unreadable = False, 0
        self._changed: Callable[[str | None, set[int]], None] | None = None
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._follow,), name="pylog-schemas", daemon=True)

    def start(self) -> None:
        """Begin to follow the topic."""
        self._thread.start()

    def watch(self, changed: Callable[[str | None, set[int]], None]) -> None:
        """Call `changed` with each subject that changes and the ids of its versions, and with None when all begins anew; before `start`."""
        self._changed = changed

    def close(self) -> None:
        """Stop; what is being written is given up."""
        self._closing.set()
        with self._moved:
            self._moved.notify_all()
        if self._thread.ident is not None:
            self._thread.join(READ_TIMEOUT_S)
        self._admin.close()

    def read(self, question: Callable[[RegistryState], _Found]) -> _Found:
        """Answer a question from what is read so far; what is missing there is looked for once more at the topic's present end.

        Raises
        ------
        Refusal
            That of `question`; or the topic cannot be read.
        """
        if self._is_complete:
            try:
                return self._asked(question)
            except Refusal as refusal:
                if not refusal.is_missing:
                    raise
        self.catch_up()
        return self._asked(question)

    def write(self, decide: Callable[[RegistryState], Decision]) -> object:
        """Write what `decide` says, and give its answer, when all of it is committed and read.

        Parameters
        ----------
        decide : callable
            Makes a decision from a state; called several times.

        Raises
        ------
        Refusal
            That of `decide`; or it cannot be written, or nobody said whether it is.
        """
        self.catch_up()
        decision = self._asked(decide)
        if not decision.records:
            return decision.answer
        with self._writing:
            deadline = time.monotonic() + WRITE_TIMEOUT_S
            while not self._closing.is_set():
                try:
                    self.make_topic()
                    answer = self._write_once(decide)
                    self.catch_up()
                    return answer
                except LogError as error:
                    if error.kind in _TOO_LARGE:
                        raise Refusal(422, 42209, f"The schema is too large for a record: {error}") from error
                    if error.kind not in _FENCED or time.monotonic() > deadline:
                        raise _unwritten(error) from error
                # Brokers that write at the same time take turns.
                self._closing.wait(random.uniform(0.02, 0.2))
        raise Refusal(500, 50001, "The broker is stopping; ask another one.")

    def make_topic(self) -> None:
        """Create the topic if it is not there. Raises `LogError`, and `Refusal` for one that cannot be used."""
        (found,) = self._admin.topics([TOPIC])
        if found.error == "UNKNOWN_TOPIC_OR_PARTITION":
            replicas = min(REPLICAS, len(self._admin.cluster().brokers))
            try:
                self._admin.create_topic(TOPIC, 1, replicas, {"cleanup.policy": "compact"})
            except LogError as error:
                if error.kind != "TOPIC_ALREADY_EXISTS":
                    raise
            else:
                log.info("Created the topic %s with %d replicas.", TOPIC, replicas)
            return
        if found.error is None and self._topic_id != found.topic_id:
            (described,) = self._admin.configs("topic", [TOPIC])
            policy = next((entry.value for entry in described.configs if entry.name == "cleanup.policy"), None)
            if len(found.partitions) != 1 or policy != "compact":
                raise Refusal(
                    500,
                    50001,
                    f"The topic {TOPIC} has {len(found.partitions)} partitions and cleanup.policy={policy}: schemas are kept in one with a "
                    "single partition and cleanup.policy=compact.",
                )

    def catch_up(self) -> None:
        """Wait until all is applied that is committed now. Raises `Refusal`."""
        try:
            (found,) = self._admin.topics([TOPIC])
            if found.error == "UNKNOWN_TOPIC_OR_PARTITION":
                return
            ends = self._admin.offsets([(TOPIC, 0, LATEST)], "read_committed")
        except LogError as error:
            raise Refusal(500, 50001, f"The topic {TOPIC} cannot be read now: {error}") from error
        end = ends[0].offset
        with self._moved:
            reached = self._moved.wait_for(
                lambda: self._closing.is_set() or (self._position >= end and self._topic_id == found.topic_id),
                READ_TIMEOUT_S,
            )
            self._is_complete = self._is_complete or (reached and not self._closing.is_set())
        if not reached or self._closing.is_set():
            raise Refusal(
                500, 50002, f"The topic {TOPIC} was not read to its end in {READ_TIMEOUT_S:.0f} s; ask again."
            )

    def _asked(self, question: Callable[[RegistryState], _Found]) -> _Found:
        def ask() -> _Found:
            with self._lock:
                return question(self._state)

        return answered(ask)

    def _write_once(self, decide: Callable[[RegistryState], Decision]) -> object:
        from pylog_spark._native import RecordWriter

        settings = {**self._client, "acks": "all", "transaction.timeout.ms": str(_TRANSACTION_TIMEOUT_MS)}
        settings.pop("isolation.level")
        with translated():
            writer = RecordWriter(settings, TOPIC, transactional_id=TRANSACTIONAL_ID)
        try:
            with translated():
                writer.begin()
            self.catch_up()
            decision = self._asked(decide)
            if decision.records:
                with translated():
                    writer.write(record_batch(list(map(_row, decision.records))))
                    writer.flush()
                    writer.end(True)
            return decision.answer
        finally:
            writer.close()

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                self._follow_topic()
                self._failing = False
            except LogError as error:
                if error.kind in _GONE:
                    self._restart("")
                elif not self._failing:
                    log.warning("The topic %s cannot be read now, which is tried again: %s", TOPIC, error)
                self._failing = error.kind not in _GONE
            except Exception:
                log.exception("The topic %s is read again from its beginning after an error of the registry.", TOPIC)
                self._restart("")
            self._closing.wait(_PAUSE_S if self._failing else _POLL_MS / 1000)

    def _follow_topic(self) -> None:
        (found,) = self._admin.topics([TOPIC])
        if found.error is not None:
            if found.error == "UNKNOWN_TOPIC_OR_PARTITION":
                self._restart("")
                return
            raise LogError(found.error, f"topic {TOPIC}: {found.error}")
        if found.topic_id != self._topic_id or self._position < 0:
            start = self._admin.offsets([(TOPIC, 0, EARLIEST)])[0].offset
            self._restart(found.topic_id)
            self._position = start
        reader = record_reader(self._client, (TOPIC, 0), self._position, None, topic_id=found.topic_id)
        try:
            soon = _SOON
            while not self._closing.is_set():
                records = read_records(TOPIC, reader, _POLL_SOON_MS if soon else _POLL_MS)
                soon = _SOON if records else max(0, soon - 1)
                with self._moved:
                    for record in records:
                        self._apply(record)
                    self._position = max(self._position, reader.next_offset)
                    self._moved.notify_all()
        finally:
            reader.stop()

    def _restart(self, topic_id: str) -> None:
        with self._moved:
            self._state, self._position, self._topic_id = RegistryState(), -1, topic_id
            self._is_complete = False
            if self._changed is not None:
                self._changed(None, set())
            self._moved.notify_all()

    def _apply(self, record: TopicRecord) -> None:
        try:
            read = decode(record.key, record.value)
            self._state.apply(read)
            if self._changed is not None and read[0].subject is not None:
                self._changed(read[0].subject, {version.id for version in self._state.versions(read[0].subject)})
        except UnreadableError as error:
            self._unreadable += 1
            if self._unreadable <= _UNREADABLE_LINES_MAX:
                log.warning("The record at offset %d of %s is left out: %s.", record.offset, TOPIC, error)


def _row(record: Record) -> tuple[bytes, bytes | None, None, None, Sequence[tuple[str, bytes | None]]]:
    key, value = record
    return encode_key(key), encode_value(key, value), None, None, ()


def _unwritten(error: LogError) -> Refusal:
    return Refusal(
        500,
        50002,
        f"The brokers did not say whether it is written ({error}); ask again, which changes nothing that is there.",
    )
