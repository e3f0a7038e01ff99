"""The formats of keys and values, and what the options of a query say about them. pyspark is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pylog_spark.errors import PylogError

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
#: Formats whose values have fields: the fields of a value are columns, those of a key are parts of one column.
WITH_FIELDS = ("json",)
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
        Fields in DDL, for a format that has fields.
    prefix : str
        What the names of a record's own columns begin with.
    mode : str
        What becomes of damaged records, one of `MODES`.
    """

    key: str = BINARY
    value: str = BINARY
    key_schema: str | None = None
    value_schema: str | None = None
    prefix: str = ""
    mode: str = PERMISSIVE

    @property
    def are_given(self) -> bool:
        """Whether anything is decoded."""
        return self.key != BINARY or self.value != BINARY


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


def formats(values: Mapping[str, Any]) -> Formats:
    """Give what the options say.

    Parameters
    ----------
    values : mapping of str to Any
        The values of the options by their names.

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
        prefix=values["recordPrefix"] or "",
        mode=values["mode"] or PERMISSIVE,
    )
