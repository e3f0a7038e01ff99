"""The broker beside a registry knows which schemas records may name, for topics that are checked (`confluent.value.schema.validation`).

`SchemasTopic` says what changes while it follows the topic; when a record names a schema that the broker does not know, it asks, and a
thread here reads the topic to its present end. Which subjects count: those that `TopicNameStrategy` gives, ``TOPIC-key`` and ``TOPIC-value``.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from typing import Protocol

from pylog_spark.registry.topic import SchemasTopic
from pylog_spark.web.refusal import Refusal

log = logging.getLogger("pylog.registry")

#: What the names of subjects end with.
SUFFIXES = ("-key", "-value")
_WAIT_MS = 200


class BrokerIds(Protocol):
    """What the native broker keeps of a registry; see `_native.pyi`."""

    def begin_schema_ids(self) -> None:
        """Forget all, and take what comes."""

    def set_schema_ids(self, subject: str, ids: set[int]) -> None:
        """These are the ids of a subject now."""

    def next_schema_question(self, timeout_ms: int) -> int | None:
        """The next question for what is new."""

    def answer_schema_question(self, question: int) -> None:
        """All is known that there was when the question came."""


class KnownIds:
    """Tells a broker what its registry has, and answers its questions, from `start` to `close`."""

    def __init__(self, topic: SchemasTopic, broker: BrokerIds) -> None:
        self._topic, self._broker = topic, broker
        self._closing = threading.Event()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._answer,), name="pylog-schema-ids", daemon=True)

    def start(self) -> None:
        """Begin; the topic is not followed yet."""
        self._broker.begin_schema_ids()
        self._topic.watch(self._changed)
        self._thread.start()

    def close(self) -> None:
        """Stop, before the broker does."""
        self._closing.set()
        self._thread.join()

    def _changed(self, subject: str | None, ids: set[int]) -> None:
        if self._closing.is_set():
            return
        if subject is None:
            self._broker.begin_schema_ids()
        elif subject.endswith(SUFFIXES):
            self._broker.set_schema_ids(subject, ids)

    def _answer(self) -> None:
        while not self._closing.is_set():
            question = self._broker.next_schema_question(_WAIT_MS)
            if question is None:
                continue
            try:
                self._topic.catch_up()
            except Refusal as refusal:
                # Who asked gets a retriable error, and asks again.
                if not self._closing.is_set():
                    log.warning("Schemas that records name cannot be looked for now: %s", refusal.sentence)
            else:
                self._broker.answer_schema_question(question)
