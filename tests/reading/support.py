"""Reading as Spark's planner and workers do it, in this process: the data source, its reader, its tasks, without a session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pylog_spark.datasource import PylogDataSource
from tests.harness.brokers import BOTH
from tests.spark.support import Topic

#: Mark of a file whose tests run on pylog and on Apache Kafka.
EITHER = pytest.mark.parametrize("bootstrap", BOTH, indirect=True)

_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def schema(*columns: str) -> StructType:
    """The schema of a read of `columns`, or of all."""
    return StructType([StructField(name, {**_TYPES, "headers": _HEADERS}[name]) for name in columns or _TYPES])


def reader(topic: Topic, *columns: str, **options: Any) -> Any:
    """The batch reader that Spark's planner would make."""
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name}
    texts = {name: str(text) for name, text in options.items()}
    return PylogDataSource({**given, **texts}).reader(schema(*columns))


def batches(made: Any) -> list[pa.RecordBatch]:
    """What all its tasks give, one task after the other."""
    return [batch for task in made.partitions() for batch in made.read(task)]


def values(topic: Topic, made: Any = None, **options: Any) -> list[str]:
    """The values of a batch read, by a reader that is `made` already or as `options` say, in the order of its tasks."""
    found = batches(made or reader(topic, "value", **options))
    return [value.decode() for batch in found for value in batch.column("value").to_pylist()]


def tasks(topic: Topic, **options: Any) -> int:
    """How many tasks a batch read has."""
    return len(reader(topic, "value", **options).partitions())


def fetched(topic: Topic, monkeypatch: pytest.MonkeyPatch, made: Any = None, **options: Any) -> tuple[list[str], int]:
    """`values` of a batch read, and the bytes of records that the brokers sent for it."""
    import pylog_spark._native as native

    sent: list[int] = []
    real = native.RangeReader

    class Counting:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._reader = real(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reader, name)

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return self._reader.__arrow_c_stream__(requested_schema)

        def stop(self) -> None:
            sent.append(self._reader.bytes_fetched)
            self._reader.stop()

    with monkeypatch.context() as patch:
        patch.setattr(native, "RangeReader", Counting)
        return values(topic, made, localReads="never", **options), sum(sent)
