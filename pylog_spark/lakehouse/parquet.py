"""A table of Parquet files in folders by partition columns, with commits of our own in ``_pylog`` below it.

Spark writes a batch's files into a folder of the batch's own, where no reader looks. They are moved to their places, and then one commit
names them. What a crash leaves uncommitted no commit names, so readers of ours do not see it.

Why not the metadata log of Spark's own file sink: it cannot be compacted without readers noticing, one query has it for itself, and it
does not say up to which offsets its files go.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pylog_spark.lakehouse import commits
from pylog_spark.lakehouse.commits import State
from pylog_spark.lakehouse.files import files_of
from pylog_spark.lakehouse.spec import TableSpec
from pylog_spark.lakehouse.values import struct_type
from pylog_spark.offsets.position import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OWN = "_pylog"
_COMMITS = f"{_OWN}/commits"
_STAGING = f"{_OWN}/staging"


class ParquetTable:
    """One table; made anew where it is needed, since its state is in its folder.

    Parameters
    ----------
    path : str
        The table's folder.
    """

    def __init__(self, path: str) -> None:
        self._files = files_of(path)
        self.path = str(self._files.root)

    @property
    def checkpoint(self) -> str:
        """Where the checkpoint of the query lies that loads the table."""
        return f"{self.path}/{_OWN}/checkpoint"

    def state(self) -> State:
        """Give what the table is now."""
        found = commits.numbers(self._files.names(_COMMITS))
        if not found:
            return State()
        first = commits.first_needed(found[-1])
        state = State(first - 1)
        for number in range(first, found[-1] + 1):
            state = state.after(self._files.read(f"{_COMMITS}/{commits.commit_name(number)}"))
        return state

    def append(self, rows: DataFrame, before: State, spec: TableSpec, position: Position) -> bool:
        """Add rows, after which the table goes up to `position`; whether that was done. It was not when somebody else committed since
        `before`."""
        commit_id = uuid.uuid4().hex
        added = self._write(rows, spec, commit_id)
        text = commits.commit_text(before, commit_id, position, spec, added)
        if self._files.put_if_absent(f"{_COMMITS}/{commits.commit_name(before.number + 1)}", text):
            return True
        for name in added:
            self._files.remove(name)
        return False

    def rows(self, spark: SparkSession, state: State, spec: TableSpec) -> DataFrame:
        """Give the rows of the table in `state`, as `spec` has them."""
        schema = struct_type(spec.table_schema)
        if not state.files:
            return spark.createDataFrame([], schema)
        reader = spark.read.schema(schema).option("basePath", self.path)
        return reader.parquet(*(f"{self.path}/{name}" for name in sorted(state.files))).select(*schema.names)

    def _write(self, rows: DataFrame, spec: TableSpec, commit_id: str) -> dict[str, int]:
        staging = f"{_STAGING}/{commit_id}"
        rows.write.partitionBy(*spec.partition_by).parquet(f"{self.path}/{staging}")
        added = {}
        for number, (name, size) in enumerate(sorted(self._files.data_files(staging))):
            folder, slash, _ = name.rpartition("/")
            added[target := f"{folder}{slash}{commit_id}-{number}.parquet"] = size
            self._files.move(f"{staging}/{name}", target)
        self._files.remove_tree(staging)
        return added
