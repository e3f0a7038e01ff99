"""A broker that goes away and comes back while a query runs. While it is stopped: ``tests/reading/test_losses.py``; one that was never
there: `test_sink_once`."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import Client
from pylog_spark.sink.identity import STREAM, Write
from tests.harness.brokers import Brokers
from tests.harness.waiting import happens, until
from tests.spark.once import Job, committed_values
from tests.spark.support import Topic, committed

pytestmark = pytest.mark.cluster


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokers]:
    """A broker of the test's own."""
    with Brokers(tmp_path / "data") as brokers:
        yield brokers


def topic_of(spark: Any, broker: Brokers, name: str) -> Topic:
    topic = Topic(spark, broker.bootstrap_servers, Client({"bootstrap.servers": broker.bootstrap_servers}), name, 2)
    topic.create()
    return topic


def copying(frame: Any, broker: Brokers, sink: Topic, checkpoint: str) -> Any:
    """A query that has written what there is of `frame` to `sink`."""
    writer = frame.writeStream.format("pylog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    query = writer.option("topic", sink.name).option("checkpointLocation", checkpoint).start()
    query.processAllAvailable()
    return query


def goes_on(query: Any, broker: Brokers, source: Topic, sink: Topic, checkpoint: str) -> None:
    """The brokers come back, and the query writes what is new, once."""
    broker.start()
    source.put(["c"], 1)
    query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    assert sorted(sink.values()) == ["a", "b", "c"]
    assert committed(checkpoint) == [0, 1]


def test_a_running_query_goes_on_when_its_broker_was_killed_and_started_again(
    spark: Any, broker: Brokers, checkpoint: str
) -> None:
    source, sink = topic_of(spark, broker, "source"), topic_of(spark, broker, "sink")
    source.put(["a", "b"], 0)
    frame = source.read_stream().select("value")
    query = copying(frame, broker, sink, checkpoint)
    broker.kill()
    goes_on(query, broker, source, sink, checkpoint)


@pytest.mark.long  # a shorter absence above
def test_a_running_query_waits_for_brokers_that_are_away_longer_than_one_question_may_take(
    spark: Any, broker: Brokers, checkpoint: str
) -> None:
    source, sink = topic_of(spark, broker, "source"), topic_of(spark, broker, "sink")
    source.put(["a", "b"], 0)
    question_s = 0.5
    waits = {"fetchOffset.numRetries": "100", "fetchOffset.retryIntervalMs": "100"}
    waits["kafka.default.api.timeout.ms"] = str(round(question_s * 1000))
    frame = source.read_stream(**waits).select("value")
    query = copying(frame, broker, sink, checkpoint)
    broker.kill()
    away_s = time.monotonic()
    until(lambda: time.monotonic() - away_s > 4 * question_s, "the brokers were away for several such times")
    assert query.isActive, query.exception()
    goes_on(query, broker, source, sink, checkpoint)


def test_a_query_that_waits_for_brokers_can_be_stopped(spark: Any, broker: Brokers, checkpoint: str) -> None:
    source = topic_of(spark, broker, "source")
    source.put(["a"], 0)
    writer = source.read_stream().writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.start()
    query.processAllAvailable()
    broker.kill()
    started_s = time.monotonic()
    query.stop()
    assert time.monotonic() - started_s < 30


@pytest.mark.long  # tests/spark/test_sink_protocol.py
def test_a_task_of_a_write_and_its_commit_wait_for_brokers_that_are_away(broker: Brokers) -> None:
    broker_topic = topic_of(None, broker, "sink")
    job = Job(broker.bootstrap_servers, broker_topic.name, Write(STREAM, "query", 0))
    with ThreadPoolExecutor(1) as pool:
        for step in (lambda: job.task(0, "a"), job.commit):
            broker.kill()
            done = pool.submit(step)
            assert not happens(done.done, 0.5), done.exception()
            broker.start()
            done.result(60)
    assert committed_values(broker.bootstrap_servers, broker_topic.name) == ["a"]
