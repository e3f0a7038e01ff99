"""Records that are gone although a query needed them: a named error, or going on with what is left. As Spark shows it:
``tests/spark/test_loss.py``; Spark's connector on Apache Kafka: ``tests/parity/test_loss.py``."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pylog_spark.errors import PylogError
from pylog_spark.offsets.limits import EARLIEST
from tests.harness.brokers import Brokers
from tests.harness.waiting import until
from tests.reading.damage import Own, Task
from tests.reading.streams import BOTH_WAYS, Checkpoint, Query, failure, read
from tests.spark.support import Topic

pytestmark = [pytest.mark.cluster, BOTH_WAYS]

Topics = Callable[..., Topic]


@pytest.fixture
def checkpoint() -> Checkpoint:
    return Checkpoint()


@pytest.fixture
def read_once(make_topic: Topics, checkpoint: Checkpoint) -> Topic:
    """A topic of three records, read by a query up to its end."""
    topic = make_topic()
    topic.put(["a", "b", "c"])
    read(topic, checkpoint)
    return topic


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    with Brokers(tmp_path / "broker", log_retention_check_interval_ms=100) as broker:
        yield Own(broker)


def test_a_recreated_topic_is_one_named_error(read_once: Topic, checkpoint: Checkpoint) -> None:
    read_once.recreate()
    read_once.put(["x", "y", "z", "later"])
    condition, sentence = failure(read_once, checkpoint)
    assert condition == "PYLOG_TOPIC_RECREATED"
    assert f"The topic '{read_once.name}' was deleted and created again" in sentence


def test_a_recreated_topic_is_read_from_its_beginning_when_loss_is_allowed(
    read_once: Topic, checkpoint: Checkpoint
) -> None:
    read_once.recreate()
    read_once.put(["x"])
    assert read(read_once, checkpoint, failOnDataLoss=False).values == ["x"]


def test_a_deleted_topic_is_named(read_once: Topic, checkpoint: Checkpoint) -> None:
    read_once.client.delete_topics([read_once.name])
    condition, sentence = failure(read_once)
    assert (condition, read_once.name in sentence) == ("PYLOG_UNKNOWN_TOPIC", True)
    assert failure(read_once, checkpoint, subscribePattern=read_once.name)[0] == "PYLOG_TOPIC_DELETED"


def test_records_deleted_before_they_were_read_fail_the_query(read_once: Topic, checkpoint: Checkpoint) -> None:
    read_once.put(["d", "e", "f"])
    read_once.client.delete_records([(read_once.name, 0, 5)])
    condition, sentence = failure(read_once, checkpoint)
    assert condition == "PYLOG_DATA_LOSS"
    assert f"{read_once.name}-0 holds nothing before offset 5, and this query needs it from offset 3" in sentence


def test_records_deleted_before_they_were_read_are_skipped_when_loss_is_allowed(
    read_once: Topic, checkpoint: Checkpoint
) -> None:
    read_once.put(["d", "e", "f"])
    read_once.client.delete_records([(read_once.name, 0, 5)])
    assert read(read_once, checkpoint, failOnDataLoss=False).values == ["f"]


def test_records_that_retention_took_before_they_were_read_are_data_loss(own: Own, checkpoint: Checkpoint) -> None:
    old = pa.array([1_000_000] * 3, pa.timestamp("us", "UTC"))
    topic = own.topic(retention_ms="60000", segment_bytes="1048576", message_timestamp_before_max_ms=str(2**62))
    topic.put(["a", "b", "c"])
    read(topic, checkpoint)
    topic.put(["x", "y", "z"], timestamp=old)
    topic.put(["v" * 100_000] * 10)  # closes the segment
    topic.put(["later"])
    topic.client.alter_configs("topic", topic.name, {"retention.ms": "1"})
    until(lambda: topic.offsets(EARLIEST)[0] > 3, "retention takes what was not read")
    (earliest,) = topic.offsets(EARLIEST)
    condition, sentence = failure(topic, checkpoint)
    assert condition == "PYLOG_DATA_LOSS"
    assert f"{topic.name}-0 holds nothing before offset {earliest}, and this query needs it from offset 3" in sentence
    found = read(topic, checkpoint, "offset", failOnDataLoss=False)
    assert all(row.offset >= earliest for rows in found.batches.values() for row in rows)


def test_a_log_cut_behind_what_was_read_is_named_and_gone_on_with_when_loss_is_allowed(
    own: Own, checkpoint: Checkpoint
) -> None:
    topic = own.topic()
    topic.put(["a", "b", "c"])
    cut_at = own.size(topic)
    topic.put(["d", "e"])
    read(topic, checkpoint)
    own.cut(topic, cut_at)
    condition, sentence = failure(topic, checkpoint, **{"fetchOffset.retryIntervalMs": 10})
    assert condition == "PYLOG_LOG_TRUNCATED"
    assert f"{topic.name}-0 ends at offset 3, before offset 5" in sentence
    forgiving = {"failOnDataLoss": False, "fetchOffset.retryIntervalMs": 10}
    read(topic, checkpoint, **forgiving)
    topic.put(["new"])
    assert read(topic, checkpoint, **forgiving).values == ["new"]


def test_a_log_cut_after_the_plan_was_made_is_met_in_the_task(own: Own) -> None:
    topic = own.topic()
    topic.put(["a", "b", "c"])
    cut_at = own.size(topic)
    topic.put(["d", "e"])
    task = Task(topic, **{"kafkaConsumer.pollTimeoutMs": "1500"})
    own.cut(topic, cut_at)
    with pytest.raises(PylogError, match="ends at offset 3, before offset 5") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_LOG_TRUNCATED"
    assert task.values("false") == [b"a", b"b", b"c"]


def test_a_topic_deleted_while_a_query_runs_is_named_and_the_others_are_gone_on_with_when_loss_is_allowed(
    make_topic: Topics, checkpoint: Checkpoint
) -> None:
    topic, other = make_topic(), make_topic()
    topic.put(["a"])
    other.put(["b"])
    both = {"subscribe": f"{topic.name},{other.name}", "fetchOffset.retryIntervalMs": 10}
    query = Query(topic, checkpoint, **both)
    assert query.trigger()
    topic.client.delete_topics([topic.name])
    with pytest.raises(PylogError) as caught:
        until(query.trigger, "the query fails")
    query.stop()
    assert caught.value.condition == "PYLOG_TOPIC_DELETED"
    assert f"The topic '{topic.name}' was deleted" in caught.value.sentence
    other.put(["c"])
    assert read(topic, checkpoint, failOnDataLoss=False, **both).values == ["c"]


def test_a_partition_no_longer_subscribed_to_is_named(make_topic: Topics, checkpoint: Checkpoint) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a"], 0)
    read(topic, checkpoint)
    only = {"assign": f'{{"{topic.name}":[0]}}'}
    condition, sentence = failure(topic, checkpoint, **only)
    assert condition == "PYLOG_PARTITION_GONE"
    assert f"{topic.name}-1 was read up to offset 0 and is not there any more, or no longer subscribed to" in sentence
    topic.put(["b"], 0)
    assert read(topic, checkpoint, failOnDataLoss=False, **only).values == ["b"]


def test_records_deleted_after_the_plan_was_made_are_met_in_the_task(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a", "b", "c"])
    task = Task(topic)
    topic.client.delete_records([(topic.name, 0, 2)])
    with pytest.raises(PylogError, match="holds nothing before offset 2") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_DATA_LOSS"
    assert task.values("false") == [b"c"]


def test_a_topic_recreated_after_the_plan_was_made_is_met_in_the_task(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    task = Task(topic)
    topic.recreate()
    topic.put(["another"])
    with pytest.raises(PylogError, match="was deleted and created again") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_TOPIC_RECREATED"
    assert task.values("false") == []


def test_a_topic_deleted_after_the_plan_was_made_is_met_in_the_task(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    task = Task(topic)
    topic.client.delete_topics([topic.name])
    with pytest.raises(PylogError, match="was deleted") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_TOPIC_DELETED"
    assert task.values("false") == []


def test_a_stopped_query_goes_on_after_its_broker_was_killed_and_started_again(
    tmp_path: Path, checkpoint: Checkpoint
) -> None:
    with Brokers(tmp_path / "broker") as broker:
        topic = Own(broker).topic()
        topic.put(["a", "b"])
        read(topic, checkpoint)
        topic.put(["c"])
        broker.kill()
        broker.start()
        assert read(topic, checkpoint).values == ["c"]
