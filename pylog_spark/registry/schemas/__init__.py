"""Schemas of each type, read and compared: `parsed` is the way in.

Each type has a file, so far `avro`; what it cannot read or judge it refuses with a sentence, and never calls compatible. Schemas of another type
are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from pylog_spark.registry.model import AVRO, Schema

#: The types of which schemas are taken.
SERVED = (AVRO,)
#: How many schemas are kept in their read form.
_PARSED_MAX = 1_000
#: How deep a schema may be nested.
DEPTH_MAX = 100


class SchemaError(ValueError):
    """It is no schema of its type, or has what cannot be judged. `args[0]` is a sentence."""


class ParsedSchema(Protocol):
    """A schema that was read."""

    def text(self, normalize: bool) -> str:
        """Give the text that is stored: the same for schemas that differ in white space alone; with `normalize`, in the order of
        attributes, too."""

    def reads(self, writer: ParsedSchema) -> list[str]:
        """Give why records that were written with `writer` cannot all be read with this schema; empty when they can. Both have the
        same type."""


@lru_cache(maxsize=_PARSED_MAX)
def parsed(schema: Schema, referred: tuple[tuple[str, str], ...]) -> ParsedSchema:
    """Read a schema.

    Parameters
    ----------
    schema : Schema
        Its type and text.
    referred : sequence of (str, str)
        Names and texts of all schemas that it refers to, directly or through others; each behind those that it refers to itself.

    Raises
    ------
    SchemaError
        It is none.
    """
    if schema.schema_type not in SERVED:
        raise SchemaError(
            f"schemas of the type {schema.schema_type[:40]!r} are not served yet, only {', '.join(SERVED)}."
        )
    from pylog_spark.registry.schemas.avro import parse

    return parse(schema.text, [text for _, text in referred])


def not_comparable(reader: ParsedSchema, writer: ParsedSchema) -> str | None:
    """Give why two schemas cannot be compared at all; None when they can."""
    if type(reader) is type(writer):
        return None
    return "the earlier schema has another type"


def joined(messages: Sequence[str], most: int = 10) -> list[str]:
    """Give the messages, cut to `most`, and how many more there are."""
    return [*messages[:most], *([f"and {len(messages) - most} more"] if len(messages) > most else [])]
