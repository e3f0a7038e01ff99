"""Whether records of one Avro schema can be read with another one: Avro's own rules of schema resolution. Pure.

As Avro's Java library compares: names of records, enums and fixed without their namespace, or by the reader's aliases; a field of the
reader alone needs a default; symbols that the reader's enum lacks need its default; numbers may grow; strings and bytes are alike. Logical
types are not compared.
"""

from __future__ import annotations

from pylog_spark.registry.schemas.avro_types import ARRAY, ENUM, FIXED, MAP, NOTHING, RECORD, UNION, Field, Type

# What else a reader's type takes.
_GROWS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
#: How many pairs of types are compared before the answer is no; hostile schemas have very many.
PAIRS_MAX = 100_000


def why_not(reader: Type, writer: Type) -> list[str]:
    """Give why not all records of `writer` can be read with `reader`; empty when they can."""
    return _Comparison().compare(reader, writer, "")


class _Comparison:
    """Compares pairs of types. A pair that is met while it is compared, as in a tree, is taken for compatible until it is known; if it is
    not, what was found on that assumption is forgotten."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[str]] = {}
        self._compared_pairs = 0

    def compare(self, reader: Type, writer: Type, place: str) -> list[str]:
        pair = (id(reader), id(writer))
        if pair in self._known:
            return self._known[pair]
        self._compared_pairs += 1
        if self._compared_pairs > PAIRS_MAX:
            return [f"{place or '/'}: the schemas are too large to be compared"]
        before = len(self._known)
        self._known[pair] = []
        found = self._compared(reader, writer, place)
        if found:
            for later in [key for key in list(self._known)[before:] if not self._known[key]]:
                del self._known[later]
        self._known[pair] = found
        return found

    def _compared(self, reader: Type, writer: Type, place: str) -> list[str]:
        if writer.kind == UNION:
            return [
                message
                for number, branch in enumerate(writer.parts)
                for message in self.compare(reader, branch, f"{place}/{number}")
            ]
        if reader.kind == UNION:
            return self._to_union(reader, writer, place)
        if reader.kind != writer.kind:
            if writer.kind in _GROWS.get(reader.kind, ()):
                return []
            return [f"{place or '/'}: {writer.full_name} cannot be read as {reader.full_name}"]
        if reader.kind in (ARRAY, MAP):
            inner = "items" if reader.kind == ARRAY else "values"
            return self.compare(reader.parts[0], writer.parts[0], f"{place}/{inner}")
        if reader.kind not in (RECORD, ENUM, FIXED):
            return []
        if reader.name != writer.name and writer.full_name not in reader.aliases:
            return [f"{place or '/'}: {reader.full_name} has another name than {writer.full_name}, and no alias for it"]
        if reader.kind == RECORD:
            return self._records(reader, writer, place)
        if reader.kind == FIXED:
            return [] if reader.size == writer.size else [f"{place or '/'}: {reader.full_name} has another size"]
        lacking = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
        if lacking and reader.default is NOTHING:
            return [f"{place or '/'}: the enum {reader.full_name} lacks {', '.join(lacking[:10])}, and has no default"]
        return []

    def _to_union(self, reader: Type, writer: Type, place: str) -> list[str]:
        if any(not self.compare(branch, writer, place) for branch in reader.parts):
            return []
        return [f"{place or '/'}: no branch of the union reads {writer.full_name}"]

    def _records(self, reader: Type, writer: Type, place: str) -> list[str]:
        written = {each.name: each for each in writer.fields}
        found = []
        for each in reader.fields:
            sources = [written[name] for name in dict.fromkeys((each.name, *each.aliases)) if name in written]
            found += self._field(each, sources, reader, f"{place}/fields/{each.name}")
        return found

    def _field(self, each: Field, sources: list[Field], reader: Type, place: str) -> list[str]:
        if len(sources) > 1:
            return [f"{place}: its name and aliases are those of several fields that were written"]
        if sources:
            return self.compare(each.type, sources[0].type, place)
        if each.default is NOTHING:
            return [f"{place}: the field of {reader.full_name} was not written, and has no default"]
        return []
