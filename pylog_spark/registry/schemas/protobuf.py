"""Protobuf schemas: files of the language `.proto`, or their descriptors in base64, as Confluent's serializers register them. Pure.

They are compiled natively, with all that they import. What is compared and written again is the descriptor, in Protobuf's own JSON form.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from pylog_spark.registry.schemas import ParsedSchema, Referred, SchemaError
from pylog_spark.registry.schemas.protobuf_rules import why_not
from pylog_spark.registry.schemas.protobuf_text import written

#: The longest text.
TEXT_CHARS_MAX = 256 << 10
#: What the file is called while it is compiled; nothing can import it by that name.
_NAME = "this schema"
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
    descriptors : bytes
        All of them as a ``FileDescriptorSet``.
    """

    def __init__(self, text: str | None, descriptor: bytes, files: list[dict[str, Any]], descriptors: bytes) -> None:
        self._text, self.descriptor, self.descriptors = text, descriptor, descriptors
        self.file, *self.imported = files

    @property
    def first_message(self) -> str | None:
        """The full name of the first message, which serializers write where none is named; None in a file without messages."""
        names = [each["name"] for each in self.file.get("messageType", ())]
        package = self.file.get("package")
        return (f"{package}.{names[0]}" if package else str(names[0])) if names else None

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

    sources = dict(referred) | {_NAME: text}
    if max(map(len, sources.values())) > TEXT_CHARS_MAX:
        raise SchemaError(f"a Protobuf schema has at most {TEXT_CHARS_MAX} characters.")
    try:
        descriptor, files, descriptors, is_text = compile_protobuf(_NAME, sources)
    except NativeError as error:
        raise SchemaError(f"it is no Protobuf schema that can be compiled: {error.args[-1]}.") from None
    return ProtobufSchema(text if is_text else None, descriptor, list(map(json.loads, files)), descriptors)
