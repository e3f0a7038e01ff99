"""A broker's numbers sent by OpenTelemetry's protocol, OTLP over HTTP, every minute: the same as /metrics has, under the same names.

Where to, how often and with which headers is for OpenTelemetry's own variables to say: ``OTEL_EXPORTER_OTLP_ENDPOINT`` (by default
``http://localhost:4318``), ``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_SERVICE_NAME`` and the like. Names and values are
made by `metrics`, so a counter has no ``_total`` here. A collector that is away costs the numbers of that time, and lines in the log when it begins;
nothing is kept for it, and a broker that stops sends no last numbers. One thread sends; `close` may be called by any.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from pylog_spark.broker.setting import ConfigError
from pylog_spark.web.metrics import numbers_of

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

    from pylog_spark.broker.process import Broker

log = logging.getLogger("pylog.http")

_INTERVAL_MS = 60_000
#: Longest wait in seconds for the thread at the stop of the broker: a request that hangs is left to itself.
_STOP_S = 1.0
_CUMULATIVE = AggregationTemporality.CUMULATIVE


class Sender:
    """Sends a broker's numbers until it is closed.

    Parameters
    ----------
    broker : Broker
        Whose numbers.

    Raises
    ------
    ConfigError
        OTEL_METRIC_EXPORT_INTERVAL is no number of milliseconds.
    """

    def __init__(self, broker: Broker) -> None:
        self._interval_s = _interval_ms() / 1_000
        self._registry = numbers_of(broker)
        self._begin_ns = time.time_ns()
        own = Resource({SERVICE_NAME: "pylog", SERVICE_INSTANCE_ID: str(broker.node_id)})
        # What the variables say wins.
        self._resource = own.merge(OTELResourceDetector().detect())
        self._exporter = OTLPMetricExporter()
        self._closed = threading.Event()
        self._failed = False
        logging.getLogger(OTLPMetricExporter.__module__).addFilter(self._is_news)
        self._thread = threading.Thread(target=self._send_on, name="pylog-otlp", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send no more."""
        self._closed.set()
        self._exporter.shutdown()
        self._thread.join(_STOP_S)
        logging.getLogger(OTLPMetricExporter.__module__).removeFilter(self._is_news)

    def _send_on(self) -> None:
        while not self._closed.wait(self._interval_s):
            done = self._exporter.export(self._data()) is MetricExportResult.SUCCESS
            if not done and not self._failed and not self._closed.is_set():
                log.warning(
                    "The broker's metrics cannot be sent by OTLP; it goes on trying, and what it has not sent is left out."
                )
            self._failed = not done

    def _is_news(self, _: logging.LogRecord) -> bool:
        """Whether the exporter may say why it fails: not again at each attempt."""
        return not self._failed and not self._closed.is_set()

    def _data(self) -> MetricsData:
        scope = ScopeMetrics(InstrumentationScope("pylog_spark.web"), list(self._metrics(self._registry)), "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _metrics(self, registry: CollectorRegistry) -> Iterator[Metric]:
        now_ns = time.time_ns()
        for family in filter(lambda each: each.samples, registry.collect()):
            yield Metric(family.name, family.documentation, "", self._points(family, now_ns))

    def _points(self, family: Family, now_ns: int) -> Gauge | Sum | Histogram:
        if family.type == "histogram":
            return Histogram(list(_histograms(family, self._begin_ns, now_ns)), _CUMULATIVE)
        points = [
            NumberDataPoint(sample.labels, self._begin_ns, now_ns, float(sample.value))
            for sample in family.samples
            if not sample.name.endswith("_created")
        ]
        return Sum(points, _CUMULATIVE, True) if family.type == "counter" else Gauge(points)


def open_sender(broker: Broker) -> Sender:
    """Begin to send the numbers of a broker that serves. Raises `ConfigError`, see `Sender`."""
    return Sender(broker)


def _interval_ms() -> float:
    text = os.environ.get(OTEL_METRIC_EXPORT_INTERVAL, str(_INTERVAL_MS))
    try:
        interval_ms = float(text)
    except ValueError:
        interval_ms = 0.0
    if not 0 < interval_ms < float("inf"):
        raise ConfigError(f"OTEL_METRIC_EXPORT_INTERVAL={text} is no number of milliseconds.")
    return interval_ms


def _histograms(family: Family, begin_ns: int, now_ns: int) -> Iterator[HistogramDataPoint]:
    """The histograms of a family, from Prometheus's samples, whose buckets count all that is smaller."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = tuple(sorted((name, text) for name, text in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    for labels, counted in buckets.items():
        counts = [int(after - before) for before, after in pairwise([0.0, *(count for _, count in counted)])]
        bounds = [bound for bound, _ in counted if bound != float("inf")]
        nothing = float("nan")
        yield HistogramDataPoint(
            dict(labels), begin_ns, now_ns, int(counted[-1][1]), sums[labels], counts, bounds, nothing, nothing
        )
