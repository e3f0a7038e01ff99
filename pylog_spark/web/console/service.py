"""The page of a broker: who may ask, how many at once, and what is answered. Thread-safe.

At most `REQUESTS_MAX` requests are worked on at a time, `SCANS_MAX` of them among records; a further one is refused. An answer that is being
sent counts, since it is in memory.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from email.message import Message
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from pylog_spark.client.errors import LogError
from pylog_spark.web.access import Access
from pylog_spark.web.console import guard
from pylog_spark.web.console.call import Beside, Call, Schemas, document, parameters, path_parts
from pylog_spark.web.console.history import History
from pylog_spark.web.console.refusals import ConsoleRefusal, name_of, of_error
from pylog_spark.web.console.routes import route_of
from pylog_spark.web.console.sessions import Sessions
from pylog_spark.web.console.static_files import page
from pylog_spark.web.guard import check_host
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import Content

if TYPE_CHECKING:
    from pylog_spark.broker.process import Broker

log = logging.getLogger("pylog.http")

REQUESTS_MAX = 8
SCANS_MAX = 3
API = "/api/"
_JSON = "application/json; charset=utf-8"
_PLAIN = "text/plain; charset=utf-8"


class Request(NamedTuple):
    """A request as it came: method, path with its parameters, headers, and what reads its body."""

    method: str
    path: str
    headers: Message
    body: Callable[[], bytes]


class Console:
    """The page; `close` ends its clients.

    Parameters
    ----------
    broker : Broker
        The broker that it belongs to.
    history : History
        What is recorded of it.
    client : mapping of str to str
        Settings of a client of the brokers.
    access : Access or None
        Who may see the broker's own numbers; None: nobody is asked for a login.
    schemas : Schemas or None
        The registry beside the broker.
    known_hosts : frozenset of str or None
        The names by which the server may be addressed; None: by any, since a login or a certificate stands in between.
    """

    def __init__(
        self,
        broker: Broker,
        history: History,
        client: Mapping[str, str],
        access: Access | None,
        schemas: Schemas | None,
        known_hosts: frozenset[str] | None,
    ) -> None:
        self._beside = Beside(broker, history, schemas)
        self._access, self._known_hosts = access, known_hosts
        self._sessions = Sessions(client, access is not None)
        self._room = threading.BoundedSemaphore(REQUESTS_MAX)
        self._scans = threading.BoundedSemaphore(SCANS_MAX)

    def answered(self, request: Request) -> Content:
        """The answer. Raises `Refusal`."""
        parts = urlsplit(request.path)
        check_host(request.headers, self._known_hosts)
        if not f"{parts.path}/".startswith(API):
            return self._page(request, parts.path)
        route, named = route_of(request.method, path_parts(parts.path)[1:])
        if request.method != "GET":
            guard.check_change(request.headers)
        authorization = request.headers.get("Authorization")
        if route.is_of_broker and self._access is not None:
            self._access.check(authorization, "DESCRIBE")
        body = {} if request.method == "GET" else self._body(request, authorization)
        release = self._taken(route.is_scan)
        try:
            with self._sessions.of(authorization) as session:
                call = Call(session, self._beside, named, parameters(parts.query), body, authorization)
                return _content(route.act(call), release)
        except LogError as error:
            release()
            raise of_error(error) from error
        except BaseException:
            release()
            raise

    def refused(self, path: str, refusal: Refusal) -> Content:
        """What is sent with the status of a refusal."""
        if f"{urlsplit(path).path}/".startswith(API):
            return _content({"error": name_of(refusal), "message": refusal.sentence})
        return Content(_PLAIN, f"{refusal.sentence}\n".encode(), headers=guard.DATA_HEADERS)

    def sweep(self) -> None:
        """End sessions whose time is over."""
        self._sessions.sweep()

    def close(self) -> None:
        """End all sessions."""
        self._sessions.close()

    def _body(self, request: Request, authorization: str | None) -> dict[str, Any]:
        # Who has no login sends no megabytes, and who sends them slowly holds no place.
        with self._sessions.of(authorization):
            pass
        return document(request.body())

    def _page(self, request: Request, path: str) -> Content:
        if request.method != "GET":
            raise ConsoleRefusal(405, "METHOD_NOT_ALLOWED", "A page is asked for with GET.")
        if path == "/" and self._access is not None:
            # The browser asks for a login here, once, and sends it with all that the page asks for.
            with self._sessions.of(request.headers.get("Authorization")):
                pass
        return page(path)

    def _taken(self, is_scan: bool) -> Callable[[], None]:
        """Take the places of a request; what gives them back, once."""
        places = (self._room, self._scans) if is_scan else (self._room,)
        taken: list[threading.BoundedSemaphore] = []
        for each in places:
            if not each.acquire(blocking=False):
                for other in taken:
                    other.release()
                most = SCANS_MAX if each is self._scans else REQUESTS_MAX
                what = "searches" if each is self._scans else "requests of the page"
                raise ConsoleRefusal(503, "BUSY", f"{most} {what} are being answered; try again.")
            taken.append(each)

        def release() -> None:
            while taken:
                taken.pop().release()

        return release


def _content(answer: Mapping[str, Any], release: Callable[[], None] = lambda: None) -> Content:
    return Content(_JSON, json.dumps(answer, separators=(",", ":")).encode(), release, guard.DATA_HEADERS)
