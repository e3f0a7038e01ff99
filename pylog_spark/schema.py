"""The columns of a record, for reading and for writing: those of Spark's Kafka connector.

Types are compared by their JSON form, which is the same in every Spark version; pyspark is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pylog_spark.columns import HEADERS_DDL, READ_COLUMNS
from pylog_spark.errors import PylogError, native

if TYPE_CHECKING:
    from pylog_spark.typed.types import StructField, StructType

#: Columns of a write with the types that each may have. Other columns are not written, as by Spark's Kafka connector.
WRITE_COLUMNS: dict[str, tuple[str, ...]] = {
    "value": ("binary", "string"),
    "key": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int", "bigint", "smallint", "tinyint"),
    "headers": (HEADERS_DDL, "array<struct<key:string,value:string>>"),
    "timestamp": ("timestamp",),
}


def read_ddl(include_headers: bool) -> str:
    """Give the schema of a read as DDL."""
    names = [name for name in READ_COLUMNS if include_headers or name != "headers"]
    return ", ".join(f"{name} {READ_COLUMNS[name]}" for name in names)


def read_columns(schema: StructType) -> tuple[str, ...]:
    """Check the schema that a read is asked for (the user's, by ``.schema()``, or ours) and give its column names.

    Raises
    ------
    PylogError
        A column is none that a record has, or has another type.
    """
    if not schema.fields:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA", f"The schema of a read must name at least one column of {', '.join(READ_COLUMNS)}."
        )
    for field in schema.fields:
        if field.name not in READ_COLUMNS:
            raise PylogError("PYLOG_INVALID_SCHEMA", _unknown_column(field.name))
        check_record_column(field, field.name, "cast after load()")
    return tuple(field.name for field in schema.fields)


def check_record_column(field: StructField, name: str, otherwise: str) -> None:
    """Check that `field` has the type of the record's column `name`; `otherwise` is what to do besides giving it that type."""
    wanted = READ_COLUMNS[name]
    if field.dataType.simpleString() != wanted or not _as_declared(field, name):
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"The column {field.name} of a read is {wanted.upper()}, not {field.dataType.simpleString().upper()}; "
            f"give .schema() that type and {otherwise}.",
        )


def write_columns(schema: StructType, topic: str | None) -> dict[str, str]:
    """Check the columns of a frame to be written and give those that make a record: the record's name -> the frame's.

    Names are case-insensitive (``VALUE``), as in Spark; when a frame has several such columns, the one in the record's spelling is taken.

    Parameters
    ----------
    schema : StructType
        Of the frame.
    topic : str or None
        The option `topic`; with it the column is not needed.

    Raises
    ------
    PylogError
        `value` or the topic is missing, or a column has a type that a record cannot have.
    """
    given = {field.name.lower(): field for field in schema.fields} | {field.name: field for field in schema.fields}
    names = {name: given[name].name for name in WRITE_COLUMNS if name in given}
    if "value" not in names:
        frame = [field.name for field in schema.fields]
        near = native().nearest("value", frame)
        hint = f" (rename {near}?)" if near is not None else ""
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"A write needs a column value of type STRING or BINARY and the frame has only {', '.join(frame) or 'none'}"
            f"{hint}; for example df.selectExpr('to_json(struct(*)) AS value').",
        )
    if topic is None and "topic" not in names:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA", "A write needs a topic: give the option topic or a column topic of type STRING."
        )
    check_write_types({name: given[name] for name in names}, WRITE_COLUMNS)
    if topic is not None:
        names.pop("topic", None)
    return names


def check_write_types(fields: Mapping[str, StructField], accepted: Mapping[str, Sequence[str]]) -> None:
    """Check that the fields of a record (by the record's names) have types that can be written.

    Parameters
    ----------
    fields : mapping of str to StructField
        The frame's fields.
    accepted : mapping of str to sequence of str
        The types of each, as Spark writes them; ``struct`` is any struct.
    """
    for name, field in fields.items():
        if not {field.dataType.simpleString(), field.dataType.typeName()} & set(accepted[name]):
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The column {field.name} must be {' or '.join(word.upper() for word in accepted[name])} to be written, not "
                f"{field.dataType.simpleString().upper()}; cast or drop it.",
            )


def _as_declared(field: Any, name: str) -> bool:
    """Whether the parts of a headers column are nullable, as they are declared."""
    if name != "headers":
        return True
    array = field.dataType
    return bool(array.containsNull and all(part.nullable for part in array.elementType.fields))


def _unknown_column(name: str) -> str:
    columns = {known.lower(): known for known in READ_COLUMNS}
    near = native().nearest(name.lower(), list(columns))
    hint = f"did you mean {columns[near]}? " if near is not None else ""
    return f"A record has no column {name!r}; {hint}The columns are {read_ddl(include_headers=True)}."
