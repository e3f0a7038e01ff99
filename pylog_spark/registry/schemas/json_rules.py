"""Whether values of one JSON Schema are values of another one, as Confluent's registry judges it in its strict form. Pure.

It looks at one keyword after the other: what a keyword of the new schema allows must be all that the old one allowed. A property or an item
may be added where the old schema allowed no others, and taken away where the new one does. Where Confluent's registry does not look, this
one demands that nothing changed; `docs/registry.md` has the list.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

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

#: How many steps a comparison may take before the answer is no; hostile schemas have very many.
STEPS_MAX = 50_000
_COMBINED = (ALL, ANY, ONE)


def why_not(reader: Node, writer: Node) -> list[str]:
    """Give why not all values of `writer` are values of `reader`; empty when they are."""
    return _Comparison().compare(writer, reader, "")


class _Comparison:
    """Compares pairs of nodes. A pair that is met while it is compared, as in a tree, is taken for compatible until it is known; if it is
    not, what was found on that assumption is forgotten."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[str]] = {}
        self._steps = 0

    def compare(self, old: Node | None, new: Node | None, place: str) -> list[str]:
        old, new = _end(old), _end(new)
        if new is None or new.kind == TRUE or (old is not None and old.kind == FALSE):
            return []
        if old is None:
            return [f"{place or '/'}: all values were allowed, and are not any more"]
        pair = (id(old), id(new))
        if pair in self._known:
            return self._known[pair]
        self._steps += 1 + len(old.given) + len(new.given) + len(old.named.get("properties", ()))
        if self._steps > STEPS_MAX:
            return [f"{place or '/'}: the schemas are too large to be compared"]
        before = len(self._known)
        self._known[pair] = []
        found = self._compared(old, new, place)
        if found:
            for later in [key for key in list(self._known)[before:] if not self._known[key]]:
                del self._known[later]
        self._known[pair] = found
        return found

    def _compared(self, old: Node, new: Node, place: str) -> list[str]:
        if old.kind in _COMBINED or new.kind in _COMBINED:
            if old.kind in _COMBINED and new.kind in _COMBINED:
                return self._both_combined(old, new, place)
            if self._one_combined(old, new, place):
                return []
        if old.kind != new.kind:
            return [f"{place or '/'}: {_shown(old)} is no {_shown(new)}"]
        rules: dict[str, Callable[[Node, Node, str], list[str]]] = {
            STRING: self._strings,
            NUMBER: self._numbers,
            OBJECT: self._objects,
            ARRAY: self._arrays,
            NOT: self._nots,
            CONST: _constants,
            ENUM: _enums,
            IF: _conditions,
        }
        found = rules[old.kind](old, new, place) if old.kind in rules else []
        if old.type is None and new.type is not None:
            found = [f"{place or '/'}: values of other types than {new.type} were allowed", *found]
        return found

    def _one_combined(self, old: Node, new: Node, place: str) -> bool:
        """Whether one choice is enough: of what is allowed now, or of what had to hold together."""
        if new.kind in (ANY, ONE) or (new.kind == ALL and len(new.parts) == 1):
            return any(not self.compare(old, each, place) for each in new.parts)
        if old.kind == ALL or (old.kind in _COMBINED and len(old.parts) == 1):
            return any(not self.compare(each, new, place) for each in old.parts)
        return False

    def _both_combined(self, old: Node, new: Node, place: str) -> list[str]:
        olds, news = _distinct(old.parts), _distinct(new.parts)
        single, singles = len(old.parts) == 1, len(old.parts) == len(new.parts) == 1
        may = new.kind in (old.kind, ANY) or singles or (single and new.kind == ONE)
        if not may and not (len(new.parts) == 1 and old.kind == ALL):
            return [f"{place or '/'}: {old.kind} cannot become {new.kind}"]
        if len(olds) < len(news) and new.kind == ALL:
            return [f"{place or '/'}: allOf has one more part"]
        if len(olds) > len(news) and old.kind != ALL:
            return [f"{place or '/'}: {old.kind} has fewer choices"]
        fitting = [
            [there for there, each in enumerate(news) if not self.compare(one, each, f"{place}/{old.kind}/{index}")]
            for index, one in enumerate(olds)
        ]
        if _matched(fitting) < min(len(olds), len(news)):
            return [f"{place or '/'}: parts of {old.kind} have no counterpart that allows what they allowed"]
        return []

    def _strings(self, old: Node, new: Node, place: str) -> list[str]:
        found = [*_most(old.given, new.given, "maxLength", place), *_least(old.given, new.given, "minLength", place)]
        pattern = new.given.get("pattern")
        if pattern is not None and pattern != old.given.get("pattern"):
            found.append(f"{place}/pattern: another one, or a new one")
        return found

    def _numbers(self, old: Node, new: Node, place: str) -> list[str]:
        before, now = _bounds(old.given), _bounds(new.given)
        found = [
            *_most(before, now, "maximum", place),
            *_most(before, now, "exclusiveMaximum", place),
            *_least(before, now, "minimum", place),
            *_least(before, now, "exclusiveMinimum", place),
        ]
        of_new, of_old = new.given.get("multipleOf"), old.given.get("multipleOf")
        if of_new is not None and (of_old is None or Fraction(str(of_old)) % Fraction(str(of_new))):
            found.append(f"{place}/multipleOf: multiples of {of_old or 'anything'} are not all multiples of {of_new}")
        if new.type == "integer" and old.type != "integer":
            found.append(f"{place or '/'}: a number is no integer")
        return found

    def _nots(self, old: Node, new: Node, place: str) -> list[str]:
        if self.compare(new.parts[0], old.parts[0], f"{place}/not"):
            return [f"{place}/not: it excludes more"]
        return []

    def _objects(self, old: Node, new: Node, place: str) -> list[str]:
        return [
            *self._required(old, new, f"{place}/required"),
            *self._properties(old, new, f"{place}/properties"),
            *self._patterns(old, new, f"{place}/patternProperties"),
            *self._dependencies(old, new, f"{place}/dependencies"),
            *self._rest(old, new, "additionalProperties", place),
            *self._unevaluated(old, new, "unevaluatedProperties", place),
            *self.compare(old.named.get("propertyNames"), new.named.get("propertyNames"), f"{place}/propertyNames"),
            *_most(old.given, new.given, "maxProperties", place),
            *_least(old.given, new.given, "minProperties", place),
        ]

    def _required(self, old: Node, new: Node, place: str) -> list[str]:
        properties = new.named["properties"]
        unopen = not _is_open(old)
        return [
            f"{place}/{name}: it was not required, and has no default"
            for name in new.given.get("required", ())
            if name not in old.given.get("required", ())
            # Readers put in the default.
            and not (_has_default(properties.get(name)) and (unopen or name in old.named["properties"]))
        ]

    def _properties(self, old: Node, new: Node, place: str) -> list[str]:
        before, now = old.named["properties"], new.named["properties"]
        found = []
        for name in {**before, **now}:
            where = f"{place}/{name}"
            if name not in now:
                found += self._taken(before[name], new, name, where)
            elif name not in before:
                found += self._added(old, now[name], name, where)
            else:
                found += self.compare(before[name], now[name], where)
        return found

    def _taken(self, before: Node, new: Node, name: str, where: str) -> list[str]:
        covering = _covering(new, name)
        if covering is None:
            return [f"{where}: whether a pattern of the new schema fits it cannot be judged"]
        # It must fit all that there is now for such a name.
        return [why for each in covering for why in self.compare(before, each, where)]

    def _added(self, old: Node, now: Node, name: str, where: str) -> list[str]:
        covering = _covering(old, name)
        if covering is None:
            return [f"{where}: whether a pattern of the old schema fits it cannot be judged"]
        if not covering:
            return self.compare(None, now, where)
        reasons = [self.compare(each, now, where) for each in covering]
        return [] if not all(reasons) else reasons[0]

    def _patterns(self, old: Node, new: Node, place: str) -> list[str]:
        before, now = old.named["patternProperties"], new.named["patternProperties"]
        found = []
        for pattern in {**before, **now}:
            where = f"{place}/{pattern}"
            if pattern not in now:
                rest = new.named.get("additionalProperties", new.named.get("unevaluatedProperties"))
                found += self.compare(before[pattern], rest, where)
            elif pattern in before:
                found += self.compare(before[pattern], now[pattern], where)
            elif not _is_closed(old) or before:
                found += self.compare(None, now[pattern], where)
            else:
                # There are no other properties than those that are named.
                for name, schema in old.named["properties"].items():
                    if _matches(pattern, name) is not False:
                        found += self.compare(schema, now[pattern], where)
        return found

    def _dependencies(self, old: Node, new: Node, place: str) -> list[str]:
        found = [
            f"{place}/{name}: it demands more properties"
            for name, wanted in new.named["names"].items()
            if not wanted <= old.named["names"].get(name, frozenset())
        ]
        for name, schema in new.named["schemas"].items():
            found += self.compare(old.named["schemas"].get(name), schema, f"{place}/{name}")
        return found

    def _rest(self, old: Node, new: Node, name: str, place: str) -> list[str]:
        return self.compare(old.named.get(name), new.named.get(name), f"{place}/{name}")

    def _unevaluated(self, old: Node, new: Node, name: str, place: str) -> list[str]:
        return self.compare(old.named.get(name), new.named.get(name), f"{place}/{name}")

    def _arrays(self, old: Node, new: Node, place: str) -> list[str]:
        found = [
            *self.compare(old.named.get("every"), new.named.get("every"), f"{place}/items"),
            *self._items(old, new, f"{place}/items"),
            *self.compare(old.named.get("rest"), new.named.get("rest"), f"{place}/additionalItems"),
            *self._unevaluated(old, new, "unevaluatedItems", place),
            *_most(old.given, new.given, "maxItems", place),
            *_least(old.given, new.given, "minItems", place),
            *self._contains(old, new, place),
        ]
        if new.given.get("uniqueItems") and not old.given.get("uniqueItems"):
            found.append(f"{place}/uniqueItems: items could be alike")
        return found

    def _items(self, old: Node, new: Node, place: str) -> list[str]:
        before, now = old.named["first"], new.named["first"]
        found = []
        for index in range(max(len(before), len(now))):
            one = before[index] if index < len(before) else _rest_of_items(old)
            other = now[index] if index < len(now) else _rest_of_items(new)
            found += self.compare(one, other, f"{place}/{index}")
        return found

    def _contains(self, old: Node, new: Node, place: str) -> list[str]:
        if "contains" not in new.named:
            return []
        if "contains" not in old.named:
            return [f"{place}/contains: it was not there"]
        found = self.compare(old.named["contains"], new.named["contains"], f"{place}/contains")
        if "maxContains" in new.given and old.given.get("contains") != new.given.get("contains"):
            found = [f"{place}/contains: with maxContains it must not change", *found]
        before, now = ({"minContains": each.given.get("minContains", 1), **each.given} for each in (old, new))
        return [*found, *_most(before, now, "maxContains", place), *_least(before, now, "minContains", place)]


def _constants(old: Node, new: Node, place: str) -> list[str]:
    return [] if _key(old.given[CONST]) == _key(new.given[CONST]) else [f"{place}/const: it is another value"]


def _enums(old: Node, new: Node, place: str) -> list[str]:
    now = {_key(each) for each in new.given[ENUM]}
    gone = [each for each in map(_key, old.given[ENUM]) if each not in now]
    return [f"{place}/enum: without {', '.join(each[:40] for each in gone[:10])}"] if gone else []


def _conditions(old: Node, new: Node, place: str) -> list[str]:
    before, now = ({name: each.given.get(name) for name in (IF, "then", "else")} for each in (old, new))
    if _key(before) != _key(now) or REF in _key(now):
        return [
            f"{place}/if: whether a changed condition, or one with $ref, allows all that it allowed cannot be judged"
        ]
    return []


def _end(node: Node | None) -> Node | None:
    while node is not None and node.kind == REF:
        node = node.parts[0]
    return node


def _is_open(node: Node) -> bool:
    """Whether properties without a schema of their own may have every value."""
    rest = _end(node.named.get("additionalProperties", node.named.get("unevaluatedProperties")))
    return (rest is None or rest.kind == TRUE) and not node.named["patternProperties"]


def _is_closed(node: Node) -> bool:
    rest = _end(node.named.get("additionalProperties"))
    return rest is not None and rest.kind == FALSE


def _covering(node: Node, name: str) -> list[Node] | None:
    """What holds for a property without a schema of its own; empty: nothing; None: it cannot be judged."""
    found = []
    for pattern, schema in node.named["patternProperties"].items():
        fits = _matches(pattern, name)
        if fits is None:
            return None
        if fits:
            found.append(schema)
    if found:
        return found
    rest = node.named.get("additionalProperties", node.named.get("unevaluatedProperties"))
    return [] if rest is None else [rest]


def _rest_of_items(node: Node) -> Node | None:
    found: Node | None = node.named.get("every", node.named.get("rest", node.named.get("unevaluatedItems")))
    return found


def _matches(pattern: str, name: str) -> bool | None:
    from pylog_spark._native import pattern_matches

    return pattern_matches(pattern, name)


def _has_default(node: Node | None) -> bool:
    return node is not None and "default" in node.given


def _bounds(given: dict[str, Any]) -> dict[str, Any]:
    """The bounds of numbers; in draft 4 a bound and whether it is excluded are two keywords."""
    found: dict[str, Any] = {
        name: given[name] for name in ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum") if name in given
    }
    for name, excluded in (("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")):
        if isinstance(found.get(excluded), bool) and found.pop(excluded) and name in found:
            found[excluded] = found.pop(name)
    return found


def _most(old: dict[str, Any], new: dict[str, Any], name: str, place: str) -> list[str]:
    before, now = old.get(name), new.get(name)
    return (
        [f"{place}/{name}: it was {before or 'not there'}, and is {now}"]
        if now is not None and (before is None or before > now)
        else []
    )


def _least(old: dict[str, Any], new: dict[str, Any], name: str, place: str) -> list[str]:
    before, now = old.get(name), new.get(name)
    return (
        [f"{place}/{name}: it was {before or 'not there'}, and is {now}"]
        if now is not None and (before is None or before < now)
        else []
    )


def _distinct(parts: list[Node]) -> list[Node]:
    """Without those that say the same twice."""
    seen: dict[tuple[str, str | None, str], Node] = {}
    for each in parts:
        seen.setdefault((each.kind, each.type, _key(each.given)), each)
    return list(seen.values())


def _matched(fitting: list[list[int]]) -> int:
    """How many of the old parts have a new part of their own: the largest matching, by paths that grow it."""
    taken: dict[int, int] = {}

    def found(index: int, seen: set[int]) -> bool:
        for there in fitting[index]:
            if there not in seen:
                seen.add(there)
                if there not in taken or found(taken[there], seen):
                    taken[there] = index
                    return True
        return False

    return sum(found(index, set()) for index in range(len(fitting)))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(node: Node) -> str:
    return node.type or node.kind
