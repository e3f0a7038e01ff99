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
from pylog_spark.sink.retention import tell_of_retention, warn_of_retention
from pylog_spark.sink.task import Target, Written
from pylog_spark.spark.raising import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("pylog_spark")


class PylogWriter(DataSourceArrowWriter):
    """Appends a frame. Made on the driver, where it checks the target; carried to the tasks by pickling."""

    def __init__(self, target: Target) -> None:
        target.check()
        tell_of_retention(target.client, target.topic, target.columns)
        self._target = replace(target, decided=target.exactly_once and _decided(target))

    @sentence_first
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._target.write(iterator)

    @sentence_first
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._target.batch is not None and self._target.exactly_once:
            commit.commit(self._target.client, self._target.batch, outcomes_of(messages))
            end_abandoned(self._target.client)
        log_written(self._target, messages, "")
        warn_of_old(self._target, self._target.job, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        target = self._target
        if target.batch is not None and target.exactly_once and not target.decided:
            give_up(target, target.batch, target.job, outcomes_of(messages))
        else:
            log_aborted(messages, "")


def outcomes_of(messages: Sequence[WriterCommitMessage | None]) -> list[Outcome]:
    """Give the tasks' parts in the protocol."""
    return [message.outcome for message in messages if isinstance(message, Written) and message.outcome is not None]


def give_up(target: Target, write: Write, job: str, outcomes: Sequence[Outcome]) -> None:
    """Abort what a failed write has left behind. Its own failures are logged and not raised: the cause is another."""
    transactions = [outcome.transaction for outcome in outcomes if outcome.transaction is not None]
    try:
        commit.abort(target.client, write, job, transactions)
    except PylogError as error:
        _log.warning("What %s has written could not be aborted: %s", write.name, error.sentence)


def log_written(target: Target, messages: Sequence[WriterCommitMessage | None], where: str) -> None:
    """Note how much was written, and where to: the offsets of several tasks may lie between each other."""
    if not _log.isEnabledFor(logging.INFO):
        return
    done = [message for message in messages if isinstance(message, Written)]
    places = [
        OffsetRange(TopicPartition(*place), first, last + 1)
        for message in done
        for place, (first, last) in message.offsets.items()
    ]
    records, servers = sum(message.records for message in done), target.client["bootstrap.servers"]
    _log.info("pylog wrote %d records%s in %d tasks to %s: %s", records, where, len(done), servers, in_words(places))


def warn_of_old(target: Target, name: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Warn when the rows that were just written are older than their topics keep."""
    warn_of_retention(target.client, name, [message.oldest_ms for message in messages if isinstance(message, Written)])


def log_aborted(messages: Sequence[WriterCommitMessage | None], where: str) -> None:
    """Say what a failed write has left behind: at least once means that it stays."""
    done = sum(message.records for message in messages if isinstance(message, Written))
    if done:
        _log.warning("The write failed%s; %d records of its finished tasks stay in the log", where, done)


def _decided(target: Target) -> bool:
    """Whether the write was done before, as far as one can tell without waiting: the commit makes sure. Only one that has a name
    can have been."""
    write = target.batch
    if write is None or write.kind != BATCH:
        return False
    with closing(Ledger(target.client)) as ledger:
        stored = ledger.decision(write.key, until_stable=False)
    return is_decided(stored, write)
