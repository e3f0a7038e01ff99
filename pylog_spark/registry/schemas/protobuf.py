"""Protobuf schemas: files of the language `.proto`, or their descriptors in base64, as Confluent's serializers register them. Pure.

They are compiled natively, with all that they import. What is compared and written again is the descriptor, in Protobuf's own JSON form.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from pylog_spark.registry.schemas import ParsedSchema, Referred, SchemaError
from pylog_spark.registry.schemas.protobuf_rules import why_not
from pylog_spark.registry.schemas.protobuf_text import written

#: The longest text.
TEXT_CHARS_MAX = 256 << 10
#: What the file is called while it is compiled; nothing can import it by that name.
_NAME = "this schema"
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
#: Files that every compiler has.
GOOGLE = "google/protobuf/"


class ProtobufSchema:
    """A Protobuf schema that was read.

    Attributes
    ----------
    file : mapping
        Its ``FileDescriptorProto``, as JSON.
    descriptor : bytes
        The same, encoded.
    imported : list of mapping
        Those of all that it imports, directly or through others.
    """

    def __init__(
        self, text: str | None, descriptor: bytes, file: dict[str, Any], imported: list[dict[str, Any]]
    ) -> None:
        self._text, self.descriptor = text, descriptor
        self.file, self.imported = file, imported

    def text(self, normalize: bool) -> str:
        """See `ParsedSchema`. A descriptor is always written as `normalize` has it: without comments and custom options."""
        if normalize or self._text is None:
            return written(self.file)
        return "\n".join(line.rstrip() for line in self._text.strip().splitlines()) + "\n"

    def serialized(self) -> str:
        """See `ParsedSchema`: the descriptor in base64."""
        return base64.b64encode(self.descriptor).decode()

    def reads(self, writer: ParsedSchema) -> list[str]:
        """See `ParsedSchema`."""
        assert isinstance(writer, ProtobufSchema)
        return why_not(self, writer)


def parse_protobuf(text: str, referred: Referred = ()) -> ProtobufSchema:
    """Read a schema; those of `referred` are what it may import by their names. Raises `SchemaError`."""
    from pylog_spark._native import NativeError, compile_protobuf

    sources = {name: _source(each) for name, each in referred}
    own = _source(text)
    try:
        descriptor, files = compile_protobuf(_NAME, {**sources, _NAME: own})
    except NativeError as error:
        raise SchemaError(f"it is no Protobuf schema that can be compiled: {error.args[-1]}.") from None
    file, *imported = map(json.loads, files)
    return ProtobufSchema(own if isinstance(own, str) else None, descriptor, file, imported)


def _source(text: str) -> str | bytes:
    """The text, or the descriptor that it holds."""
    if len(text) > TEXT_CHARS_MAX:
        raise SchemaError(f"a Protobuf schema has at most {TEXT_CHARS_MAX} characters.")
    if not _BASE64.fullmatch(text):
        return text
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        return text
