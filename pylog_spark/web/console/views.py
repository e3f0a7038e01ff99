"""Keys, values and headers as people read them: text, JSON, Avro, hexadecimal digits. Pure but for the registry that is asked.

At most `VIEW_BYTES_MAX` bytes of each are shown. Numbers in JSON stay as they are written.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Any

#: Most bytes of a key or a value, and of a header, that are shown.
VIEW_BYTES_MAX = 16 * 1024
HEADER_BYTES_MAX = 1024
#: JSON that is nested deeper is shown as text: its indentation would be larger than itself.
JSON_DEPTH_MAX = 64
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
#: What stands before a value whose schema is in a registry: a zero, and the schema's id in four bytes.
_MAGIC, _PREFIX = 0, 5

#: Gives what was written with a schema, as `Schemas.shown` for one user.
Decode = Callable[[int, bytes], str | None]


def view(data: bytes | None, size: int, decode: Decode | None, most: int = VIEW_BYTES_MAX) -> dict[str, Any] | None:
    """Show bytes.

    Parameters
    ----------
    data : bytes or None
        The first `most` bytes at least, or all of them; None is shown as none.
    size : int
        How many there are.
    decode : callable or None
        Decodes Avro; None where there is no registry.
    most : int
        How many bytes are shown.
    """
    if data is None:
        return None
    head, cut = data[:most], size > most
    text = _text(head, cut)
    schema, avro = (None, None) if cut or decode is None else _decoded(data, decode)
    return {
        "size": size,
        "text": text,
        "json": None if text is None or cut else indented(text),
        "avro": avro,
        "schema": schema,
        "hex": head.hex(),
        "cut": cut,
    }


def indented(text: str) -> str | None:
    """JSON text over several lines, or None when it is none; numbers, texts and the order of names stay as they are."""
    if not text.lstrip()[:1] or text.lstrip()[0] not in '{["-0123456789tfn':
        return None
    try:
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    lines, line, depth = [], "", 0
    tokens = _TOKEN.findall(text)
    for place, token in enumerate(tokens):
        if token in "}]":
            depth -= 1
            if tokens[place - 1] not in "{[":
                lines.append(line)
                line = "  " * depth
        line += {",": ",", ":": ": "}.get(token, token)
        if token in "{[":
            depth += 1
            if depth > JSON_DEPTH_MAX:
                return None
        if token == "," or (token in "{[" and tokens[place + 1] not in "}]"):
            lines.append(line)
            line = "  " * depth
    return "\n".join([*lines, line])


def _no_constant(word: str) -> None:
    raise ValueError(word)


def _text(head: bytes, cut: bool) -> str | None:
    """The text; None for bytes that are none. A letter that the cut parts is left out."""
    try:
        return codecs.getincrementaldecoder("utf-8")("strict").decode(head, final=not cut)
    except UnicodeDecodeError:
        return None


def _decoded(data: bytes, decode: Decode) -> tuple[int | None, str | None]:
    if len(data) < _PREFIX or data[0] != _MAGIC:
        return None, None
    schema_id = int.from_bytes(data[1:_PREFIX], "big")
    found = decode(schema_id, data[_PREFIX:])
    return (None, None) if found is None else (schema_id, found or None)
