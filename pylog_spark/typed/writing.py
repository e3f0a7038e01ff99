"""The columns of a typed write: which are the record's own, and which make its value."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pylog_spark.columns import READ_COLUMNS
from pylog_spark.errors import PylogError, native, translated
from pylog_spark.registry.schemas.protobuf import GOOGLE
from pylog_spark.schema import WRITE_COLUMNS, check_write_types
from pylog_spark.typed import avro
from pylog_spark.typed.arrow import arrow_field, arrow_type
from pylog_spark.typed.columns import invalid
from pylog_spark.typed.formats import (
    AVRO,
    BINARY,
    PLAIN,
    PROTOBUF,
    REGISTERED,
    WITH_FIELDS,
    Formats,
    Message,
    registered_message,
)
from pylog_spark.typed.registered import Document, texts
from pylog_spark.typed.types import Struct

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark.typed.types import DataType, StructField, StructType


@dataclass(frozen=True)
class TypedWrite:
    """How the columns of a frame become records; plain values, pickled with the writer.

    Attributes
    ----------
    formats : Formats
        The formats of keys and values.
    fields : tuple of str
        The frame's columns that are fields of the value; none where the value is one column.
    key_id, value_id : int or None
        The ids of registered schemas with which keys and values begin.
    """

    formats: Formats
    fields: tuple[str, ...]
    key_id: int | None = None
    value_id: int | None = None

    def records(self, batch: pa.RecordBatch, columns: Mapping[str, str]) -> pa.RecordBatch:
        """Give the columns of records, under the record's names, with keys and values as bytes.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Rows of the frame.
        columns : mapping of str to str
            The record's column -> the frame's column.
        """
        import pyarrow as pa

        arrays = {name: batch.column(column) for name, column in columns.items()}
        if self.fields:
            chosen = batch.select(list(self.fields))
            arrays["value"] = pa.StructArray.from_arrays(chosen.columns, fields=list(chosen.schema))
        plain = pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
        forms = self.formats
        with translated(invalid):
            return pa.record_batch(
                native().encode(
                    plain,
                    key=None if forms.key == BINARY else forms.key,
                    value=None if forms.value == BINARY else forms.value,
                    key_schema=texts(forms.key_document),
                    value_schema=texts(forms.value_document),
                    key_id=self.key_id,
                    value_id=self.value_id,
                    key_message=forms.key_message.native if forms.key_message else None,
                    value_message=forms.value_message.native if forms.value_message else None,
                )
            )


def typed_write(schema: StructType, topic: str | None, formats: Formats) -> tuple[dict[str, str], TypedWrite]:
    """Check the columns of a frame to be written; give the record's own (the record's name -> the frame's), and what makes the value.

    Parameters
    ----------
    schema : StructType
        Of the frame.
    topic : str or None
        The option `topic`; with it the column is not needed.
    formats : Formats
        The formats of keys and values.

    Raises
    ------
    PylogError
        A column that is needed is missing, or has a type that cannot be written.
    """
    of_record = {formats.prefix + name: name for name in READ_COLUMNS}
    own: dict[str, StructField] = {}
    fields = []
    for field in schema.fields:
        name = of_record.get(field.name)
        if name is None:
            fields.append(field)
        elif name in WRITE_COLUMNS and not (name == "value" and formats.value in WITH_FIELDS):
            own[name] = field
        else:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The column {field.name} cannot be written: {_why_not(name, formats)}; drop it, or set recordPrefix to write it as a "
                "field of the value.",
            )
    for option, form, text in (
        ("keySchema", formats.key, formats.key_schema),
        ("valueSchema", formats.value, formats.value_schema),
    ):
        if text is not None and form != AVRO:
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"The option {option} has no meaning in a write of {form}, which the columns say all of; leave it out.",
            )
    if formats.value in WITH_FIELDS:
        if not fields:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"With valueFormat={formats.value} the columns of the frame make the value, and it has none besides those of the record.",
            )
        for field in fields:
            arrow_field(field, is_wide=formats.value == PROTOBUF)
    elif "value" not in own:
        names = ", ".join(field.name for field in schema.fields) or "none"
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"A write with valueFormat={formats.value} needs a column {formats.prefix}value, and the frame has only {names}.",
        )
    _check_types(own, formats)
    if topic is None and "topic" not in own:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"A write needs a topic: give the option topic or a column {formats.prefix}topic of type STRING.",
        )
    if topic is not None:
        own.pop("topic", None)
    made = tuple(field.name for field in fields) if formats.value in WITH_FIELDS else ()
    columns = {name: field.name for name, field in own.items()}
    write = TypedWrite(formats, made)
    if AVRO in (formats.key, formats.value):
        value = Struct(fields) if formats.value in WITH_FIELDS else None
        write = _with_schemas(write, own.get("key"), value, topic)
    if PROTOBUF in (formats.key, formats.value):
        write = _with_messages(write)
        _try(write, columns, [*fields, *own.values()])
        write = _registered(write, "key" in own, topic)
    return columns, write


def _try(write: TypedWrite, columns: Mapping[str, str], fields: Sequence[StructField]) -> None:
    """Raises `PylogError` when columns do not make a message of Protobuf: a write of no rows says so as well as one of many."""
    import pyarrow as pa

    forms = write.formats
    wide = [(forms.key if field.name == columns.get("key") else forms.value) == PROTOBUF for field in fields]
    schema = pa.schema([arrow_field(field, is_wide=each) for field, each in zip(fields, wide, strict=True)])
    with translated(invalid):
        write.records(pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema), columns)


def _with_messages(write: TypedWrite) -> TypedWrite:
    """The messages of Protobuf that are the newest ones of their subjects, with the ids of their schemas."""
    forms = write.formats
    # Without descriptors the options name a subject (`formats`).
    if forms.key == PROTOBUF and forms.key_message is None and forms.key_subject is not None:
        number, document = forms.newest(PROTOBUF, forms.key_subject)
        message = registered_message(document, forms.key_subject, forms.key_message_name)
        write = replace(write, formats=replace(write.formats, key_message=message), key_id=number)
    if forms.value == PROTOBUF and forms.value_message is None and forms.value_subject is not None:
        number, document = forms.newest(PROTOBUF, forms.value_subject)
        message = registered_message(document, forms.value_subject, forms.value_message_name)
        write = replace(write, formats=replace(write.formats, value_message=message), value_id=number)
    return write


def _registered(write: TypedWrite, has_key: bool, topic: str | None) -> TypedWrite:
    """The ids of the schemas of Protobuf that the options give: each is registered, where there is a registry."""
    forms = write.formats
    if forms.registry is None:
        return write
    if has_key and forms.key == PROTOBUF and forms.key_message is not None and write.key_id is None:
        write = replace(write, key_id=_register(forms, forms.key_message, "key", forms.key_subject, topic))
    if forms.value == PROTOBUF and forms.value_message is not None and write.value_id is None:
        write = replace(write, value_id=_register(forms, forms.value_message, "value", forms.value_subject, topic))
    return write


def _register(forms: Formats, message: Message, part: str, subject: str | None, topic: str | None) -> int:
    assert forms.registry is not None
    with translated(invalid):
        file, imports = native().protobuf_file(message.descriptors, message.name)
    other = [each for each in imports if not each.startswith(GOOGLE)]
    if other:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The schema of {part}s imports {other[0]}, and so it cannot be registered with it: register both, and name its subject by "
            f"{part}Subject, without {part}Schema.",
        )
    text = b64encode(file).decode()
    return forms.registry.schemas().register(_subject(part, subject, topic), REGISTERED[PROTOBUF], text)


def _with_schemas(
    write: TypedWrite, key: StructField | None, value: StructType | None, topic: str | None
) -> TypedWrite:
    """The schemas of Avro: those that the options name, or those of the columns; registered where there is a registry."""
    forms = write.formats
    if forms.key == AVRO and key is not None:
        document, number = _schema(forms, "key", key.dataType, topic)
        write = replace(write, formats=replace(write.formats, key_document=document), key_id=number)
    if forms.value == AVRO and value is not None:
        document, number = _schema(forms, "value", value, topic)
        write = replace(write, formats=replace(write.formats, value_document=document), value_id=number)
    empty = {
        name: arrow_field(field).type for name, field in (("key", key),) if field is not None and forms.key == AVRO
    }
    if value is not None and forms.value == AVRO:
        empty["value"] = arrow_type(value, "value")
    _check_empty(write, empty)
    return write


def _schema(forms: Formats, part: str, kind: DataType, topic: str | None) -> tuple[Document, int | None]:
    text, subject = (
        (forms.key_schema, forms.key_subject) if part == "key" else (forms.value_schema, forms.value_subject)
    )
    if forms.registry is not None and text is None and subject is not None:
        number, document = forms.newest(AVRO, subject)
        return document, number
    text = text or avro.schema_of(kind)
    document = (REGISTERED[AVRO], text, [])
    if forms.registry is None:
        return document, None
    return document, forms.registry.schemas().register(_subject(part, subject, topic), REGISTERED[AVRO], text)


def _subject(part: str, subject: str | None, topic: str | None) -> str:
    """Under which subject a schema is registered: what the option says, or the topic's name as Confluent's serializers take it."""
    if subject is None and topic is None:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The schema of {part}s is registered under the topic's name, which the option topic does not say: give {part}Subject, or topic.",
        )
    return subject or f"{topic}-{part}"


def _check_empty(write: TypedWrite, kinds: Mapping[str, pa.DataType]) -> None:
    """Raises `PylogError` when the columns do not fit the schemas: a write of no rows says so as well as one of many."""
    import pyarrow as pa

    forms = write.formats
    batch = pa.record_batch([pa.array([], kind) for kind in kinds.values()], list(kinds))
    with translated(lambda _, message: PylogError("PYLOG_INVALID_SCHEMA", f"{message[:1].upper()}{message[1:]}.")):
        native().encode(
            batch,
            key=forms.key if "key" in kinds else None,
            value=forms.value if "value" in kinds else None,
            key_schema=texts(forms.key_document),
            value_schema=texts(forms.value_document),
        )


def _why_not(name: str, formats: Formats) -> str:
    if name == "value":
        return f"with valueFormat={formats.value} the other columns make the value"
    return "it is what brokers say of a record"


def _check_types(own: Mapping[str, StructField], formats: Formats) -> None:
    accepted: dict[str, Sequence[str]] = dict(WRITE_COLUMNS)
    for name, form in (("key", formats.key), ("value", formats.value)):
        if form == AVRO and name == "key" and "key" in own:
            accepted[name] = (own[name].dataType.simpleString(),)
        elif form in WITH_FIELDS:
            accepted[name] = ("struct",)
        elif form != BINARY:
            accepted[name] = (PLAIN[form],)
    check_write_types(own, accepted)
    if formats.key in WITH_FIELDS and "key" in own:
        arrow_field(own["key"], is_wide=formats.key == PROTOBUF)
