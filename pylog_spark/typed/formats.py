"""The formats of keys and values, and what the options of a query say about them. pyspark is not imported here."""

from __future__ import annotations

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
#: Formats whose values have fields: the fields of a value are columns, those of a key are parts of one column.
WITH_FIELDS = ("json", AVRO)
#: Formats whose keys and values may begin with the id of a registered schema, and its type in the registry.
REGISTERED = {AVRO: "AVRO"}
FORMATS = (*WITH_FIELDS, *PLAIN)
#: Spark's type of a format's column means the format, too.
_SYNONYMS = {"int": "integer", "bigint": "long", "smallint": "short"}

PERMISSIVE = "PERMISSIVE"
DROPMALFORMED = "DROPMALFORMED"
FAILFAST = "FAILFAST"
MODES = (PERMISSIVE, DROPMALFORMED, FAILFAST)

#: The column with the text of a damaged record.
CORRUPT = "_corrupt_record"


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
        The schema that is read as or written with, once it is known (`resolved`).
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
        )

    def _document(self, form: str, text: str | None, subject: str | None) -> Document | None:
        if form not in REGISTERED:
            return None
        if text is not None:
            return REGISTERED[form], text, []
        if subject is None or self.registry is None:
            return None
        _, document = self.registry.schemas().latest(subject)
        check_type(document, REGISTERED[form], subject)
        return document


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


def schema_text(text: str) -> str:
    """Give a schema, which is the text or stands in the file behind an @."""
    text = text.strip()
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"names a file that cannot be read: {error}") from None
    if not text:
        raise ValueError("must not be empty")
    return text


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
    return Formats(
        key=key,
        value=value,
        key_schema=values["keySchema"],
        value_schema=values["valueSchema"],
        key_subject=values["keySubject"],
        value_subject=values["valueSubject"],
        registry=registry,
        prefix=values["recordPrefix"] or "",
        mode=values["mode"] or PERMISSIVE,
    )
