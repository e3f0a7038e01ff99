"""The columns that a record is read as: those of Spark's Kafka connector, with their types in Spark and in Arrow, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RangeReader

HEADERS_DDL = "array<struct<key:string,value:binary>>"

#: Columns of a read, in order, with their Spark types in DDL.
READ_COLUMNS: dict[str, str] = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": HEADERS_DDL,
}


def arrow_schema(columns: Sequence[str], nullable: Mapping[str, bool]) -> pa.Schema:
    """Give the Arrow schema that Spark expects for `columns`: it compares names, types and nullability exactly."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    types: dict[str, Any] = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.field("element", header)),
    }
    return pa.schema([pa.field(name, types[name], nullable.get(name, True)) for name in columns])


def read_batches(
    reader: RangeReader, schema: pa.Schema, error_of: Callable[[str, str], Exception]
) -> Iterator[pa.RecordBatch]:
    """Give the batches of a native reader in `schema`; its error is raised as what `error_of` makes of kind and message."""
    import pyarrow as pa

    stream = pa.RecordBatchReader.from_stream(reader)
    while True:
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            return
        except Exception:
            if reader.error is None:
                raise
            # pyarrow's exception says the same with less.
            raise error_of(*reader.error) from None
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
