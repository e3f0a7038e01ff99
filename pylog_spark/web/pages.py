"""A broker's own HTTP server: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for who starts and stops it.

The two probes say nothing but whether, so they ask nobody for a login; ``/metrics`` asks for the right DESCRIBE on the cluster where the
broker asks for logins.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from pylog_spark.broker.setting import ConfigError
from pylog_spark.web.access import Access, Rights
from pylog_spark.web.beside import HttpOptions, Server, place
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import Content, Handler, HttpServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from pylog_spark._native import RawConnection
    from pylog_spark.broker.process import Broker

log = logging.getLogger("pylog.http")

#: Most answers to /metrics at one time: of a broker with many partitions each takes megabytes until it is read.
SCRAPES_MAX = 4
_PAGES = Server("HTTP server", "--http", needs_client=False)
_PLAIN = "text/plain; charset=utf-8"
_DESCRIBE_CLUSTER_VERSION = 1


def open_pages(broker: Broker, options: HttpOptions) -> Pages:
    """Start the HTTP server of a broker that serves.

    Raises
    ------
    ConfigError
        The options and the broker's settings do not fit together, the address cannot be had, or prometheus-client is not installed.
    """
    try:
        from pylog_spark.web.metrics import MEDIA, exposition
    except ImportError as error:
        raise ConfigError(
            "The HTTP server's metrics need prometheus-client: pip install 'pylog-spark[http]', or leave out --http."
        ) from error
    host, port, tls, client, asks = place(broker, options, _PAGES)
    try:
        http = Pages(host, port, tls, broker, Access(client, _RIGHTS) if asks else None, exposition(broker), MEDIA)
    except OSError as error:
        raise ConfigError(f"The HTTP server cannot listen on {host}:{port}: {error.strerror or error}.") from error
    http.start("pylog-http")
    return http


def _asked(connection: RawConnection) -> int:
    wanted = {"include_cluster_authorized_operations": True, "endpoint_type": 1}
    answer = json.loads(connection.call("DescribeCluster", _DESCRIBE_CLUSTER_VERSION, json.dumps(wanted), "pylog-http"))
    operations: int = answer["cluster_authorized_operations"]
    return operations


_RIGHTS = Rights("the cluster", _asked)


class Pages(HttpServer):
    """The server; made by `open_pages`.

    Parameters
    ----------
    host, port, tls
        As `HttpServer` has them.
    broker : Broker
        Whose pages they are.
    access : Access or None
        Who may see the metrics; None: everybody.
    text : callable
        Gives the text of /metrics.
    media : str
        Its media type.
    """

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        broker: Broker,
        access: Access | None,
        text: Callable[[], bytes],
        media: str,
    ) -> None:
        self.broker, self.access = broker, access
        self._text, self._media = text, media
        self._room = threading.BoundedSemaphore(SCRAPES_MAX)
        super().__init__(host, port, _Handler, tls, log)

    def metrics(self) -> Content:
        """The broker's numbers. Raises `Refusal`."""
        if not self._room.acquire(blocking=False):
            raise Refusal(503, 503, f"{SCRAPES_MAX} requests for metrics are being answered; try again.")
        try:
            return Content(self._media, self._text(), self._room.release)
        except BaseException:
            self._room.release()
            raise


class _Handler(Handler):
    def answered(self) -> Content:
        """The page."""
        self.body()
        http = cast(Pages, self.server)
        if self.command != "GET":
            raise Refusal(405, 405, "Nothing is changed here: GET a page.")
        match urlsplit(self.path).path:
            case "/healthz":
                return _probe(http.broker.why_not_healthy)
            case "/readyz":
                return _probe(http.broker.why_not_ready)
            case "/metrics":
                if http.access is not None:
                    http.access.check(self.headers.get("Authorization"), "DESCRIBE")
                return http.metrics()
        raise Refusal(404, 404, "There is no such page: /metrics, /healthz and /readyz are here.")

    def refused(self, refusal: Refusal) -> Content:
        """A line of text."""
        return Content(_PLAIN, f"{refusal.sentence}\n".encode())


def _probe(why_not: str | None) -> Content:
    if why_not is not None:
        raise Refusal(503, 503, why_not)
    return Content(_PLAIN, b"ok\n")
