"""``df.writeStream.format("pylog")``: each micro-batch is a write of its own.

Spark makes a fresh writer for every call, so the writer has no state: a commit learns from the tasks' messages which query it is for,
and an abort without any message can do nothing (the next commit of the query cleans up). Before Spark 4.1 there is no Arrow
writer for streams; rows are gathered into Arrow batches there, which is slower and otherwise the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as _spark
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage

from pylog_spark.errors import PylogError
from pylog_spark.sink import commit
from pylog_spark.sink.abandoned import end_abandoned
from pylog_spark.sink.batch import give_up, log_aborted, log_written, outcomes_of, warn_of_old
from pylog_spark.sink.protocol import common_outcome
from pylog_spark.sink.task import WritePlan
from pylog_spark.spark.raising import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa

_ArrowWriter: Any = getattr(_spark, "DataSourceStreamArrowWriter", None)
_ROWS = 10_000
#: Every so many micro-batches the driver looks for abandoned writes.
_LOOK_EVERY = 20


class _Outcome:
    """What is the same in all versions of Spark."""

    _plan: WritePlan

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @sentence_first
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        outcomes = outcomes_of(messages)
        common = common_outcome(outcomes)
        if common is not None:
            commit.commit(self._plan.client, common.write, outcomes)
            if batchId % _LOOK_EVERY == 0:
                end_abandoned(self._plan.client)
        log_written(self._plan, messages, f" of batch {batchId}")
        warn_of_old(self._plan, common.write.key if common is not None else self._plan.job, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        outcomes = outcomes_of(messages)
        common = common_outcome(outcomes)
        if common is not None:
            give_up(self._plan, common.write, common.job, outcomes)
        elif not self._plan.exactly_once:
            log_aborted(messages, f" in batch {batchId}")


class _RowWriter(_Outcome, DataSourceStreamWriter):
    """For Spark 4.0."""

    @sentence_first
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        self._plan.check_once()
        return self._plan.write(row_batches(iterator, list(self._plan.columns.values())))


def stream_writer(plan: WritePlan) -> DataSourceStreamWriter:
    """Give the writer that this version of Spark can drive."""
    if _ArrowWriter is not None:
        return _StreamWriter(plan)
    if plan.typed is not None:
        raise PylogError(
            "PYLOG_UNSUPPORTED_SPARK",
            "A stream that writes typed columns needs Spark 4.1 or later; write a column value, for example of to_json(struct(*)).",
        )
    return _RowWriter(plan)


def row_batches(rows: Iterator[Any], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Gather rows into Arrow batches of `columns`, which are a record's columns in upper or lower case."""
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
            self._plan.check_once()
            return self._plan.write(iterator)
