"""Spark's types without Spark: what a schema says of columns, read from Spark's JSON or from DDL.

The protocols have what typed reads and writes ask of a type; pyspark's own types have it, too, and so do those that are made here, for
programs without Spark. Pure, and without pyspark.

Types that no column of a typed read can have (intervals of years, VARIANT, CHAR and so on) are kept by their names, so that what refuses a column can name them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pylog_spark.errors import PylogError

#: How deep types may be nested in a schema that is given as DDL or JSON.
DEPTH_MAX = 200


class DataType(Protocol):
    """A type, as pyspark's `DataType`."""

    def typeName(self) -> str:  # noqa: N802 - pyspark's name
        """Its name, such as ``long``, ``array`` or ``decimal``."""

    def simpleString(self) -> str:  # noqa: N802
        """Its name in SQL, such as ``bigint``."""


class StructField(Protocol):
    """A column, or a field of a struct."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dataType(self) -> DataType:  # noqa: N802
        """Its type."""

    @property
    def nullable(self) -> bool:
        """Whether it may be null."""


class StructType(DataType, Protocol):
    """The columns of a read or a write."""

    @property
    def fields(self) -> Sequence[StructField]:
        """The columns, in their order."""

    def json(self) -> str:
        """The schema as Spark's JSON."""


@dataclass(frozen=True)
class Scalar:
    """A type without parts: its name, in SQL, and in JSON."""

    name: str
    sql: str

    def typeName(self) -> str:  # noqa: N802
        """See `DataType`."""
        return self.name

    def simpleString(self) -> str:  # noqa: N802
        """See `DataType`."""
        return self.sql


@dataclass(frozen=True)
class Decimal:
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int

    def typeName(self) -> str:  # noqa: N802
        """See `DataType`."""
        return "decimal"

    def simpleString(self) -> str:  # noqa: N802
        """See `DataType`."""
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class Array:
    """A list; its attributes have pyspark's names."""

    elementType: DataType  # noqa: N815
    containsNull: bool = True  # noqa: N815

    def typeName(self) -> str:  # noqa: N802
        """See `DataType`."""
        return "array"

    def simpleString(self) -> str:  # noqa: N802
        """See `DataType`."""
        return f"array<{self.elementType.simpleString()}>"


@dataclass(frozen=True)
class Map:
    """A map; its attributes have pyspark's names."""

    keyType: DataType  # noqa: N815
    valueType: DataType  # noqa: N815
    valueContainsNull: bool = True  # noqa: N815

    def typeName(self) -> str:  # noqa: N802
        """See `DataType`."""
        return "map"

    def simpleString(self) -> str:  # noqa: N802
        """See `DataType`."""
        return f"map<{self.keyType.simpleString()},{self.valueType.simpleString()}>"


@dataclass(frozen=True)
class Field:
    """A column or a field of a struct; its attributes have pyspark's names."""

    name: str
    dataType: DataType  # noqa: N815
    nullable: bool = True


@dataclass(frozen=True)
class Struct:
    """A struct, or all columns of a frame."""

    fields: Sequence[StructField]

    def typeName(self) -> str:  # noqa: N802
        """See `DataType`."""
        return "struct"

    def simpleString(self) -> str:  # noqa: N802
        """See `DataType`."""
        return f"struct<{','.join(f'{each.name}:{each.dataType.simpleString()}' for each in self.fields)}>"

    def json(self) -> str:
        """See `StructType`."""
        return json.dumps(_as_json(self), separators=(",", ":"))


#: The scalars by their names in JSON, which are also pyspark's, with their names in SQL.
_SCALARS = {
    "void": "void",
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
VOID = Scalar("void", _SCALARS["void"])
BOOLEAN = Scalar("boolean", _SCALARS["boolean"])
INT = Scalar("integer", _SCALARS["integer"])
LONG = Scalar("long", _SCALARS["long"])
FLOAT = Scalar("float", _SCALARS["float"])
DOUBLE = Scalar("double", _SCALARS["double"])
STRING = Scalar("string", _SCALARS["string"])
BINARY = Scalar("binary", _SCALARS["binary"])
DATE = Scalar("date", _SCALARS["date"])
TIMESTAMP = Scalar("timestamp", _SCALARS["timestamp"])
TIMESTAMP_NTZ = Scalar("timestamp_ntz", _SCALARS["timestamp_ntz"])
INTERVAL = Scalar("daytimeinterval", "interval day to second")
#: The words of DDL.
_WORDS = {
    **{sql: Scalar(name, sql) for name, sql in _SCALARS.items()},
    **{name: Scalar(name, sql) for name, sql in _SCALARS.items()},
    "real": FLOAT,
    "timestamp_ltz": TIMESTAMP,
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def from_json(text: str) -> Struct:
    """Read the columns of a schema as Spark writes it (``StructType.json()``).

    Raises
    ------
    PylogError
        It is none.
    """
    try:
        found = _of_json(json.loads(text), DEPTH_MAX)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PylogError("PYLOG_INVALID_SCHEMA", f"The JSON is no schema of Spark's: {error}.") from None
    if not isinstance(found, Struct):
        raise PylogError("PYLOG_INVALID_SCHEMA", "The JSON is a type of Spark's, but not that of columns, a struct.")
    return found


def from_ddl(text: str) -> Struct:
    """Read columns in DDL: ``id bigint, names array<string>``.

    Raises
    ------
    PylogError
        It is none; the sentence shows where.
    """
    return _Ddl(text).columns()


def _of_json(found: Any, depth: int) -> DataType:
    if depth < 0:
        raise ValueError(f"its types are nested more than {DEPTH_MAX} deep")
    if isinstance(found, str):
        if (decimal := _DECIMAL.fullmatch(found)) is not None:
            return Decimal(int(decimal[1]), int(decimal[2]))
        if found == INTERVAL.sql:
            return INTERVAL
        return Scalar(found, _SCALARS.get(found, found)) if found != "decimal" else Decimal(10, 0)
    match found["type"]:
        case "struct":
            fields = [
                Field(each["name"], _of_json(each["type"], depth - 1), bool(each.get("nullable", True)))
                for each in found["fields"]
            ]
            return Struct(fields)
        case "array":
            return Array(_of_json(found["elementType"], depth - 1), bool(found["containsNull"]))
        case "map":
            key, value = (_of_json(found[part], depth - 1) for part in ("keyType", "valueType"))
            return Map(key, value, bool(found["valueContainsNull"]))
    return Scalar(str(found["type"]), str(found["type"]))


def _as_json(kind: Any) -> object:
    match kind.typeName():
        case "struct":
            fields = [
                {"name": each.name, "type": _as_json(each.dataType), "nullable": each.nullable, "metadata": {}}
                for each in kind.fields
            ]
            return {"type": "struct", "fields": fields}
        case "array":
            return {"type": "array", "elementType": _as_json(kind.elementType), "containsNull": kind.containsNull}
        case "map":
            return {
                "type": "map",
                "keyType": _as_json(kind.keyType),
                "valueType": _as_json(kind.valueType),
                "valueContainsNull": kind.valueContainsNull,
            }
        case "decimal":
            return str(kind.simpleString())
    return kind.simpleString() if kind.typeName() == INTERVAL.name else kind.typeName()


class _Ddl:
    """One text of DDL, read from left to right."""

    _TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|(.))", re.DOTALL)

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._at = 0

    def columns(self) -> Struct:
        fields = self._fields("", DEPTH_MAX)
        if self._at < len(self._text):
            raise self._error("a comma or the end")
        return Struct(fields)

    def _peek(self) -> tuple[str, int]:
        found = self._TOKEN.match(self._text, self._at)
        return ("", self._at) if found is None else (found[0].strip(), found.end())

    def _take(self, *wanted: str) -> bool:
        """Whether the next token is one of these, which is then passed over; words in any case."""
        token, end = self._peek()
        if token.lower() in wanted:
            self._at = end
            return True
        return False

    def _demand(self, token: str) -> None:
        if not self._take(token):
            raise self._error(repr(token))

    def _error(self, wanted: str) -> PylogError:
        rest = self._text[self._at :].strip()
        where = f"at {rest[:40]!r}" if rest else "at its end"
        return PylogError(
            "PYLOG_INVALID_SCHEMA",
            f'The columns cannot be read {where}: {wanted} is expected, as in "id bigint, names array<string>".',
        )

    def _fields(self, end: str, depth: int) -> list[StructField]:
        fields: list[StructField] = []
        while True:
            name = self._name()
            self._take(":")
            kind = self._type(depth)
            nullable = True
            if self._take("not"):
                self._demand("null")
                nullable = False
            if self._take("comment"):
                # Texts that stand side by side are one.
                while self._peek()[0][:1] in ("'", '"'):
                    self._at = self._peek()[1]
            fields.append(Field(name, kind, nullable))
            if not self._take(","):
                break
        if end:
            self._demand(end)
        return fields

    def _name(self) -> str:
        token, end = self._peek()
        if token.startswith("`") and len(token) > 1:
            self._at = end
            return token[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", token):
            raise self._error("a name (other names than letters, digits and _ stand in backticks)")
        self._at = end
        return token

    def _type(self, depth: int) -> DataType:
        if depth < 0:
            raise PylogError("PYLOG_INVALID_SCHEMA", f"The types of columns may be nested {DEPTH_MAX} deep.")
        token, end = self._peek()
        word = token.lower()
        if not re.fullmatch(r"\w+", word):
            raise self._error("a type")
        self._at = end
        if word == "array":
            self._demand("<")
            item = self._type(depth - 1)
            self._demand(">")
            return Array(item)
        if word == "map":
            self._demand("<")
            key = self._type(depth - 1)
            self._demand(",")
            value = self._type(depth - 1)
            self._demand(">")
            return Map(key, value)
        if word == "struct":
            self._demand("<")
            return Struct([]) if self._take(">") else Struct(self._fields(">", depth - 1))
        if word in ("decimal", "dec", "numeric"):
            numbers = self._numbers() or [10]
            return Decimal(numbers[0], numbers[1] if len(numbers) > 1 else 0)
        if word == "interval":
            return self._interval()
        if word in _WORDS:
            return _WORDS[word]
        numbers = self._numbers()
        shown = f"{word}({','.join(map(str, numbers))})" if numbers else word
        return Scalar(shown, shown)

    def _numbers(self) -> list[int]:
        numbers: list[int] = []
        if self._take("("):
            while not self._take(")"):
                token, end = self._peek()
                if not token.isdigit():
                    raise self._error("a number")
                numbers.append(int(token))
                self._at = end
                self._take(",")
        return numbers

    def _interval(self) -> DataType:
        words = [self._peek()[0].lower()]
        self._at = self._peek()[1]
        if self._take("to"):
            words.append(self._peek()[0].lower())
            self._at = self._peek()[1]
        text = f"interval {' to '.join(words)}"
        return INTERVAL if text == INTERVAL.sql else Scalar(text, text)


def of_arrow(fields: Iterable[Any]) -> Struct:
    """Give the columns of Arrow fields, such as a ``pyarrow.Schema``: each type the one that `pylog_spark.typed.arrow` makes of it.

    Raises
    ------
    PylogError
        A type is none that a typed read gives.
    """
    return Struct([Field(each.name, _of_arrow(each.type, each.name), each.nullable) for each in fields])


def _of_arrow(kind: Any, column: str) -> DataType:
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Array(_of_arrow(kind.value_type, column), kind.value_field.nullable)
    if pa.types.is_map(kind):
        value = _of_arrow(kind.item_type, column)
        return Map(_of_arrow(kind.key_type, column), value, kind.item_field.nullable)
    if pa.types.is_struct(kind):
        return of_arrow(kind.fields)
    if pa.types.is_decimal128(kind):
        return Decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    found = _arrow_scalars().get(kind)
    if found is None:
        known = ", ".join(str(each) for each in _arrow_scalars())
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"The column {column} has the type {kind} in it, which typed columns cannot have. They have {known}, timestamp[us, tz=UTC], "
            "timestamp[us], decimal128, and lists, maps and structs of these; cast what was read.",
        )
    return found


def _arrow_scalars() -> Mapping[Any, DataType]:
    import pyarrow as pa

    return {
        pa.null(): VOID,
        pa.bool_(): BOOLEAN,
        pa.int8(): Scalar("byte", "tinyint"),
        pa.int16(): Scalar("short", "smallint"),
        pa.int32(): INT,
        pa.int64(): LONG,
        pa.float32(): FLOAT,
        pa.float64(): DOUBLE,
        pa.string(): STRING,
        pa.binary(): BINARY,
        pa.date32(): DATE,
        pa.duration("us"): INTERVAL,
    }
