"""What a table is for loading and reading, whatever its format, and which formats there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pylog_spark.errors import PylogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pylog_spark.lakehouse.commits import State
    from pylog_spark.lakehouse.spec import TableSpec
    from pylog_spark.offsets.position import Position

PARQUET = "parquet"
DELTA = "delta"
FORMATS = (PARQUET, DELTA)


class Table(Protocol):
    """One table; made anew where it is needed, since its state is where its rows are."""

    @property
    def checkpoint(self) -> str:
        """Where the checkpoint of the query lies that loads the table."""

    def state(self) -> State:
        """Give what the table is now."""

    def check(self, spec: TableSpec) -> None:
        """Check that the table can have such rows. Raises PylogError, ``PYLOG_INVALID_SCHEMA``."""

    def append(self, rows: DataFrame, before: State, spec: TableSpec, position: Position) -> bool:
        """Add rows, after which the table goes up to `position`; whether that was done. It was not when somebody else committed since
        `before`."""

    def publish(self) -> None:
        """Let readers of the table's format see what is committed, if they do not look at our commits."""

    def rows(self, state: State) -> DataFrame:
        """Give the rows of the table in `state`."""

    def keep_up(self) -> None:
        """Do what a loader does for the table after each of its commits."""

    def compact(self) -> None:
        """Merge all small files, and remove those that nobody needs any more."""


def table_of(spark: SparkSession, path: str, table_format: str) -> Table:
    """Give a table.

    Raises
    ------
    PylogError
        ``PYLOG_INVALID_OPTION`` when there is no such format, or it is not to be had here.
    """
    if table_format == PARQUET:
        from pylog_spark.lakehouse.parquet import ParquetTable

        return ParquetTable(spark, path)
    if table_format == DELTA:
        from pylog_spark.lakehouse.delta import DeltaTable

        return DeltaTable(spark, path)
    raise PylogError("PYLOG_INVALID_OPTION", f"table_format is {' or '.join(FORMATS)}, not {table_format!r}.")
