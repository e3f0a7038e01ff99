"""Keys and values that begin with the id of a schema, shown by it: for the broker's page, when a registry is beside the broker.

A user who may not read the registry's topic sees no more than its bytes. At most `KEPT_MAX` schemas are kept as they were read, and as many ids of
which there is none; those are looked for again after `ABSENT_S` seconds. Thread-safe.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from pylog_spark.registry import judged
from pylog_spark.registry.decisions import whole
from pylog_spark.registry.model import AVRO, JSON
from pylog_spark.registry.schemas import SchemaError
from pylog_spark.registry.state import RegistryState
from pylog_spark.registry.topic import SchemasTopic
from pylog_spark.web.access import Access
from pylog_spark.web.refusal import Refusal

if TYPE_CHECKING:
    from pylog_spark.registry.schemas.avro_types import Type

KEPT_MAX = 200
ABSENT_S = 10.0
#: Texts that are longer are not shown.
TEXT_CHARS_MAX = 256 * 1024


class _Known(NamedTuple):
    """The type of a schema, and of one of Avro what it says."""

    schema_type: str
    root: Type | None


class ShownSchemas:
    """Shows what was written with schemas of a registry.

    Parameters
    ----------
    topic : SchemasTopic
        Where they are.
    access : Access or None
        Who may see them; None: everybody.
    """

    def __init__(self, topic: SchemasTopic, access: Access | None) -> None:
        self._topic, self._access = topic, access
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[float, _Known | None]] = OrderedDict()

    def shown(self, schema_id: int, payload: bytes, authorization: str | None) -> str | None:
        """Give what was written with this schema as JSON of several lines; empty where the schema is none of Avro, or the bytes do not fit it;
        None where there is no such schema, or this header's user may not see it."""
        schema = self._schema(schema_id)
        if schema is None or not self._may_see(authorization):
            return None
        if schema.root is None:
            return _text(payload) if schema.schema_type == JSON else ""
        from pylog_spark.registry.schemas.avro_reading import DatumError, read_datum

        try:
            text = json.dumps(read_datum(schema.root, payload), indent=2, ensure_ascii=False)
        except DatumError:
            return ""
        return text if len(text) <= TEXT_CHARS_MAX else ""

    def _may_see(self, authorization: str | None) -> bool:
        try:
            if self._access is not None:
                self._access.check(authorization, "READ")
        except Refusal:
            return False
        return True

    def _schema(self, schema_id: int) -> _Known | None:
        with self._lock:
            until, known = self._known.get(schema_id, (0.0, None))
            if time.monotonic() < until:
                return known
        found = self._read(schema_id)
        with self._lock:
            # A schema with an id never changes.
            self._known[schema_id] = (time.monotonic() + ABSENT_S if found is None else float("inf"), found)
            while len(self._known) > KEPT_MAX:
                self._known.popitem(last=False)
        return found

    def _read(self, schema_id: int) -> _Known | None:
        try:
            found = self._topic.read(lambda state: _whole(state, schema_id))
        except Refusal:
            return None
        if found is None:
            return None
        schema, referred = found
        if schema.schema_type != AVRO:
            return _Known(schema.schema_type, None)
        from pylog_spark.registry.schemas.avro import parse

        try:
            return _Known(AVRO, parse(schema.text, [text for _, text in referred]).root)
        except SchemaError:
            return _Known(AVRO, None)


def _whole(state: RegistryState, schema_id: int) -> judged.Whole | None:
    schema = state.schema(schema_id)
    return None if schema is None else whole(state, schema)


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return ""
