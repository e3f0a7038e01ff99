"""A topic that is deleted under a query that writes to it: the query stops with its name, and makes no other in its place.

On pylog and on Apache Kafka.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from pyspark import TaskContext

from pylog_spark._native import Client
from pylog_spark.errors import PylogError
from pylog_spark.options import AT_LEAST_ONCE
from pylog_spark.sink import attempt, topics
from pylog_spark.sink.identity import STREAM, Write
from pylog_spark.sink.task import WritePlan
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.harness.waiting import until
from tests.interop.clients import create_topic
from tests.reading.writing import texts
from tests.spark.once import Job, committed_values
from tests.spark.support import Topic, sentence_in

pytestmark = pytest.mark.cluster

_NUMBERS = count()


@pytest.fixture(scope="module", params=BOTH)
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a running broker that makes topics which are written to."""
    with either(request, {"auto.create.topics.enable": "true"}, "spark_kafka") as servers:
        yield servers


@pytest.fixture
def make_job(cluster: str) -> Callable[..., Job]:
    """Makes attempts at batches of one query."""
    name = f"target-{os.getpid()}-{next(_NUMBERS)}"
    create_topic(cluster, name, 2)
    return lambda version: Job(cluster, name, Write(STREAM, f"query.{name}", version))


@pytest.fixture(params=["the same process", "another process"])
def forget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the next task run in the process of the last one, or in one that has never seen the query."""

    def another() -> None:
        monkeypatch.setattr(topics, "_written", {})
        monkeypatch.setattr(attempt, "_ledgers", {})

    return another if request.param == "another process" else lambda: None


def shown(job: Any) -> dict[str, Any]:
    client = Client({"bootstrap.servers": job.servers})
    try:
        (found,) = client.describe_topics([job.topic])
        return dict(found)
    finally:
        client.close()


def delete(job: Any) -> None:
    client = Client({"bootstrap.servers": job.servers})
    client.delete_topics([job.topic])
    client.close()
    until(lambda: shown(job)["error"] == "UNKNOWN_TOPIC_OR_PARTITION", "the topic is gone")


def test_a_topic_that_was_deleted_is_not_made_again(make_job: Callable[[int], Job], forget: Callable[[], None]) -> None:
    first, second = make_job(0), make_job(1)
    first.task(0, "a")
    first.commit()
    delete(first)
    forget()
    with pytest.raises(PylogError) as caught:
        second.task(0, "b")
    assert caught.value.condition == "PYLOG_TOPIC_DELETED"
    assert f"pylog topic create {first.topic}" in caught.value.sentence
    assert "another checkpointLocation" in caught.value.sentence
    assert shown(first)["error"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_nothing_is_committed_into_a_topic_that_was_made_in_the_place_of_a_deleted_one(
    make_job: Callable[[int], Job], forget: Callable[[], None]
) -> None:
    first, second = make_job(0), make_job(1)
    first.task(0, "a")
    first.commit()
    delete(first)
    create_topic(first.servers, first.topic, 1)
    forget()
    with pytest.raises(PylogError) as caught:
        second.task(0, "b")
    assert caught.value.condition == "PYLOG_TOPIC_RECREATED"
    assert "another checkpointLocation" in caught.value.sentence
    second.abort()
    assert committed_values(first.servers, first.topic) == []
    fresh = Job(first.servers, first.topic, Write(STREAM, f"fresh.{first.topic}", 0))
    fresh.task(0, "c")
    fresh.commit()
    assert committed_values(first.servers, first.topic) == ["c"]


@pytest.mark.parametrize("cluster", ["pylog"], indirect=True)
def test_a_topic_that_is_not_there_yet_is_made_by_the_first_batch_that_has_rows(cluster: str) -> None:
    name = f"target-{os.getpid()}-{next(_NUMBERS)}"
    for version, values in enumerate([(), ("a",), ("b",)]):
        new_job = Job(cluster, name, Write(STREAM, f"query.{name}", version))
        new_job.task(0, *values)
        new_job.commit()
    assert committed_values(cluster, name) == ["a", "b"]


def at_least_once(job: Any, version: int, value: str) -> None:
    """A task of a micro-batch, as a worker of Spark runs it."""
    plan = WritePlan({"bootstrap.servers": job.servers}, job.topic, {"value": "value"}, AT_LEAST_ONCE)
    context = TaskContext._getOrCreate()
    context._localProperties = {"sql.streaming.queryId": f"q.{job.topic}", "streaming.sql.batchId": str(version)}
    try:
        plan.write(iter([texts(value)]))
    finally:
        TaskContext._setTaskContext(None)


def test_a_worker_that_has_written_at_least_once_to_a_topic_makes_no_other(make_job: Callable[[int], Job]) -> None:
    job = make_job(0)
    at_least_once(job, 0, "a")
    delete(job)
    with pytest.raises(PylogError, match="PYLOG_TOPIC_DELETED"):
        at_least_once(job, 1, "b")
    create_topic(job.servers, job.topic, 1)
    with pytest.raises(PylogError, match="PYLOG_TOPIC_RECREATED"):
        at_least_once(job, 1, "b")


def test_a_running_query_stops_when_its_target_is_deleted(spark: Any, cluster: str, checkpoint: str) -> None:
    name = f"target-{os.getpid()}-{next(_NUMBERS)}"
    client = Client({"bootstrap.servers": cluster})
    source, sink = (Topic(spark, cluster, client, f"{name}-{role}", 1) for role in ("source", "sink"))
    source.create()
    sink.create()
    source.put(["a"])
    frame = source.read_stream().select("value")
    writer = frame.writeStream.format("pylog").option("kafka.bootstrap.servers", cluster)
    query = writer.option("topic", sink.name).option("checkpointLocation", checkpoint).start()
    query.processAllAvailable()
    client.delete_topics([sink.name])
    until(lambda: client.describe_topics([sink.name])[0]["error"] is not None, "the topic is gone")
    source.put(["b"])
    with pytest.raises(Exception, match="PYLOG_TOPIC_DELETED") as caught:
        query.processAllAvailable()
    assert sentence_in(str(caught.value))[0] == "PYLOG_TOPIC_DELETED"
    assert client.describe_topics([sink.name])[0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
