"""The formats of keys and values, and what the options of a query say about them. pyspark is not imported here."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pylog_spark.errors import PylogError
from pylog_spark.typed.registered import Document, Registry, check_type

#: Bytes as they are: what a key or value without a format is.
BINARY = "binary"
#: Formats that are one column, by the names of Kafka's command line tools, with that column's type.
PLAIN: dict[str, str] = {
    BINARY: "binary",
    "string": "string",
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "float": "float",
    "double": "double",
}
AVRO = "avro"
PROTOBUF = "protobuf"
#: Formats whose values have fields: the fields of a value are columns, those of a key are parts of one column.
WITH_FIELDS = ("json", AVRO, PROTOBUF)
#: Formats whose keys and values may begin with the id of a registered schema, and its type in the registry.
REGISTERED = {AVRO: "AVRO", PROTOBUF: "PROTOBUF"}
FORMATS = (*WITH_FIELDS, *PLAIN)
#: Spark's type of a format's column means the format, too.
_SYNONYMS = {"int": "integer", "bigint": "long", "smallint": "short"}

PERMISSIVE = "PERMISSIVE"
DROPMALFORMED = "DROPMALFORMED"
FAILFAST = "FAILFAST"
MODES = (PERMISSIVE, DROPMALFORMED, FAILFAST)

#: The column with the text of a damaged record.
CORRUPT = "_corrupt_record"


class SchemaText(str):
    """A schema as an option gives it.

    Attributes
    ----------
    raw : bytes
        The bytes of the file that has it, or of the option's text.
    is_text : bool
        Whether they are a text; if not, the text is empty.
    """

    __slots__ = ("is_text", "raw")
    raw: bytes
    is_text: bool


@dataclass(frozen=True)
class Message:
    """A message of Protobuf.

    Attributes
    ----------
    descriptors : bytes
        A ``FileDescriptorSet``.
    name : str
        The message's name there.
    is_prefixed : bool
        Whether an id and the message's place stand before each, though no registry is asked what the id means.
    """

    descriptors: bytes
    name: str
    is_prefixed: bool = False

    @property
    def native(self) -> tuple[bytes, str, bool]:
        """What the native half takes."""
        return self.descriptors, self.name, self.is_prefixed


@dataclass(frozen=True)
class Formats:
    """What a query's options say about keys and values; plain values, so it can be pickled.

    Attributes
    ----------
    key, value : str
        One of `FORMATS`.
    key_schema, value_schema : str or None
        Fields in DDL, or a schema of the format's own.
    key_subject, value_subject : str or None
        Of the registry, with the schema.
    registry : Registry or None
        Where the schemas are with whose ids keys and values begin.
    key_document, value_document : tuple or None
        With avro the schema that is read as or written with, once it is known (`resolved`).
    key_message, value_message : Message or None
        With protobuf the message, once it is known (`resolved`).
    key_message_name, value_message_name : str or None
        Its name, where the options give it.
    prefix : str
        What the names of a record's own columns begin with.
    mode : str
        What becomes of damaged records, one of `MODES`.
    """

    key: str = BINARY
    value: str = BINARY
    key_schema: str | None = None
    value_schema: str | None = None
    key_subject: str | None = None
    value_subject: str | None = None
    registry: Registry | None = None
    key_document: Document | None = None
    value_document: Document | None = None
    prefix: str = ""
    mode: str = PERMISSIVE
    key_message: Message | None = None
    value_message: Message | None = None
    key_message_name: str | None = None
    value_message_name: str | None = None

    @property
    def are_given(self) -> bool:
        """Whether anything is decoded."""
        return self.key != BINARY or self.value != BINARY

    def resolved(self) -> Formats:
        """Give the formats with their schemas, for which the registry is asked where a subject is named.

        Raises
        ------
        PylogError
            A schema is none of its format, or no registry answers.
        """
        return replace(
            self,
            key_document=self._document(self.key, self.key_schema, self.key_subject),
            value_document=self._document(self.value, self.value_schema, self.value_subject),
            key_message=self.key_message or self._message(self.key, self.key_subject, self.key_message_name),
            value_message=self.value_message or self._message(self.value, self.value_subject, self.value_message_name),
        )

    def newest(self, form: str, subject: str) -> tuple[int, Document]:
        """Give the id and the newest schema of a subject, which must be of the type of `form`. Raises `PylogError`."""
        assert self.registry is not None
        number, document = self.registry.schemas().latest(subject)
        check_type(document, REGISTERED[form], subject)
        return number, document

    def _document(self, form: str, text: str | None, subject: str | None) -> Document | None:
        if form != AVRO:
            return None
        if text is not None:
            return REGISTERED[form], text, []
        return self.newest(form, subject)[1] if subject is not None else None

    def _message(self, form: str, subject: str | None, name: str | None) -> Message | None:
        if form != PROTOBUF or subject is None:
            return None
        return registered_message(self.newest(form, subject)[1], subject, name)


def registered_message(document: Document, subject: str, name: str | None) -> Message:
    """Give a message of a schema of Protobuf: the one of this name, or its first one.

    Raises
    ------
    PylogError
        The schema cannot be compiled, or has no message.
    """
    from pylog_spark.registry.schemas import SchemaError
    from pylog_spark.registry.schemas.protobuf import parse_protobuf

    try:
        schema = parse_protobuf(document[1], tuple(document[2]))
    except SchemaError as error:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA", f"The newest schema of the subject {subject} cannot be used: {error.args[0]}"
        ) from None
    name = name or schema.first_message
    if name is None:
        raise PylogError("PYLOG_INVALID_SCHEMA", f"The newest schema of the subject {subject} has no message.")
    return Message(schema.descriptors, name)


def one_format(text: str) -> str:
    """Give the format of an option's text."""
    word = text.strip().lower()
    word = _SYNONYMS.get(word, word)
    if word not in FORMATS:
        raise ValueError(f"must be one of {', '.join(FORMATS)}, not {text!r}")
    return word


def one_mode(text: str) -> str:
    """Give the mode of an option's text."""
    word = text.strip().upper()
    if word not in MODES:
        raise ValueError(f"must be one of {', '.join(MODES)}, not {text!r}")
    return word


def schema_text(text: str) -> SchemaText:
    """Give a schema, which is the text or stands in the file behind an @."""
    text = text.strip()
    raw = text.encode()
    if text.startswith("@"):
        try:
            raw = Path(text[1:]).read_bytes()
        except OSError as error:
            raise ValueError(f"names a file that cannot be read: {error}") from None
    if not raw.strip():
        raise ValueError("must not be empty")
    try:
        said = SchemaText(raw.decode().strip())
        said.is_text = True
    except UnicodeDecodeError:
        said = SchemaText("")
        said.is_text = False
    said.raw = raw
    return said


def formats(values: Mapping[str, Any], registry: Registry | None) -> Formats:
    """Give what the options say.

    Parameters
    ----------
    values : mapping of str to Any
        The values of the options by their names.
    registry : Registry or None
        What those say whose names begin with ``schema.registry.``.

    Raises
    ------
    PylogError
        One that has no meaning with the others.
    """
    key, value = values["keyFormat"] or BINARY, values["valueFormat"] or BINARY
    for name, form, of in (("keySchema", key, "keyFormat"), ("valueSchema", value, "valueFormat")):
        if values[name] is not None and form not in WITH_FIELDS:
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"The option {name} has no meaning with {of}={form}, only with {' or '.join(WITH_FIELDS)}; leave it out.",
            )
    for name, form in (("keySchema", key), ("valueSchema", value)):
        if values[name] is not None and form != PROTOBUF and not values[name].is_text:
            raise PylogError(
                "PYLOG_INVALID_OPTION", f"The option {name} names a file that cannot be read: it is no text of UTF-8."
            )
    for name, form, of in (("keySubject", key, "keyFormat"), ("valueSubject", value, "valueFormat")):
        if values[name] is not None and form not in REGISTERED:
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"The option {name} has no meaning with {of}={form}, only with {' or '.join(REGISTERED)}; leave it out.",
            )
        if values[name] is not None and registry is None:
            raise PylogError(
                "PYLOG_INVALID_OPTION", f"The option {name} needs schema.registry.url beside it, where the subject is."
            )
    if registry is not None and key not in REGISTERED and value not in REGISTERED:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"A schema registry has no meaning without valueFormat or keyFormat={' or '.join(REGISTERED)}; leave schema.registry.url out.",
        )
    for name in ("mode", "recordPrefix"):
        if values[name] is not None and key == value == BINARY:
            raise PylogError(
                "PYLOG_INVALID_OPTION", f"The option {name} needs valueFormat or keyFormat beside it; leave it out."
            )
    if values["schemaIdPrefix"] and PROTOBUF not in (key, value):
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            "The option schemaIdPrefix has no meaning without valueFormat or keyFormat=protobuf; leave it out.",
        )
    if values["schemaIdPrefix"] and registry is not None:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            "The option schemaIdPrefix is for ids that are not looked up, and with schema.registry.url they are; leave one of them out.",
        )
    return Formats(
        key=key,
        value=value,
        key_schema=_text(key, values["keySchema"]),
        value_schema=_text(value, values["valueSchema"]),
        key_subject=values["keySubject"],
        value_subject=values["valueSubject"],
        registry=registry,
        prefix=values["recordPrefix"] or "",
        mode=values["mode"] or PERMISSIVE,
        key_message=_message("key", key, values),
        value_message=_message("value", value, values),
        key_message_name=values["keyMessage"],
        value_message_name=values["valueMessage"],
    )


def _text(form: str, schema: SchemaText | None) -> str | None:
    return None if schema is None or form == PROTOBUF else str(schema)


def _message(part: str, form: str, values: Mapping[str, Any]) -> Message | None:
    """The message that the options of a key or value name, with protobuf."""
    schema, name = values[f"{part}Schema"], values[f"{part}Message"]
    if form != PROTOBUF:
        if name is not None:
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"The option {part}Message has no meaning without {part}Format=protobuf; leave it out.",
            )
        return None
    if schema is None and values[f"{part}Subject"] is not None:
        return None
    if schema is None or name is None:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"{part}Format=protobuf needs {part}Schema=@file with the descriptors (protoc --include_imports --descriptor_set_out) and "
            f"{part}Message, the name of the message; or {part}Subject, whose newest schema it is, with schema.registry.url.",
        )
    return Message(_descriptors(schema), name, bool(values["schemaIdPrefix"]))


def _descriptors(schema: SchemaText) -> bytes:
    """The descriptors: what stands in a file as it is, in the option itself in Base64."""
    # A set begins with the tag of its first file, which no Base64 has.
    if schema.raw[:1] == b"\n":
        return schema.raw
    try:
        return b64decode(schema.raw, validate=True)
    except ValueError:
        return schema.raw
