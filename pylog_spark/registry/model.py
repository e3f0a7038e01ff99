"""What a schema registry keeps, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

AVRO = "AVRO"
JSON = "JSON"
PROTOBUF = "PROTOBUF"
#: The types of schemas, by the names of the REST interface.
TYPES = (AVRO, JSON, PROTOBUF)
#: Begins a serialized key or value; four bytes with the schema's id follow, the highest first.
MAGIC_BYTE = 0


class Reference(NamedTuple):
    """A schema that another one refers to.

    Attributes
    ----------
    name : str
        What the schema calls it: an Avro name, a JSON Schema's ``$ref``, the path of a Protobuf import.
    subject, version : str, int
        Where it is registered.
    """

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema: its type (one of `TYPES`), its text, and what it refers to."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as a version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
