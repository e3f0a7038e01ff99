"""A table of Parquet files with a Delta log beside it, so that every engine that reads Delta reads the same rows, each once.

The commits of our own stay what counts. `publish` brings them into ``_delta_log``, one Delta commit for each, in their order:

    {"txn": {"appId": "pylog", "version": <number of the commit>}}, {"add": ...}, {"remove": ...}

Of two processes that publish the same commit one is refused by the ``txn`` (Delta's protocol, "Transaction Identifiers"), and whoever died between
both logs is made up for by the next load. So Delta's readers may be one commit behind for a moment, and never see a row twice.

Nobody else may write to the table: what another engine rewrote would come a second time. `publish` compares the files that Delta has with
those that it should have, and refuses a table that was changed. Written by the package deltalake (delta-rs), for local folders.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pylog_spark.errors import PylogError
from pylog_spark.lakehouse import commits
from pylog_spark.lakehouse.commits import State
from pylog_spark.lakehouse.files import Files, LocalFiles
from pylog_spark.lakehouse.parquet import ParquetTable
from pylog_spark.lakehouse.spec import TableSpec

if TYPE_CHECKING:
    import deltalake
    from pyspark.sql import SparkSession

APP_ID = "pylog"
#: How often a commit is tried again that met another process publishing; each time that one has got on.
_TRIES = 20
_NULL = "__HIVE_DEFAULT_PARTITION__"
#: Types of Spark, besides decimals, that every version of Delta has.
_TYPES = frozenset(
    ["string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp"]
)
#: What Delta cannot have in a column's name without column mapping.
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")


class DeltaTable(ParquetTable):
    """See `pylog_spark.lakehouse.table.Table`.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    path : str
        The table's folder, on this machine.
    files : Files or None
        Its files; None finds out where they are.

    Raises
    ------
    PylogError
        ``PYLOG_INVALID_OPTION`` without deltalake; ``PYLOG_INVALID_OPTION`` when the folder is not a local one.
    """

    def __init__(self, spark: SparkSession, path: str, files: Files | None = None) -> None:
        super().__init__(spark, path, files)
        _delta()
        if not isinstance(self._files, LocalFiles):
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"A Delta table must lie in a folder of this machine, and {path} does not; load it with table_format='parquet'.",
            )

    def check(self, spec: TableSpec) -> None:
        _schema(spec)

    def keep_up(self) -> None:
        super().keep_up()
        self.publish()

    def clean(self, keep: timedelta) -> None:
        # What is removed must not be named by the Delta log any more.
        self.publish()
        super().clean(keep)

    def publish(self) -> None:
        for _ in range(_TRIES):
            if self._publish_all():
                return
        raise PylogError(
            "PYLOG_TABLE_STATE",
            f"{_TRIES} attempts to write to the Delta log of {self._files.root} met others that did, too; load again.",
        )

    def _publish_all(self) -> bool:
        """Publish what is to be published; whether nobody else did at the same time."""
        delta, state = _delta(), self.state()
        if state.spec is None:
            return True
        if not delta.DeltaTable.is_deltatable(self._files.root):
            return self._create(state)
        there = delta.DeltaTable(self._files.root)
        number = self._published(there)
        return all(self._step(there, before, after) for before, after in self._steps(number, state))

    def _steps(self, number: int, last: State) -> Iterator[tuple[State, State]]:
        """What Delta lacks after a commit: states, each with the one before it. One step of all when commits between are gone."""
        before = self._state_after(number)
        while before.number < last.number:
            try:
                after = before.after(self._files.read(_path(before.number + 1)))
            except FileNotFoundError:
                after = last
            yield before, after
            before = after

    def _state_after(self, number: int) -> State:
        """The state after a commit of before; with `known` of it no more than its number, where commits are gone."""
        state = State(commits.first_needed(number) - 1)
        try:
            while state.number < number:
                state = state.after(self._files.read(_path(state.number + 1)))
        except FileNotFoundError:
            return State(number)
        return state

    def _create(self, state: State) -> bool:
        delta = _delta()
        assert state.spec is not None
        try:
            delta.transaction.create_table_with_add_actions(
                self._files.root,
                _schema(state.spec),
                [self._add(name, size, state.spec, is_new=True) for name, size in sorted(state.files.items())],
                partition_by=list(state.spec.partition_by),
                commit_properties=_properties(state.number),
            )
        except delta.exceptions.DeltaError:
            if delta.DeltaTable.is_deltatable(self._files.root):
                return False
            raise
        return True

    def _step(self, there: deltalake.DeltaTable, before: State, after: State) -> bool:
        delta = _delta()
        assert after.spec is not None
        had = _files(there) if before.spec is None else before.files
        # A merge changes no row, and who follows the Delta log need not look at it.
        is_new = before.spec is None or before.position != after.position
        added = [
            self._add(name, size, after.spec, is_new=is_new)
            for name, size in sorted(after.files.items())
            if name not in had
        ]
        at_ms = time.time_ns() // 1_000_000
        gone = [
            delta.transaction.RemoveAction(name, is_new, at_ms, size, _partition(name, after.spec.partition_by))
            for name, size in sorted(had.items())
            if name not in after.files
        ]
        schema = _schema(after.spec)
        try:
            _widen(there, schema)
            there.create_write_transaction(
                [*added, *gone],
                "append",
                schema,
                list(after.spec.partition_by),
                commit_properties=_properties(after.number),
            )
        except delta.exceptions.CommitFailedError:
            return False
        there.update_incremental()
        return True

    def _add(self, name: str, size: int, spec: TableSpec, *, is_new: bool) -> deltalake.transaction.AddAction:
        import pyarrow.parquet as pq

        path = f"{self._files.root}/{name}"
        action: deltalake.transaction.AddAction = _delta().transaction.AddAction(
            name,
            size,
            _partition(name, spec.partition_by),
            int(os.stat(path).st_mtime_ns // 1_000_000),
            is_new,
            json.dumps({"numRecords": pq.read_metadata(path).num_rows}),
        )
        return action

    def _published(self, there: deltalake.DeltaTable) -> int:
        """The number of the last commit that the Delta log has.

        Raises
        ------
        PylogError
            ``PYLOG_TABLE_STATE`` when its files are not those of that commit.
        """
        number = there.transaction_version(APP_ID)
        if number is not None:
            expected = self._state_after(number)
            if expected.spec is None or _files(there).keys() == expected.files.keys():
                return int(number)
        raise PylogError(
            "PYLOG_TABLE_STATE",
            f"The Delta table {self._files.root} was changed by something else than pylog (its version is {there.version()}), so rows could "
            "be doubled or lost; undo that change, with RESTORE for example, or load into another table.",
        )


def _path(number: int) -> str:
    return f"_pylog/commits/{commits.commit_name(number)}"


def _delta() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
        import deltalake.transaction
    except ImportError:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            'A Delta table needs the package deltalake; install it on the driver: pip install "pylog-spark[delta]".',
        ) from None
    return deltalake


def _properties(number: int) -> deltalake.CommitProperties:
    delta = _delta()
    properties: deltalake.CommitProperties = delta.CommitProperties(
        app_transactions=[delta.transaction.Transaction(APP_ID, number)]
    )
    return properties


def _schema(spec: TableSpec) -> deltalake.Schema:
    names = [str(field["name"]) for field in spec.table_schema["fields"]]
    wrong = [name for name in names if _NOT_IN_NAMES & set(name)]
    if wrong:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"Delta allows no space and none of ,;{{}}()= in the name of a column, which {wrong[0]!r} has; give it another name.",
        )
    for name, field in zip(names, spec.table_schema["fields"], strict=True):
        for kind in _simple_types(field["type"]):
            if kind not in _TYPES and not kind.startswith("decimal"):
                raise PylogError(
                    "PYLOG_INVALID_SCHEMA",
                    f"A Delta table has no type {kind}, which the column {name} has; take another type.",
                )
    schema: deltalake.Schema = _delta().Schema.from_json(json.dumps(spec.table_schema))
    return schema


def _simple_types(kind: Any) -> Iterator[str]:
    """The types of Spark that a type is made of."""
    if not isinstance(kind, Mapping):
        yield str(kind)
        return
    inner = [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    for each in (*inner, *(field["type"] for field in kind.get("fields", []))):
        yield from _simple_types(each)


def _widen(there: deltalake.DeltaTable, schema: deltalake.Schema) -> None:
    """Add the columns that the Delta table lacks, also inside of structs."""
    has = {field.name: field for field in there.schema().fields}
    new = [field for field in schema.fields if has.get(field.name) != field]
    if new:
        there.alter.add_columns(new)
        there.update_incremental()


def _files(there: deltalake.DeltaTable) -> dict[str, int]:
    """The files that the Delta table has, and their sizes."""
    import pyarrow as pa

    actions = pa.table(there.get_add_actions(flatten=True))
    paths, sizes = actions["path"].to_pylist(), actions["size_bytes"].to_pylist()
    return {unquote(path): size for path, size in zip(paths, sizes, strict=True)}


def _partition(name: str, columns: tuple[str, ...]) -> Mapping[str, str | None]:
    """The values of the partition columns, by the folders that a file is in."""
    folders = name.split("/")[:-1]
    values = [unquote(folder.partition("=")[2]) for folder in folders]
    return {column: None if value == _NULL else value for column, value in zip(columns, values, strict=True)}
