"""A table of Parquet files in folders by partition columns, with commits of our own in ``_pylog`` below it.

Spark writes a batch's files into a folder of the batch's own, where no reader looks. They are moved to their places, and then one commit
names them. What a crash leaves uncommitted no commit names, so readers of ours do not see it.

Small files are merged in the same way: one commit names the new file and no more the old ones, which stay for `KEEP`, since a frame that
was made before reads them. What is to go is written down in ``_pylog/removed`` before the commit.

Why not the metadata log of Spark's own file sink: it cannot be compacted without readers noticing, one query has it for itself, and it
does not say up to which offsets its files go.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from pylog_spark.lakehouse import commits
from pylog_spark.lakehouse.commits import State
from pylog_spark.lakehouse.files import Files, files_of
from pylog_spark.lakehouse.spec import TableSpec
from pylog_spark.lakehouse.values import struct_type
from pylog_spark.offsets.position import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OWN = "_pylog"
_COMMITS = f"{_OWN}/commits"
_STAGING = f"{_OWN}/staging"
_REMOVED = f"{_OWN}/removed"
#: How long files stay that no commit names any more; a load must not take as long between writing files and committing them.
KEEP = timedelta(days=1)
#: How long commits stay that are not needed any more to know the table: longer than a reader takes to read them.
_KEEP_COMMITS = timedelta(hours=1)
#: How often a loader removes what has been kept long enough.
_CLEAN_EVERY = timedelta(hours=1)


class ParquetTable:
    """See `pylog_spark.lakehouse.table.Table`.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    path : str
        The table's folder.
    files : Files or None
        Its files; None finds out where they are.
    """

    def __init__(self, spark: SparkSession, path: str, files: Files | None = None) -> None:
        self._spark = spark
        self._files = files or files_of(spark, path)
        self._known = State()
        self._next_clean_s = 0.0

    @property
    def checkpoint(self) -> str:
        return f"{self._files.root}/{_OWN}/checkpoint"

    def state(self) -> State:
        last = max(commits.numbers(self._files.names(_COMMITS)), default=-1)
        first = commits.first_needed(last)
        state = self._known
        if not first - 1 <= state.number <= last:
            state = State(first - 1)
        for number in range(state.number + 1, last + 1):
            state = state.after(self._files.read(f"{_COMMITS}/{commits.commit_name(number)}"))
        self._known = state
        return state

    def check(self, spec: TableSpec) -> None:
        """Parquet has all types and names that Spark has."""

    def publish(self) -> None:
        """The commits are all that there is."""

    def append(self, rows: DataFrame, before: State, spec: TableSpec, position: Position) -> bool:
        commit_id = uuid.uuid4().hex
        added = self._write(rows, spec, commit_id)
        if self._put(before, commits.commit_text(before, commit_id, position, spec, added)):
            return True
        for name in added:
            self._files.remove(name)
        return False

    def rows(self, state: State) -> DataFrame:
        return self._rows(state, sorted(state.files))

    def keep_up(self) -> None:
        for group in commits.alike_and_many(self.state().files, commits.TARGET_BYTES):
            self._merge(group)
        if time.monotonic() >= self._next_clean_s:
            self._next_clean_s = time.monotonic() + _CLEAN_EVERY.total_seconds()
            self.clean(KEEP)

    def compact(self) -> None:
        for group in commits.all_small(self.state().files, commits.TARGET_BYTES):
            self._merge(group)
        self.clean(KEEP)

    def clean(self, keep: timedelta) -> None:
        """Remove files that no commit has named for as long as `keep`, and commits that nobody needs."""
        state = self.state()
        now_ms = time.time_ns() // 1_000_000
        before_ms = now_ms - keep // timedelta(milliseconds=1)
        kept: set[str] = set()
        for name in self._files.names(_REMOVED):
            listed = json.loads(self._files.read(f"{_REMOVED}/{name}"))
            if listed["at"] > before_ms:
                kept.update(listed["files"])
                continue
            for file in listed["files"]:
                if file not in state.files:
                    self._files.remove(file)
            self._files.remove(f"{_REMOVED}/{name}")
        for name, _ in list(self._files.data_files("")):
            if name not in state.files and name not in kept and self._files.modified_ms(name) < before_ms:
                self._files.remove(name)
        for name in self._files.names(_STAGING):
            if self._files.modified_ms(f"{_STAGING}/{name}") < before_ms:
                self._files.remove(f"{_STAGING}/{name}")
        self._remove_commits(state, now_ms - _KEEP_COMMITS // timedelta(milliseconds=1))

    def _remove_commits(self, state: State, before_ms: int) -> None:
        for number in commits.numbers(self._files.names(_COMMITS)):
            name = f"{_COMMITS}/{commits.commit_name(number)}"
            if number < commits.first_needed(state.number) and self._files.modified_ms(name) < before_ms:
                self._files.remove(name)

    def _put(self, before: State, text: str) -> bool:
        return self._files.put_if_absent(f"{_COMMITS}/{commits.commit_name(before.number + 1)}", text)

    def _rows(self, state: State, names: Sequence[str]) -> DataFrame:
        assert state.spec is not None
        schema = struct_type(state.spec.table_schema)
        if not names:
            return self._spark.createDataFrame([], schema)
        reader = self._spark.read.schema(schema).option("basePath", self._files.root)
        return reader.parquet(*(f"{self._files.root}/{name}" for name in names)).select(*schema.names)

    def _write(self, rows: DataFrame, spec: TableSpec, commit_id: str) -> dict[str, int]:
        staging = f"{_STAGING}/{commit_id}"
        rows.write.partitionBy(*spec.partition_by).parquet(f"{self._files.root}/{staging}")
        added = {}
        for number, (name, size) in enumerate(sorted(self._files.data_files(staging))):
            folder, slash, _ = name.rpartition("/")
            added[target := f"{folder}{slash}{commit_id}-{number}.parquet"] = size
            self._files.move(f"{staging}/{name}", target)
        self._files.remove(staging)
        return added

    def _merge(self, names: Sequence[str]) -> None:
        """Let one file take the place of several; nothing happens when somebody else has merged one of them meanwhile."""
        commit_id = uuid.uuid4().hex
        before = self.state()
        spec = before.spec
        if spec is None or not set(names) <= before.files.keys():
            return
        # The columns of the folders come first: Spark sorts by them anew otherwise, and not in a stable way.
        record = [spec.prefix + name for name in ("topic", "partition", "offset")]
        order = [f"`{name}`" for name in (*spec.partition_by, *record)]
        added = self._write(self._rows(before, names).coalesce(1).sortWithinPartitions(*order), spec, commit_id)
        at_ms = time.time_ns() // 1_000_000
        note = f"{_REMOVED}/{commit_id}.json"
        self._files.put_if_absent(note, json.dumps({"at": at_ms, "files": list(names)}))
        while set(names) <= before.files.keys():
            if self._put(before, commits.commit_text(before, commit_id, before.position, spec, added, names)):
                return
            before = self.state()
            spec = before.spec or spec
        for name in (*added, note):
            self._files.remove(name)
