"""``spark.readStream.format("pylog")``: the reader class that Spark calls; `planner` decides.

Spark keeps one reader in one long-lived Python process for the whole query, and pickles another for its tasks; only the
former connects. Spark 4.2 brought admission control (start and limit given to ``latestOffset``) and AvailableNow; before
it, ``latestOffset()`` takes no arguments, and rate limits are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pylog_spark.errors import PylogError
from pylog_spark.options import ReadOptions
from pylog_spark.source.held_back import HeldBack, Release
from pylog_spark.source.log import Log
from pylog_spark.source.partition import RangeSource
from pylog_spark.source.planner import StreamPlanner
from pylog_spark.source.prefetch import Handover, Prefetcher, spark_wrapper
from pylog_spark.source.progress import Progress
from pylog_spark.source.tasks import TaskPlanner
from pylog_spark.spark.raising import rows_sentence_first, sentence_first

if TYPE_CHECKING:
    import pyarrow as pa


def _admission_control() -> Any:
    """Give pyspark's module of read limits, or None before Spark 4.2."""
    try:
        return import_module("pyspark.sql.streaming.datasource")
    except ImportError:
        return None


_admission = _admission_control()

_NO_LIMIT = 2**63 - 1


class _Reader(DataSourceStreamReader):
    """What is the same in all versions of Spark."""

    def __init__(self, options: ReadOptions, source: RangeSource, release: Release | None = None) -> None:
        self._options = options
        self._source = source
        self._log = Log(options)
        self._planner = StreamPlanner(options, self._log, held_back=HeldBack(options, self._log, release))
        self._tasks = TaskPlanner(options, self._log)
        self._progress = Progress(options.group_id, options.client)
        self._prefetcher = Prefetcher(source, options.prefetch_bytes)
        self._handover = Handover(spark_wrapper() if options.prefetch_bytes else None)

    @sentence_first
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._planner.initial()

    @sentence_first
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        found = self._planner.ranges(start, end)
        topic_ids = {offsets.partition.topic: topic_id for offsets, topic_id in found}
        parts = self._tasks.parts([offsets for offsets, _ in found], topic_ids, self._source.wanted)
        archived, rest = self._tasks.parted(parts)
        if self._handover.is_possible and not archived:
            whole = self._tasks.whole(parts, topic_ids)
            rows = self._prefetcher.read(whole)
            if rows is not None:
                self._handover.offer(start, end, rows)
                self._tasks.note("on the driver", parts)
                return [whole]
        return [*self._tasks.tasks_of(archived, rest, topic_ids)]

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[pa.RecordBatch] | None:  # noqa: N802 - Spark's name
        """Hand over the rows that `partitions` has read; see `prefetch`."""
        return self._handover.take(start, end)

    def _class(self) -> type:
        handover = self.__dict__.get("_handover")
        return (handover and handover.passes_for) or type(self)

    # What ``isinstance`` takes this reader for: Spark's wrapper while rows wait for it; see `prefetch`.
    __class__ = property(_class)

    @rows_sentence_first
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._source.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit the progress to the group of `kafka.group.id`, if there is one, for Kafka's tools. The query itself goes by its
        checkpoint."""
        self._progress.show(end)

    def stop(self) -> None:
        """Close the connections. The last batch is not committed to the group: whether it was finished is not known here (see
        `progress`)."""
        self._progress.close()
        self._prefetcher.close()
        self._log.close()


class _ReaderBefore42(_Reader):
    """For Spark 4.0 and 4.1."""

    def __init__(self, options: ReadOptions, source: RangeSource, release: Release | None = None) -> None:
        for name, given in (
            ("maxOffsetsPerTrigger", options.max_offsets),
            ("minOffsetsPerTrigger", options.min_offsets),
            ("maxRecordsPerTrigger", options.trigger_records),
            ("maxBytesPerTrigger", options.trigger_bytes),
        ):
            if given is not None:
                raise PylogError(
                    "PYLOG_UNSUPPORTED_SPARK",
                    f"The option {name} needs Spark 4.2 or later, which tells a Python source where a batch starts; leave it out.",
                )
        super().__init__(options, source, release)

    @sentence_first
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 - Spark's name
        return self._planner.all_latest()


class _Refusing(DataSourceStreamReader):
    """Raises the given error at the first call by Spark.

    When ``streamReader`` itself raises, Spark 4.3's source runner fails in its own clean-up ("cannot access local variable
    'reader'") and puts that error last, where users look for the cause.
    """

    def __init__(self, error: PylogError) -> None:
        self._error = error

    @sentence_first
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        raise self._error

    @sentence_first
    def latestOffset(self, *_: Any) -> dict[str, Any]:  # noqa: N802 - Spark's name
        raise self._error

    @sentence_first
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        raise self._error

    @sentence_first
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error


def refusing_reader(error: PylogError) -> DataSourceStreamReader:
    """Give a reader that raises `error` as soon as Spark uses it."""
    return _Refusing(error)


def stream_reader(options: ReadOptions, source: RangeSource, release: Release | None = None) -> DataSourceStreamReader:
    """Give the reader that this version of Spark can drive."""
    made = _Reader42 if _admission is not None else _ReaderBefore42
    return made(options, source, release)


if _admission is not None:

    class _Reader42(_Reader, _admission.SupportsTriggerAvailableNow):  # type: ignore[name-defined]
        """For Spark 4.2 and later."""

        @sentence_first
        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 - Spark's name
            self._progress.show(start)  # Spark begins to plan a batch when the one before is committed.
            if isinstance(limit, _admission.ReadMaxRows):
                most = None if limit.max_rows == _NO_LIMIT else limit.max_rows
                return self._planner.latest(start, most, may_wait=True)
            return self._planner.latest(start, None, may_wait=False)

        def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
            """Give the limit that the options ask for; Spark replaces it by ReadAllAvailable for Trigger.Once.

            Spark has no limit that means "at least", and none in bytes. When these options are set, a limit that is never
            reached marks the calls in which they apply; in the others everything must be read.
            """
            options = self._options
            if options.max_offsets is not None:
                return _admission.ReadMaxRows(options.max_offsets)
            if any(
                limit is not None for limit in (options.min_offsets, options.trigger_records, options.trigger_bytes)
            ):
                return _admission.ReadMaxRows(_NO_LIMIT)
            return _admission.ReadAllAvailable()

        def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
            return self._planner.reported_latest()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
            self._planner.freeze()
