"""A broker's metrics sent by OTLP: a collector, which is a server of the test's own that reads OpenTelemetry's messages, has what /metrics has. Costs 5 s."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.local_broker import LocalBrokerError
from tests.broker import test_http
from tests.harness.ports import nowhere
from tests.harness.waiting import said, until

pytestmark = pytest.mark.long  # the same numbers: test_http.py

Numbers = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Sending(LocalBroker):
    """A broker that sends its metrics."""

    def _command(self) -> list[str]:
        return [*super()._command(), "--otlp"]


class Collector(ThreadingHTTPServer):
    """Takes what is sent to it; `last` is the latest."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.last: ExportMetricsServiceRequest | None = None
        self.paths: set[str] = set()

    def numbers(self) -> Numbers:
        """The latest numbers, by name and labels; of a histogram how many there were, and of its buckets together."""
        found: Numbers = {}
        if self.last is not None:
            for metric in self.last.resource_metrics[0].scope_metrics[0].metrics:
                for point in getattr(metric, metric.WhichOneof("data")).data_points:
                    labels = tuple(sorted((each.key, each.value.string_value) for each in point.attributes))
                    if metric.HasField("histogram"):
                        found[metric.name + "_count", labels] = point.count
                        found[metric.name + "_buckets", labels] = sum(point.bucket_counts)
                    else:
                        name = metric.name + ("_total" if metric.HasField("sum") else "")
                        found[name, labels] = point.as_double
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.add(self.path)
        self.server.last = ExportMetricsServiceRequest.FromString(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, that brokers started from here on send to, five times a second."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
        yield server
        server.shutdown()
        thread.join()


def test_a_collector_has_what_the_page_of_metrics_has(collector: Collector, tmp_path: Path) -> None:
    with Sending(tmp_path / "data", http=True) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", 2)
        with Producer(broker.bootstrap_servers, "t") as producer:
            for number in range(10):
                producer.send(b"value", partition=number % 2)
        written = ("kafka_server_brokertopicmetrics_messagesin_total", ())
        until(lambda: collector.numbers().get(written) == 10, "the records are counted")
        shown, sent = test_http.numbers(broker), collector.numbers()
    assert collector.paths == {"/v1/metrics"}
    # Histograms have names of their own here.
    names = {name for name, _ in shown if not name.endswith(("_bucket", "_sum", "_count", "_created"))}
    assert names - {name for name, _ in sent} == set()
    of_topic = {key: value for key, value in shown.items() if key[0].startswith("kafka_log_log_") and key[1]}
    assert of_topic
    assert {key: sent[key] for key in of_topic} == of_topic
    produced = (("request", "Produce"),)
    assert sent["pylog_network_request_seconds_count", produced] >= 1
    assert (
        sent["pylog_network_request_seconds_buckets", produced] == sent["pylog_network_request_seconds_count", produced]
    )
    assert collector.last is not None
    about = {each.key: each.value.string_value for each in collector.last.resource_metrics[0].resource.attributes}
    assert (about["service.name"], about["service.instance.id"]) == ("pylog", "1")


def test_the_standard_variables_name_the_service(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "log-of-orders")
    with Sending(tmp_path / "data"):
        until(lambda: collector.last is not None, "metrics are sent")
    assert collector.last is not None
    attributes = collector.last.resource_metrics[0].resource.attributes
    assert {each.key: each.value.string_value for each in attributes}["service.name"] == "log-of-orders"


def test_a_collector_that_is_away_is_a_line_in_the_log_and_does_not_hold_the_broker_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{nowhere()}")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with Sending(tmp_path / "data") as broker:
        said(broker, "cannot be sent by OTLP")
        with Producer(broker.bootstrap_servers, "t") as producer:
            producer.send(b"value")
        started = time.monotonic()
        broker.terminate()
        assert time.monotonic() - started < 30
        assert said(broker, "cannot be sent by OTLP").count("cannot be sent by OTLP") == 1


def test_an_interval_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "often")
    broker = Sending(tmp_path / "data")
    with closing(broker), pytest.raises(LocalBrokerError, match="OTEL_METRIC_EXPORT_INTERVAL=often is no number"):
        broker.start()
