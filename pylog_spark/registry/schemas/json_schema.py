"""JSON Schemas, drafts 4 to 2020-12: checked by their meta-schema, their references resolved, and read into nodes that can be compared. Pure.

Without ``$schema`` a schema is of draft 7, as Confluent's registry has it. Patterns are not executed here, nothing is fetched from anywhere.
A schema is a conjunction of what its keywords say of each kind of value; a `Node` is one such part, or their combination.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn
from urllib.parse import urljoin

from pylog_spark.registry.schemas import DEPTH_MAX, ParsedSchema, Referred, SchemaError
from pylog_spark.registry.schemas.json_nodes import (
    ALL,
    ANY,
    ARRAY,
    CONST,
    ENUM,
    FALSE,
    IF,
    NOT,
    NUMBER,
    OBJECT,
    ONE,
    REF,
    STRING,
    TRUE,
    Node,
)
from pylog_spark.registry.schemas.json_rules import why_not

#: How many values a schema may have, those of lists and objects included, and how many one list may.
VALUES_MAX = 10_000
LIST_MAX = 2_000
#: How many values a list may have that are not all texts: those of `enum` are compared with each other.
MIXED_LIST_MAX = 200

# The keywords that say something of one kind of value.
_KEYWORDS = {
    STRING: {"maxLength", "minLength", "pattern"},
    NUMBER: {"maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"},
    OBJECT: {
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "required",
    }
    | {"minProperties", "maxProperties", "dependencies", "dependentRequired", "dependentSchemas"},
    ARRAY: {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains"}
    | {"minItems", "maxItems", "uniqueItems"},
}
# Drafts that have nothing beside a reference.
_ALONE = ("draft-04/schema", "draft-06/schema", "draft-07/schema")
_DYNAMIC = ("$dynamicRef", "$recursiveRef")


class JsonSchema:
    """A JSON Schema that was read."""

    def __init__(self, document: Any, root: Node) -> None:
        self._document, self.root = document, root

    def text(self, normalize: bool) -> str:
        """See `ParsedSchema`."""
        return json.dumps(self._document, separators=(",", ":"), ensure_ascii=False, sort_keys=normalize)

    def serialized(self) -> str:
        """See `ParsedSchema`."""
        return self.text(False)

    def reads(self, writer: ParsedSchema) -> list[str]:
        """See `ParsedSchema`."""
        assert isinstance(writer, JsonSchema)
        return why_not(self.root, writer.root)


def parse_json(text: str, referred: Referred = ()) -> JsonSchema:
    """Read a schema; those of `referred` are what its ``$ref`` may name. Raises `SchemaError`."""
    try:
        import jsonschema
        import referencing
    except ImportError:
        raise SchemaError(
            "the broker serves JSON Schemas where pylog-spark[registry] is installed: pip install 'pylog-spark[registry]'."
        ) from None
    from jsonschema.validators import validator_for
    from referencing.jsonschema import DRAFT7, specification_with

    document = _document(text)
    validator = validator_for(document, default=jsonschema.Draft7Validator) if isinstance(document, dict) else None
    validator = validator or jsonschema.Draft7Validator
    error = next(iter(validator(validator.META_SCHEMA).iter_errors(document)), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path))
        raise SchemaError(f"at /{place[:200]}: {error.message[:200]}.")
    draft = validator.META_SCHEMA["$schema"].rstrip("#")
    specification = specification_with(draft, default=DRAFT7)
    naming = "id" if draft.endswith("draft-04/schema") else "$id"
    base: Any = document.get(naming, "") if isinstance(document, dict) else ""
    resources: list[tuple[str, Any]] = []
    for name, each in referred:
        resource = referencing.Resource.from_contents(_document(each), default_specification=specification)
        # By the name as it is, and by what it comes to behind the address of the schema.
        resources += [(name, resource), (urljoin(base, name), resource)]
    try:
        root = referencing.Resource.from_contents(document, default_specification=specification)
        registry: Any = referencing.Registry().with_resources([*resources, (base, root)])
        reader = _Reader(naming, alone=draft.endswith(_ALONE))
        return JsonSchema(document, reader.read(document, registry.resolver(base)))
    except (referencing.exceptions.Unresolvable, referencing.exceptions.Unretrievable) as unresolved:
        raise SchemaError(
            f"$ref leads nowhere: {str(unresolved.ref)[:200]!r}; what it refers to is in the schema or one of its references."
        ) from None
    except (ValueError, AttributeError, TypeError, LookupError) as odd:
        raise SchemaError(f"its references cannot be read ({type(odd).__name__}: {str(odd)[:200]}).") from None


def _document(text: str) -> Any:
    try:
        document = json.loads(text, parse_constant=_no_number, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"a JSON Schema is JSON, and this is not ({str(error)[:200]}).") from None
    if not isinstance(document, dict | bool):
        raise SchemaError("a JSON Schema is an object, true or false.")
    _check_size(document)
    return document


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _number(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _check_size(document: Any) -> None:
    pending = [(document, 0)]
    count = 0
    while pending:
        value, depth = pending.pop()
        if not isinstance(value, dict | list):
            continue
        count += len(value)
        if depth > DEPTH_MAX:
            raise SchemaError(f"it is nested deeper than {DEPTH_MAX}.")
        if isinstance(value, list):
            most = LIST_MAX if all(isinstance(each, str) for each in value) else MIXED_LIST_MAX
            if len(value) > most:
                raise SchemaError(f"it has a list of more than {LIST_MAX} texts, or {MIXED_LIST_MAX} other values.")
        if count > VALUES_MAX:
            raise SchemaError(f"it has more than {VALUES_MAX} values.")
        pending += [(each, depth + 1) for each in (value.values() if isinstance(value, dict) else value)]


class _Reader:
    """Makes nodes; what is referred to, once each."""

    def __init__(self, naming: str, alone: bool) -> None:
        self._naming, self._alone = naming, alone
        self._known: dict[int, Node] = {}
        self._pending: list[tuple[Node, Any, Any]] = []

    def read(self, document: Any, resolver: Any) -> Node:
        root = self._node(document, resolver)
        references = []
        while self._pending:
            reference, target, target_resolver = self._pending.pop()
            reference.parts = [self._node(target, target_resolver)]
            references.append(reference)
        for reference in references:
            self._check_end(reference)
        return root

    def _check_end(self, reference: Node) -> None:
        seen = set()
        while reference.kind == REF:
            if id(reference) in seen:
                raise SchemaError("a $ref leads back to itself, and says nothing.")
            seen.add(id(reference))
            reference = reference.parts[0]

    def _node(self, schema: Any, resolver: Any) -> Node:
        if schema is True or schema == {}:
            return Node(TRUE, {})
        if schema is False:
            return Node(FALSE, {})
        if not isinstance(schema, dict):
            raise SchemaError("a $ref leads to something that is no schema.")
        if id(schema) in self._known:
            return self._known[id(schema)]
        resolver = self._inside(schema, resolver)
        for name in _DYNAMIC:
            if name in schema:
                raise SchemaError(f"{name} cannot be judged: use $ref.")
        made = Node(TRUE, schema)
        self._known[id(schema)] = made
        parts = self._parts(schema, resolver)
        if len(parts) == 1:
            only = parts[0]
            made.kind, made.type, made.parts, made.named = only.kind, only.type, only.parts, only.named
            if only.kind == REF:
                # What it refers to is filled in later.
                self._pending[-1] = (made, *self._pending[-1][1:])
        elif parts:
            made.kind, made.parts = ALL, parts
        return made

    def _inside(self, schema: dict[str, Any], resolver: Any) -> Any:
        identifier = schema.get(self._naming)
        if not isinstance(identifier, str) or identifier.startswith("#"):
            return resolver
        # Names in it are looked for behind its own address.
        return resolver.lookup(identifier).resolver

    def _parts(self, schema: dict[str, Any], resolver: Any) -> list[Node]:
        parts = []
        if "$ref" in schema:
            found = resolver.lookup(schema["$ref"])
            reference = Node(REF, schema)
            self._pending.append((reference, found.contents, found.resolver))
            parts.append(reference)
            if self._alone:
                return parts
        parts += self._types(schema, resolver)
        parts += [Node(kind, schema) for kind in (CONST, ENUM) if kind in schema]
        if NOT in schema:
            parts.append(Node(NOT, schema, parts=[self._node(schema[NOT], resolver)]))
        if IF in schema and ("then" in schema or "else" in schema):
            parts.append(Node(IF, schema))
        parts += [
            Node(kind, schema, parts=[self._node(each, resolver) for each in schema[kind]])
            for kind in (ALL, ANY, ONE)
            if kind in schema
        ]
        return parts

    def _types(self, schema: dict[str, Any], resolver: Any) -> list[Node]:
        given = schema.get("type")
        if given is None:
            return [
                self._typed(kind, None, schema, resolver) for kind, words in _KEYWORDS.items() if words & schema.keys()
            ]
        if isinstance(given, str):
            return [self._typed(given, given, schema, resolver)]
        choices = [self._typed(each, each, schema, resolver) for each in given]
        return choices if len(choices) == 1 else [Node(ANY, schema, parts=choices)]

    def _typed(self, kind: str, wanted: str | None, schema: dict[str, Any], resolver: Any) -> Node:
        made = Node(NUMBER if kind == "integer" else kind, schema, wanted)
        if kind == OBJECT:
            self._object(made, resolver)
        elif kind == ARRAY:
            self._array(made, resolver)
        return made

    def _object(self, made: Node, resolver: Any) -> None:
        given = made.given
        for name in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
            if name in given:
                made.named[name] = self._node(given[name], resolver)
        for name in ("properties", "patternProperties"):
            made.named[name] = {key: self._node(each, resolver) for key, each in given.get(name, {}).items()}
        dependencies = {**given.get("dependencies", {}), **given.get("dependentSchemas", {})}
        made.named["schemas"] = {
            key: self._node(each, resolver) for key, each in dependencies.items() if not isinstance(each, list)
        }
        names = {**given.get("dependencies", {}), **given.get("dependentRequired", {})}
        made.named["names"] = {key: frozenset(each) for key, each in names.items() if isinstance(each, list)}

    def _array(self, made: Node, resolver: Any) -> None:
        given = made.given
        first = given.get("prefixItems", given["items"] if isinstance(given.get("items"), list) else None)
        rest = given.get("items" if "prefixItems" in given else "additionalItems")
        every = given.get("items") if first is None else None
        if every is False:
            every, rest = None, False
        made.named["first"] = [self._node(each, resolver) for each in first or ()]
        for name, schema in (
            ("every", every),
            ("rest", rest),
            *((each, given.get(each)) for each in ("contains", "unevaluatedItems")),
        ):
            if schema is not None:
                made.named[name] = self._node(schema, resolver)
