"""The columns of a typed read: which there are, and where each comes from.

A column whose name is `recordPrefix` and the name of a record's column is that column of the record: `topic`, `offset` and so on as without
formats, `key` by `keyFormat`, `value` by `valueFormat` where that is one column. `_corrupt_record` is the text of a damaged record. All
others are fields of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pylog_spark.errors import PylogError, native
from pylog_spark.schema import READ_COLUMNS, check_record_column
from pylog_spark.typed.arrow import arrow_field
from pylog_spark.typed.formats import BINARY, CORRUPT, PLAIN, WITH_FIELDS, Formats

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField, StructType

    from pylog_spark._native import TypedRead

#: What the native half calls the sources of columns.
_OF_RECORD = "record:"
_KEY, _VALUE, _FIELD, _CORRUPT = "key", "value", "field", "corrupt"


@dataclass(frozen=True)
class TypedColumns:
    """The columns of a typed read; plain values, pickled with the reader.

    Attributes
    ----------
    schema : str
        Spark's schema of them, as JSON.
    sources : mapping of str to str
        Column -> where it comes from, in the words of `_native.pyi`.
    formats : Formats
        The formats of keys and values.
    """

    schema: str
    sources: Mapping[str, str]
    formats: Formats

    def arrow_schema(self) -> pa.Schema:
        """Give the Arrow schema that Spark expects."""
        import json

        import pyarrow as pa
        from pyspark.sql.types import StructType

        return pa.schema([arrow_field(field) for field in StructType.fromJson(json.loads(self.schema)).fields])

    def native(self, *, keeps_bad: bool = False) -> TypedRead:
        """Give what a native reader takes; with `keeps_bad` it keeps the records that do not parse."""
        forms = self.formats
        return native().TypedRead(
            self.arrow_schema(),
            list(self.sources.values()),
            key=None if forms.key == BINARY else forms.key,
            value=None if forms.value == BINARY else forms.value,
            mode=forms.mode,
            keeps_bad=keeps_bad,
        )

    def of_record(self) -> dict[str, str]:
        """Give the columns that are a record's as it is: their names -> the record's names."""
        return {
            name: source.removeprefix(_OF_RECORD)
            for name, source in self.sources.items()
            if source.startswith(_OF_RECORD)
        }


def typed_ddl(formats: Formats, include_headers: bool) -> str:
    """Give the columns of a typed read as DDL, where ``.schema()`` does not name them.

    Raises
    ------
    PylogError
        The options do not say which fields a key or value has.
    """
    for form, text, format_option, option in (
        (formats.value, formats.value_schema, "valueFormat", "valueSchema"),
        (formats.key, formats.key_schema, "keyFormat", "keySchema"),
    ):
        if form in WITH_FIELDS and text is None:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f'{format_option}={form} needs to know the columns; give them by .schema("id bigint, name string, ...") or by the '
                f"option {option}.",
            )
    types = {name: kind for name, kind in READ_COLUMNS.items() if include_headers or name != "headers"}
    types["key"] = f"struct<{formats.key_schema}>" if formats.key in WITH_FIELDS else PLAIN[formats.key]
    fields = []
    if formats.value in WITH_FIELDS:
        fields.append(str(formats.value_schema))
        del types["value"]
    else:
        types["value"] = PLAIN[formats.value]
    return ", ".join([*fields, *(f"`{formats.prefix}{name}` {kind}" for name, kind in types.items())])


def typed_columns(schema: StructType, formats: Formats) -> TypedColumns:
    """Check the schema that a typed read is asked for, and say where its columns come from.

    Raises
    ------
    PylogError
        A column has a type that its source does not have, or comes twice.
    """
    if not schema.fields:
        raise PylogError("PYLOG_INVALID_SCHEMA", "The schema of a read must name at least one column.")
    sources: dict[str, str] = {}
    for field in schema.fields:
        if field.name in sources:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The column {field.name} comes twice; where a field of the value has the name of a record's column, set recordPrefix "
                "(such as record_), which is put before the record's.",
            )
        sources[field.name] = _source(field, formats)
        arrow_field(field)
    return TypedColumns(schema.json(), sources, formats)


def _source(field: StructField, formats: Formats) -> str:
    name, kind = field.name, field.dataType.simpleString()
    of_record = name.removeprefix(formats.prefix) if name.startswith(formats.prefix) else ""
    if of_record in READ_COLUMNS:
        form = {"key": formats.key, "value": formats.value}.get(of_record, BINARY)
        if form == BINARY or (of_record == "value" and form in WITH_FIELDS):
            check_record_column(field, of_record, _hint(field, formats))
            return _OF_RECORD + of_record
        wanted = "struct" if form in WITH_FIELDS else PLAIN[form]
        if wanted not in (kind, field.dataType.typeName()):
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The column {name} is {wanted.upper()} with {of_record}Format={form}, not {kind.upper()}; give .schema() that type.",
            )
        _check_nullable(field)
        return _KEY if of_record == "key" else _VALUE
    if name == CORRUPT:
        if kind != "string":
            raise PylogError("PYLOG_INVALID_SCHEMA", f"The column {CORRUPT} is STRING, not {kind.upper()}.")
        _check_nullable(field)
        return _CORRUPT
    if formats.value not in WITH_FIELDS:
        columns = ", ".join(formats.prefix + column for column in READ_COLUMNS)
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"A record has no column {name!r}, and with valueFormat={formats.value} its value has no fields; the columns are {columns}.",
        )
    _check_nullable(field)
    return _FIELD


def _hint(field: StructField, formats: Formats) -> str:
    if formats.value not in WITH_FIELDS:
        return "cast after load()"
    return f"convert it after load(); if it is a field of the value, set recordPrefix, so that {field.name} does not name the record's column"


def _check_nullable(field: StructField) -> None:
    if not (field.nullable and _has_nulls(field.dataType)):
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"The column {field.name} may be null, or have nulls in it, since records can say anything; leave NOT NULL out.",
        )


def _has_nulls(kind: DataType) -> bool:
    """Whether all parts of a type may be null."""
    parts: Any = kind
    match kind.typeName():
        case "array":
            return bool(parts.containsNull) and _has_nulls(parts.elementType)
        case "map":
            return bool(parts.valueContainsNull) and _has_nulls(parts.valueType)
        case "struct":
            return all(field.nullable and _has_nulls(field.dataType) for field in parts.fields)
    return True
