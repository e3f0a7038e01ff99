"""Frames of Arrow as records with encoded keys and values: what a typed write of the data source makes, without Spark. Pure but for the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pylog_spark.client.errors import LogError
from pylog_spark.client.typed import FormatOptions, formats_of, in_pythons_words

if TYPE_CHECKING:
    import pyarrow as pa


def encoder(schema: pa.Schema, topic: str, given: FormatOptions) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Give what makes records of the batches of a frame.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the frame.
    topic : str
        The topic, for the subjects of a registry.
    given : FormatOptions
        How keys and values are encoded.

    Raises
    ------
    LogError
        A column is missing, has a type that cannot be written, or an option has no meaning or cannot be used.
    """
    import pyarrow as pa

    from pylog_spark.options import WRITE
    from pylog_spark.typed.types import of_arrow
    from pylog_spark.typed.writing import typed_write

    if given.get("schema") is not None:
        raise LogError(
            "PYLOG_INVALID_OPTION",
            "schema has no meaning in a write, which has the columns of the frame; leave it out.",
        )
    with in_pythons_words():
        said = formats_of(given, WRITE)
        plain = pa.schema([field.with_type(_plain(field.type)) for field in schema])
        columns, write = typed_write(of_arrow(plain), topic, said)

    def records(batch: pa.RecordBatch) -> pa.RecordBatch:
        with in_pythons_words():
            try:
                return write.records(batch.cast(plain), columns)
            except pa.ArrowInvalid as error:
                raise LogError("PYLOG_INVALID_SCHEMA", f"A column cannot be written: {error}.") from None

    return records


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that typed columns have for values of this one, where there is another: pandas, polars and duckdb each have their own."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind.fields])
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), kind.item_field.with_type(_plain(kind.item_type)))
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_date(kind):
        return pa.date32()
    if types.is_duration(kind):
        return pa.duration("us")
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.float16(): pa.float32()}
    return wider.get(kind, kind)
