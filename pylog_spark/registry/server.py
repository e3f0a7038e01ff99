"""The schema registry's HTTP server: Confluent's interface on `web.server`, with its bounds."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from pylog_spark.registry.routes import Call, Raw, document, route_of
from pylog_spark.registry.showing import ShownSchemas
from pylog_spark.registry.topic import SchemasTopic
from pylog_spark.web.access import Access
from pylog_spark.web.guard import check_change, check_host, check_origin
from pylog_spark.web.handler import Handler
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import Content, HttpServer

if TYPE_CHECKING:
    import ssl

log = logging.getLogger("pylog.registry")

PARAMETERS_MAX = 100
_MEDIA = "application/vnd.schemaregistry.v1+json"
#: What the interface's clients send. No page of another site can without being asked first.
_MEDIA_TAKEN = (_MEDIA, "application/vnd.schemaregistry+json", "application/json", "application/octet-stream")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class RegistryServer:
    """A running schema registry; made by `start_server`.

    Attributes
    ----------
    url : str
        Where it answers.
    schemas : ShownSchemas
        What was written with its schemas, for who shows it.
    """

    def __init__(self, http: _Http, stop: Callable[[], None]) -> None:
        self._http, self.url, self._stop = http, http.url, stop
        self.schemas = ShownSchemas(http.topic, http.access)
        http.start("pylog-registry")

    def close(self) -> None:
        """Answer nobody any more, and close the connections."""
        self._http.close()
        # Who waits for the topic waits no more.
        self._http.topic.close()
        self._stop()


def start_server(
    host: str,
    port: int,
    topic: SchemasTopic,
    access: Access | None,
    tls: ssl.SSLContext | None,
    stop: Callable[[], None],
    hosts: frozenset[str] | None = None,
) -> RegistryServer:
    """Start a registry.

    Parameters
    ----------
    host, port : str, int
        Where it listens; port 0 takes a free port.
    topic : SchemasTopic
        Where the schemas are; started, and closed with the server.
    access : Access or None
        Who may ask what; None: everybody everything.
    tls : ssl.SSLContext or None
        Its certificate; None: without encryption.
    stop : callable
        Called when the server closes, after the topic did.
    hosts : frozenset of str or None
        The names by which it may be addressed; None: by any, since a login or a certificate stands in between.

    Raises
    ------
    OSError
        It cannot listen there.
    """
    http = _Http(host, port, topic, access, tls, hosts)
    topic.start()
    return RegistryServer(http, stop)


class _Http(HttpServer):
    def __init__(
        self,
        host: str,
        port: int,
        topic: SchemasTopic,
        access: Access | None,
        tls: ssl.SSLContext | None,
        hosts: frozenset[str] | None,
    ) -> None:
        self.topic, self.access, self.hosts = topic, access, hosts
        super().__init__(host, port, lambda: _Handler, tls, log)


class _Handler(Handler):
    def answered(self) -> Content:
        """The answer of the interface."""
        http = cast(_Http, self.server)
        check_host(self.headers, http.hosts)
        if self.command in ("POST", "PUT"):
            check_change(self.headers, _MEDIA_TAKEN)
        elif self.command != "GET":
            check_origin(self.headers)
        parts = urlsplit(self.path)
        route, named = route_of(self.command, parts.path.rstrip("/"))
        if http.access is not None:
            http.access.check(self.headers.get("Authorization"), "WRITE" if route.changes else "READ")
        call = Call(tuple(map(_decoded, named)), _query(parts.query), document(self.body()))
        act = http.topic.write if route.changes else http.topic.read
        answer = act(lambda state: route.act(state, call))
        return Content(_MEDIA, str(answer).encode()) if isinstance(answer, Raw) else _json(answer)

    def refused(self, refusal: Refusal) -> Content:
        """An error of the interface."""
        return _json({"error_code": refusal.code, "message": refusal.sentence})


def _json(answer: object) -> Content:
    return Content(_MEDIA, json.dumps(answer, ensure_ascii=False).encode())


def _decoded(text: str) -> str:
    """A part of a path. Raises `Refusal`."""
    try:
        if _BAD_PERCENT.search(text):
            raise ValueError
        return unquote(text, errors="strict")
    except ValueError:
        raise Refusal(
            400, 400, "The path is not encoded as URLs are: % and two digits stand for a byte, in UTF-8."
        ) from None


def _query(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX))
    except ValueError:
        raise Refusal(400, 400, f"The parameters are not encoded as URLs are, or more than {PARAMETERS_MAX}.") from None
