"""A broker that goes away and comes back while a query runs, and one that was never there."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import Client
from tests.brokers import Brokers
from tests.spark.support import Collector, Topic, committed, sentence_in

pytestmark = pytest.mark.cluster


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokers]:
    """A broker of the test's own."""
    with Brokers(tmp_path / "data") as one:
        yield one


def topic_of(spark: Any, broker: Brokers, name: str) -> Topic:
    one = Topic(spark, broker.bootstrap_servers, Client({"bootstrap.servers": broker.bootstrap_servers}), name, 2)
    one.create()
    return one


def test_a_running_query_goes_on_when_its_broker_was_killed_and_started_again(
    spark: Any, broker: Brokers, checkpoint: str
) -> None:
    source, sink = topic_of(spark, broker, "source"), topic_of(spark, broker, "sink")
    source.put(["a", "b"], 0)
    frame = source.read_stream().select("value")
    writer = frame.writeStream.format("pylog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    query = writer.option("topic", sink.name).option("checkpointLocation", checkpoint).start()
    query.processAllAvailable()
    broker.kill()
    broker.start()
    source.put(["c"], 1)
    query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    assert sorted(sink.values()) == ["a", "b", "c"]
    assert committed(checkpoint) == [0, 1]


def test_a_stopped_query_goes_on_after_its_broker_was_killed_and_started_again(
    spark: Any, broker: Brokers, checkpoint: str
) -> None:
    source = topic_of(spark, broker, "source")
    source.put(["a", "b"], 0)
    Collector(checkpoint).run(source.read_stream())
    source.put(["c"], 1)
    broker.kill()
    broker.start()
    run = Collector(checkpoint)
    run.run(source.read_stream())
    assert run.values == ["c"]


def test_a_stream_into_a_broker_that_is_not_there_fails_within_seconds(spark: Any, checkpoint: str) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    writer = frame.writeStream.format("pylog").option("kafka.bootstrap.servers", "127.0.0.1:1").option("topic", "t")
    started = time.monotonic()
    query = writer.option("checkpointLocation", checkpoint).start()
    with pytest.raises(Exception, match="PYLOG_UNREACHABLE") as caught:
        query.awaitTermination(60)
    assert time.monotonic() - started < 30
    assert "127.0.0.1:1" in sentence_in(str(caught.value))[1]
