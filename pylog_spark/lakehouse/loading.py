"""``load`` and ``stream``: records of the log into a table, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from pylog_spark.errors import PylogError
from pylog_spark.lakehouse.commits import check_follows, furthest
from pylog_spark.lakehouse.files import Files, files_of
from pylog_spark.lakehouse.reading import start_at
from pylog_spark.lakehouse.spec import DATE, TableSpec
from pylog_spark.lakehouse.table import PARQUET, Table, table_of
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
    table_format: str = PARQUET,
    **options: object,
) -> None:
    """Load all that the log has now and the table lacks, and end: for a job that runs by a schedule.

    Parameters and errors are those of `stream`. A job that died is run again, and goes on.
    """
    query = stream(
        spark,
        path,
        schema=schema,
        partition_by=partition_by,
        record_prefix=record_prefix,
        table_format=table_format,
        trigger={"availableNow": True},
        **options,
    )
    query.awaitTermination()


def compact(spark: SparkSession, path: str, *, table_format: str = PARQUET) -> None:
    """Merge all small files of a table into few, and remove files that no reader needs any more.

    Readers and a running load go on undisturbed. A load merges files itself when there are many small ones, so this is for a job by
    night, say.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    path : str
        The table, as in `stream`.
    table_format : str
        As in `stream`.
    """
    table_of(spark, path, table_format).compact()


def stream(
    spark: SparkSession,
    path: str,
    *,
    schema: str | StructType | None = None,
    partition_by: Sequence[str] = (DATE,),
    record_prefix: str = "",
    table_format: str = PARQUET,
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
    table_format : str
        ``parquet``, or ``delta``: the same files with a Delta log beside them, for other engines to read. It needs the package deltalake
        on the driver, and a local folder.
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
    table = table_of(spark, path, table_format)
    state = table.state()
    asked = TableSpec(schema_of(schema), tuple(partition_by), record_prefix)
    spec = asked if state.spec is None else state.spec.merged(asked)
    table.check(spec)
    table.publish()
    given = {name: text for name, text in options.items() if text is not None}
    if state.spec is not None:
        given = {name: text for name, text in given.items() if name.lower() not in _STARTS}
        given["startingOffsets"] = start_at(state.position, given)
    elif not any(name.lower() in _STARTS for name in given):
        given["startingOffsets"] = "earliest"
    records = spark.readStream.format("pylog").options(**given).load()  # type: ignore[arg-type]
    writer = records.writeStream.foreachBatch(_writer(spark, table, spec)).option(
        "checkpointLocation", table.checkpoint
    )
    return (writer.trigger(**trigger) if trigger else writer).start()


def _writer(spark: SparkSession, table: Table, asked: TableSpec) -> Callable[[DataFrame, int], None]:
    """Give the function that takes each micro-batch."""
    checkpoint = files_of(spark, table.checkpoint)

    def write(records: DataFrame, batch_id: int) -> None:
        end = _position(checkpoint, batch_id)
        start = _position(checkpoint, batch_id - 1) if batch_id > 0 else None
        while True:
            state = table.state()
            check_follows(state.position, start, end)
            if all(offset <= state.position.offsets.get(partition, -1) for partition, offset in end.offsets.items()):
                return
            spec = asked if state.spec is None else state.spec.merged(asked)
            new = records.where(_behind(state.position)) if _overlaps(state.position, start) else records
            if table.append(rows_of(new, spec), state, spec, furthest(state.position, end)):
                table.publish()
                table.keep_up()
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


def _position(checkpoint: Files, batch_id: int) -> Position:
    """The end of a micro-batch, as Spark wrote it into the query's checkpoint before it ran the batch."""
    text = checkpoint.read(f"offsets/{batch_id}")
    try:
        return Position.from_document(json.loads(text.splitlines()[-1]))
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_CHECKPOINT", f"Micro-batch {batch_id} of {checkpoint.root}: {error}.") from None
