"""A broker's numbers in the text format of Prometheus.

Names are those under which Kafka's JMX beans are usually exported (``kafka_server_brokertopicmetrics_messagesin_total``), where the number
means the same, and those of kafka_exporter for groups; others begin with ``pylog_``. Of a partition the numbers are those of this
broker's replica, of groups those that this broker coordinates. The text is made by prometheus-client, and so are the numbers of the process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from pylog_spark.archive.tiered.counting import ArchivedTopic
    from pylog_spark.broker.process import Broker

#: The media type of the text.
MEDIA = CONTENT_TYPE_PLAIN_0_0_4
_LABELS = ("topic", "partition")
_GROUP_LABELS = ("consumergroup", *_LABELS)


class _Number(NamedTuple):
    """One of the broker's numbers: its name in `Broker.stats`, its name outside, and what it counts."""

    own: str
    name: str
    says: str


_COUNTERS = (
    _Number("records_in", "kafka_server_brokertopicmetrics_messagesin", "Records appended."),
    _Number("fetched_bytes", "kafka_server_brokertopicmetrics_bytesout", "Bytes of records handed to consumers."),
    _Number("requests", "kafka_network_requestmetrics_requests", "Requests handled."),
    _Number("logins", "kafka_server_socketservermetrics_successful_authentication", "Logins that succeeded."),
    _Number("failed_logins", "kafka_server_socketservermetrics_failed_authentication", "Logins that failed."),
    _Number("bytes_in", "pylog_network_bytes_in", "Bytes read from sockets."),
    _Number("bytes_out", "pylog_network_bytes_out", "Bytes written to sockets."),
    _Number("accepted", "pylog_connections_accepted", "Connections accepted."),
    _Number("turned_away", "pylog_connections_turned_away", "Connections closed because max.connections were open."),
    _Number("refused", "pylog_requests_refused", "Requests whose connection was closed for them."),
    _Number("batches_in", "pylog_batches_in", "Batches appended."),
    _Number("long_polls", "pylog_fetches_waited", "Fetches that waited for records."),
    _Number("panics", "pylog_panics", "Requests that failed by a mistake of the broker."),
    _Number("follower_bytes_in", "pylog_follower_bytes_in", "Bytes of records fetched from leaders."),
)
_GAUGES = (
    _Number("connections", "kafka_server_socketservermetrics_connection_count", "Connections that are open."),
    _Number(
        "follower_max_lag", "kafka_server_replicafetchermanager_maxlag", "Most records that a follower here lacks."
    ),
    _Number("follower_failed_partitions", "pylog_follower_failed_partitions", "Followers here that have failed."),
    _Number("may_lead", "pylog_may_lead", "Whether this broker may lead (its session with ZooKeeper lives)."),
)
_OF_PARTITIONS = (
    _Number("log_start_offset", "kafka_log_log_logstartoffset", "First offset that can be read."),
    _Number("log_end_offset", "kafka_log_log_logendoffset", "One past the last record."),
    _Number("high_watermark", "pylog_log_high_watermark", "One past the last acknowledged record."),
    _Number("size_bytes", "kafka_log_log_size", "Bytes of the log."),
)


_TOPICS = "kafka_server_brokertopicmetrics"
_OF_ARCHIVE = (
    _Number("copied_bytes", f"{_TOPICS}_remotecopybytes", "Bytes of record batches copied to the archive."),
    _Number("copies", f"{_TOPICS}_remotecopyrequests", "Objects copied to the archive."),
    _Number("failed_copies", f"{_TOPICS}_remotecopyerrors", "Failures to copy a partition to the archive."),
    _Number("deletes", f"{_TOPICS}_remotedeleterequests", "Objects with records deleted from the archive."),
    _Number("failed_deletes", f"{_TOPICS}_remotedeleteerrors", "Failures to delete from the archive."),
    _Number("read_bytes", f"{_TOPICS}_remotefetchbytes", "Bytes of record batches read from the archive for clients."),
    _Number("reads", f"{_TOPICS}_remotefetchrequests", "Reads of the archive for clients."),
    _Number("failed_reads", f"{_TOPICS}_remotefetcherrors", "Reads of the archive for clients that failed."),
)
_OF_ARCHIVED = (
    _Number("segments", f"{_TOPICS}_remotelogmetadatacount", "Segments that the archive has."),
    _Number("bytes", f"{_TOPICS}_remotelogsizebytes", "Bytes of record batches in them."),
    _Number("stored_bytes", "pylog_archive_stored_bytes", "Bytes of their objects."),
    _Number("segments_to_delete", f"{_TOPICS}_remotedeletelagsegments", "Segments still to be deleted there."),
    _Number("bytes_to_delete", f"{_TOPICS}_remotedeletelagbytes", "Bytes of record batches in them."),
)


def exposition(broker: Broker) -> Callable[[], bytes]:
    """Give what makes the text of a broker's numbers. It may be called by any thread."""
    registry = numbers_of(broker)
    return lambda: generate_latest(registry)


def numbers_of(broker: Broker) -> CollectorRegistry:
    """Give the numbers of a broker and of its process. Any thread may collect them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OfBroker(broker))
    ProcessCollector(registry=registry)
    return registry


class _OfBroker(Collector):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        """All numbers now."""
        stats = self._broker.stats()
        for own, name, says in _COUNTERS:
            yield CounterMetricFamily(name, says, value=stats[own])
        for own, name, says in _GAUGES:
            yield GaugeMetricFamily(name, says, value=stats[own])
        is_controller = self._broker.is_controller
        yield _gauge(
            "kafka_controller_kafkacontroller_activecontrollercount", "Whether it is the controller.", is_controller
        )
        partitions = json.loads(self._broker.partition_numbers())
        yield from _of_partitions(partitions)
        if (archive := self._broker.archive_counts()) is not None:
            for own, name, says in _OF_ARCHIVE:
                yield CounterMetricFamily(name, says, value=getattr(archive, own))
            yield from _of_copies(partitions)
            began = time.perf_counter()
            topics = self._broker.archived_topics()
            took_ms = (time.perf_counter() - began) * 1_000
            yield from _of_archived(topics)
            yield _gauge(f"{_TOPICS}_remotelogsizecomputationtime", "Milliseconds to add the sizes up.", took_ms)
        yield from _of_groups(json.loads(self._broker.group_numbers()))
        yield _of_requests(json.loads(self._broker.request_times()))


def _of_partitions(partitions: list[Mapping[str, Any]]) -> Iterator[Metric]:
    led = [each for each in partitions if each["leads"]]
    manager = "kafka_server_replicamanager"
    yield _gauge(f"{manager}_partitioncount", "Replicas on this broker.", len(partitions))
    yield _gauge(f"{manager}_leadercount", "Partitions that this broker leads.", len(led))
    short = sum(each["in_sync"] < each["replicas"] for each in led)
    yield _gauge(
        f"{manager}_underreplicatedpartitions", "Partitions led here of which a replica is not in sync.", short
    )
    offline = sum(each["offline"] for each in partitions)
    yield _gauge(f"{manager}_offlinereplicacount", "Replicas on this broker whose log cannot be used.", offline)
    for own, name, says in _OF_PARTITIONS:
        yield _by_partition(name, says, ((each, each[own]) for each in partitions if not each["offline"]))
    replicas, in_sync = "kafka_cluster_partition_replicascount", "kafka_cluster_partition_insyncreplicascount"
    yield _by_partition(replicas, "Replicas of a partition led here.", ((each, each["replicas"]) for each in led))
    yield _by_partition(in_sync, "Those of them in sync.", ((each, each["in_sync"]) for each in led))


def _of_copies(partitions: list[Mapping[str, Any]]) -> Iterator[Metric]:
    """How far copies to the archive are behind, by topic, of the partitions led here."""
    lags: dict[str, tuple[int, int]] = {}
    for each in partitions:
        if (lag := each["copy_lag"]) is not None:
            segments, size = lags.get(each["topic"], (0, 0))
            lags[each["topic"]] = (segments + lag[0], size + lag[1])
    many = GaugeMetricFamily(
        f"{_TOPICS}_remotecopylagsegments", "Closed segments that the archive lacks.", labels=_LABELS[:1]
    )
    large = GaugeMetricFamily(f"{_TOPICS}_remotecopylagbytes", "Bytes of them.", labels=_LABELS[:1])
    for topic, (segments, size) in lags.items():
        many.add_metric((topic,), segments)
        large.add_metric((topic,), size)
    yield many
    yield large


def _of_archived(topics: Mapping[str, ArchivedTopic]) -> Iterator[Metric]:
    """What the archive has, and what is to go there, by topic, of the partitions led here."""
    for own, name, says in _OF_ARCHIVED:
        family = GaugeMetricFamily(name, says, labels=_LABELS[:1])
        for topic, archived in topics.items():
            family.add_metric((topic,), getattr(archived, own))
        yield family


def _of_groups(groups: Mapping[str, Any]) -> Iterator[Metric]:
    yield _gauge("pylog_consumergroups", "Groups that this broker coordinates.", groups["groups"])
    yield _gauge("pylog_consumergroups_loading", "Whether groups are still being read and missing.", groups["loading"])
    yield _gauge(
        "pylog_consumergroup_offsets_left_out", "Committed offsets beyond those shown here.", groups["left_out"]
    )
    offset = GaugeMetricFamily(
        "kafka_consumergroup_current_offset", "Next offset that a group reads.", labels=_GROUP_LABELS
    )
    lag = GaugeMetricFamily(
        "kafka_consumergroup_lag", "Records that a group has not read, of replicas here.", labels=_GROUP_LABELS
    )
    for each in groups["offsets"]:
        labels = (each["group"], each["topic"], str(each["partition"]))
        offset.add_metric(labels, each["offset"])
        if each["lag"] is not None:
            lag.add_metric(labels, each["lag"])
    yield offset
    yield lag


def _of_requests(apis: list[Mapping[str, Any]]) -> Metric:
    family = HistogramMetricFamily(
        "pylog_network_request_seconds", "Time until the reply to a request is ready.", labels=("request",)
    )
    for each in apis:
        counts = accumulate(count for _, count in each["buckets"])
        bounds = ("+Inf" if bound is None else floatToGoString(bound / 1e6) for bound, _ in each["buckets"])
        family.add_metric((each["api"],), list(zip(bounds, counts, strict=True)), each["sum_us"] / 1e6)
    return family


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(name, says, value=value)


def _by_partition(name: str, says: str, values: Iterable[tuple[Mapping[str, Any], float]]) -> Metric:
    family = GaugeMetricFamily(name, says, labels=_LABELS)
    for partition, value in values:
        family.add_metric((partition["topic"], str(partition["partition"])), value)
    return family
