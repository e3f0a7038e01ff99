"""One attempt at a task, in a transaction of its own. Runs in Spark's Python workers.

Each step that a crash could separate from the next is a function of its own:

    open_transaction    a producer under a name that nobody else uses
    flush               every row is acknowledged
    prepare             from here on only a decision ends the transaction (or, at brokers that do not offer it, its time-out)
    look_again          if the version was decided without this attempt, the task ends its own transaction: perhaps nobody else
                        will, since a driver cleans up once, after its decision, and misses what is prepared later

An attempt that fails ends its transaction if it still can. Otherwise the driver's abort ends it, or the next commit, or the time-out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.audit.document import Audit
from pylog_spark.errors import native
from pylog_spark.options.write import ABANDONED_AFTER_MS, TRANSACTION_TIMEOUT_MS
from pylog_spark.results.decoding import decoded
from pylog_spark.results.writes import FlushResult, PreparedTransaction
from pylog_spark.sink.audit import Auditing
from pylog_spark.sink.decision import Transaction, is_decided
from pylog_spark.sink.faults import translating
from pylog_spark.sink.identity import STREAM, Write, task_transaction_id
from pylog_spark.sink.ledger import Ledger
from pylog_spark.sink.topics import checked, known_topic, not_made_again, remember, remembered
from pylog_spark.spark.contact import until_reachable

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RecordWriter

_log = logging.getLogger("pylog_spark")

#: Ledgers that one worker process keeps: one for each set of client settings that its tasks came with.
_LEDGERS_MAX = 4

_ledgers: dict[tuple[tuple[str, str], ...], Ledger] = {}
_looked_at: dict[str, int] = {}


def ledger_of_process(client: Mapping[str, str]) -> Ledger:
    """Give the ledger that the tasks of this worker process share."""
    key = tuple(sorted(client.items()))
    if key not in _ledgers:
        if len(_ledgers) >= _LEDGERS_MAX:
            _ledgers.pop(next(iter(_ledgers))).close()
        _ledgers[key] = Ledger(client, waits=True)
    return _ledgers[key]


def decided_before(client: Mapping[str, str], write: Write) -> bool:
    """Whether the version was decided before this attempt, which then need not write. May say no although it was decided.

    A process that looked at the version before this one need not look again: only after a restart is a decided version run again.
    """
    last = _looked_at.get(write.key)
    _looked_at[write.key] = write.version
    if len(_looked_at) > 1000:
        _looked_at.clear()
    if last is not None and last == write.version - 1:
        return False
    with translating(write):
        stored = ledger_of_process(client).decision(write.key, until_stable=False)
    return is_decided(stored, write)


@dataclass(frozen=True)
class AttemptResult:
    """What an attempt has written.

    Attributes
    ----------
    flushed : FlushResult
        Its rows, all acknowledged.
    topic_ids : mapping of str to str
        Only for a query: topic -> id, of the topics that it has written to.
    transaction : Transaction or None
        None when there was no row, or when the version was decided without this attempt.
    """

    flushed: FlushResult
    topic_ids: Mapping[str, str]
    transaction: Transaction | None


class Attempt:
    """Writes rows in one transaction; opened at the first row."""

    def __init__(
        self,
        client: Mapping[str, str],
        topic: str | None,
        write: Write,
        partition: int,
        job: str,
        abandoned_after_ms: int = ABANDONED_AFTER_MS,
        audit: Audit | None = None,
    ) -> None:
        self._client = {"transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS), **client}
        self._topic = topic
        self._write = write
        self._known: Mapping[str, str] = {}
        self._name = task_transaction_id(write, partition, job, abandoned_after_ms)
        self._auditing = Auditing(audit, write.key)

    def run(self, batches: Iterator[pa.RecordBatch]) -> AttemptResult:
        """Write all rows."""
        rows = (batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return AttemptResult(FlushResult(0, 0, {}), {}, None)
        if self._write.kind == STREAM:
            self._known = known_topic_ids(self._client, self._write)
        settings = not_made_again(self._client, self._topic, self._known)
        writer = open_transaction(settings, self._topic, self._write, self._name, self._auditing.window_ms)
        try:
            return self._fill(writer, first, rows)
        except BaseException:
            give_up(writer)
            raise
        finally:
            writer.close()

    def _fill(self, writer: RecordWriter, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> AttemptResult:
        with known_topic(self._write, self._topic, self._known):
            with translating(self._write):
                writer.write(first)
            for batch in rest:
                with translating(self._write):
                    writer.write(batch)
            with translating(self._write):
                self._auditing.say(writer)
            flushed = self._auditing.without(flush(writer, self._write))
        topic_ids: Mapping[str, str] = {}
        if self._write.kind == STREAM:
            topic_ids = self._checked_topics({topic for topic, _ in flushed.offsets})
        transaction = prepare(writer, self._write)
        if look_again(self._client, self._write):
            give_up(writer)
            return AttemptResult(flushed, topic_ids, None)
        return AttemptResult(flushed, topic_ids, transaction)

    def _checked_topics(self, topics: Iterable[str]) -> Mapping[str, str]:
        found = ledger_of_process(self._client).topic_ids(topics)
        topic_ids = checked(self._write, self._known, found)
        remember(self._write, topic_ids)
        return topic_ids


def known_topic_ids(client: Mapping[str, str], write: Write) -> Mapping[str, str]:
    """Give the ids of the topics that earlier micro-batches of a query have written to."""
    topic_ids = remembered(write)
    if topic_ids is None:
        stored = ledger_of_process(client).decision(write.key, until_stable=False)
        topic_ids = stored.topic_ids if stored is not None else {}
    return topic_ids


def open_transaction(
    client: Mapping[str, str], topic: str | None, write: Write, name: str, count_windows_ms: int | None = None
) -> RecordWriter:
    """Give a writer whose transactional id is `name`."""

    def begun() -> RecordWriter:
        with translating(write):
            writer = native().RecordWriter(
                dict(client), topic, transactional_id=name, keep_connections=True, count_windows_ms=count_windows_ms
            )
            try:
                writer.begin()
            except BaseException:
                writer.close()
                raise
        return writer

    return until_reachable(begun, int(client.get("default.api.timeout.ms", "60000")) / 1000)


def flush(writer: RecordWriter, write: Write) -> FlushResult:
    """Wait until every row is acknowledged."""
    with translating(write):
        return decoded(FlushResult, writer.flush())


def prepare(writer: RecordWriter, write: Write) -> Transaction:
    """Prepare the transaction: from here on the driver's decision ends it."""
    with translating(write):
        done = decoded(PreparedTransaction, writer.prepare())
    return Transaction(done.transactional_id, done.producer_id, done.producer_epoch, done.prepared)


def look_again(client: Mapping[str, str], write: Write) -> bool:
    """Whether the version was decided meanwhile, so that this attempt is too late. A write that is never repeated may even be done,
    and its decision dropped."""
    ledger = ledger_of_process(client)
    stored = ledger.decision(write.key, until_stable=True)
    return is_decided(stored, write) or (stored is None and ledger.is_dropped(write.key))


def give_up(writer: RecordWriter) -> None:
    """Abort the transaction, if that is still possible."""
    try:
        writer.end(False)
    except Exception as error:  # noqa: BLE001 - the task fails with its own error, not with this one
        _log.debug("A transaction could not be aborted by its task: %s", error)
