"""``df.writeStream.format("pylog")``: each micro-batch is a write of its own.

Spark makes a fresh writer for every call, so it keeps nothing: a commit learns from the tasks' messages which query it is for,
and an abort without any message can do nothing (the next commit of the query cleans up). Before Spark 4.1 there is no Arrow
writer for streams; rows are gathered into Arrow batches there, which is slower and otherwise the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as _spark
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage

from pylog_spark.sink import commit
from pylog_spark.sink.abandoned import end_abandoned
from pylog_spark.sink.batch import give_up, log_aborted, log_written, outcomes_of, warn_of_old
from pylog_spark.sink.protocol import agreed
from pylog_spark.sink.task import Target
from pylog_spark.spark.raising import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa

_ArrowWriter: Any = getattr(_spark, "DataSourceStreamArrowWriter", None)
_ROWS = 10_000
#: Of so many micro-batches one looks for abandoned writes.
_LOOK_EVERY = 20


class _Outcome:
    """What is the same in all versions of Spark."""

    _target: Target

    def __init__(self, target: Target) -> None:
        self._target = target

    @sentence_first
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        outcomes = outcomes_of(messages)
        speaker = agreed(outcomes)
        if speaker is not None:
            commit.commit(self._target.client, speaker.write, outcomes)
            if batchId % _LOOK_EVERY == 0:
                end_abandoned(self._target.client)
        log_written(self._target, messages, f" of batch {batchId}")
        warn_of_old(self._target, speaker.write.key if speaker is not None else self._target.job, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        outcomes = outcomes_of(messages)
        speaker = agreed(outcomes)
        if speaker is not None:
            give_up(self._target, speaker.write, speaker.job, outcomes)
        elif not self._target.exactly_once:
            log_aborted(messages, f" in batch {batchId}")


class _RowWriter(_Outcome, DataSourceStreamWriter):
    """For Spark 4.0."""

    @sentence_first
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        self._target.check_once()
        return self._target.write(row_batches(iterator, list(self._target.columns.values())))


def stream_writer(target: Target) -> DataSourceStreamWriter:
    """Give the writer that this version of Spark can drive."""
    return _RowWriter(target) if _ArrowWriter is None else _StreamWriter(target)


def row_batches(rows: Iterator[Any], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Gather rows into Arrow batches of `columns`, which are the record's in any letters."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    fixed = {"partition": pa.int64(), "timestamp": pa.timestamp("us", tz="UTC"), "headers": pa.list_(header)}
    while chunk := list(islice(rows, _ROWS)):
        arrays = {}
        for name in columns:
            values = [row[name] for row in chunk]
            if name.lower() == "headers":
                values = [
                    value and [{"key": part["key"], "value": part["value"]} for part in value] for value in values
                ]
            arrays[name] = pa.array(values, fixed.get(name.lower()))
        yield pa.RecordBatch.from_pydict(arrays)


if _ArrowWriter is not None:

    class _StreamWriter(_Outcome, _ArrowWriter):
        """For Spark 4.1 and later."""

        @sentence_first
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            self._target.check_once()
            return self._target.write(iterator)
