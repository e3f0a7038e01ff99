"""A client of schema registries with Confluent's REST interface: of pylog's own, Confluent's, Karapace, Apicurio.

It asks one URL after the other, and all of them again when none could answer, for `ROUNDS` rounds; a refusal is an answer. Schemas by
id never change and are kept, up to `KEPT_MAX` of them. Nothing is connected before the first question; thread-safe; it may be pickled, which the
schemas that it keeps are not.

Examples
--------
>>> client = RegistryClient("http://127.0.0.1:8081")
>>> client.schema_by_id(7).text  # doctest: +SKIP
'"string"'
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from pylog_spark.errors import PylogError
from pylog_spark.registry.model import AVRO, Reference, RegisteredSchema, Schema
from pylog_spark.registry.settings import RegistrySettings, basic, read_settings

#: How often all URLs are asked before the client gives up, and the pause after a round; it doubles.
ROUNDS = 3
_PAUSE_S = 0.1
#: The largest answer that is read.
ANSWER_BYTES_MAX = 16 * 1024 * 1024
_PIECE_BYTES = 64 * 1024
#: How many schemas are kept.
KEPT_MAX = 10_000
_MEDIA = "application/vnd.schemaregistry.v1+json"
# A server that is overloaded or restarts; others may be well.
_TOO_MANY = 429
_FAILED = 500
_OK = 200
# Error codes of the interface.
_NOT_FOUND = (40401, 40402, 40403)


class RegistryError(PylogError):
    """A schema registry refused a request.

    Attributes
    ----------
    code : int
        The error code of the interface, such as 40403 for an unknown id and 409 for a schema that is not compatible.
    """

    code: int = 0


class RegistryClient:
    """Asks a schema registry.

    Parameters
    ----------
    urls : str or sequence of str
        ``http://HOST:PORT`` or ``https://HOST:PORT/PATH``, several separated by commas: servers of the same registry.
    settings : mapping of str to str, optional
        Certificates and login; see `pylog_spark.registry.settings`.

    Raises
    ------
    PylogError
        A URL or a setting cannot be used.
    """

    def __init__(self, urls: str | Sequence[str], settings: Mapping[str, str] | None = None) -> None:
        listed = urls.split(",") if isinstance(urls, str) else urls
        self._settings = read_settings(settings or {})
        self._servers = [_Server(url.strip(), self._settings) for url in listed if url.strip()]
        if not self._servers:
            raise PylogError("PYLOG_INVALID_OPTION", "No schema registry is named: give http://HOST:PORT.")
        self._given = (tuple(listed), dict(settings or {}))
        self._kept: OrderedDict[int, Schema] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return RegistryClient, self._given

    def schema_by_id(self, schema_id: int) -> Schema:
        """Give the schema with this id. Raises `RegistryError` when there is none, `PylogError` when no server answers.

        Parameters
        ----------
        schema_id : int
            The id.
        """
        with self._lock:
            if schema_id in self._kept:
                self._kept.move_to_end(schema_id)
                return self._kept[schema_id]
        found = _schema(self._ask("GET", f"/schemas/ids/{schema_id}"))
        with self._lock:
            self._kept[schema_id] = found
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """Give the newest version of `subject`; errors as in `schema_by_id`."""
        return self.version(subject, "latest")

    def version(self, subject: str, version: int | str) -> RegisteredSchema:
        """Give a version of `subject`; errors as in `schema_by_id`.

        Parameters
        ----------
        subject : str
            The subject.
        version : int or str
            The number of the version, or ``latest``.
        """
        found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        try:
            return RegisteredSchema(subject, int(found["version"]), int(found["id"]), _schema(found))
        except (KeyError, TypeError, ValueError):
            raise _odd() from None

    def register(self, subject: str, schema: str, schema_type: str = AVRO, references: Sequence[Reference] = ()) -> int:
        """Register a schema as the newest version of `subject`, and give its id; of one that is there already, the id that it has.

        Parameters
        ----------
        subject : str
            The subject.
        schema : str
            The text of the schema.
        schema_type : str
            ``AVRO``, ``JSON`` or ``PROTOBUF``.
        references : sequence of Reference
            Other schemas that it refers to.

        Raises
        ------
        RegistryError
            It is no schema of this type (42201), or not compatible with the earlier versions (409).
        PylogError
            No server answers.
        """
        asked = _body(schema, schema_type, references)
        return _id(self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", asked))

    def id_of(self, subject: str, schema: str, schema_type: str = AVRO, references: Sequence[Reference] = ()) -> int:
        """Give the id of a schema that is registered as a version of `subject`; parameters and errors as in `register`."""
        return _id(self._ask("POST", f"/subjects/{quote(subject, safe='')}", _body(schema, schema_type, references)))

    def resolved(self, schema: Schema) -> dict[str, str]:
        """Give the texts of all schemas that `schema` refers to, directly or through others, by the names under which they are
        referred to; each stands behind those that it refers to itself."""
        found: dict[str, str] = {}
        self._resolve(schema, found)
        return found

    def _resolve(self, schema: Schema, found: dict[str, str]) -> None:
        for reference in schema.references:
            if reference.name not in found:
                referred = self.version(reference.subject, reference.version).schema
                self._resolve(referred, found)
                found[reference.name] = referred.text

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        failures: list[str] = []
        for turn in range(ROUNDS):
            if turn:
                time.sleep(_PAUSE_S * 2**turn)
            failures = []
            for server in self._servers:
                try:
                    status, answer = server.ask(method, path, body)
                except (OSError, http.client.HTTPException) as error:
                    failures.append(f"{server}: {str(error) or type(error).__name__}")
                    continue
                if status == _OK:
                    return _parsed(answer)
                if status < _FAILED and status != _TOO_MANY:
                    raise _refusal(server, status, answer)
                failures.append(f"{server}: {_message(answer) or f'status {status}'}")
        raise PylogError(
            "PYLOG_REGISTRY_UNREACHABLE",
            f"No schema registry answered ({'; '.join(failures)}); check that it runs there, and its login and certificates.",
        )


class _Server:
    """One server of a registry."""

    def __init__(self, url: str, settings: RegistrySettings) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            # Not the URL as it is: there may be a password in it.
            shown = url.rpartition("@")[2]
            raise PylogError(
                "PYLOG_INVALID_OPTION", f"{shown} is no address of a schema registry: give http://HOST:PORT."
            )
        self._host, self._port, self._path = parts.hostname, port, parts.path.rstrip("/")
        self._context = settings.context() if parts.scheme == "https" else None
        self._timeout_s = settings.timeout_s
        self._authorization = settings.authorization
        if self._authorization is None and parts.username is not None:
            self._authorization = basic(f"{unquote(parts.username)}:{unquote(parts.password or '')}")
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def __str__(self) -> str:
        return self._shown

    def ask(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        """Give the status and the body of the answer. Raises `OSError` and `HTTPException`."""
        deadline = time.monotonic() + self._timeout_s
        connection: http.client.HTTPConnection
        if self._context is not None:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        headers = {"Accept": f"{_MEDIA}, application/json", "Content-Type": _MEDIA}
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        try:
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, self._path + path, sent, headers)
            answer = connection.getresponse()
            return answer.status, self._read(answer, deadline)
        finally:
            connection.close()

    def _read(self, answer: http.client.HTTPResponse, deadline: float) -> bytes:
        read = bytearray()
        # In pieces: the time-out of a socket begins anew with every byte.
        while piece := answer.read1(_PIECE_BYTES):
            read += piece
            if len(read) > ANSWER_BYTES_MAX:
                raise http.client.HTTPException(f"its answer has more than {ANSWER_BYTES_MAX} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError("its answer took too long")
        return bytes(read)


def _body(schema: str, schema_type: str, references: Sequence[Reference]) -> dict[str, object]:
    body: dict[str, object] = {"schema": schema}
    # As Confluent's clients do: AVRO goes without saying.
    if schema_type != AVRO:
        body["schemaType"] = schema_type
    if references:
        body["references"] = [each._asdict() for each in references]
    return body


def _schema(found: Any) -> Schema:
    try:
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in found.get("references") or ()
        )
        return Schema(str(found.get("schemaType") or AVRO), str(found["schema"]), references)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _odd() from None


def _id(found: Any) -> int:
    try:
        return int(found["id"])
    except (KeyError, TypeError, ValueError):
        raise _odd() from None


def _parsed(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        raise _odd() from None


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"]).strip().rstrip(".")
    except (ValueError, KeyError, TypeError):
        return ""


def _refusal(server: _Server, status: int, answer: bytes) -> RegistryError:
    try:
        code = int(json.loads(answer)["error_code"])
    except (ValueError, KeyError, TypeError):
        code = status
    said = _message(answer) or f"status {status}"
    advice = (
        "; check the id or the subject" if code in _NOT_FOUND else "; check the login" if status in (401, 403) else ""
    )
    error = RegistryError("PYLOG_REGISTRY_REFUSED", f"The schema registry {server} refused: {said} ({code}){advice}.")
    error.code = code
    return error


def _odd() -> PylogError:
    return PylogError(
        "PYLOG_REGISTRY_UNREACHABLE", "What answered is no schema registry: check the URL of the schema registry."
    )
