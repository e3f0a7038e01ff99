"""The columns of a read without Spark: those of records, or typed ones, by formats of keys and values.

Formats have the meaning of the data source's options (docs/typed.md), and are read by the same code, from options that are made here. What
it says of options is said in the words of Python's parameters. Nothing here is shared between threads.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from pylog_spark.client.errors import LogError
from pylog_spark.columns import READ_COLUMNS, arrow_schema
from pylog_spark.errors import PylogError

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import TypedRead
    from pylog_spark.typed.columns import TypedColumns
    from pylog_spark.typed.formats import Formats
    from pylog_spark.typed.types import StructType


class FormatOptions(TypedDict, total=False):
    """How keys and values become typed columns: keyword arguments of `read_range`, `read_directory`, `follow` and
    `Producer.send_all`.

    Each is the option of the data source with that name in camel case; None is an option that is not given.

    Attributes
    ----------
    value_format, key_format : str
        ``json``, ``avro``, ``protobuf``, ``string``, ``long``, ``integer``, ``short``, ``float``, ``double`` or ``binary``.
    schema : pyarrow.Schema or str
        The columns to read, with their types: fields of the value, and columns of the record. A text is DDL (``id bigint, offset bigint``) or the
        JSON of a schema of Spark's. When not given: the fields by `value_schema` or `value_subject`, and all columns of the record.
    value_schema, key_schema : pyarrow.Schema, str, bytes or path
        With ``json`` the fields, as of `schema`. With ``avro`` the schema that wrote the records. With ``protobuf`` the text of a ``.proto`` file that
        imports none but Google's, or descriptors. A path is that of a file with one of these.
    value_message, key_message : str
        With ``protobuf`` the message; by default the first one of a text or a subject.
    value_subject, key_subject : str
        Of the registry: its newest schema takes the place of `value_schema`, `key_schema`.
    registry : str or mapping of str to str
        The URL of a schema registry, with whose ids keys and values of ``avro`` and ``protobuf`` begin; or a mapping with ``url`` and
        settings by Confluent's names, such as ``basic.auth.user.info``.
    schema_id_prefix : bool
        Whether ids of ``protobuf`` are read over, where no registry is at hand.
    mode : str
        What becomes of records that do not parse: ``PERMISSIVE`` (null), ``DROPMALFORMED`` or ``FAILFAST``.
    record_prefix : str
        What the names of the record's own columns begin with.
    """

    value_format: str | None
    key_format: str | None
    schema: pa.Schema | str | None
    value_schema: pa.Schema | str | bytes | os.PathLike[str] | None
    key_schema: pa.Schema | str | bytes | os.PathLike[str] | None
    value_message: str | None
    key_message: str | None
    value_subject: str | None
    key_subject: str | None
    registry: str | Mapping[str, str] | None
    schema_id_prefix: bool | None
    mode: str | None
    record_prefix: str | None


@dataclass(frozen=True)
class Columns:
    """What is read of records.

    Attributes
    ----------
    names : list of str
        The columns of records, as a native reader is asked for them; none in a typed read.
    schema : pyarrow.Schema
        The schema of the batches.
    typed : TypedColumns or None
        The columns of a typed read.
    """

    names: list[str]
    schema: pa.Schema
    typed: TypedColumns | None = None

    def decoder(self) -> TypedRead | None:
        """Give what a native reader makes of keys and values; None where they stay bytes. Raises `LogError`."""
        if self.typed is None:
            return None
        with in_pythons_words():
            return self.typed.native()

    def look_up(self, decoder: TypedRead | None, absent: int) -> int:
        """Find the schemas of writers that a reader has missed, as `TypedColumns.look_up`. Raises `LogError`."""
        assert self.typed is not None
        assert decoder is not None
        with in_pythons_words():
            return self.typed.look_up(decoder, absent)


def read_columns(columns: Sequence[str] | None, given: FormatOptions) -> Columns:
    """Give the columns of a read.

    Parameters
    ----------
    columns : sequence of str or None
        Their names, in the order wanted; all when None.
    given : FormatOptions
        How keys and values are decoded.

    Raises
    ------
    LogError
        A column is unknown, or an option has no meaning or cannot be used.
    TypeError
        There is no such option.
    """
    from pylog_spark.options import BATCH

    if columns is not None and not columns:
        raise LogError("INVALID_ARGUMENT", f"No column is asked for: the columns are {', '.join(READ_COLUMNS)}.")
    if not is_typed(given):
        return _of_records(columns)
    with in_pythons_words():
        said = formats_of(given, BATCH)
        if not said.are_given:
            raise PylogError("PYLOG_INVALID_OPTION", "A schema needs valueFormat or keyFormat beside it; leave it out.")
        return _typed(columns, given.get("schema"), said.resolved())


def is_typed(given: FormatOptions) -> bool:
    """Whether anything is said about formats. Raises `TypeError` for arguments that are none of `FormatOptions`."""
    for name in given:
        if name not in FormatOptions.__annotations__:
            raise TypeError(
                f"there is no argument {name!r}: those of formats are {', '.join(FormatOptions.__annotations__)}"
            )
    return any(value is not None for value in given.values())


def _of_records(columns: Sequence[str] | None) -> Columns:
    names = list(columns if columns is not None else READ_COLUMNS)
    _check_known(names, list(READ_COLUMNS))
    return Columns(names, arrow_schema(names, {}))


def _check_known(names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise LogError(
            "INVALID_ARGUMENT", f"A record has no column {unknown[0]!r}: the columns are {', '.join(known)}."
        )


def _typed(columns: Sequence[str] | None, schema: pa.Schema | str | None, said: Formats) -> Columns:
    from pylog_spark.typed.columns import typed_columns, typed_ddl
    from pylog_spark.typed.formats import CORRUPT
    from pylog_spark.typed.types import STRING, Field, Struct, from_ddl

    found = from_ddl(typed_ddl(said, include_headers=True)) if schema is None else _columns(schema)
    if columns is not None:
        by_name = {field.name: field for field in found.fields}
        by_name.setdefault(CORRUPT, Field(CORRUPT, STRING))
        _check_known(columns, list(by_name))
        found = Struct([by_name[name] for name in columns])
    typed = typed_columns(found, said)
    return Columns([], typed.arrow_schema(), typed)


def _columns(schema: pa.Schema | str) -> StructType:
    from pylog_spark.typed.types import from_ddl, from_json, of_arrow

    if not isinstance(schema, str):
        return of_arrow(schema)
    return from_json(schema) if schema.lstrip().startswith("{") else from_ddl(schema)


def formats_of(given: FormatOptions, scope: str) -> Formats:
    """Give the formats that Python's parameters say, as the options of the data source would.

    Parameters
    ----------
    given : FormatOptions
        The parameters.
    scope : str
        Where they are said, as of `pylog_spark.options`.

    Raises
    ------
    PylogError
        One has no meaning there or with the others, or cannot be used.
    """
    from pylog_spark.options.names import option_values, registry
    from pylog_spark.typed.formats import formats

    said: dict[str, str] = {}
    for name, option in _OPTIONS.items():
        value = given.get(name)
        if isinstance(value, bool):
            said[option] = str(value).lower()
        elif isinstance(value, str) and not name.endswith("_schema"):
            said[option] = value
    for part in ("value", "key"):
        _put_schema(said, part, given.get(f"{part}_schema"))
    asked = given.get("registry")
    if asked is not None:
        settings = {"url": asked} if isinstance(asked, str) else asked
        said |= {f"schema.registry.{name.removeprefix('schema.registry.')}": text for name, text in settings.items()}
    return formats(option_values(said, scope), registry(said))


def _put_schema(said: dict[str, str], part: str, schema: object) -> None:
    """Put a schema of keys or values among the options, as a text."""
    option, is_protobuf = f"{part}Schema", said.get(f"{part}Format", "").strip().lower() == "protobuf"
    if schema is None:
        return
    if isinstance(schema, bytes):
        said[option] = b64encode(schema).decode()
    elif isinstance(schema, os.PathLike):
        path = os.fspath(schema)
        text = _proto_text(path) if is_protobuf else None
        if text is None:
            said[option] = f"@{path}"
        else:
            _put_schema(said, part, text)
    elif isinstance(schema, str):
        if not is_protobuf or "{" not in schema:
            said[option] = schema
            return
        descriptors, message = _compiled(schema, option)
        said[option] = b64encode(descriptors).decode()
        said.setdefault(f"{part}Message", message)
    else:
        said[option] = _ddl(schema)


def _proto_text(path: str) -> str | None:
    """The text of a ``.proto`` file; None of files with other names."""
    if not path.endswith(".proto"):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The schema {path} cannot be read: {error}.") from None


def _compiled(text: str, option: str) -> tuple[bytes, str]:
    from pylog_spark.registry.schemas import SchemaError
    from pylog_spark.registry.schemas.protobuf import parse_protobuf

    try:
        schema = parse_protobuf(text)
    except SchemaError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {option} cannot be used: {error}") from None
    if schema.first_message is None:
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {option} has no message.")
    return schema.descriptors, schema.first_message


def _ddl(schema: pa.Schema) -> str:
    from pylog_spark.typed import avro
    from pylog_spark.typed.types import of_arrow

    return ", ".join(f"{avro.quoted(field.name)} {avro.ddl(field.dataType)}" for field in of_arrow(schema).fields)


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


#: Python's parameters that are options, and the options.
_OPTIONS = {name: _camel(name) for name in FormatOptions.__annotations__ if name not in ("schema", "registry")}
_WORDS = {
    **{option: name for name, option in _OPTIONS.items()},
    "The option ": "",
    "the option ": "",
    "The options ": "",
    "schema.registry.url": "registry",
    ".schema()": "schema",
    ".schema(": "schema=(",
    " after load()": " afterwards",
}
_KNOWN = re.compile("|".join(re.escape(word) for word in sorted(_WORDS, key=len, reverse=True)))


@contextmanager
def in_pythons_words() -> Iterator[None]:
    """Turn a `PylogError` raised inside, which speaks of the data source's options, into a `LogError` that names parameters."""
    try:
        yield
    except PylogError as error:
        sentence = _KNOWN.sub(lambda found: _WORDS[found[0]], error.sentence)
        raise LogError(error.condition, sentence) from None
