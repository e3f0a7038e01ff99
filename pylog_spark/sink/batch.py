"""``df.write.format("pylog").mode("append")``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pylog_spark.errors import PylogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.ranges import OffsetRange, in_words
from pylog_spark.sink import commit
from pylog_spark.sink.abandoned import end_abandoned
from pylog_spark.sink.decision import is_decided
from pylog_spark.sink.identity import BATCH, Write
from pylog_spark.sink.ledger import Ledger
from pylog_spark.sink.protocol import Outcome
from pylog_spark.sink.retention import log_retention, warn_of_retention
from pylog_spark.sink.task import WritePlan, Written
from pylog_spark.spark.raising import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("pylog_spark")


class PylogWriter(DataSourceArrowWriter):
    """Appends a frame. Made on the driver, where it checks that the plan can be carried out; carried to the tasks by pickling."""

    def __init__(self, plan: WritePlan) -> None:
        plan.check()
        log_retention(plan.client, plan.topic, plan.columns)
        self._plan = replace(plan, decided=plan.exactly_once and _decided(plan))
        if plan.batch is not None and self._plan.decided and plan.fails_when_written:
            raise commit.already_written(plan.batch)

    @sentence_first
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._plan.write(iterator)

    @sentence_first
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._plan.batch is not None and self._plan.exactly_once:
            commit.commit(
                self._plan.client,
                self._plan.batch,
                outcomes_of(messages),
                fails_when_written=self._plan.fails_when_written,
            )
            end_abandoned(self._plan.client)
        log_written(self._plan, messages, "")
        warn_of_old(self._plan, self._plan.job, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        plan = self._plan
        if plan.batch is not None and plan.exactly_once and not plan.decided:
            give_up(plan, plan.batch, plan.job, outcomes_of(messages))
        else:
            log_aborted(messages, "")


def outcomes_of(messages: Sequence[WriterCommitMessage | None]) -> list[Outcome]:
    """Give the outcomes that the tasks' messages carry."""
    return [message.outcome for message in messages if isinstance(message, Written) and message.outcome is not None]


def give_up(plan: WritePlan, write: Write, job: str, outcomes: Sequence[Outcome]) -> None:
    """Abort the transactions that a failed write has left open. Errors of this are logged and not raised: the user needs the error
    that made the write fail."""
    transactions = [outcome.transaction for outcome in outcomes if outcome.transaction is not None]
    try:
        commit.abort(plan.client, write, job, transactions)
    except PylogError as error:
        _log.warning("What %s has written could not be aborted: %s", write.name, error.sentence)


def log_written(plan: WritePlan, messages: Sequence[WriterCommitMessage | None], where: str) -> None:
    """Log how much was written, and where to. The offset ranges of several tasks may overlap."""
    if not _log.isEnabledFor(logging.INFO):
        return
    done = [message for message in messages if isinstance(message, Written)]
    places = [
        OffsetRange(TopicPartition(*place), first, last + 1)
        for message in done
        for place, (first, last) in message.offsets.items()
    ]
    records, servers = sum(message.records for message in done), plan.client["bootstrap.servers"]
    _log.info("pylog wrote %d records%s in %d tasks to %s: %s", records, where, len(done), servers, in_words(places))


def warn_of_old(plan: WritePlan, name: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Warn when the rows that were just written are older than their topics keep."""
    warn_of_retention(plan.client, name, [message.oldest_ms for message in messages if isinstance(message, Written)])


def log_aborted(messages: Sequence[WriterCommitMessage | None], where: str) -> None:
    """Log what a failed write has left behind: with at-least-once delivery its records stay."""
    done = sum(message.records for message in messages if isinstance(message, Written))
    if done:
        _log.warning("The write failed%s; %d records of its finished tasks stay in the log", where, done)


def _decided(plan: WritePlan) -> bool:
    """Whether the write was done before, as far as that is known without waiting; the commit checks again. Only a batch with a name
    can have been done before."""
    write = plan.batch
    if write is None or write.kind != BATCH:
        return False
    with closing(Ledger(plan.client)) as ledger:
        stored = ledger.decision(write.key, until_stable=False)
    return is_decided(stored, write)
