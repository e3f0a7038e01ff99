"""Schemas of a registry for typed reads and writes: those with which records were written, by the ids that records begin with, and the
newest ones of subjects. pyspark is not imported here.

Schemas by id never change: each process keeps those that it has got, for all its tasks. An id that the registry does not have
is a damaged record; it is asked for again after `ABSENT_S` seconds, since it may be registered late. A registry that does not answer is
an error, as a broker that does not answer is.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError

if TYPE_CHECKING:
    from pylog_spark._native import TypedRead
    from pylog_spark.registry.client import RegistryClient
    from pylog_spark.registry.model import Schema

_log = logging.getLogger("pylog_spark")

#: How many schemas a process keeps for each registry.
KEPT_MAX = 10_000
#: How long an answer is believed that there is no schema with an id.
ABSENT_S = 30.0
#: How many such ids one task asks for: values that are no Avro may begin with any bytes.
ABSENT_MAX = 1_000
#: The registry's code of an id that it does not have.
_NO_SCHEMA = 40403

#: The type of a schema, its text, and the names and texts of those that it refers to, each behind those that it refers to itself.
Document = tuple[str, str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Registry:
    """How a registry is asked; plain values, pickled with readers and writers.

    Attributes
    ----------
    url : str
        One or several, separated by commas.
    settings : mapping of str to str
        Certificates and login, as `pylog_spark.registry.settings` has them.
    """

    url: str = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def schemas(self) -> Schemas:
        """Give what this process knows of the registry.

        Raises
        ------
        PylogError
            The URL or a setting cannot be used.
        """
        key = (self.url, tuple(sorted(self.settings.items())))
        with _lock:
            if key not in _known:
                from pylog_spark.registry.client import RegistryClient

                _known[key] = Schemas(RegistryClient(self.url, self.settings))
            return _known[key]


class Schemas:
    """What a process knows of one registry. Thread-safe."""

    def __init__(self, client: RegistryClient) -> None:
        self.client = client
        self._documents: OrderedDict[int, Document] = OrderedDict()
        self._absent: OrderedDict[int, float] = OrderedDict()
        self._lock = threading.Lock()

    def latest(self, subject: str) -> tuple[int, Document]:
        """Give the id and the newest schema of `subject`. Raises `PylogError`."""
        found = self.client.latest(subject)
        document = self._document(found.schema)
        self._keep(found.id, document)
        return found.id, document

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """Give the id of a schema, which becomes the newest of `subject` if it is not there yet. Raises `PylogError`."""
        return self.client.register(subject, text, schema_type)

    def teach(self, typed: TypedRead) -> None:
        """Tell a read of all schemas that are known here, and of ids that have none."""
        now = time.monotonic()
        with self._lock:
            known: list[tuple[int, Document | None]] = list(self._documents.items())
            known += [(schema_id, None) for schema_id, until in self._absent.items() if now < until]
        for schema_id, document in known:
            typed.add_writer(schema_id, document)

    def look_up(self, typed: TypedRead, absent: int) -> int:
        """Find the schemas that a read has missed, and tell it.

        Parameters
        ----------
        typed : TypedRead
            It has met ids that it does not know.
        absent : int
            How many ids its task asked for in vain so far.

        Returns
        -------
        int
            The same number afterwards.

        Raises
        ------
        PylogError
            No registry answers, or it refuses to.
        """
        for schema_id in typed.missing_writers():
            if absent >= ABSENT_MAX:
                typed.add_writer(schema_id, None)
                continue
            document = self._by_id(schema_id)
            typed.add_writer(schema_id, document)
            if document is None:
                absent += 1
                if absent == ABSENT_MAX:
                    _log.warning(
                        "records begin with %d ids that the schema registry does not have; all further ones that are not known count as "
                        "such in this task",
                        absent,
                    )
        return absent

    def _by_id(self, schema_id: int) -> Document | None:
        from pylog_spark.registry.client import RegistryError

        with self._lock:
            if schema_id in self._documents:
                return self._documents[schema_id]
            if time.monotonic() < self._absent.get(schema_id, 0.0):
                return None
        try:
            document = self._document(self.client.schema_by_id(schema_id))
        except RegistryError as error:
            if error.code != _NO_SCHEMA:
                raise
            with self._lock:
                self._absent[schema_id] = time.monotonic() + ABSENT_S
                while len(self._absent) > KEPT_MAX:
                    self._absent.popitem(last=False)
            return None
        self._keep(schema_id, document)
        return document

    def _document(self, schema: Schema) -> Document:
        return schema.schema_type, schema.text, list(self.client.resolved(schema).items())

    def _keep(self, schema_id: int, document: Document) -> None:
        with self._lock:
            self._documents[schema_id] = document
            while len(self._documents) > KEPT_MAX:
                self._documents.popitem(last=False)


_known: dict[tuple[str, tuple[tuple[str, str], ...]], Schemas] = {}
_lock = threading.Lock()


def check_type(document: Document, wanted: str, subject: str) -> None:
    """Raises `PylogError` unless the schema of a subject is of a type."""
    if document[0] != wanted:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The newest schema of the subject {subject} is of the type {document[0]}, not {wanted}; name a subject with schemas of that type.",
        )


def texts(document: Document | None) -> tuple[str, list[str]] | None:
    """Give a schema as the native half takes it."""
    return None if document is None else (document[1], [text for _, text in document[2]])
