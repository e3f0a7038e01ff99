"""Schemas of each type, read and compared: `parsing` is the way in, `ParsedSchema` what comes of it.

Each type has a file; what it cannot read or judge it refuses with a sentence, and never calls compatible. Both take long for large schemas and
depend on nothing but their arguments: `judged` keeps what they found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pylog_spark.registry.model import AVRO, JSON, PROTOBUF

#: The types of which schemas are taken, in the order of Confluent's answer.
SERVED = (JSON, PROTOBUF, AVRO)
#: How deep a schema may be nested.
DEPTH_MAX = 100

#: Names and texts of all schemas that a schema refers to, directly or through others; each behind those that it refers to itself.
Referred = tuple[tuple[str, str], ...]


class SchemaError(ValueError):
    """It is no schema of its type, or has what cannot be judged. `args[0]` is a sentence."""


class ParsedSchema(Protocol):
    """A schema that was read."""

    def text(self, normalize: bool) -> str:
        """Give the text that is stored: the same for schemas that differ in white space alone; with `normalize`, in the order of
        attributes, too."""

    def serialized(self) -> str:
        """Give it in the form that clients ask for with ``format=serialized``; its text, where its type has none."""

    def reads(self, writer: ParsedSchema) -> list[str]:
        """Give why records that were written with `writer` cannot all be read with this schema; empty when they can. Both have the
        same type."""


def not_comparable(reader: ParsedSchema, writer: ParsedSchema) -> str | None:
    """Give why two schemas cannot be compared at all; None when they can."""
    if type(reader) is type(writer):
        return None
    return "the earlier schema has another type"


def joined(messages: Sequence[str], most: int = 10) -> list[str]:
    """Give the messages, cut to `most`, and how many more there are."""
    return [*messages[:most], *([f"and {len(messages) - most} more"] if len(messages) > most else [])]
