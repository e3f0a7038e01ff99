"""One task's reading: offset ranges of log partitions as Arrow batches. Runs in Spark's Python workers.

Fetching and decoding happen in native threads, started at the first pull and ended when the iterator is dropped; no
Python object is made per record.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from pylog_spark.archive.store.opening import of_reader, present
from pylog_spark.columns import READ_COLUMNS, arrow_schema, read_batches
from pylog_spark.errors import LOSS_KINDS, PylogError, from_native, native, translated
from pylog_spark.offsets.filters import RecordFilter
from pylog_spark.offsets.ranges import OffsetRange, in_words
from pylog_spark.options.read import RACK_VARIABLE
from pylog_spark.source.bad_records import BadRecords, BadTopic
from pylog_spark.source.loss import after_loss
from pylog_spark.source.origin import Archive, Origin, warn
from pylog_spark.spark.worker import acknowledge, freeze_imports
from pylog_spark.typed.readers import UNKNOWN_WRITERS, log_left_out

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RangeReader, TypedRead
    from pylog_spark.archive.store.opening import StoredLog
    from pylog_spark.typed.columns import TypedColumns


_log = logging.getLogger("pylog_spark")

#: Errors of what is in the records, wherever they are read.
_OF_RECORDS = frozenset({"PYLOG_BAD_RECORD", "PYLOG_REGISTRY_UNREACHABLE", "PYLOG_REGISTRY_REFUSED"})

#: A range and the id of its topic when the range was planned, or "" when the brokers have none.
PlannedRange = tuple[OffsetRange, str]


class RangePartition(InputPartition):
    """What one task reads, as Spark carries it to the task.

    Parameters
    ----------
    ranges : iterable of (OffsetRange, str)
        Ranges, read in this order, with the ids of their topics.
    archive : Archive or None
        Where some of them are read.
    archived : collection of int
        The places of those.
    """

    def __init__(
        self, ranges: Iterable[PlannedRange], archive: Archive | None = None, archived: Iterable[int] = ()
    ) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)
        self.archive = archive
        self.archived = frozenset(archived)


@dataclass(frozen=True)
class RangeSource:
    """How tasks read: plain values, pickled with the reader.

    Attributes
    ----------
    client : mapping of str to str
        Settings of the native client.
    columns : tuple of str
        Columns to build, in Spark's order; none in a typed read.
    nullable : mapping of str to bool
        Column -> whether Spark's schema lets it be null.
    batch_bytes : int
        Bytes at which an Arrow batch is complete.
    fail_on_data_loss : bool
        Whether it is an error that records vanished after the plan was made.
    wanted : RecordFilter
        Which records to read; the planner has cut the ranges by it already.
    limit : int or None
        Most rows of one task; None is no limit.
    rack : str
        The rack of this task, or ``env:`` and the environment variable of its process that holds it.
    local_reads : bool
        Whether records may come from the brokers' files, where this process sees them.
    typed : TypedColumns or None
        The columns of a typed read.
    bad : BadTopic or None
        Where its records go that do not parse.
    path : str or None
        The data directory or the archive that is read; None asks brokers.
    skip_damaged : bool
        Whether bytes of the directory or the archive that are no batches are left out, with a warning.
    cut : str or None
        Of the archive at `path` the cut that is read.
    """

    client: Mapping[str, str]
    columns: tuple[str, ...]
    nullable: Mapping[str, bool]
    batch_bytes: int
    fail_on_data_loss: bool
    wanted: RecordFilter = field(default_factory=RecordFilter)
    limit: int | None = None
    rack: str = ""
    local_reads: bool = False
    typed: TypedColumns | None = None
    bad: BadTopic | None = None
    path: str | None = None
    skip_damaged: bool = False
    cut: str | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the values in a task, which then waits for the range that it is to read."""
        self.__dict__.update(state)
        acknowledge()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the records of `partition`; none for the placeholder by which Spark says "no partitions"."""
        if not isinstance(partition, RangePartition):
            return
        typed = self.native_typed()
        bad = self.bad_records(typed, partition)
        for batch in self._rows(partition, typed):
            if bad is not None:
                bad.take()
            if batch.num_rows:
                yield batch
        if bad is not None:
            bad.finish()

    def _rows(self, partition: RangePartition, typed: TypedRead | None) -> Iterator[pa.RecordBatch]:
        rows_left = self.limit
        for is_archived, places in groupby(range(len(partition.ranges)), partition.archived.__contains__):
            left = [partition.ranges[place] for place in places]
            archive = partition.archive if is_archived else None
            found = (
                self._rows_at(self.path, left, typed, rows_left)
                if archive is None
                else self._archived_rows(archive, left, typed, rows_left)
            )
            for batch in found:
                rows_left = None if rows_left is None else rows_left - batch.num_rows
                yield batch

    def _archived_rows(
        self, archive: Archive, left: list[PlannedRange], typed: TypedRead | None, rows_left: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of ranges of an archive; what cannot be read in it is asked of the brokers, where they serve it."""
        if not archive.is_served:
            yield from self._rows_at(archive.url, left, typed, rows_left)
            return
        try:
            for batch in self._rows_at(archive.url, left, typed, rows_left, judges_loss=False):
                rows_left = None if rows_left is None else rows_left - batch.num_rows
                yield batch
            return
        except PylogError as error:
            if error.condition in _OF_RECORDS:
                raise
            ranges = in_words(part for part, _ in left)
            _log.warning("%s Brokers are asked for what is left: %s (archiveReads)", error.sentence, ranges)
        yield from self._rows_at(None, left, typed, rows_left)

    def _rows_at(
        self,
        location: str | None,
        left: list[PlannedRange],
        typed: TypedRead | None,
        rows_left: int | None,
        judges_loss: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of ranges that are at a directory or an archive, or at the brokers when `location` is None. When this raises, `left` is what was not
        read; records that are missing are an error, or passed over as `failOnDataLoss` says where it `judges_loss`."""
        absent = 0
        origin = Origin(self.client, location, self.skip_damaged, cut=self.cut)
        if not left:
            return
        with translated():
            stored = None if location is None else origin.stored(location)
            left[:] = [
                (OffsetRange(offsets.partition, *part), topic_id)
                for offsets, topic_id in left
                for part in present(stored, *offsets.partition, offsets.start, offsets.end)
            ]
        try:
            while left and rows_left != 0:
                reader = self._open(left, rows_left, typed, stored)
                try:
                    for batch in self._batches(reader):
                        rows_left = None if rows_left is None else rows_left - batch.num_rows
                        yield batch
                    return
                except _Lost as lost:
                    left[:] = _not_read(left[reader.range_index :], reader.next_offset)
                    if not judges_loss:
                        raise from_native(lost.kind, lost.message) from None
                    left[:] = self._after_loss(origin, left, lost)
                except _UnknownWriters:
                    left[:] = _not_read(left[reader.range_index :], reader.next_offset)
                    absent = self.look_up(typed, absent)
                except PylogError:
                    left[:] = _not_read(left[reader.range_index :], reader.next_offset)
                    raise
                finally:
                    reader.stop()
                    self._log_way(reader)
                    if stored is not None:
                        warn(stored)
        finally:
            log_left_out(typed)

    def native_typed(self) -> TypedRead | None:
        """Give what a native reader makes of keys and values; None where they stay bytes."""
        return self.typed.native(keeps_bad=self.bad is not None) if self.typed is not None else None

    def bad_records(
        self, typed: TypedRead | None, partition: RangePartition, client: Mapping[str, str] | None = None
    ) -> BadRecords | None:
        """Give what takes the bad records of a reader with `typed`, if they are kept; `client`: other settings than a task's."""
        if self.bad is None or typed is None:
            return None
        to = self.bad if client is None else replace(self.bad, client=client)
        return BadRecords(to, typed, {part.partition.topic: topic_id for part, topic_id in partition.ranges})

    def look_up(self, typed: TypedRead | None, absent: int) -> int:
        """Find the schemas of writers that a native reader has missed; how many ids were asked for in vain so far, and then."""
        assert self.typed is not None
        assert typed is not None
        return self.typed.look_up(typed, absent)

    def arrow_schema(self) -> pa.Schema:
        """Give the schema that Spark expects."""
        return self.typed.arrow_schema() if self.typed is not None else arrow_schema(self.columns, self.nullable)

    def record_columns(self) -> Mapping[str, str]:
        """Give the columns that show a record's as it is: their names -> the record's names. Without formats these are all, since a condition
        needs no column that is read."""
        return self.typed.of_record() if self.typed is not None else {name: name for name in READ_COLUMNS}

    def as_planned(self, batches: Iterable[Any]) -> list[pa.RecordBatch]:
        """Give batches of the native client (``__arrow_c_array__``) in the schema that Spark expects."""
        import pyarrow as pa

        schema = self.arrow_schema()
        return [pa.RecordBatch.from_arrays(pa.record_batch(batch).columns, schema=schema) for batch in batches]

    def _open(
        self, ranges: list[PlannedRange], limit: int | None, typed: TypedRead | None, stored: StoredLog | None
    ) -> RangeReader:
        (first, topic_id), *others = ranges
        with translated():
            return native().RangeReader(
                {} if stored else {**self.client, "client.rack": self._rack()},
                *first.partition,
                first.start,
                first.end,
                list(self.columns),
                topic_id=topic_id,
                batch_bytes=self.batch_bytes,
                then=[(*offsets.partition, offsets.start, offsets.end, other_id) for offsets, other_id in others],
                limit=limit,
                local_reads=self.local_reads,
                keep_connections=True,
                typed=typed,
                **of_reader(stored),
                **self.wanted.native(),
            )

    def _log_way(self, reader: RangeReader) -> None:
        """Say in the log of this process by which way records came, where there is more than one."""
        if self.local_reads:
            _log.debug(
                "read %d bytes of records from brokers' files and %d over the network, to which %d times was gone back (%s)",
                reader.bytes_local,
                reader.bytes_fetched,
                reader.fallbacks,
                reader.why_not_local or "nothing was doubtful",
            )

    def _rack(self) -> str:
        if self.rack.startswith(RACK_VARIABLE):
            return os.environ.get(self.rack.removeprefix(RACK_VARIABLE), "")
        return self.rack

    def _batches(self, reader: RangeReader) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        return read_batches(reader, self.arrow_schema(), _failure)

    def _after_loss(self, origin: Origin, left: list[PlannedRange], lost: _Lost) -> list[PlannedRange]:
        """Give what is left to read after `lost` happened in the first range of `left`. Raises `PylogError` when loss is an error."""
        (offsets, topic_id), *others = left
        span = (offsets.start, offsets.end)
        cause = (lost.kind, lost.message)
        rest = after_loss(origin, self.fail_on_data_loss, offsets.partition, span, topic_id, cause)
        return [(OffsetRange(offsets.partition, *rest), topic_id), *others] if rest else others


def _not_read(left: list[PlannedRange], next_offset: int) -> list[PlannedRange]:
    """The ranges of `left`, the first one from where its reader stopped: rows that were not handed out yet are read again."""
    (offsets, topic_id), *others = left
    return [(OffsetRange(offsets.partition, max(offsets.start, next_offset), offsets.end), topic_id), *others]


def _failure(kind: str, message: str) -> Exception:
    """What an error of a reader is raised as."""
    if kind == UNKNOWN_WRITERS:
        return _UnknownWriters()
    return _Lost(kind, message) if kind in LOSS_KINDS else from_native(kind, message)


class _UnknownWriters(Exception):
    """Records were written with schemas that are to be looked up."""


class _Lost(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message
