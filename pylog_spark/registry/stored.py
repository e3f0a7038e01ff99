"""What stands in the topic `_schemas`: keys and values in JSON, as Confluent's registry writes them, so that it can take the topic over. Pure.

===================  ============================================  ==================================================
key (``keytype``)    its fields                                    value
===================  ============================================  ==================================================
``SCHEMA``           ``subject``, ``version``                      a version of a subject; none: deleted for good
``CONFIG``           ``subject``, null for the whole registry      ``compatibilityLevel``; none: not set
``MODE``             ``subject``, null for the whole registry      ``mode``; none: not set
``DELETE_SUBJECT``   ``subject``                                   ``version``: up to it all versions are deleted
``CLEAR_SUBJECT``    ``subject``                                   the same for all versions, for good
``NOOP``                                                           ours: ``maxId``, the highest id ever given
===================  ============================================  ==================================================

Confluent's registry reads no value of ``NOOP``; ours keeps there what a permanent deletion and compaction would take from the topic, so
that no id is given twice.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pylog_spark.registry.model import AVRO, TYPES, Reference, Schema

SCHEMA, CONFIG, MODE, NOOP = "SCHEMA", "CONFIG", "MODE", "NOOP"
DELETE_SUBJECT, CLEAR_SUBJECT = "DELETE_SUBJECT", "CLEAR_SUBJECT"
#: The topic's name, as Confluent's registry calls it where nothing else is set.
TOPIC = "_schemas"
#: Versions and ids are Java's ints.
NUMBER_MAX = 2**31 - 1


class Key(NamedTuple):
    """A record's key. `subject` and `version` only where the table above has them."""

    kind: str
    subject: str | None = None
    version: int | None = None


class Version(NamedTuple):
    """The value of ``SCHEMA``: a version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False


class Text(NamedTuple):
    """The value of ``CONFIG`` and ``MODE``: a level or a mode."""

    text: str


class Number(NamedTuple):
    """The value of ``DELETE_SUBJECT``, a version, and of ``NOOP``, an id; 0 of ``CLEAR_SUBJECT``."""

    number: int


Value = Version | Text | Number
#: A record of the topic; a value of None deletes what its key stands for.
Record = tuple[Key, Value | None]

# Confluent's numbers of the keys' layout.
_MAGIC = {SCHEMA: 1, CONFIG: 0, MODE: 0, NOOP: 0, DELETE_SUBJECT: 0, CLEAR_SUBJECT: 0}


class UnreadableError(ValueError):
    """A record is none of the above; the sentence says why."""


def encode_key(key: Key) -> bytes:
    """Give the bytes of a key: always the same for the same key, as compaction needs it."""
    document: dict[str, object] = {"keytype": key.kind}
    if key.kind != NOOP:
        document["subject"] = key.subject
    if key.kind == SCHEMA:
        document["version"] = key.version
    return _dumped({**document, "magic": _MAGIC[key.kind]})


def encode_value(key: Key, value: Value | None) -> bytes | None:
    """Give the bytes of a value."""
    if value is None:
        return None
    if isinstance(value, Version):
        document: dict[str, object] = {"subject": value.subject, "version": value.version, "id": value.id}
        if value.schema.schema_type != AVRO:
            document["schemaType"] = value.schema.schema_type
        if value.schema.references:
            document["references"] = [each._asdict() for each in value.schema.references]
        return _dumped({**document, "schema": value.schema.text, "deleted": value.deleted})
    if isinstance(value, Text):
        return _dumped({"compatibilityLevel" if key.kind == CONFIG else "mode": value.text})
    if key.kind == NOOP:
        return _dumped({"maxId": value.number})
    return _dumped({"subject": key.subject, "version": value.number} if value.number else {"subject": key.subject})


def decode(key: bytes | None, value: bytes | None) -> Record:
    """Give a record of the topic. Raises `UnreadableError` for one that is not as this file says."""
    try:
        named = _key(json.loads(key or b"null"))
        return named, None if value is None else _value(named, json.loads(value))
    except UnreadableError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"it is no record of a schema registry ({type(error).__name__}: {error})") from None


def _key(document: dict[str, Any]) -> Key:
    kind = document["keytype"]
    if kind not in _MAGIC:
        raise UnreadableError(f"its keytype {str(kind)[:40]!r} is not known")
    subject = document.get("subject")
    if subject is not None and not isinstance(subject, str):
        raise UnreadableError("its subject is no text")
    if subject is None and kind in (SCHEMA, DELETE_SUBJECT, CLEAR_SUBJECT):
        raise UnreadableError("it names no subject")
    return Key(kind, subject, _number(document["version"]) if kind == SCHEMA else None)


def _value(key: Key, document: dict[str, Any]) -> Value | None:
    if key.kind == SCHEMA:
        schema_type = document.get("schemaType") or AVRO
        if schema_type not in TYPES:
            raise UnreadableError(f"its schemaType {str(schema_type)[:40]!r} is not known")
        references = tuple(
            Reference(_text(each["name"]), _text(each["subject"]), _number(each["version"]))
            for each in document.get("references") or ()
        )
        schema = Schema(schema_type, _text(document["schema"]), references)
        assert key.subject is not None
        assert key.version is not None
        # The key counts: it is what compaction goes by.
        return Version(key.subject, key.version, _number(document["id"]), schema, bool(document.get("deleted")))
    if key.kind == CONFIG:
        level = document.get("compatibilityLevel")
        # Confluent's registry has more settings of a subject, and a record that sets only one of those.
        return None if level is None else Text(_text(level))
    if key.kind == MODE:
        return Text(_text(document["mode"]))
    if key.kind == NOOP:
        return Number(_number(document.get("maxId", 0), least=0))
    return Number(_number(document.get("version", 0), least=0))


def _number(given: object, least: int = 1) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= NUMBER_MAX:
        raise UnreadableError(f"{str(given)[:40]!r} is no version or id")
    return given


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise UnreadableError(f"{str(given)[:40]!r} is no text")
    return given


def _dumped(document: dict[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
