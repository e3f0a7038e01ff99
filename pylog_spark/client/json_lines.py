"""A record as a line of JSON, and back: what `pylog consume --json` prints, and an export of lines has.

Keys and values are texts where they are UTF-8, else ``{"base64": "..."}``; times are milliseconds since 1970. Pure.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from pylog_spark.client.consumer import Record


def to_line(record: Record) -> bytes:
    """Give the line of a record, with its end."""
    shown = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestampType": record.timestamp_type,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def from_line(line: bytes) -> Record:
    """Read the record of a line. Raises ValueError that says why it is none, without a dot."""
    try:
        found = json.loads(line)
        return Record(
            str(found["topic"]),
            _number(found, "partition"),
            _number(found, "offset"),
            _number(found, "timestamp"),
            _number(found, "timestampType"),
            _bytes(found["key"]),
            _bytes(found["value"]),
            tuple((str(name), _bytes(content)) for name, content in found["headers"]),
        )
    except KeyError as error:
        raise ValueError(f"it has no {error.args[0]!r}") from None
    except TypeError as error:
        raise ValueError(f"it is no record: {error}") from None


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(shown: object) -> bytes | None:
    if shown is None:
        return None
    if isinstance(shown, str):
        return shown.encode()
    if isinstance(shown, dict) and shown.keys() == {"base64"}:
        return base64.b64decode(shown["base64"], validate=True)
    raise ValueError(f"{shown!r} is neither a text, null, nor an object with base64 alone")


def _number(found: Mapping[str, object], name: str) -> int:
    value = found[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"its {name} is no whole number")
    return value
