"""Avro schemas as Spark's types and the other way, as Spark's own `SchemaConverters` has them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pylog_spark.errors import PylogError
from pylog_spark.registry.schemas import SchemaError, avro_types
from pylog_spark.registry.schemas.avro import parse
from pylog_spark.typed import types

if TYPE_CHECKING:
    from pylog_spark.typed.types import DataType

#: Most types that the columns of a schema may have in them: a few records that hold the next one twice would have endless ones.
TYPES_MAX = 100_000
_LONGEST_DECIMAL = 38
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read(text: str, referred: Sequence[str] = (), option: str = "valueSchema") -> avro_types.Type:
    """Read a schema.

    Parameters
    ----------
    text : str
        The schema.
    referred : sequence of str
        Schemas that define names which it may use.
    option : str
        Named in an error.

    Raises
    ------
    PylogError
        It is none.
    """
    try:
        return parse(text, referred).root
    except SchemaError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The Avro schema of {option} cannot be used: {error}") from None


def spark_type(kind: avro_types.Type) -> DataType:
    """Give Spark's type of an Avro type. All of its parts may be null, as records can say anything.

    Raises
    ------
    PylogError
        A record holds itself, which no type of Spark's does.
    """
    return _Converter().type_of(kind, ())


class _Converter:
    def __init__(self) -> None:
        self._left = TYPES_MAX

    def type_of(self, kind: avro_types.Type, around: tuple[avro_types.Type, ...]) -> DataType:
        self._left -= 1
        if kind in around or self._left < 0:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The Avro type {kind.full_name} holds itself, or more types than columns can have; name the columns that you need by .schema().",
            )
        if kind.kind == avro_types.RECORD:
            inner = (*around, kind)
            return types.Struct([types.Field(each.name, self.type_of(each.type, inner)) for each in kind.fields])
        if kind.kind == avro_types.ARRAY:
            return types.Array(self.type_of(kind.parts[0], around))
        if kind.kind == avro_types.MAP:
            return types.Map(types.STRING, self.type_of(kind.parts[0], around))
        if kind.kind == avro_types.UNION:
            return self._union(kind, around)
        return _scalar(kind)

    def _union(self, kind: avro_types.Type, around: tuple[avro_types.Type, ...]) -> DataType:
        branches = [each for each in kind.parts if each.kind != "null"]
        kinds = {each.kind for each in branches}
        if not branches:
            return types.VOID
        if len(branches) == 1:
            return self.type_of(branches[0], around)
        if kinds == {"int", "long"}:
            return types.LONG
        if kinds == {"float", "double"}:
            return types.DOUBLE
        return types.Struct(
            [types.Field(f"member{number}", self.type_of(each, around)) for number, each in enumerate(branches)]
        )


def _scalar(kind: avro_types.Type) -> DataType:
    logical = kind.others.get("logicalType")
    scalars: dict[str, DataType] = {
        "null": types.VOID,
        "boolean": types.BOOLEAN,
        "int": types.DATE if logical == "date" else types.INT,
        "float": types.FLOAT,
        "double": types.DOUBLE,
        "string": types.STRING,
        avro_types.ENUM: types.STRING,
    }
    if kind.kind == "long":
        if logical in ("timestamp-millis", "timestamp-micros"):
            return types.TIMESTAMP
        if logical in ("local-timestamp-millis", "local-timestamp-micros"):
            return types.TIMESTAMP_NTZ
        return types.LONG
    if kind.kind in ("bytes", avro_types.FIXED):
        return _decimal(kind) if logical == "decimal" else types.BINARY
    return scalars[kind.kind]


def _decimal(kind: avro_types.Type) -> DataType:
    precision: Any = kind.others.get("precision")
    scale: Any = kind.others.get("scale", 0)
    is_one = _is_whole(precision) and _is_whole(scale) and precision > 0 and 0 <= scale <= precision
    if is_one and kind.kind == avro_types.FIXED:
        # The digits that fit a number of so many bytes.
        is_one = precision <= math.floor(math.log10(2) * (8 * kind.size - 1))
    if not is_one or precision > _LONGEST_DECIMAL:
        return types.BINARY
    return types.Decimal(precision, scale)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def schema_of(kind: DataType) -> str:
    """Give the Avro schema of a type of Spark's, as `to_avro` makes it where all parts may be null: whether Spark says so of a column changes
    with how it optimizes a query, and a registered schema should not.

    Raises
    ------
    PylogError
        A field has a name that Avro does not allow, or a type that it does not have.
    """
    return json.dumps(_avro_type(kind, "topLevelRecord", ""))


def _avro_type(kind: DataType, name: str, space: str) -> Any:
    parts: Any = kind
    match kind.typeName():
        case "array":
            return {"type": "array", "items": _or_null(parts.elementType, name, space)}
        case "map":
            return {"type": "map", "values": _or_null(parts.valueType, name, space)}
        case "struct":
            inner = f"{space}.{name}" if space else name
            for each in parts.fields:
                if not _NAME.fullmatch(each.name):
                    raise PylogError(
                        "PYLOG_INVALID_SCHEMA",
                        f"The column {each.name!r} has a name that Avro does not allow (letters, digits and _): rename it.",
                    )
            fields = [{"name": each.name, "type": _or_null(each.dataType, each.name, inner)} for each in parts.fields]
            return {"type": "record", "name": name, **({"namespace": space} if space else {}), "fields": fields}
        case "decimal":
            return {
                "type": "fixed",
                "name": "fixed",
                "namespace": f"{space}.{name}" if space else name,
                "size": _bytes_of(parts.precision),
                "logicalType": "decimal",
                "precision": parts.precision,
                "scale": parts.scale,
            }
    made = _AVRO_TYPES.get(kind.simpleString())
    if made is None:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA", f"Avro has no type for {kind.simpleString().upper()} (column {name}): convert it."
        )
    return made


def _or_null(kind: DataType, name: str, space: str) -> Any:
    made = _avro_type(kind, name, space)
    return made if made == "null" else [made, "null"]


_AVRO_TYPES: dict[str, Any] = {
    "void": "null",
    "boolean": "boolean",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def _bytes_of(precision: int) -> int:
    """How many bytes numbers of so many digits need."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size


def ddl(kind: DataType) -> str:
    """Give a type as DDL, with the names of fields quoted."""
    parts: Any = kind
    match kind.typeName():
        case "array":
            return f"array<{ddl(parts.elementType)}>"
        case "map":
            return f"map<{ddl(parts.keyType)}, {ddl(parts.valueType)}>"
        case "struct":
            return f"struct<{', '.join(f'{quoted(field.name)}: {ddl(field.dataType)}' for field in parts.fields)}>"
    return kind.simpleString()


def quoted(name: str) -> str:
    """Give a name as DDL has it, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"
