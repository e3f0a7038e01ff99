"""``df.write.format("pylog").mode("append")``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pylog_spark.sink.task import Target, Written

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("pylog_spark")


class PylogWriter(DataSourceArrowWriter):
    """Appends a frame. Made on the driver, where it checks the target; carried to the tasks by pickling."""

    def __init__(self, target: Target) -> None:
        target.check()
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._target.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        log_written(messages, "")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        log_aborted(messages, "")


def log_written(messages: Sequence[WriterCommitMessage | None], where: str) -> None:
    """Note how much was written."""
    done = [message for message in messages if isinstance(message, Written)]
    _log.info("pylog wrote %d records%s in %d tasks", sum(one.records for one in done), where, len(done))


def log_aborted(messages: Sequence[WriterCommitMessage | None], where: str) -> None:
    """Say what a failed write has left behind: at least once means that it stays."""
    done = sum(message.records for message in messages if isinstance(message, Written))
    if done:
        _log.warning("The write failed%s; %d records of its finished tasks stay in the log", where, done)
