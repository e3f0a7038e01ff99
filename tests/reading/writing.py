"""Writes as Spark's driver and its tasks do them, in this process: the data source, its writer carried to tasks by pickle, their
messages carried back, commit or abort.
"""

from __future__ import annotations

import pickle
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from pylog_spark.datasource import PylogDataSource


class Place(Protocol):
    """Where rows go: `tests.spark.support.Topic` is one."""

    servers: str
    name: str


def rows(**columns: Any) -> pa.RecordBatch:
    """The rows of one task."""
    return pa.RecordBatch.from_pydict(columns)


def texts(*values: str) -> pa.RecordBatch:
    """The rows of one task, of values alone."""
    return rows(value=pa.array(values, pa.string()))


def save(place: Place, *tasks: pa.RecordBatch, **options: Any) -> None:
    """``df.write.format("pylog").mode("append").save()`` of a frame whose partitions are `tasks`.

    Parameters
    ----------
    place : Place
        Where to, unless `options` say another topic, or None for that of each row.
    *tasks : pyarrow.RecordBatch
        At least one, all with the same columns.
    **options
        Of the write.
    """
    given = {"kafka.bootstrap.servers": place.servers, "topic": place.name, **options}
    source = PylogDataSource({name: str(text) for name, text in given.items() if text is not None})
    writer: Any = source.writer(from_arrow_schema(tasks[0].schema), False)
    carried = pickle.dumps(writer)
    messages: list[Any] = [None] * len(tasks)
    try:
        for number, task in enumerate(tasks):
            messages[number] = _run(carried, number, task)
    except Exception:
        writer.abort(messages)
        raise
    writer.commit(messages)


def _run(carried: bytes, number: int, task: pa.RecordBatch) -> Any:
    # As pyspark's worker says which task it is.
    context = TaskContext._getOrCreate()
    context._partitionId = number
    try:
        return pickle.loads(pickle.dumps(pickle.loads(carried).write(iter([task]))))
    finally:
        TaskContext._setTaskContext(None)
