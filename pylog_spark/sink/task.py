"""One task's writing: Arrow batches in, acknowledged records out, in a transaction when the write is exactly once.

Runs in Spark's Python workers. `WritePlan` is made on the driver and carried there by pickling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pylog_spark.audit.document import Audit
from pylog_spark.errors import PylogError, native, translated
from pylog_spark.offsets import TopicPartition
from pylog_spark.options import EXACTLY_ONCE
from pylog_spark.options.write import ABANDONED_AFTER_MS
from pylog_spark.results.decoding import decoded
from pylog_spark.results.writes import FlushResult, OffsetSpan
from pylog_spark.sink.attempt import Attempt, decided_before, ledger_of_process
from pylog_spark.sink.audit import Auditing, require_audit
from pylog_spark.sink.identity import STREAM, Write, fresh_job, in_ledger
from pylog_spark.sink.protocol import Outcome
from pylog_spark.sink.retention import Oldest
from pylog_spark.sink.topics import checked, known_topic, not_made_again, remember, remembered
from pylog_spark.spark.contact import first_contact, require_topic
from pylog_spark.spark.worker import acknowledge, freeze_imports

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark.typed.writing import TypedWrite

#: Names of the local properties by which a task knows which query and which batch it works for.
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"

#: Addresses and topics that this process has reached: they are right, so brokers that are away are waited for.
_reached: set[str] = set()


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task wrote, all of it acknowledged.

    Attributes
    ----------
    records, bytes : int
        How many records, and the bytes of their batches, as they were sent.
    offsets : mapping of TopicPartition to OffsetSpan
        The first and the last offset in each partition.
    outcome : Outcome or None
        Its part in the protocol; None when the write is at least once.
    oldest_ms : mapping of str to int
        Topic -> oldest time that the column `timestamp` gave, in milliseconds since 1970.
    """

    records: int = 0
    bytes: int = 0
    offsets: Mapping[TopicPartition, OffsetSpan] = field(default_factory=dict)
    outcome: Outcome | None = None
    oldest_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WritePlan:
    """Where tasks write, and how: plain values, pickled with the writer.

    Attributes
    ----------
    client : mapping of str to str
        Settings of the native client.
    topic : str or None
        Topic of all rows, or None when each row's column `topic` names it.
    columns : mapping of str to str
        The record's column -> the frame's column. Other columns of the frame are not written.
    delivery : str
        The option `delivery`.
    batch : Write or None
        Which write it is; None for a stream, whose tasks learn it from Spark.
    decided : bool
        The batch was decided before: tasks read their rows and write none.
    job : str
        Names this attempt at the write.
    abandoned_after_ms : int
        The option `abandonedAfter`, in milliseconds.
    typed : TypedWrite or None
        How columns become keys and values, where those have a format.
    ledger : str or None
        The option `ledger`.
    fails_when_written : bool
        Whether a batch that was decided before is an error.
    audit : Audit or None
        Where tasks say how many rows they have written; None when they do not.
    """

    client: Mapping[str, str]
    topic: str | None
    columns: Mapping[str, str]
    delivery: str = EXACTLY_ONCE
    batch: Write | None = None
    decided: bool = False
    job: str = field(default_factory=fresh_job)
    abandoned_after_ms: int = ABANDONED_AFTER_MS
    typed: TypedWrite | None = None
    audit: Audit | None = None
    ledger: str | None = None
    fails_when_written: bool = False

    @property
    def exactly_once(self) -> bool:
        """Whether tasks write in transactions."""
        return self.delivery == EXACTLY_ONCE

    def check(self) -> None:
        """Check that brokers answer, that the topic can be written to, and that there are transactions when they are needed.
        Raises `PylogError` in seconds."""
        if self.topic is None:
            first_contact(self.client, [])
        else:
            require_topic(self.client, self.topic)
        if self.audit is not None:
            require_audit(self.client, self.topic, self.audit)
        if self.exactly_once:
            ledger_of_process(self.client).check()

    def check_once(self) -> None:
        """Check, unless this process has reached these brokers before: a wrong address is an error within seconds. Brokers that were
        reached once may be restarting, so the write waits for them as long as the client's settings say. When a topic is missing to
        which an earlier micro-batch wrote, the write reports it, because its error says more."""
        address = f"{self.client['bootstrap.servers']} {self.topic}"
        if address not in _reached:
            try:
                self.check()
            except PylogError as error:
                if error.condition != "PYLOG_UNKNOWN_TOPIC" or not _runs_already():
                    raise
                return
            _reached.add(address)

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Write all rows and wait until they are acknowledged.

        Raises
        ------
        PylogError
            For the first record that the brokers refused or did not acknowledge in time.
        """
        freeze_imports()
        acknowledge()
        oldest = Oldest(self.topic)
        selected = (oldest.seen(self._records(batch)) for batch in batches)
        write = self.batch or _micro_batch(self.ledger)
        if not self.exactly_once:
            return replace(self._append(selected, write), oldest_ms=oldest.times_ms)
        if write is None:
            raise PylogError(
                "PYLOG_UNSUPPORTED_SPARK",
                "This version of Spark does not tell its tasks which query and batch they work for, which exactly-once writing "
                "needs; set the option delivery to at-least-once.",
            )
        if self.decided or decided_before(self.client, write):
            for _ in batches:  # state stores upstream save their state when they are read to the end
                pass
            return Written(outcome=Outcome(write, self.job, None, skipped=True))
        attempt = Attempt(self.client, self.topic, write, _partition(), self.job, self.abandoned_after_ms, self.audit)
        done = attempt.run(selected)
        flushed = done.flushed
        late = done.transaction is None and flushed.records > 0
        outcome = Outcome(write, self.job, done.transaction, skipped=late, topic_ids=done.topic_ids)
        return Written(flushed.records, flushed.bytes, flushed.offsets, outcome, oldest.times_ms)

    def _records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that make a record, under the record's names."""
        if self.typed is not None:
            return self.typed.records(batch, self.columns)
        return batch.select(list(self.columns.values())).rename_columns(list(self.columns))

    def _append(self, batches: Iterator[pa.RecordBatch], write: Write | None) -> Written:
        query = write if write is not None and write.kind == STREAM else None
        known = (remembered(query) if query else None) or {}
        settings = not_made_again(self.client, self.topic, known)
        auditing = Auditing(self.audit, self.job if write is None else write.key)
        with known_topic(query, self.topic, known), translated():
            writer = native().RecordWriter(
                dict(settings), self.topic, keep_connections=True, count_windows_ms=auditing.window_ms
            )
            try:
                for batch in batches:
                    if batch.num_rows:
                        writer.write(batch)
                flushed = decoded(FlushResult, writer.flush())
                # Behind the rows, all of which are acknowledged: a task that fails before has said nothing.
                if auditing.say(writer):
                    writer.flush()
            finally:
                writer.close()
        if query and flushed.records:
            found = ledger_of_process(self.client).topic_ids({topic for topic, _ in flushed.offsets})
            remember(query, checked(query, known, found))
        return Written(flushed.records, flushed.bytes, flushed.offsets)


def _micro_batch(ledger: str | None = None) -> Write | None:
    """The micro-batch that this task works for; None where Spark does not say."""
    task = TaskContext.get()
    query, batch = (task.getLocalProperty(name) if task else None for name in (_QUERY_ID, _BATCH_ID))
    return Write(STREAM, in_ledger(query, ledger), int(batch)) if query and batch else None


def _runs_already() -> bool:
    write = _micro_batch()
    return write is not None and write.version > 0


def _partition() -> int:
    task = TaskContext.get()
    return task.partitionId() if task else 0
