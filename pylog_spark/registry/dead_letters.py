"""Records that a topic refuses for their schemas, written to its dead letter topic (`schema.validation.dead.letter.topic`) for the broker
beside a registry, which says when to write the rest of their batch.

One thread writes, by idempotent producers of which each has one topic; at most `PRODUCERS_MAX` are open. A dead letter is written at least
once: a batch that is sent again, because its acknowledgement was lost, is parted again.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.producer import Headers, Producer

log = logging.getLogger("pylog.registry")

#: How many dead letter topics have a producer at once; the one that was used longest ago is closed for another.
PRODUCERS_MAX = 16
_WAIT_MS = 200
# Less than the request waits: then its answer says why.
_DELIVERY_MS = 8_000
_CHECKED = ("confluent.key.schema.validation", "confluent.value.schema.validation")
#: Errors that do not pass by themselves.
_LASTING = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "INVALID_TOPIC_EXCEPTION",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_RECORD",
        "POLICY_VIOLATION",
    }
)

_Letter = tuple[bytes | None, bytes | None, int, Headers]


class AskingBroker(Protocol):
    """What the native broker asks; see `_native.pyi`."""

    def next_dead_letters(self, timeout_ms: int) -> tuple[int, str, Sequence[_Letter]] | None:
        """The next records of one batch."""

    def answer_dead_letters(self, number: int, error: str | None = None, again: bool = False) -> None:
        """They are written, or why not."""


class DeadLetters:
    """Writes what a broker gives, from `start` to `close`.

    Parameters
    ----------
    client : mapping of str to str
        Settings of a client by Kafka's names, ``bootstrap.servers`` among them.
    broker : AskingBroker
        The broker.
    """

    def __init__(self, client: Mapping[str, str], broker: AskingBroker) -> None:
        self._servers = client["bootstrap.servers"]
        self._client = {name: text for name, text in client.items() if name != "bootstrap.servers"}
        self._broker = broker
        self._producers: dict[str, Producer] = {}
        self._closing = threading.Event()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="pylog-dead-letters", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop, before the broker does."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                asked = self._broker.next_dead_letters(_WAIT_MS)
                if asked is not None:
                    self._answer(*asked)
        finally:
            for producer in self._producers.values():
                producer.close()

    def _answer(self, number: int, topic: str, letters: Sequence[_Letter]) -> None:
        try:
            self._write(topic, letters)
        except LogError as error:
            sentence = f"the dead letter topic {topic} does not take them: {error.sentence.rstrip('.')}"
            log.warning("%d records cannot be diverted: %s", len(letters), sentence)
            self._broker.answer_dead_letters(number, sentence, error.kind not in _LASTING)
        else:
            self._broker.answer_dead_letters(number)

    def _write(self, topic: str, letters: Sequence[_Letter]) -> None:
        producer = self._producers.pop(topic, None) or self._open(topic)
        try:
            for key, value, timestamp_ms, headers in letters:
                producer.send(value, key, timestamp_ms=timestamp_ms if timestamp_ms >= 0 else None, headers=headers)
            producer.flush()
        except BaseException:
            producer.close()
            raise
        self._producers[topic] = producer  # the last one is the one that was used last

    def _open(self, topic: str) -> Producer:
        with Admin(self._servers, self._client) as admin:
            (described,) = admin.configs("topic", [topic])
            if described.error:
                raise LogError(described.error, f"it cannot be looked at: {described.error}")
            if any(entry.value == "true" for entry in described.configs if entry.name in _CHECKED):
                raise LogError("POLICY_VIOLATION", "it checks schemas itself")
        while len(self._producers) >= PRODUCERS_MAX:
            self._producers.pop(next(iter(self._producers))).close()
        settings = {
            **self._client,
            "enable.idempotence": "true",
            "acks": "all",
            "delivery.timeout.ms": str(_DELIVERY_MS),
        }
        return Producer(self._servers, topic, {**settings, "request.timeout.ms": str(_DELIVERY_MS // 2)})
