"""Avro schemas, by the specification of Avro 1.12: read, checked, and written again as Avro's Java library writes them. Pure.

Aliases, defaults and all other attributes are kept; logical types are not checked, as nothing depends on them. `avro_rules` compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pylog_spark.registry.schemas import DEPTH_MAX, ParsedSchema, SchemaError
from pylog_spark.registry.schemas.avro_rules import why_not
from pylog_spark.registry.schemas.avro_types import (
    ARRAY,
    ENUM,
    FIXED,
    MAP,
    NOTHING,
    PRIMITIVES,
    RECORD,
    UNION,
    Field,
    Type,
)

_NAMED = (RECORD, "error", ENUM, FIXED)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERS = ("ascending", "descending", "ignore")
# Attributes that the specification names; all others are kept as they are.
_OWN = {
    RECORD: ("type", "name", "namespace", "doc", "aliases", "fields"),
    "error": ("type", "name", "namespace", "doc", "aliases", "fields"),
    ENUM: ("type", "name", "namespace", "doc", "aliases", "symbols", "default"),
    FIXED: ("type", "name", "namespace", "doc", "aliases", "size"),
    ARRAY: ("type", "items"),
    MAP: ("type", "values"),
    "field": ("name", "type", "doc", "default", "order", "aliases"),
}
_INT_MAX, _LONG_MAX = 2**31, 2**63


class AvroSchema:
    """An Avro schema that was read."""

    def __init__(self, root: Type, referred: frozenset[str]) -> None:
        self.root = root
        # What other schemas define, which this one only names.
        self._referred = referred

    def text(self, normalize: bool) -> str:
        """See `ParsedSchema`."""
        return json.dumps(
            _Writer(normalize, self._referred).write(self.root, ""), separators=(",", ":"), ensure_ascii=False
        )

    def serialized(self) -> str:
        """See `ParsedSchema`."""
        return self.text(False)

    def reads(self, writer: ParsedSchema) -> list[str]:
        """See `ParsedSchema`."""
        assert isinstance(writer, AvroSchema)
        return why_not(self.root, writer.root)


def parse(text: str, referred: Sequence[str] = ()) -> AvroSchema:
    """Read a schema; those of `referred` define names that it may use. Raises `SchemaError`."""
    reader = _Reader()
    for each in referred:
        reader.read(_document(each), "", 0)
    known = reader.names
    return AvroSchema(reader.read(_document(text), "", 0), known)


def _document(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        # A bare name, as some clients send it.
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise SchemaError(f"an Avro schema is JSON, and this is not ({error}).") from None


class _Reader:
    """Reads types; the names of one schema after the other stay known."""

    def __init__(self) -> None:
        self._names: dict[str, Type] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names that are defined so far."""
        return frozenset(self._names)

    def read(self, given: object, space: str, depth: int) -> Type:
        if depth > DEPTH_MAX:
            raise SchemaError(f"it is nested deeper than {DEPTH_MAX} types.")
        if isinstance(given, str):
            return self._named(given, space)
        if isinstance(given, list):
            return self._union(given, space, depth)
        if not isinstance(given, dict) or "type" not in given:
            raise SchemaError(
                f"{_shown(given)} is no type: a type is a name, a list, or an object with the attribute type."
            )
        kind = given["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, space, depth + 1)
        if kind in PRIMITIVES:
            return Type(kind, others=_others(given, ("type",)))
        if kind in (ARRAY, MAP):
            inner = "items" if kind == ARRAY else "values"
            if inner not in given:
                raise SchemaError(f"a type of kind {kind} has the attribute {inner}.")
            return Type(kind, parts=(self.read(given[inner], space, depth + 1),), others=_others(given, _OWN[kind]))
        if kind in _NAMED:
            return self._definition(given, kind, space, depth)
        if not isinstance(kind, str):
            raise SchemaError(f"{_shown(kind)} is no type.")
        return self._named(kind, space)

    def _named(self, name: str, space: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._names.get(full.lstrip(".")) or self._names.get(name)
        if found is None:
            raise SchemaError(
                f"the type {_shown(name)} is not defined before it is used; a schema that defines it may be a reference."
            )
        return found

    def _union(self, given: list[object], space: str, depth: int) -> Type:
        branches = tuple(self.read(each, space, depth + 1) for each in given)
        seen = set()
        for branch in branches:
            if branch.kind == UNION:
                raise SchemaError("a union holds no other union at once.")
            if branch.full_name in seen:
                raise SchemaError(f"a union has the type {branch.full_name} twice.")
            seen.add(branch.full_name)
        return Type(UNION, parts=branches)

    def _definition(self, given: dict[str, Any], kind: str, space: str, depth: int) -> Type:
        name, own_space = _names(given, space)
        full = f"{own_space}.{name}" if own_space else name
        if full in self._names:
            raise SchemaError(f"the type {full} is defined twice.")
        aliases = _texts(given.get("aliases", []), f"the aliases of {full}")
        made = Type(
            RECORD if kind == "error" else kind,
            name,
            own_space,
            aliases=tuple(each if "." in each or not own_space else f"{own_space}.{each}" for each in aliases),
            given_aliases=aliases,
            doc=_doc(given),
            is_error=kind == "error",
            others=_others(given, _OWN[kind]),
        )
        self._names[full] = made
        if kind == ENUM:
            self._fill_enum(made, given)
        elif kind == FIXED:
            size = given.get("size")
            if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < _INT_MAX:
                raise SchemaError(f"the fixed {full} has a size in bytes, not {_shown(size)}.")
            made.size = size
        else:
            self._fill_record(made, given, depth)
        return made

    def _fill_enum(self, made: Type, given: dict[str, Any]) -> None:
        made.symbols = _texts(given.get("symbols"), f"the symbols of {made.full_name}")
        for symbol in made.symbols:
            if not _NAME.fullmatch(symbol):
                raise SchemaError(f"{_shown(symbol)} is no symbol of an enum: letters, digits and _ make one.")
        if len(set(made.symbols)) != len(made.symbols):
            raise SchemaError(f"the enum {made.full_name} has a symbol twice.")
        if "default" in given:
            made.default = given["default"]
            if made.default not in made.symbols:
                raise SchemaError(f"the default of the enum {made.full_name} is none of its symbols.")

    def _fill_record(self, made: Type, given: dict[str, Any], depth: int) -> None:
        if not isinstance(given.get("fields"), list):
            raise SchemaError(f"the record {made.full_name} has a list of fields.")
        names = set()
        for each in given["fields"]:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or not _NAME.fullmatch(each["name"]):
                raise SchemaError(f"a field of {made.full_name} has no name, or one that is not letters, digits and _.")
            place = f"the field {each['name']} of {made.full_name}"
            if each["name"] in names:
                raise SchemaError(f"{place} is there twice.")
            names.add(each["name"])
            if "type" not in each:
                raise SchemaError(f"{place} has no type.")
            order = each.get("order", "ascending")
            if order not in _ORDERS:
                raise SchemaError(f"{place} has the order {_shown(order)}, not one of {', '.join(_ORDERS)}.")
            aliases = _texts(each.get("aliases", []), f"the aliases of {place}")
            read = self.read(each["type"], made.space, depth + 1)
            default = each.get("default", NOTHING)
            made.fields.append(
                Field(each["name"], read, aliases, default, _doc(each), order, _others(each, _OWN["field"]))
            )
            if default is not NOTHING and not fits(read, default, 0):
                raise SchemaError(f"the default of {place} is no value of its type.")


def fits(kind: Type, value: object, depth: int) -> bool:
    """Whether a default, as JSON, is a value of a type."""
    if depth > DEPTH_MAX:
        return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind.kind in ("int", "long"):
        bound = _INT_MAX if kind.kind == "int" else _LONG_MAX
        return isinstance(value, int) and is_number and -bound <= value < bound
    if kind.kind in ("float", "double"):
        return is_number or value in ("NaN", "Infinity", "-Infinity")
    if kind.kind == UNION:
        return any(fits(branch, value, depth + 1) for branch in kind.parts)
    if kind.kind == ARRAY:
        return isinstance(value, list) and all(fits(kind.parts[0], each, depth + 1) for each in value)
    if kind.kind == MAP:
        return isinstance(value, dict) and all(fits(kind.parts[0], each, depth + 1) for each in value.values())
    if kind.kind == RECORD:
        return isinstance(value, dict) and all(
            fits(each.type, value[each.name], depth + 1) if each.name in value else each.default is not NOTHING
            for each in kind.fields
        )
    if kind.kind == ENUM:
        return value in kind.symbols
    if kind.kind == FIXED:
        return isinstance(value, str) and len(value) == kind.size
    wanted = {"null": type(None), "boolean": bool, "bytes": str, "string": str}[kind.kind]
    return isinstance(value, wanted)


class _Writer:
    """Writes types as JSON, with the attributes in the order of Avro's Java library."""

    def __init__(self, normalize: bool, known: frozenset[str]) -> None:
        self._normalize = normalize
        self._written = set(known)

    def write(self, kind: Type, space: str) -> object:
        if kind.kind in PRIMITIVES:
            return {"type": kind.kind, **self._others(kind.others)} if kind.others else kind.kind
        if kind.kind == UNION:
            return [self.write(branch, space) for branch in kind.parts]
        if kind.kind in (ARRAY, MAP):
            inner = "items" if kind.kind == ARRAY else "values"
            return {"type": kind.kind, inner: self.write(kind.parts[0], space), **self._others(kind.others)}
        if kind.full_name in self._written:
            return kind.name if kind.space == space else kind.full_name
        return self._definition(kind, space)

    def _definition(self, kind: Type, space: str) -> dict[str, Any]:
        self._written.add(kind.full_name)
        made: dict[str, Any] = {"type": "error" if kind.is_error else kind.kind, "name": kind.name}
        if kind.space != space:
            made["namespace"] = kind.space
        if kind.doc is not None:
            made["doc"] = kind.doc
        if kind.kind == RECORD:
            made["fields"] = [self._field(each, kind.space) for each in kind.fields]
        elif kind.kind == ENUM:
            made["symbols"] = list(kind.symbols)
            if kind.default is not NOTHING:
                made["default"] = kind.default
        else:
            made["size"] = kind.size
        made |= self._others(kind.others)
        if kind.given_aliases:
            made["aliases"] = list(kind.given_aliases)
        return made

    def _field(self, each: Field, space: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": each.name, "type": self.write(each.type, space)}
        if each.doc is not None:
            made["doc"] = each.doc
        if each.default is not NOTHING:
            made["default"] = each.default
        if each.order != "ascending":
            made["order"] = each.order
        if each.aliases:
            made["aliases"] = list(each.aliases)
        return made | self._others(each.others)

    def _others(self, others: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(others.items())) if self._normalize else others


def _names(given: dict[str, Any], space: str) -> tuple[str, str]:
    """Name and namespace of a definition."""
    name, own = given.get("name"), given.get("namespace", space)
    if not isinstance(name, str) or not isinstance(own, str):
        raise SchemaError("a record, enum or fixed has a name, and its namespace is text.")
    if "." in name:
        own, _, name = name.rpartition(".")
    if not _NAME.fullmatch(name) or (own and not all(_NAME.fullmatch(part) for part in own.split("."))):
        raise SchemaError(
            f"{_shown(f'{own}.{name}' if own else name)} is no name: letters, digits and _ make one, dots part namespaces."
        )
    if name in PRIMITIVES:
        raise SchemaError(f"{name} is the name of a type of Avro's own.")
    return name, own


def _texts(given: object, place: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise SchemaError(f"{place} are a list of names.")
    return tuple(given)


def _doc(given: dict[str, Any]) -> str | None:
    doc = given.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise SchemaError("the attribute doc is text.")
    return doc


def _others(given: dict[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in own}


def _shown(given: object) -> str:
    return json.dumps(given, ensure_ascii=False, default=str)[:60]
