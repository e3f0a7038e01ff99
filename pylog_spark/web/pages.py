"""A broker's own HTTP server: its page, ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for who starts and stops it.

The two probes say nothing but whether, so they ask nobody for a login; ``/metrics`` asks for the right DESCRIBE on the cluster where the
broker asks for logins. The page (`console`) is loaded by its first request. It is not served where the broker asks for logins and this server does
not: everybody could do then what the server's own login may. What answers is loaded by the first connection, what makes the metrics by the
first request for them.
"""

from __future__ import annotations

import json
import logging
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pylog_spark.broker.setting import ConfigError
from pylog_spark.web.access import Access, Rights
from pylog_spark.web.beside import HttpOptions, Place, Server, place
from pylog_spark.web.console.history import History
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import Content, HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socketserver import BaseRequestHandler

    from pylog_spark._native import RawConnection
    from pylog_spark.broker.process import Broker
    from pylog_spark.web.console.call import Schemas
    from pylog_spark.web.console.other_brokers import Ends
    from pylog_spark.web.console.service import Console

log = logging.getLogger("pylog.http")

#: Most answers to /metrics at one time: of a broker with many partitions each takes megabytes until it is read.
SCRAPES_MAX = 4
_PAGES = Server("HTTP server", "--http", needs_client=False)
_DESCRIBE_CLUSTER_VERSION = 1


def open_pages(broker: Broker, options: HttpOptions, schemas: Schemas | None = None) -> Pages:
    """Start the HTTP server of a broker that serves; its page shows records by the `schemas` of a registry beside it.

    Raises
    ------
    ConfigError
        The options and the broker's settings do not fit together, the address cannot be had, or prometheus-client is not installed.
    """
    if find_spec("prometheus_client") is None:
        raise ConfigError(
            "The HTTP server's metrics need prometheus-client: pip install 'pylog-spark[http]', or leave out --http."
        )
    has_page = options.page and not options.without_login
    where = place(broker, options, _PAGES)
    access = Access(where.client, _RIGHTS) if where.asks else None
    page = _Page(broker, where, access, schemas) if has_page else None
    try:
        http = Pages(where, broker, access, page, _Numbers(broker))
    except OSError as error:
        sentence = f"The HTTP server cannot listen on {where.host}:{where.port}: {error.strerror or error}."
        raise ConfigError(sentence) from error
    http.start("pylog-http")
    if page is not None:
        page.history.start()
    return http


def _asked(connection: RawConnection) -> int:
    wanted = {"include_cluster_authorized_operations": True, "endpoint_type": 1}
    answer = json.loads(connection.call("DescribeCluster", _DESCRIBE_CLUSTER_VERSION, json.dumps(wanted), "pylog-http"))
    operations: int = answer["cluster_authorized_operations"]
    return operations


_RIGHTS = Rights("the cluster", _asked)


class _Page:
    """The broker's page, which is loaded when somebody looks at it."""

    def __init__(self, broker: Broker, where: Place, access: Access | None, schemas: Schemas | None) -> None:
        self.history = History(broker, self._sweep, self._ends_on_others)
        self._broker, self._where, self._access, self._schemas = broker, where, access, schemas
        self._lock = threading.Lock()
        self._console: Console | None = None
        self._ends: Ends | None = None

    def console(self) -> Console:
        """The page's half that answers."""
        with self._lock:
            if self._console is None:
                from pylog_spark.web.console.service import Console

                where = self._where
                self._console = Console(
                    self._broker, self.history, where.client, self._access, self._schemas, where.hosts
                )
            return self._console

    def close(self) -> None:
        self.history.close()
        if self._console is not None:
            self._console.close()
        if self._ends is not None:
            self._ends.close()

    def _ends_on_others(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int | None]:
        """A broker that has replicas of all that its groups read never needs this."""
        if self._ends is None:
            from pylog_spark.web.console.other_brokers import Ends

            self._ends = Ends(self._where.client)
        return self._ends.of(partitions)

    def _sweep(self) -> None:
        if self._console is not None:
            self._console.sweep()


class _Numbers:
    """The text of a broker's /metrics, and its media type; what makes it is loaded when somebody asks for it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lock = threading.Lock()
        self._text: Callable[[], bytes] | None = None

    def __call__(self) -> tuple[str, bytes]:
        from pylog_spark.web.metrics import MEDIA, exposition

        with self._lock:
            if self._text is None:
                self._text = exposition(self._broker)
        return MEDIA, self._text()


class Pages(HttpServer):
    """The server; made by `open_pages`.

    Parameters
    ----------
    where : Place
        Where it listens.
    broker : Broker
        Whose pages they are.
    access : Access or None
        Who may see the metrics; None: everybody.
    page : _Page or None
        The broker's page; None: there is none.
    text : callable
        Gives the media type and the text of /metrics.
    """

    def __init__(
        self,
        where: Place,
        broker: Broker,
        access: Access | None,
        page: _Page | None,
        text: Callable[[], tuple[str, bytes]],
    ) -> None:
        self.broker, self.access, self.page, self._text = broker, access, page, text
        self.hosts = where.hosts
        self._room = threading.BoundedSemaphore(SCRAPES_MAX)
        super().__init__(where.host, where.port, _answering, where.tls, log)

    def close(self) -> None:
        """Answer nobody any more, close the connections, and end what the page has open."""
        super().close()
        if self.page is not None:
            self.page.close()

    def metrics(self) -> Content:
        """The broker's numbers. Raises `Refusal`."""
        if not self._room.acquire(blocking=False):
            raise Refusal(503, 503, f"{SCRAPES_MAX} requests for metrics are being answered; try again.")
        try:
            return Content(*self._text(), self._room.release)
        except BaseException:
            self._room.release()
            raise


def _answering() -> type[BaseRequestHandler]:
    from pylog_spark.web.answering import Answering

    return Answering
