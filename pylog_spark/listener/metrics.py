"""A listener that gives a query's numbers to Prometheus or OpenTelemetry.

Spark calls its methods in one thread. With brokers to ask, a thread of its own looks at them; it ends with the process or by `close`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from pylog_spark.client.errors import LogError
from pylog_spark.errors import PylogError
from pylog_spark.listener.lag import Looks
from pylog_spark.listener.numbers import PARTITIONS_MAX, Numbers
from pylog_spark.listener.progress import BatchProgress

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from prometheus_client.registry import CollectorRegistry
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

log = logging.getLogger("pylog_spark")


class QueryMetrics(StreamingQueryListener):
    """Counts what the queries of a session do, and how far they are behind their logs.

    Numbers of rows, batches and offsets are those of Spark's progress. With `bootstrap_servers` the brokers are asked, too, every `interval_s`
    seconds: then the lag also grows while a query hangs, and is there in seconds and bytes. Queries of the same name share their
    numbers; one without a name has its id for it.

    Parameters
    ----------
    registry : prometheus_client.CollectorRegistry, optional
        Where the numbers are for Prometheus; ``prometheus_client.REGISTRY`` when neither this nor `meter_provider` is given. The program
        serves them, for example by ``prometheus_client.start_http_server``.
    meter_provider : opentelemetry.metrics.MeterProvider, optional
        Where the numbers are for OpenTelemetry.
    bootstrap_servers : str, optional
        ``HOST:PORT`` of the brokers from which the queries read, several separated by commas.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names, for secured brokers.
    partitions_max : int
        Most partitions of a query that have numbers of their own; the sums are of all.
    interval_s : float
        Seconds between two looks at the brokers.

    Raises
    ------
    PylogError
        PYLOG_INVALID_OPTION: prometheus-client or opentelemetry-api is not installed.

    Examples
    --------
    >>> prometheus_client.start_http_server(9464)  # doctest: +SKIP
    >>> spark.streams.addListener(QueryMetrics(bootstrap_servers="127.0.0.1:9092"))  # doctest: +SKIP
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        meter_provider: MeterProvider | None = None,
        bootstrap_servers: str | None = None,
        config: Mapping[str, str] | None = None,
        partitions_max: int = PARTITIONS_MAX,
        interval_s: float = 10.0,
    ) -> None:
        self._numbers = Numbers(partitions_max)
        if registry is not None or meter_provider is None:
            _register(self._numbers, registry)
        if meter_provider is not None:
            _observe(self._numbers, meter_provider)
        self._looks: Looks | None = None
        if bootstrap_servers is not None:
            self._looks = Looks(self._numbers, {**(config or {}), "bootstrap.servers": bootstrap_servers})
        self._looking = threading.Lock()
        self._interval_s = interval_s
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Count the query as one that runs."""
        self._numbers.begin(event.name or str(event.id), str(event.runId))
        if self._looks is not None and self._thread is None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._look_on, name="pylog-query-lag", daemon=True)
            self._thread.start()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Count a batch."""
        self._numbers.add(BatchProgress.of_json(event.progress.json))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Count the query as one that has ended; its last numbers stay."""
        self._numbers.end(str(event.runId))

    def look(self) -> None:
        """Ask the brokers now, besides the looks every `interval_s` seconds.

        Raises
        ------
        PylogError
            PYLOG_INVALID_OPTION: there is no `bootstrap_servers`.
        LogError
            When no broker can be reached.
        """
        if self._looks is None:
            raise PylogError("PYLOG_INVALID_OPTION", "QueryMetrics has no brokers to ask: give it bootstrap_servers.")
        with self._looking:
            self._looks.look()

    def close(self) -> None:
        """Ask the brokers no more; the last numbers stay."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _look_on(self) -> None:
        warned = False
        while not self._closed.wait(self._interval_s):
            failure = self._failure()
            if failure is not None and not warned:
                log.warning("The lag of queries in seconds is not known: %s", failure)
            warned = failure is not None

    def _failure(self) -> LogError | PylogError | None:
        try:
            self.look()
        except (LogError, PylogError) as error:
            return error
        return None


def _register(numbers: Numbers, registry: CollectorRegistry | None) -> None:
    try:
        from prometheus_client import REGISTRY

        from pylog_spark.listener.prometheus import QueryCollector
    except ImportError as error:
        sentence = (
            "Metrics for Prometheus need prometheus-client: pip install 'pylog-spark[http]', or give meter_provider."
        )
        raise PylogError("PYLOG_INVALID_OPTION", sentence) from error
    (REGISTRY if registry is None else registry).register(QueryCollector(numbers))


def _observe(numbers: Numbers, provider: MeterProvider) -> None:
    try:
        from pylog_spark.listener.otel import observe
    except ImportError as error:
        sentence = "Metrics for OpenTelemetry need its API: pip install 'pylog-spark[otel]'."
        raise PylogError("PYLOG_INVALID_OPTION", sentence) from error
    observe(numbers, provider)
