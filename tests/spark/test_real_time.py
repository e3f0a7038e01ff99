"""Spark's real-time mode, from 4.3 in Python: Spark's own Kafka connector runs in it on pylog's broker; pylog's source and sink are refused by Spark. Costs 6 s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException, StreamingQueryException

from tests.harness.waiting import until
from tests.spark.support import Topic, committed

# Spark's own mode
pytestmark = [pytest.mark.long, pytest.mark.peers]

Topics = Callable[..., Topic]
Start = Callable[[str, Topic, str, Topic], Any]


@pytest.fixture
def start(checkpoint: str) -> Iterator[Start]:
    """Starts a query in real-time mode, whose batches last a minute: from a topic by a source into a topic by a sink."""
    started = []

    def run(source: str, topic: Topic, sink: str, target: Topic) -> Any:
        given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "startingOffsets": "earliest"}
        frame = topic.spark.readStream.format(source).options(**given).load().select("value")
        writer = frame.writeStream.format(sink).option("kafka.bootstrap.servers", target.servers)
        writer = writer.option("topic", target.name).option("checkpointLocation", checkpoint).outputMode("update")
        query = writer.trigger(realTime="1 minute").start()
        started.append(query)
        return query

    yield run
    for query in started:
        query.stop()


def test_the_kafka_connector_passes_records_on_within_a_batch(
    make_topic: Topics, start: Start, checkpoint: str
) -> None:
    topic, target = make_topic(), make_topic()
    topic.put(["before"])
    query = start("kafka", topic, "kafka", target)
    until(lambda: target.offsets() == [1], "the first record is passed on")
    topic.put(["while the batch runs"])
    until(lambda: target.offsets() == [2], "the second record is passed on")
    assert query.isActive
    assert committed(checkpoint) == [], "the first batch runs"
    assert target.values() == ["before", "while the batch runs"]


def test_spark_refuses_a_source_written_in_python(make_topic: Topics, start: Start) -> None:
    topic, target = make_topic(), make_topic()
    query = start("pylog", topic, "kafka", target)
    with pytest.raises(StreamingQueryException, match=r"STREAMING_REAL_TIME_MODE\.INPUT_STREAM_NOT_SUPPORTED"):
        query.awaitTermination(60)


def test_spark_refuses_a_sink_that_is_not_on_its_list(make_topic: Topics, start: Start) -> None:
    topic, target = make_topic(), make_topic()
    with pytest.raises(IllegalArgumentException, match="is not in the sink allowlist for Real-Time Mode"):
        start("kafka", topic, "pylog", target)
