"""Listeners on real streams: the numbers are those of Spark's progress, and a group shows each batch as soon as it is finished. Costs 22 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pylog_spark.client import Admin
from pylog_spark.errors import PylogError
from pylog_spark.listener import GroupMirror, QueryMetrics
from tests.harness.ports import nowhere
from tests.harness.waiting import until
from tests.peers.kafka import java
from tests.spark.support import Collector, Topic

Topics = Callable[..., Topic]
Listen = Callable[[Any], Any]
Numbers = dict[tuple[str, tuple[str, ...]], float]
HOUR_S = 3_600


@pytest.fixture
def listen(spark: Any) -> Iterator[Listen]:
    """Adds a listener to the session, until the end of the test."""
    added: list[Any] = []

    def add(listener: Any) -> Any:
        spark.streams.addListener(listener)
        added.append(listener)
        return listener

    yield add
    for listener in added:
        spark.streams.removeListener(listener)
        if isinstance(listener, QueryMetrics):
            listener.close()


def scraped(registry: CollectorRegistry, query: str) -> Numbers:
    """What Prometheus's parser reads of a query: (name, labels but the query's) -> value."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (each.name, labels_of(each.labels)): each.value
        for family in families
        for each in family.samples
        if each.labels["query"] == query
    }


def exported(reader: InMemoryMetricReader, query: str) -> Numbers:
    """The same numbers as OpenTelemetry has them."""
    data = reader.get_metrics_data()
    assert data is not None
    assert encode_metrics(data).resource_metrics, "they can be sent"
    return {
        (metric.name, labels_of(point.attributes)): point.value
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if point.attributes["query"] == query
    }


def labels_of(labels: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(labels[name] for name in ("source", "topic", "partition", "part", "operator") if name in labels)


def named(frame: Any, name: str, checkpoint: str, **trigger: Any) -> Any:
    """Start a query with a name, that writes nowhere."""
    writer = frame.writeStream.format("noop").queryName(name).option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start()


def test_numbers_are_those_of_the_progress_and_the_lag_goes_to_0(
    make_topic: Topics, checkpoint: str, listen: Listen
) -> None:
    topic = make_topic(partitions=2)
    hour_ago = pa.array([(time.time_ns() // 1_000) - HOUR_S * 1_000_000] * 6, pa.timestamp("us", "UTC"))
    topic.put(["v"] * 6, 0, timestamp=hour_ago)
    topic.put(["v"] * 6, 1, timestamp=hour_ago)
    registry, reader, name = CollectorRegistry(), InMemoryMetricReader(), topic.name
    provider = MeterProvider([reader])
    metrics = listen(
        QueryMetrics(registry, meter_provider=provider, bootstrap_servers=topic.servers, interval_s=HOUR_S)
    )
    frame = topic.read_stream(maxOffsetsPerTrigger=4)
    query = named(frame, name, checkpoint, processingTime="1 hour")
    until(lambda: scraped(registry, name).get(("pylog_query_batches_total", ())) == 1, "a batch is counted")
    query.stop()

    progress, shown = query.recentProgress, scraped(registry, name)
    assert shown["pylog_query_input_rows_total", ("0",)] == progress[0].numInputRows == 4
    assert shown["pylog_query_processed_rows_per_second", ()] == progress[0]["processedRowsPerSecond"]
    assert {part: shown["pylog_query_batch_seconds_total", (part,)] for part in progress[0].durationMs} == {
        part: took_ms / 1_000 for part, took_ms in progress[0].durationMs.items()
    }
    for partition in ("0", "1"):
        of = ("0", topic.name, partition)
        assert shown["pylog_query_end_offset", of] == 2
        assert shown["pylog_query_latest_offset", of] == 6
        assert shown["pylog_query_partition_lag_records", of] == 4
        assert ("pylog_query_partition_lag_seconds", of) not in shown
    until(lambda: scraped(registry, name)["pylog_query_active", ()] == 0, "the end is noticed")

    again = named(frame, name, checkpoint, processingTime="1 hour")
    until(lambda: scraped(registry, name)["pylog_query_batches_total", ()] == 2, "the next is counted")
    metrics.look()
    shown = scraped(registry, name)
    assert HOUR_S <= shown["pylog_query_lag_seconds", ("0",)] < HOUR_S + 300
    assert shown["pylog_query_lag_records", ("0",)] == 4
    assert shown["pylog_query_partition_lag_bytes", ("0", topic.name, "0")] > 0
    topic.put(["v"] * 3)
    metrics.look()
    assert scraped(registry, name)["pylog_query_lag_records", ("0",)] == 7, "what came since the batch is counted, too"
    again.stop()

    last = named(frame, name, checkpoint, availableNow=True)
    assert last.awaitTermination(120)
    until(lambda: scraped(registry, name)["pylog_query_lag_records", ("0",)] == 0, "all is read")
    until(lambda: scraped(registry, name)["pylog_query_active", ()] == 0, "the end is noticed")
    shown = scraped(registry, name)
    assert shown["pylog_query_lag_seconds", ("0",)] == 0
    assert shown["pylog_query_input_rows_total", ("0",)] == 15
    assert shown["pylog_query_batch_id", ()] == last.lastProgress.batchId
    of_otel = exported(reader, name)
    assert of_otel == {
        (name.removesuffix("_total").replace("_", "."), labels): value for (name, labels), value in shown.items()
    }
    provider.shutdown()


@pytest.mark.long  # the numbers: tests/unit/listener
def test_state_rows_are_those_of_the_progress(make_topic: Topics, checkpoint: str, listen: Listen) -> None:
    topic = make_topic()
    topic.put(["a", "b", "a", "c"])
    registry, name = CollectorRegistry(), topic.name
    listen(QueryMetrics(registry))
    counts = topic.read_stream().groupBy("value").count()
    writer = counts.writeStream.outputMode("complete").format("noop").queryName(name)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    until(
        lambda: scraped(registry, name).get(("pylog_query_state_rows", ("0 stateStoreSave",))) == 3, "state is counted"
    )


@pytest.mark.cluster
def test_a_group_of_the_querys_name_shows_each_batch_at_its_end_and_the_last_before_a_stop(
    make_topic: Topics, checkpoint: str, listen: Listen
) -> None:
    topic = make_topic(partitions=2)
    topic.put(["v"] * 6, 0)
    topic.put(["v"] * 3, 1)
    name = f"{topic.name}-mirrored"
    mirror = listen(GroupMirror(topic.servers, leave_out=[f"{name}-not"]))
    with Admin(topic.servers) as admin:
        # The first group of a new cluster may have to wait for its coordinator, for which a query would not wait.
        admin.alter_group_offsets(f"{name}-first", {(topic.name, 0): 0})
        frame = topic.read_stream(maxOffsetsPerTrigger=3)
        query = named(frame, name, checkpoint, processingTime="1 hour")
        until(lambda: admin.group_offsets(name) == {(topic.name, 0): 2, (topic.name, 1): 1}, "the batch is shown")
        query.stop()
        assert mirror.wait(query)
        assert admin.group_offsets(name) == {(topic.name, 0): 2, (topic.name, 1): 1}

        last = named(frame, name, checkpoint, availableNow=True)
        assert last.awaitTermination(120)
        assert mirror.wait(last)
        assert admin.group_offsets(name) == {(topic.name, 0): 6, (topic.name, 1): 3}

        left_out = named(frame, f"{name}-not", f"{checkpoint}-not", availableNow=True)
        assert left_out.awaitTermination(120)
        assert mirror.wait(left_out)
        unnamed = Collector(f"{checkpoint}-unnamed").run(frame)
        assert mirror.wait(unnamed)
        groups = {each.group_id for each in admin.groups()}
        assert f"{name}-not" not in groups
        assert unnamed.id in groups
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": name})
    shown = consumer.committed([TopicPartition(topic.name, partition) for partition in range(2)], timeout=30)
    consumer.close()
    assert [each.offset for each in shown] == [6, 3], "librdkafka's clients see it"


@pytest.mark.long  # the group: below
@pytest.mark.peers
def test_kafkas_own_tool_shows_the_lag_of_a_query_by_its_name(
    make_topic: Topics, checkpoint: str, listen: Listen
) -> None:
    topic = make_topic()
    topic.put(["v"] * 10)
    name = f"{topic.name}-tool"
    mirror = listen(GroupMirror(topic.servers))
    query = named(topic.read_stream(maxOffsetsPerTrigger=4), name, checkpoint, processingTime="1 hour")
    until(lambda: query.lastProgress is not None, "a batch is finished")
    query.stop()
    assert mirror.wait(query)
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    text = java(tool, "--bootstrap-server", topic.servers, "--describe", "--group", name)
    (line,) = [line.split() for line in text.splitlines() if topic.name in line and line.split()[2:3] == ["0"]]
    assert line[1:6] == [topic.name, "0", "4", "10", "6"]


@pytest.mark.peers
def test_a_query_of_sparks_own_connector_is_counted_and_has_a_group(
    make_topic: Topics, checkpoint: str, listen: Listen
) -> None:
    topic = make_topic()
    topic.put(["v"] * 5)
    name, registry = f"{topic.name}-connector", CollectorRegistry()
    mirror, _ = listen(GroupMirror(topic.servers, prefix="of-")), listen(QueryMetrics(registry))
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "startingOffsets": "earliest"}
    frame = topic.spark.readStream.format("kafka").options(**given).load()
    query = named(frame, name, checkpoint, availableNow=True)
    assert query.awaitTermination(120)
    assert mirror.wait(query)
    with Admin(topic.servers) as admin:
        assert admin.group_offsets(f"of-{name}") == {(topic.name, 0): 5}
    until(lambda: scraped(registry, name).get(("pylog_query_lag_records", ("0",))) == 0, "the batch is counted")
    assert scraped(registry, name)["pylog_query_input_rows_total", ("0",)] == 5


def test_brokers_that_are_away_do_not_slow_a_query_and_wait_says_so(
    make_topic: Topics, checkpoint: str, listen: Listen
) -> None:
    topic = make_topic()
    topic.put(["v"])
    mirror = listen(GroupMirror(nowhere()))
    query = Collector(checkpoint).run(topic.read_stream())
    assert query.exception() is None
    assert not mirror.wait(query, timeout_s=30)


def test_a_look_without_brokers_says_what_is_missing() -> None:
    with pytest.raises(PylogError, match="give it bootstrap_servers"):
        QueryMetrics(CollectorRegistry()).look()
