"""What a JSON Schema says, as nodes. Pure; `json_schema` makes them, `json_rules` compares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TRUE, FALSE, REF = "true", "false", "$ref"
STRING, NUMBER, BOOLEAN, NULL, OBJECT, ARRAY = "string", "number", "boolean", "null", "object", "array"
CONST, ENUM, NOT, IF, ALL, ANY, ONE = "const", "enum", "not", "if", "allOf", "anyOf", "oneOf"


@dataclass(eq=False, slots=True)
class Node:
    """What a schema says, or one part of it.

    Attributes
    ----------
    kind : str
        One of the words above; `TRUE` allows everything, `FALSE` nothing.
    given : mapping
        The schema that it is a part of, for keywords with plain values.
    type : str or None
        The type that a value must have; None: it may have any, and this node says something of one of them.
    parts : list of Node
        Of a combination; of `REF` what it refers to.
    named : mapping
        Other schemas in it: a node, or nodes by name or in order, by their keyword.
    """

    kind: str
    given: dict[str, Any]
    type: str | None = None
    parts: list[Node] = field(default_factory=list)
    named: dict[str, Any] = field(default_factory=dict)
