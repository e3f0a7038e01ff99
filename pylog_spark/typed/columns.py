"""The columns of a typed read: which there are, and where each comes from.

A column whose name is `recordPrefix` and the name of a record's column is that column of the record: `topic`, `offset` and so on as without
formats, `key` by `keyFormat`, `value` by `valueFormat` where that is one column. `_corrupt_record` is the text of a damaged record. All
others are fields of the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pylog_spark.columns import READ_COLUMNS
from pylog_spark.errors import PylogError, native, translated
from pylog_spark.offsets.filters import BytesTest
from pylog_spark.schema import check_record_column
from pylog_spark.typed import avro
from pylog_spark.typed.arrow import arrow_field
from pylog_spark.typed.conditions import NumberTest, Test
from pylog_spark.typed.formats import (
    AVRO,
    BINARY,
    CORRUPT,
    PLAIN,
    PROTOBUF,
    REGISTERED,
    WITH_FIELDS,
    Formats,
    Message,
)
from pylog_spark.typed.registered import Document, texts
from pylog_spark.typed.types import from_json

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import TypedRead
    from pylog_spark.typed.types import DataType, StructField, StructType

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
    tests : tuple of (str, NumberTest or BytesTest)
        What must be true of rows: columns that are decoded, each with a test.
    """

    schema: str
    sources: Mapping[str, str]
    formats: Formats
    tests: tuple[tuple[str, Test], ...] = ()

    def arrow_schema(self) -> pa.Schema:
        """Give the Arrow schema that Spark expects."""
        import pyarrow as pa

        fields = self._fields()
        wide = [_is_wide(self.sources[field.name], self.formats) for field in fields]
        return pa.schema([arrow_field(field, is_wide=each) for field, each in zip(fields, wide, strict=True)])

    def decoded_kinds(self) -> dict[str, str]:
        """Give the columns that are decoded: their names -> the names of Spark's types."""
        return {
            field.name: field.dataType.typeName()
            for field in self._fields()
            if not self.sources[field.name].startswith(_OF_RECORD)
        }

    def with_tests(self, tests: Iterable[tuple[str, Test]]) -> TypedColumns:
        """Give the same columns, of rows of which these tests are true, too."""
        return replace(self, tests=(*self.tests, *tests))

    def _fields(self) -> Sequence[StructField]:
        return from_json(self.schema).fields

    def native(self, *, keeps_bad: bool = False) -> TypedRead:
        """Give what a native reader takes, with the schemas of writers that this process knows; with `keeps_bad` it keeps the records
        that do not parse."""
        forms, names = self.formats, list(self.sources)
        typed = native().TypedRead(
            self.arrow_schema(),
            list(self.sources.values()),
            key=None if forms.key == BINARY else forms.key,
            value=None if forms.value == BINARY else forms.value,
            mode=forms.mode,
            key_schema=texts(forms.key_document),
            value_schema=texts(forms.value_document),
            registered=forms.registry is not None,
            keeps_bad=keeps_bad,
            key_message=forms.key_message.native if forms.key_message else None,
            value_message=forms.value_message.native if forms.value_message else None,
            numbers=[
                (names.index(name), test.spans.inclusive(), test.null)
                for name, test in self.tests
                if isinstance(test, NumberTest)
            ],
            texts=[
                (names.index(name), (test.how, list(test.values)))
                for name, test in self.tests
                if isinstance(test, BytesTest)
            ],
        )
        if forms.registry is not None:
            forms.registry.schemas().teach(typed)
        return typed

    def look_up(self, typed: TypedRead, absent: int) -> int:
        """Find the schemas of writers that a native reader has missed; see `pylog_spark.typed.registered.Schemas.look_up`."""
        assert self.formats.registry is not None
        return self.formats.registry.schemas().look_up(typed, absent)

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
    of_key = _ddl_of(formats.key_message) or formats.key_schema
    of_value = _ddl_of(formats.value_message) or formats.value_schema
    for form, text, format_option, option in (
        (formats.value, of_value or formats.value_document, "valueFormat", "valueSchema"),
        (formats.key, of_key or formats.key_document, "keyFormat", "keySchema"),
    ):
        if form in WITH_FIELDS and text is None:
            subject = (
                f", or by {option.replace('Schema', 'Subject')}" if form in REGISTERED and formats.registry else ""
            )
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f'{format_option}={form} needs to know the columns; give them by .schema("id bigint, name string, ...") or by the '
                f"option {option}{subject}.",
            )
    types = {name: kind for name, kind in READ_COLUMNS.items() if include_headers or name != "headers"}
    key_fields, types["key"] = _parts(formats.key, of_key, formats.key_document, "keySchema")
    if key_fields is not None:
        types["key"] = f"struct<{', '.join(key_fields)}>"
    fields, types["value"] = _parts(formats.value, of_value, formats.value_document, "valueSchema")
    if fields is None:
        fields = []
    else:
        del types["value"]
    return ", ".join([*fields, *(f"`{formats.prefix}{name}` {kind}" for name, kind in types.items())])


def _parts(form: str, text: str | None, document: Document | None, option: str) -> tuple[list[str] | None, str]:
    """The fields of a key or value as DDL; None and its type where it has none."""
    if document is not None:
        kind = avro.spark_type(avro.read(document[1], [referred for _, referred in document[2]], option))
        if kind.typeName() != "struct":
            return None, avro.ddl(kind)
        return [
            f"{avro.quoted(field.name)} {avro.ddl(field.dataType)}" for field in cast("StructType", kind).fields
        ], ""
    if form in WITH_FIELDS:
        return [str(text)], ""
    return None, PLAIN[form]


def _ddl_of(message: Message | None) -> str | None:
    if message is None:
        return None
    with translated(invalid):
        return native().protobuf_fields(message.descriptors, message.name)


def invalid(_: str, message: str) -> PylogError:
    """Give the error for columns that the native half refuses."""
    return PylogError("PYLOG_INVALID_SCHEMA", f"{message[:1].upper()}{message[1:].rstrip('. ')}.")


def _is_wide(source: str, formats: Formats) -> bool:
    """Whether a column may have types that only Protobuf has."""
    return {_KEY: formats.key, _VALUE: formats.value, _FIELD: formats.value}.get(source) == PROTOBUF


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
        arrow_field(field, is_wide=_is_wide(sources[field.name], formats))
    if _VALUE in sources.values() and _FIELD in sources.values():
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"The columns are fields of the value, or one of them ({formats.prefix}value) is all of it: name only one or the others.",
        )
    columns = TypedColumns(schema.json(), sources, formats)
    if AVRO in (formats.key, formats.value):
        _check_schemas(columns)
    elif PROTOBUF in (formats.key, formats.value):
        with translated(invalid):
            columns.native()
    return columns


def _check_schemas(columns: TypedColumns) -> None:
    """Check that schemas are there and have the columns; what the native half says of them is said before any task runs."""
    forms = columns.formats
    for form, document, option, of in (
        (forms.key, forms.key_document, "keySchema", "keyFormat"),
        (forms.value, forms.value_document, "valueSchema", "valueFormat"),
    ):
        if form == AVRO and document is None and forms.registry is None:
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"{of}={form} needs the schema that wrote the records: give it by the option {option}, or where the ids of schemas that "
                "records begin with are known, by schema.registry.url.",
            )
        if document is not None:
            avro.read(document[1], [text for _, text in document[2]], option)
    with translated(lambda _, message: PylogError("PYLOG_INVALID_SCHEMA", f"The columns do not fit: {message}.")):
        columns.native()


def _source(field: StructField, formats: Formats) -> str:
    name, kind = field.name, field.dataType.simpleString()
    of_record = name.removeprefix(formats.prefix) if name.startswith(formats.prefix) else ""
    if of_record in READ_COLUMNS:
        form = {"key": formats.key, "value": formats.value}.get(of_record, BINARY)
        if form == BINARY or (of_record == "value" and form in WITH_FIELDS and not _is_whole_value(field, formats)):
            check_record_column(field, of_record, _hint(field, formats))
            return _OF_RECORD + of_record
        wanted = "struct" if form in WITH_FIELDS else PLAIN[form]
        if form != AVRO and wanted not in (kind, field.dataType.typeName()):
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


def _is_whole_value(field: StructField, formats: Formats) -> bool:
    """Whether a column `value` is all of an Avro value, decoded, and not the record's bytes: values need not have fields there."""
    return formats.value == AVRO and field.dataType.typeName() != "binary"


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
