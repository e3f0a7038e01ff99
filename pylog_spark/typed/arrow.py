"""Spark's types as the Arrow types that Spark expects for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog_spark.errors import PylogError

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark.typed.types import DataType, StructField


def arrow_field(field: StructField, *, is_wide: bool = False) -> pa.Field:
    """Give the Arrow field of a column.

    Parameters
    ----------
    field : StructField
        Spark's.
    is_wide : bool
        Whether maps may have any keys, and whether there are intervals.

    Raises
    ------
    PylogError
        Its type is none that typed reads and writes know.
    """
    return _part(field.name, arrow_type(field.dataType, field.name, is_wide=is_wide), field.nullable)


def arrow_type(kind: DataType, column: str, *, is_wide: bool = False) -> pa.DataType:
    """Give the Arrow type of a Spark type; `column` is named in an error, `is_wide` as in `arrow_field`."""
    import pyarrow as pa

    scalars: dict[str, Any] = {
        "void": pa.null(),
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    parts: Any = kind
    name = kind.typeName()
    if name == "decimal":
        return pa.decimal128(parts.precision, parts.scale)
    if name == "array":
        return pa.list_(_part("element", arrow_type(parts.elementType, column, is_wide=is_wide), parts.containsNull))
    if name == "map" and (is_wide or parts.keyType.simpleString() == "string"):
        value = _part("value", arrow_type(parts.valueType, column, is_wide=is_wide), parts.valueContainsNull)
        return pa.map_(arrow_type(parts.keyType, column), value)
    if name == "struct":
        return pa.struct([arrow_field(field, is_wide=is_wide) for field in parts.fields])
    if is_wide and name == "daytimeinterval":
        return pa.duration("us")
    found = scalars.get(kind.simpleString())
    if found is None:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"The column {column} has the type {kind.simpleString().upper()} in it, which typed columns cannot have; read it as "
            "STRING (in JSON any value can be one) and convert it after load().",
        )
    return found


def _part(name: str, kind: pa.DataType, nullable: bool) -> pa.Field:
    """A field; one of nulls can have nothing else, whatever Spark says of an empty list's items."""
    import pyarrow as pa

    return pa.field(name, kind, nullable or kind == pa.null())
