"""Whether records of one Protobuf schema can be read with another one, as Confluent's registry judges it. Pure.

Fields are compared by their numbers. Numbers of the same encoding may change into each other, as may string and bytes; fields may come and
go, but for required ones and single ones of a `oneof`; a message must not go, nor a field's message be exchanged for one with another name.
Names of fields and constants of enums do not matter, since they are not written.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from pylog_spark.registry.schemas.protobuf_text import map_entries, scalar

_NUMBER = "number"
# What is encoded alike.
_ENCODING = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), _NUMBER),
    **dict.fromkeys(("sint32", "sint64"), "zigzag number"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "four bytes"),
    **dict.fromkeys(("fixed64", "sfixed64"), "eight bytes"),
    "float": "float",
    "double": "double",
}
_MAP, _MESSAGE, _GROUP = "map", "message", "group"


class Described(Protocol):
    """A schema: the descriptor of its file and of all that it imports, as JSON."""

    file: dict[str, Any]
    imported: list[dict[str, Any]]


class _Named(NamedTuple):
    """A message: where it is defined, and under which name there."""

    package: str
    local: str
    is_own: bool
    message: dict[str, Any]


def why_not(reader: Described, writer: Described) -> list[str]:
    """Give why not all records of `writer` can be read with `reader`; empty when they can."""
    if reader.file.get("package") != writer.file.get("package"):
        return [f"/: the package {writer.file.get('package', '')!r} is now {reader.file.get('package', '')!r}"]
    comparison = _Comparison(_types(reader), _types(writer))
    prefix = _prefix(reader.file)
    comparison.messages(reader.file.get("messageType", ()), writer.file.get("messageType", ()), (prefix, prefix), "")
    return comparison.found


class _Comparison:
    """Compares messages, each pair once."""

    def __init__(self, reader: dict[str, _Named], writer: dict[str, _Named]) -> None:
        self._reader, self._writer = reader, writer
        self._compared: set[tuple[str, str]] = set()
        self.found: list[str] = []

    def messages(self, reader: Any, writer: Any, prefixes: tuple[str, str], place: str) -> None:
        """Compare those of one scope, which has a name on each side, by their names."""
        there = {each["name"]: each for each in reader}
        for each in writer:
            name = each["name"]
            if each.get("options", {}).get("mapEntry"):
                continue
            if name not in there:
                self.found.append(f"{place}/{name}: the message is gone")
            else:
                self._message(f"{prefixes[0]}.{name}", f"{prefixes[1]}.{name}", f"{place}/{name}")

    def _message(self, reader_name: str, writer_name: str, place: str) -> None:
        if (reader_name, writer_name) in self._compared:
            return
        self._compared.add((reader_name, writer_name))
        reader, writer = self._reader[reader_name].message, self._writer[writer_name].message
        self._fields(reader, writer, reader_name, writer_name, place)
        self.messages(reader.get("nestedType", ()), writer.get("nestedType", ()), (reader_name, writer_name), place)

    def _fields(
        self, reader: dict[str, Any], writer: dict[str, Any], reader_name: str, writer_name: str, place: str
    ) -> None:
        new = {each["number"]: each for each in reader.get("field", ())}
        old = {each["number"]: each for each in writer.get("field", ())}
        self._choices(reader, writer, place)
        maps = map_entries(reader, reader_name), map_entries(writer, writer_name)
        for number in sorted({*new, *old}):
            where = f"{place}/{number}"
            if number not in new:
                self._gone(old[number], writer, new, reader, where)
            elif number not in old:
                if new[number].get("label") == "LABEL_REQUIRED":
                    self.found.append(f"{where}: the required field {new[number]['name']} was not written")
            else:
                self._field(new[number], old[number], maps, where)

    def _gone(
        self,
        field: dict[str, Any],
        writer: dict[str, Any],
        new: dict[int, dict[str, Any]],
        reader: dict[str, Any],
        where: str,
    ) -> None:
        choice = _choice(writer, field)
        if choice is None:
            if field.get("label") == "LABEL_REQUIRED":
                self.found.append(f"{where}: the required field {field['name']} is gone")
            return
        members = [each["number"] for each in writer["field"] if _choice(writer, each) == choice]
        stands = any(_choice(reader, each) == choice for each in reader.get("field", ()))
        if stands or any(number in new for number in members):
            self.found.append(f"{where}: the field {field['name']} of the oneof {choice} is gone")

    def _choices(self, reader: dict[str, Any], writer: dict[str, Any], place: str) -> None:
        """Fields that could be written together must not become choices of one `oneof`."""
        old = {each["number"]: _choice(writer, each) for each in writer.get("field", ())}
        origins: dict[str, set[str]] = {}
        for each in reader.get("field", ()):
            choice, number = _choice(reader, each), each["number"]
            if choice is not None and number in old:
                origin = old[number]
                origins.setdefault(choice, set()).add(f"field {number}" if origin is None else f"oneof {origin}")
        self.found += [
            f"{place}/{choice}: fields that were written together ({', '.join(sorted(each))}) are choices of one oneof now"
            for choice, each in origins.items()
            if len(each) > 1
        ]

    def _field(
        self, new: dict[str, Any], old: dict[str, Any], maps: tuple[dict[str, Any], dict[str, Any]], where: str
    ) -> None:
        new_kind, old_kind = _kind(new, maps[0]), _kind(old, maps[1])
        if new_kind != old_kind:
            self.found.append(f"{where}: {_shown(old)} cannot be read as {_shown(new)}")
        elif new_kind == _MAP:
            pairs = zip(maps[0][new["typeName"]]["field"], maps[1][old["typeName"]]["field"], strict=True)
            for new_part, old_part in pairs:
                self._field(new_part, old_part, ({}, {}), f"{where}/{old_part['name']}")
        elif new_kind in (_MESSAGE, _GROUP):
            self._message_field(new["typeName"], old["typeName"], where)
        elif new_kind != "text" and new.get("label") != old.get("label"):
            self.found.append(f"{where}: {_shown(old)} was {_label(old)} and is {_label(new)}")

    def _message_field(self, new: str, old: str, where: str) -> None:
        reader, writer = self._reader[new], self._writer[old]
        if reader.local != writer.local:
            self.found.append(f"{where}: {writer.local} cannot be read as {reader.local}")
        elif not (reader.is_own and writer.is_own):
            self._message(new, old, where)


def _types(schema: Described) -> dict[str, _Named]:
    """Every message by its full name."""
    found: dict[str, _Named] = {}
    for index, file in enumerate((schema.file, *schema.imported)):
        package = file.get("package", "")
        pending = [("", each) for each in file.get("messageType", ())]
        while pending:
            outer, message = pending.pop()
            local = f"{outer}.{message['name']}" if outer else message["name"]
            found[f"{_prefix(file)}.{local}"] = _Named(package, local, index == 0, message)
            pending += [(local, each) for each in message.get("nestedType", ())]
    return found


def _prefix(file: dict[str, Any]) -> str:
    return f".{file['package']}" if file.get("package") else ""


def _choice(message: dict[str, Any], field: dict[str, Any]) -> str | None:
    """The `oneof` of a field; an `optional` of proto3 has none."""
    if "oneofIndex" not in field or field.get("proto3Optional"):
        return None
    return str(message["oneofDecl"][field["oneofIndex"]]["name"])


def _kind(field: dict[str, Any], maps: dict[str, Any]) -> str:
    kind = scalar(field["type"])
    if kind == _MESSAGE and field["typeName"] in maps:
        return _MAP
    return _ENCODING.get(kind, kind)


def _label(field: dict[str, Any]) -> str:
    return str(field.get("label", "LABEL_OPTIONAL")).removeprefix("LABEL_").lower()


def _shown(field: dict[str, Any]) -> str:
    return f"{field.get('typeName', '').lstrip('.') or scalar(field['type'])} {field['name']}"
