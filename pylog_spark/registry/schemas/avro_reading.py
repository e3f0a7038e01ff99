"""A value in Avro's binary form, read by the schema that wrote it, as what JSON can say. Pure.

Texts of bytes have a letter for each byte, as Avro's own JSON has them; a union is what stands in it; numbers that JSON has not are texts.
Logical types are shown as what carries them. A value has at most `PARTS_MAX` parts, nested `DEPTH_MAX` deep.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from pylog_spark.registry.schemas import DEPTH_MAX
from pylog_spark.registry.schemas.avro_types import ARRAY, ENUM, FIXED, MAP, RECORD, UNION, Type

PARTS_MAX = 20_000


class DatumError(ValueError):
    """The bytes are no value of the schema, or a larger one than is read."""


def read_datum(kind: Type, data: bytes) -> Any:
    """Give the value that all of `data` is. Raises `DatumError`."""
    reader = _Reader(data)
    value = reader.value(kind, 0)
    if reader.place != len(data):
        raise DatumError("there are more bytes than the value has")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.place, self._left = data, 0, PARTS_MAX

    def value(self, kind: Type, depth: int) -> Any:
        """The next value."""
        self._left -= 1
        if depth > DEPTH_MAX or self._left < 0:
            raise DatumError("the value is too large to be shown")
        match kind.kind:
            case "null":
                return None
            case "boolean":
                return self._take(1) != b"\0"
            case "int" | "long":
                return self._long()
            case "float":
                return _finite(struct.unpack("<f", self._take(4))[0])
            case "double":
                return _finite(struct.unpack("<d", self._take(8))[0])
            case "bytes":
                return self._take(self._long()).decode("latin-1")
            case "string":
                return self._text()
        return self._compound(kind, depth + 1)

    def _compound(self, kind: Type, depth: int) -> Any:
        if kind.kind in (RECORD, "error"):
            return {each.name: self.value(each.type, depth) for each in kind.fields}
        if kind.kind == ENUM:
            return _at(kind.symbols, self._long())
        if kind.kind == FIXED:
            return self._take(kind.size).decode("latin-1")
        if kind.kind == UNION:
            return self.value(_at(kind.parts, self._long()), depth)
        (of,) = kind.parts
        if kind.kind == ARRAY:
            return [self.value(of, depth) for _ in self._items()]
        if kind.kind == MAP:
            return {self._text(): self.value(of, depth) for _ in self._items()}
        raise DatumError(f"a {kind.kind} cannot be read")

    def _items(self) -> Any:
        """One for each item, of block after block."""
        while count := self._long():
            if count < 0:
                # Its bytes, for who passes over them.
                self._long()
            for _ in range(abs(count)):
                yield None

    def _text(self) -> str:
        try:
            return self._take(self._long()).decode()
        except UnicodeDecodeError:
            raise DatumError("a string is not UTF-8") from None

    def _long(self) -> int:
        shift = value = 0
        while True:
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise DatumError("a number has more than ten bytes")

    def _take(self, count: int) -> bytes:
        taken = self._data[self.place : self.place + count] if count >= 0 else b""
        if len(taken) != count:
            raise DatumError("the bytes end before the value does")
        self.place += count
        return taken


def _at(choices: tuple[Any, ...], number: int) -> Any:
    if not 0 <= number < len(choices):
        raise DatumError("a choice has another number than the schema has")
    return choices[number]


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
