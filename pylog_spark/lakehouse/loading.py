"""``load`` and ``stream``: records of the log into a table, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from pylog_spark.errors import PylogError
from pylog_spark.lakehouse.commits import check_follows, furthest
from pylog_spark.lakehouse.parquet import ParquetTable
from pylog_spark.lakehouse.reading import start_at
from pylog_spark.lakehouse.spec import DATE, TableSpec
from pylog_spark.lakehouse.values import rows_of, schema_of
from pylog_spark.offsets.position import Position

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

#: Options that say where a load begins. A table that has rows goes on where it ends.
_STARTS = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy")


def load(
    spark: SparkSession,
    path: str,
    *,
    schema: str | StructType | None = None,
    partition_by: Sequence[str] = (DATE,),
    record_prefix: str = "",
    **options: object,
) -> None:
    """Load all that the log has now and the table lacks, and end: for a job that runs by a schedule.

    Parameters and errors are those of `stream`. A job that died is run again, and goes on.
    """
    given = {"schema": schema, "partition_by": partition_by, "record_prefix": record_prefix}
    stream(spark, path, trigger={"availableNow": True}, **given, **options).awaitTermination()  # type: ignore[arg-type]


def stream(
    spark: SparkSession,
    path: str,
    *,
    schema: str | StructType | None = None,
    partition_by: Sequence[str] = (DATE,),
    record_prefix: str = "",
    trigger: Mapping[str, Any] | None = None,
    **options: object,
) -> StreamingQuery:
    """Start a query that keeps a table of Parquet files up to date with topics.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    path : str
        The table's folder. The query's checkpoint is in it, too.
    schema : str or StructType, optional
        The columns of the value, which is JSON. None keeps its bytes as a column ``value``. What a later schema has besides is added to
        the table; a column may not change its type.
    partition_by : sequence of str
        Columns by which the files lie in folders. ``date`` is the day of the record's timestamp (UTC), unless the value has such a column.
    record_prefix : str
        Before the names of the record's columns: topic, partition, offset, timestamp, key.
    trigger : mapping, optional
        As in ``DataStreamWriter.trigger``: ``{"processingTime": "1 second"}``.
    **options
        Options of ``format("pylog")``; those with dots in their names as ``**{"kafka.bootstrap.servers": "..."}``. Where the first load
        begins is said by ``startingOffsets`` and the like, by default the beginning of the log.

    Raises
    ------
    PylogError
        ``PYLOG_INVALID_SCHEMA`` when `schema` does not fit the table's.
    """
    table = ParquetTable(path)
    state = table.state()
    asked = TableSpec(schema_of(schema), tuple(partition_by), record_prefix)
    spec = asked if state.spec is None else state.spec.merged(asked)
    given = {name: text for name, text in options.items() if text is not None}
    if state.spec is not None:
        given = {name: text for name, text in given.items() if name.lower() not in _STARTS}
        given["startingOffsets"] = start_at(state.position, given)
    elif not any(name.lower() in _STARTS for name in given):
        given["startingOffsets"] = "earliest"
    records = spark.readStream.format("pylog").options(**given).load()  # type: ignore[arg-type]
    writer = records.writeStream.foreachBatch(_writer(table, spec)).option("checkpointLocation", table.checkpoint)
    return (writer.trigger(**trigger) if trigger else writer).start()


def _writer(table: ParquetTable, asked: TableSpec) -> Callable[[DataFrame, int], None]:
    """Give the function that takes each micro-batch."""

    def write(records: DataFrame, batch_id: int) -> None:
        end = _position(table.checkpoint, batch_id)
        start = _position(table.checkpoint, batch_id - 1) if batch_id > 0 else None
        while True:
            state = table.state()
            check_follows(state.position, start, end)
            if all(offset <= state.position.offsets.get(partition, -1) for partition, offset in end.offsets.items()):
                return
            spec = asked if state.spec is None else state.spec.merged(asked)
            new = records.where(_behind(state.position)) if _overlaps(state.position, start) else records
            if table.append(rows_of(new, spec), state, spec, furthest(state.position, end)):
                return

    return write


def _overlaps(table: Position, start: Position | None) -> bool:
    """Whether a micro-batch that begins at `start` may have records that the table has."""
    return start is None or any(table.offsets.get(partition, 0) > offset for partition, offset in start.offsets.items())


def _behind(table: Position) -> Column:
    """The condition that a record is not in the table."""
    has = (
        (sf.col("topic") == partition.topic)
        & (sf.col("partition") == partition.partition)
        & (sf.col("offset") < offset)
        for partition, offset in table.offsets.items()
    )
    return ~reduce(lambda one, other: one | other, has, sf.lit(False))


def _position(checkpoint: str, batch_id: int) -> Position:
    """The end of a micro-batch, as Spark wrote it into the query's checkpoint before it ran the batch."""
    text = Path(checkpoint, "offsets", str(batch_id)).read_text()
    try:
        return Position.from_document(json.loads(text.splitlines()[-1]))
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_CHECKPOINT", f"Micro-batch {batch_id} of {checkpoint}: {error}.") from None
