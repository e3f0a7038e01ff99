"""A Protobuf descriptor written as a `.proto` file, the same for all files that differ in nothing but comments, order of definitions of
different kinds, white space and custom options. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_CAPITAL = re.compile(r"[A-Z]")
# Options whose values are words.
_WORDS = ("optimizeFor", "ctype", "jstype", "idempotencyLevel")
# The highest numbers, one more than that: written as max.
_FIELD_END, _ENUM_MAX = 1 << 29, 2**31 - 1


def written(file: dict[str, Any]) -> str:
    """Give the text of a file."""
    return "\n".join(_file(file)) + "\n"


def scalar(kind: str) -> str:
    """Give the word for ``TYPE_INT32``."""
    return kind.removeprefix("TYPE_").lower()


def map_entries(message: dict[str, Any], full_name: str) -> dict[str, dict[str, Any]]:
    """Give the types that stand for maps in a message, by their full names."""
    return {
        f"{full_name}.{each['name']}": each
        for each in message.get("nestedType", ())
        if each.get("options", {}).get("mapEntry")
    }


def _file(file: dict[str, Any]) -> Iterator[str]:
    syntax = file.get("syntax", "proto2")
    yield f'syntax = "{syntax}";'
    if package := file.get("package"):
        yield f"package {package};"
    modifiers = dict.fromkeys(file.get("publicDependency", ()), "public ")
    modifiers |= dict.fromkeys(file.get("weakDependency", ()), "weak ")
    for index, name in enumerate(file.get("dependency", ())):
        yield f"import {modifiers.get(index, '')}{_quoted(name)};"
    yield from _statements(file, "")
    prefix = f".{package}" if package else ""
    is_proto3 = syntax == "proto3"
    groups = _groups(file.get("extension", ()))
    for message in file.get("messageType", ()):
        if f"{prefix}.{message['name']}" not in groups:
            yield ""
            yield from _message(message, prefix, "", is_proto3)
    for enum in file.get("enumType", ()):
        yield ""
        yield from _enum(enum, "")
    yield from _extensions(file, prefix, "", is_proto3)
    for service in file.get("service", ()):
        yield ""
        yield from _service(service)


def _groups(fields: Iterable[dict[str, Any]]) -> set[str]:
    """The messages that are written where a field of them is."""
    return {field["typeName"] for field in fields if field["type"] == "TYPE_GROUP"}


def _message(message: dict[str, Any], prefix: str, indent: str, is_proto3: bool) -> Iterator[str]:
    yield f"{indent}message {message['name']} {{"
    yield from _body(message, f"{prefix}.{message['name']}", indent + "  ", is_proto3)
    yield f"{indent}}}"


def _body(message: dict[str, Any], full_name: str, indent: str, is_proto3: bool) -> Iterator[str]:
    maps = map_entries(message, full_name)
    nested = {f"{full_name}.{each['name']}": each for each in message.get("nestedType", ())}
    fields = message.get("field", ())
    groups = _groups((*fields, *message.get("extension", ())))
    yield from _statements(message, indent)
    # The choices that an `optional` of proto3 stands for are not written.
    shown = {each["oneofIndex"] for each in fields if "oneofIndex" in each and not each.get("proto3Optional")}
    begun = set()
    for field in fields:
        number = field.get("oneofIndex")
        if number not in shown:
            yield from _field(field, maps, nested, indent, is_proto3)
        elif number not in begun:
            begun.add(number)
            yield f"{indent}oneof {message['oneofDecl'][number]['name']} {{"
            for each in fields:
                if each.get("oneofIndex") == number:
                    yield from _field(each, maps, nested, indent + "  ", is_proto3)
            yield f"{indent}}}"
    for name, each in nested.items():
        if name not in maps and name not in groups:
            yield from _message(each, full_name, indent, is_proto3)
    for enum in message.get("enumType", ()):
        yield from _enum(enum, indent)
    yield from _extensions(message, full_name, indent, is_proto3)
    for span in message.get("extensionRange", ()):
        yield f"{indent}extensions {_span(span['start'], span['end'] - 1, _FIELD_END - 1)};"
    for span in message.get("reservedRange", ()):
        yield f"{indent}reserved {_span(span['start'], span['end'] - 1, _FIELD_END - 1)};"
    for name in message.get("reservedName", ()):
        yield f"{indent}reserved {_quoted(name)};"


def _field(
    field: dict[str, Any], maps: dict[str, Any], nested: dict[str, Any], indent: str, is_proto3: bool
) -> Iterator[str]:
    label = _label(field, is_proto3)
    kind = field.get("typeName") or scalar(field["type"])
    if entry := maps.get(kind):
        key, value = entry["field"]
        kind = f"map<{scalar(key['type'])}, {value.get('typeName') or scalar(value['type'])}>"
        label = ""
    options = _field_options(field)
    if field["type"] == "TYPE_GROUP" and kind in nested:
        yield f"{indent}{label}group {nested[kind]['name']} = {field['number']}{options} {{"
        yield from _body(nested[kind], kind, indent + "  ", is_proto3)
        yield f"{indent}}}"
    else:
        yield f"{indent}{label}{kind} {field['name']} = {field['number']}{options};"


def _label(field: dict[str, Any], is_proto3: bool) -> str:
    label = str(field.get("label", "LABEL_OPTIONAL")).removeprefix("LABEL_").lower()
    in_choice = "oneofIndex" in field and not field.get("proto3Optional")
    if label == "optional" and (in_choice or (is_proto3 and not field.get("proto3Optional"))):
        return ""
    return f"{label} "


def _field_options(field: dict[str, Any]) -> str:
    found = []
    if "defaultValue" in field:
        value = field["defaultValue"]
        if field["type"] == "TYPE_STRING":
            value = _quoted(value)
        elif field["type"] == "TYPE_BYTES":
            # It is escaped already.
            value = f'"{value}"'
        found.append(f"default = {value}")
    if field.get("jsonName", "") not in ("", _json_name(field["name"])):
        found.append(f"json_name = {_quoted(field['jsonName'])}")
    found += _options(field)
    return f" [{', '.join(found)}]" if found else ""


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)


def _enum(enum: dict[str, Any], indent: str) -> Iterator[str]:
    yield f"{indent}enum {enum['name']} {{"
    yield from _statements(enum, indent + "  ")
    for value in enum.get("value", ()):
        options = ", ".join(_options(value))
        yield f"{indent}  {value['name']} = {value.get('number', 0)}{f' [{options}]' if options else ''};"
    for span in enum.get("reservedRange", ()):
        yield f"{indent}  reserved {_span(span.get('start', 0), span.get('end', 0), _ENUM_MAX)};"
    for name in enum.get("reservedName", ()):
        yield f"{indent}  reserved {_quoted(name)};"
    yield f"{indent}}}"


def _extensions(owner: dict[str, Any], prefix: str, indent: str, is_proto3: bool) -> Iterator[str]:
    nested = {f"{prefix}.{each['name']}": each for each in owner.get("nestedType", owner.get("messageType", ()))}
    for field in owner.get("extension", ()):
        yield f"{indent}extend {field['extendee']} {{"
        yield from _field(field, {}, nested, indent + "  ", is_proto3)
        yield f"{indent}}}"


def _service(service: dict[str, Any]) -> Iterator[str]:
    yield f"service {service['name']} {{"
    yield from _statements(service, "  ")
    for method in service.get("method", ()):
        given, answer = (
            f"{'stream ' if method.get(streams) else ''}{method[name]}"
            for name, streams in (("inputType", "clientStreaming"), ("outputType", "serverStreaming"))
        )
        yield f"  rpc {method['name']} ({given}) returns ({answer}) {{"
        yield from _statements(method, "    ")
        yield "  }"
    yield "}"


def _statements(owner: dict[str, Any], indent: str) -> Iterator[str]:
    for option in _options(owner):
        yield f"{indent}option {option};"


def _options(owner: dict[str, Any]) -> list[str]:
    """The options that Protobuf itself has."""
    found = []
    for name, value in sorted(owner.get("options", {}).items()):
        if name in ("mapEntry", "uninterpretedOption") or not isinstance(value, bool | str):
            continue
        if name.isalnum():
            shown = value if name in _WORDS else json.dumps(value) if isinstance(value, bool) else _quoted(value)
            found.append(f"{_CAPITAL.sub(lambda match: '_' + match[0].lower(), name)} = {shown}")
    return found


def _span(first: int, last: int, most: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= most else last}"


def _quoted(text: str) -> str:
    escaped = "".join(
        f"\\{char}"
        if char in '"\\'
        else char
        if char.isprintable()
        else "".join(f"\\{byte:03o}" for byte in char.encode())
        for char in text
    )
    return f'"{escaped}"'
