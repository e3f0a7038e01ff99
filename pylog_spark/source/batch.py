"""``spark.read.format("pylog")``: the ranges are resolved once, when Spark plans the query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets
from pylog_spark.offsets.limits import Limit
from pylog_spark.offsets.position import Position
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.options import ReadOptions
from pylog_spark.source.held_back import HeldBack, Release
from pylog_spark.source.log import Log
from pylog_spark.source.partition import RangePartition, RangeSource
from pylog_spark.source.planner import check_in_log
from pylog_spark.source.tasks import TaskPlanner
from pylog_spark.spark.raising import rows_sentence_first, sentence_first

if TYPE_CHECKING:
    import pyarrow as pa


class PylogReader(DataSourceReader):
    """Reads a fixed range of each partition.

    `pushFilters` is not overridden: with ``spark.sql.python.filterPushdown.enabled=false``, Spark's default, a reader
    that defines it fails every read (DATA_SOURCE_PUSHDOWN_DISABLED).
    """

    def __init__(self, options: ReadOptions, source: RangeSource, release: Release | None = None) -> None:
        self._options = options
        self._source = source
        self._release = release

    @sentence_first
    def partitions(self) -> list[InputPartition]:  # Spark insists on a list
        """Resolve starts and ends, and give the tasks that read what lies between."""
        log = Log(self._options)
        try:
            log.check()
            return [*self._tasks(log)]
        finally:
            log.close()

    @rows_sentence_first
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the records of one range."""
        return self._source.read(partition)

    def _tasks(self, log: Log) -> list[RangePartition]:
        options = self._options
        assigned = log.assigned()
        if options.path is None:
            HeldBack(options, log, self._release).look(assigned.offsets)
        start = self._bound(log, assigned, options.start, options.start_option)
        end = self._bound(log, assigned, options.end, options.end_option)
        for partition in assigned.offsets:
            if start[partition] > end[partition]:
                raise PylogError(
                    "PYLOG_START_AFTER_END",
                    f"{options.start_option} is offset {start[partition]} of {partition} and {options.end_option} offset "
                    f"{end[partition]}, which lies before it; choose an earlier start or a later end.",
                )
        ranges = [OffsetRange(partition, start[partition], end[partition]) for partition in assigned.offsets]
        planner = TaskPlanner(options, log, is_batch=True)
        return planner.tasks(planner.parts(ranges, assigned.topic_ids, self._source.wanted), assigned.topic_ids)

    def _bound(self, log: Log, assigned: Position, limit: Limit, option: str) -> Offsets:
        offsets = log.resolve(limit, option, assigned.offsets)
        return check_in_log(log, offsets, limit, option, self._options.fail_on_data_loss)
