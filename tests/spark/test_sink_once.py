"""Exactly once into the log, with Spark: batches that are run again, written twice or given up.

Judged by librdkafka as a reader of committed data. One test on Apache Kafka, too; all that needs no Spark is tested on both:
`test_sink_protocol` and ``tests/reading/test_writing.py``.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pylog_spark
from tests.harness.brokers import BOTH
from tests.harness.ports import nowhere
from tests.harness.waiting import until
from tests.spark.once import committed_values, digest, open_ends
from tests.spark.support import Topic, committed, sentence_in

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest, servers: str) -> str:
    """Address of a running broker: that of the session, or of the kind that a test asks for."""
    kind = getattr(request, "param", "pylog")
    return servers if kind == "pylog" else str(request.getfixturevalue("spark_kafka"))


def seen(topic: Topic) -> list[str]:
    return committed_values(topic.servers, topic.name)


def forget_commit(checkpoint: str) -> int:
    """As if the driver had died before it noted the newest batch as done; its number."""
    newest = committed(checkpoint)[-1]
    for name in (f"{newest}", f".{newest}.crc"):
        (Path(checkpoint) / "commits" / name).unlink()
    return newest


def text_of(source: Topic, **options: Any) -> Any:
    return source.read_stream(**options).selectExpr("CAST(value AS STRING) AS value")


@pytest.mark.parametrize("servers", BOTH, indirect=True)
def test_a_batch_that_runs_again_after_its_commit_is_in_the_log_once(make_topic: Topics, checkpoint: str) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=2)
    rows = [f"{number:04}" for number in range(300)]
    for partition in range(3):
        source.put(rows[partition * 100 : (partition + 1) * 100], partition)
    limit = {"maxOffsetsPerTrigger": "150"}
    sink.save_stream(text_of(source, **limit), checkpoint)
    assert digest(seen(sink)) == digest(rows)
    newest = forget_commit(checkpoint)
    sink.save_stream(text_of(source, **limit), checkpoint)
    assert committed(checkpoint)[-1] == newest
    assert digest(seen(sink)) == digest(rows)
    source.put(["new"], 1)
    sink.save_stream(text_of(source, **limit), checkpoint)
    assert digest(seen(sink)) == digest([*rows, "new"])


@pytest.mark.long  # tests/reading/test_writing.py
def test_at_least_once_writes_a_batch_that_runs_again_twice(make_topic: Topics, checkpoint: str) -> None:
    source, sink = make_topic(), make_topic()
    source.put(["a", "b"])
    for _ in range(2):
        sink.save_stream(text_of(source), checkpoint, delivery="at-least-once")
        forget_commit(checkpoint)
    assert seen(sink) == ["a", "a", "b", "b"]
    assert sink.offsets() == [4]


@pytest.mark.long  # without state above
def test_a_stateful_batch_that_runs_again_keeps_its_state_and_is_in_the_log_once(
    make_topic: Topics, checkpoint: str
) -> None:
    source, sink = make_topic(), make_topic()

    def run() -> None:
        counts = text_of(source).groupBy("value").count().selectExpr("concat(value, '=', count) AS value")
        sink.save_stream(counts, checkpoint, "complete")

    source.put(["a", "b", "a"])
    run()
    forget_commit(checkpoint)
    run()
    assert seen(sink) == ["a=2", "b=1"]
    source.put(["a"])
    run()
    assert seen(sink) == ["a=2", "a=3", "b=1", "b=1"]


def test_update_mode_through_foreach_batch_is_exactly_once(make_topic: Topics, checkpoint: str) -> None:
    source, sink = make_topic(), make_topic()
    options = {"topic": sink.name, "kafka.bootstrap.servers": sink.servers}
    write = pylog_spark.foreach_batch(f"counts.{sink.name}", **options)

    def run() -> None:
        counts = text_of(source).groupBy("value").count().selectExpr("concat(value, '=', count) AS value")
        query = counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", checkpoint)
        assert query.trigger(availableNow=True).start().awaitTermination(120)

    source.put(["a", "b", "a"])
    run()
    forget_commit(checkpoint)
    run()
    source.put(["a"])
    run()
    assert seen(sink) == ["a=2", "a=3", "b=1"]


def test_a_batch_with_a_name_is_written_once_for_each_version(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()

    def save(version: int, *values: str) -> None:
        frame = spark.createDataFrame([(value,) for value in values], "value STRING")
        topic.save(frame, txnAppId=f"orders.{topic.name}", txnVersion=version)

    save(3, "a", "b")
    save(3, "a", "b")
    save(2, "older")
    assert seen(topic) == ["a", "b"]
    save(4, "c")
    assert seen(topic) == ["a", "b", "c"]


def test_a_batch_that_fails_leaves_nothing_to_see_nothing_open_and_no_decision(make_topic: Topics, spark: Any) -> None:
    topic = make_topic(partitions=2)
    frame = spark.range(40).selectExpr("IF(id = 39, raise_error('boom'), CAST(id AS STRING)) AS value").repartition(2)
    with pytest.raises(Exception, match="boom"):
        topic.save(frame)
    until(lambda: open_ends(topic.servers, topic.name) == {}, "what the failed tasks wrote is aborted")
    assert seen(topic) == []
    topic.save(spark.createDataFrame([("after",)], "value STRING"))
    assert seen(topic) == ["after"]


@pytest.mark.long  # test_errors.py, of a first start
def test_a_restarted_stream_with_a_wrong_address_fails_within_seconds(make_topic: Topics, checkpoint: str) -> None:
    source, sink = make_topic(), make_topic()
    source.put(["a"])
    sink.save_stream(text_of(source), checkpoint)
    source.put(["b"])
    writer = text_of(source).writeStream.format("pylog").option("checkpointLocation", checkpoint)
    writer = writer.option("topic", sink.name).option("kafka.bootstrap.servers", nowhere())
    started = time.monotonic()
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(Exception, match="PYLOG_UNREACHABLE") as caught:
        query.awaitTermination(120)
    assert time.monotonic() - started < 40
    assert nowhere() in sentence_in(str(caught.value))[1]
    sink.save_stream(text_of(source), checkpoint)
    assert seen(sink) == ["a", "b"]
