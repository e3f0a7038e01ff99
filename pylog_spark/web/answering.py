"""What a broker's own HTTP server answers: probes, metrics, the page. `pages` loads it with the first connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import urlsplit

from pylog_spark.web.guard import check_host
from pylog_spark.web.handler import Handler
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import Content

if TYPE_CHECKING:
    from pylog_spark.broker.process import Broker
    from pylog_spark.web.access import Access
    from pylog_spark.web.console.service import Console

_PLAIN = "text/plain; charset=utf-8"
_PLAIN_PAGES = ("/healthz", "/readyz", "/metrics")


class _Page(Protocol):
    def console(self) -> Console: ...


class _Served(Protocol):
    """What is asked of the server: `pages.Pages`."""

    broker: Broker
    access: Access | None
    page: _Page | None
    hosts: frozenset[str] | None

    def metrics(self) -> Content: ...


class Answering(Handler):
    """A connection to a broker's pages."""

    def answered(self) -> Content:
        """The page."""
        http = cast(_Served, self.server)
        path = urlsplit(self.path).path
        if path in _PLAIN_PAGES and self.command != "GET":
            raise Refusal(405, 405, "Nothing is changed here: GET a page.")
        match path:
            case "/healthz":
                return _probe(http.broker.why_not_healthy)
            case "/readyz":
                return _probe(http.broker.why_not_ready)
            case "/metrics":
                check_host(self.headers, http.hosts)
                if http.access is not None:
                    http.access.check(self.headers.get("Authorization"), "DESCRIBE")
                return http.metrics()
        if http.page is None:
            raise Refusal(404, 404, "There is no such page: /metrics, /healthz and /readyz are here.")
        from pylog_spark.web.console.service import Request

        return http.page.console().answered(Request(self.command, self.path, self.headers, self.body))

    def refused(self, refusal: Refusal) -> Content:
        """A line of text; of the page as its API has it."""
        http, path = cast(_Served, self.server), getattr(self, "path", "")
        if http.page is not None and urlsplit(path).path not in _PLAIN_PAGES:
            return http.page.console().refused(path, refusal)
        return Content(_PLAIN, f"{refusal.sentence}\n".encode())


def _probe(why_not: str | None) -> Content:
    if why_not is not None:
        raise Refusal(503, 503, why_not)
    return Content(_PLAIN, b"ok\n")
