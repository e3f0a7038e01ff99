"""Avro's types as they were read from a schema. Pure; `avro` reads and writes them, `avro_rules` compares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
RECORD, ENUM, FIXED, ARRAY, MAP, UNION = "record", "enum", "fixed", "array", "map", "union"


class _Nothing:
    """No default; null may be one."""


NOTHING = _Nothing()


@dataclass(eq=False, slots=True)
class Field:
    """A field of a record."""

    name: str
    type: Type
    aliases: tuple[str, ...]
    default: object
    doc: str | None
    order: str
    others: dict[str, Any]


@dataclass(eq=False, slots=True)
class Type:
    """A type. Named ones have `name` and `space`; which of the other attributes count depends on `kind`."""

    kind: str
    name: str = ""
    space: str = ""
    aliases: tuple[str, ...] = ()
    given_aliases: tuple[str, ...] = ()
    doc: str | None = None
    is_error: bool = False
    fields: list[Field] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: object = NOTHING
    size: int = 0
    parts: tuple[Type, ...] = ()
    others: dict[str, Any] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """The name with its namespace; of a type without a name, its kind."""
        return f"{self.space}.{self.name}" if self.space else self.name or self.kind
