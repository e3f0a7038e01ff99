"""A broker that goes away and comes back while a query runs. While it is stopped: ``tests/reading/test_losses.py``; one that was never
there: `test_sink_once`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import Client
from tests.brokers import Brokers
from tests.spark.support import Topic, committed

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
