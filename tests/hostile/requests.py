"""Requests made from Apache Kafka's own message descriptors, with the place of every length field remembered.

The descriptors lie in the kafka-clients jar (``common/message/*.json``), so every field of every version is here without
being written down again, and nothing of pylog's own codec is used.
"""

import functools
import json
import random
import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.peers.jars import jars

_TEXT = "hostile"
# Before a struct that may be null and is not.
_PRESENT = b"\x01"
_UNKNOWN_TAG = 40
_NUMBERS = {
    "bool": ">b",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}
_FIXED = {"uuid": bytes(16)}
# Small honest values where 0 would be refused before the interesting part is reached.
_VALUES = {
    "NumPartitions": 1,
    "ReplicationFactor": 1,
    "TimeoutMs": 100,
    "Acks": 1,
    "Count": 1,
    "ResourceType": 2,
    "MaxBytes": 1000,
}


@dataclass
class Frame:
    """The bytes of one request behind its size field, and where its length fields are."""

    data: bytearray = field(default_factory=bytearray)
    lengths: list[tuple[int, str]] = field(default_factory=list)

    def number(self, layout: str, value: float) -> None:
        """A number of fixed size."""
        self.data += struct.pack(layout, value)

    def length(self, value: int | None, kind: str) -> None:
        """A length field: `kind` is int16, int32, or uvarint (Kafka's compact form: length + 1)."""
        self.lengths.append((len(self.data), kind))
        if kind == "uvarint":
            self.data += uvarint(0 if value is None else value + 1)
        else:
            self.number({"int16": ">h", "int32": ">i"}[kind], -1 if value is None else value)

    def damaged(self, place: int, kind: str, value: int) -> bytes:
        """The request with the length field at `place` set to `value` (taken modulo its size), as sent on the wire."""
        if kind == "uvarint":
            old, new = 1, uvarint((value + 1) % 2**32)
        else:
            old = {"int16": 2, "int32": 4}[kind]
            new = (value % 2 ** (8 * old)).to_bytes(old, "big")
        return framed(bytes(self.data[:place]) + new + bytes(self.data[place + old :]))


def uvarint(value: int) -> bytes:
    """Unsigned base-128 varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def framed(data: bytes) -> bytes:
    """`data` behind its size."""
    return struct.pack(">i", len(data)) + data


def _within(versions: str, version: int) -> bool:
    if versions == "none":
        return False
    low, _, high = versions.rstrip("+").partition("-")
    return int(low) <= version and (versions.endswith("+") or version <= int(high or low))


@functools.cache
def descriptors() -> dict[int, dict[str, Any]]:
    """API key -> request descriptor."""
    (jar,) = (jar_path for jar_path in jars("kafka") if re.fullmatch(r"kafka-clients-[\d.]+\.jar", jar_path.name))
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                descriptor = json.loads(text)
                found[descriptor["apiKey"]] = descriptor
    return found


def request(api_key: int, version: int) -> Frame:
    """A request of `api_key` that every list has one element in."""
    descriptor = descriptors()[api_key]
    flexible = _within(descriptor["flexibleVersions"], version)
    frame = Frame()
    frame.number(">h", api_key)
    frame.number(">h", version)
    frame.number(">i", 1)
    frame.length(len(_TEXT), "int16")
    frame.data += _TEXT.encode()
    if flexible:
        _tags(frame)
    structs = {struct["name"]: struct["fields"] for struct in descriptor.get("commonStructs", [])}
    _fields(frame, descriptor["fields"], version, flexible, structs)
    return frame


def _tags(frame: Frame) -> None:
    """A tag section with one unknown field in it, which a broker must skip."""
    frame.data += uvarint(1) + uvarint(_UNKNOWN_TAG)
    frame.lengths.append((len(frame.data), "uvarint"))
    frame.data += uvarint(3) + b"tag"


def _fields(frame: Frame, fields: list[dict[str, Any]], version: int, flexible: bool, structs: dict[str, Any]) -> None:
    for described in fields:
        if _within(described["versions"], version) and not _within(described.get("taggedVersions", "none"), version):
            is_flexible = flexible and described.get("flexibleVersions") != "none"
            _value(frame, described["type"], described, version, is_flexible, structs)
    if flexible:
        _tags(frame)


def _value(
    frame: Frame, kind: str, described: dict[str, Any], version: int, flexible: bool, structs: dict[str, Any]
) -> None:
    if kind.startswith("[]"):
        frame.length(1, "uvarint" if flexible else "int32")
        _value(frame, kind[2:], described, version, flexible, structs)
    elif kind in _NUMBERS:
        frame.number(_NUMBERS[kind], _VALUES.get(described["name"], 0))
    elif kind in _FIXED:
        frame.data += _FIXED[kind]
    elif kind == "string":
        frame.length(len(_TEXT), "uvarint" if flexible else "int16")
        frame.data += _TEXT.encode()
    elif kind in ("bytes", "records"):
        frame.length(61, "uvarint" if flexible else "int32")
        frame.data += bytes(61)
    else:
        if kind == described["type"] and _within(described.get("nullableVersions", "none"), version):
            frame.data += _PRESENT
        _fields(frame, structs.get(kind) or described["fields"], version, flexible, structs)


Ranges = dict[int, tuple[int, int]]


def requests_that_are_answered(ranges: Ranges) -> list[tuple[int, int]]:
    """(API key, version) of all of `ranges`, but for Produce before 3: advertised only, as Apache Kafka does (KAFKA-18659)."""
    versions = (
        (key, version) for key, (low, high) in ranges.items() for version in range(max(low, _oldest(key)), high + 1)
    )
    return [(key, version) for key, version in versions if key != 0 or version >= 3]


def mutated_request(versions: list[tuple[int, int]], randomness: random.Random) -> tuple[str, bytes]:
    """(what it is, bytes) of a good request of one of `versions` with some bytes behind its key and version changed."""
    key, version = randomness.choice(versions)
    data = bytearray(request(key, version).data)
    for _ in range(randomness.randint(1, 4)):
        data[randomness.randrange(4, len(data))] = randomness.randrange(256)
    return f"a mutation of API {key} v{version}", framed(bytes(data))


def random_request(randomness: random.Random) -> bytes:
    """Bytes that are no request, behind their size or not."""
    data = randomness.randbytes(randomness.randrange(1, 300))
    return framed(data) if randomness.randrange(2) else data


def hostile_requests(ranges: Ranges, values: tuple[int, ...]) -> Iterator[tuple[str, bytes]]:
    """(what it is, bytes) of every length field of every version in `ranges`, set to each of `values`."""
    for api_key, (low, high) in sorted(ranges.items()):
        for version in range(max(low, _oldest(api_key)), high + 1):
            frame = request(api_key, version)
            for place, kind in frame.lengths:
                for value in values:
                    name = f"{descriptors()[api_key]['name']} v{version}, {kind} at {place} = {value}"
                    yield name, frame.damaged(place, kind, value)


def _oldest(api_key: int) -> int:
    return int(descriptors()[api_key]["validVersions"].partition("-")[0])
