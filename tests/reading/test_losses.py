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
from tests.reading.streams import Checkpoint, Query, failure, read
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def checkpoint() -> Checkpoint:
    return Checkpoint()


@pytest.fixture
def read_once(topic: Topics, checkpoint: Checkpoint) -> Topic:
    """A topic of three records, read by a query up to its end."""
    one = topic()
    one.put(["a", "b", "c"])
    read(one, checkpoint)
    return one


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
    one = own.topic(retention_ms="60000", segment_bytes="1048576", message_timestamp_before_max_ms=str(2**62))
    one.put(["a", "b", "c"])
    read(one, checkpoint)
    one.put(["x", "y", "z"], timestamp=old)
    one.put(["v" * 100_000] * 10)  # closes the segment
    one.put(["later"])
    one.client.alter_configs("topic", one.name, {"retention.ms": "1"})
    until(lambda: one.offsets(EARLIEST)[0] > 3, "retention takes what was not read")
    (earliest,) = one.offsets(EARLIEST)
    condition, sentence = failure(one, checkpoint)
    assert condition == "PYLOG_DATA_LOSS"
    assert f"{one.name}-0 holds nothing before offset {earliest}, and this query needs it from offset 3" in sentence
    found = read(one, checkpoint, "offset", failOnDataLoss=False)
    assert all(row.offset >= earliest for rows in found.batches.values() for row in rows)


def test_a_log_cut_behind_what_was_read_is_named_and_gone_on_with_when_loss_is_allowed(
    own: Own, checkpoint: Checkpoint
) -> None:
    one = own.topic()
    one.put(["a", "b", "c"])
    cut_at = own.size(one)
    one.put(["d", "e"])
    read(one, checkpoint)
    own.cut(one, cut_at)
    condition, sentence = failure(one, checkpoint, **{"fetchOffset.retryIntervalMs": 10})
    assert condition == "PYLOG_LOG_TRUNCATED"
    assert f"{one.name}-0 ends at offset 3, before offset 5" in sentence
    forgiving = {"failOnDataLoss": False, "fetchOffset.retryIntervalMs": 10}
    read(one, checkpoint, **forgiving)
    one.put(["new"])
    assert read(one, checkpoint, **forgiving).values == ["new"]


def test_a_log_cut_after_the_plan_was_made_is_met_in_the_task(own: Own) -> None:
    one = own.topic()
    one.put(["a", "b", "c"])
    cut_at = own.size(one)
    one.put(["d", "e"])
    task = Task(one, **{"kafkaConsumer.pollTimeoutMs": "1500"})
    own.cut(one, cut_at)
    with pytest.raises(PylogError, match="ends at offset 3, before offset 5") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_LOG_TRUNCATED"
    assert task.values("false") == [b"a", b"b", b"c"]


def test_a_topic_deleted_while_a_query_runs_is_named_and_the_others_are_gone_on_with_when_loss_is_allowed(
    topic: Topics, checkpoint: Checkpoint
) -> None:
    one, other = topic(), topic()
    one.put(["a"])
    other.put(["b"])
    both = {"subscribe": f"{one.name},{other.name}", "fetchOffset.retryIntervalMs": 10}
    query = Query(one, checkpoint, **both)
    assert query.trigger()
    one.client.delete_topics([one.name])
    with pytest.raises(PylogError) as caught:
        until(query.trigger, "the query fails")
    query.stop()
    assert caught.value.condition == "PYLOG_TOPIC_DELETED"
    assert f"The topic '{one.name}' was deleted" in caught.value.sentence
    other.put(["c"])
    assert read(one, checkpoint, failOnDataLoss=False, **both).values == ["c"]


def test_a_partition_no_longer_subscribed_to_is_named(topic: Topics, checkpoint: Checkpoint) -> None:
    one = topic(partitions=2)
    one.put(["a"], 0)
    read(one, checkpoint)
    only = {"assign": f'{{"{one.name}":[0]}}'}
    condition, sentence = failure(one, checkpoint, **only)
    assert condition == "PYLOG_PARTITION_GONE"
    assert f"{one.name}-1 was read up to offset 0 and is not there any more, or no longer subscribed to" in sentence
    one.put(["b"], 0)
    assert read(one, checkpoint, failOnDataLoss=False, **only).values == ["b"]


def test_records_deleted_after_the_plan_was_made_are_met_in_the_task(topic: Topics) -> None:
    one = topic()
    one.put(["a", "b", "c"])
    task = Task(one)
    one.client.delete_records([(one.name, 0, 2)])
    with pytest.raises(PylogError, match="holds nothing before offset 2") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_DATA_LOSS"
    assert task.values("false") == [b"c"]


def test_a_topic_recreated_after_the_plan_was_made_is_met_in_the_task(topic: Topics) -> None:
    one = topic()
    one.put(["a"])
    task = Task(one)
    one.recreate()
    one.put(["another"])
    with pytest.raises(PylogError, match="was deleted and created again") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_TOPIC_RECREATED"
    assert task.values("false") == []


def test_a_topic_deleted_after_the_plan_was_made_is_met_in_the_task(topic: Topics) -> None:
    one = topic()
    one.put(["a"])
    task = Task(one)
    one.client.delete_topics([one.name])
    with pytest.raises(PylogError, match="was deleted") as caught:
        task.values("true")
    assert caught.value.condition == "PYLOG_TOPIC_DELETED"
    assert task.values("false") == []


def test_a_stopped_query_goes_on_after_its_broker_was_killed_and_started_again(
    tmp_path: Path, checkpoint: Checkpoint
) -> None:
    with Brokers(tmp_path / "broker") as broker:
        one = Own(broker).topic()
        one.put(["a", "b"])
        read(one, checkpoint)
        one.put(["c"])
        broker.kill()
        broker.start()
        assert read(one, checkpoint).values == ["c"]
