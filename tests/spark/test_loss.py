"""Records that are gone although a query needed them: a named error, or going on with what is left."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.support import Collector, Topic, error_of, sentence_in

Topics = Callable[..., Topic]


@pytest.fixture
def read_once(topic: Topics, checkpoint: str) -> Topic:
    """A topic of three records, read by a query up to its end."""
    one = topic()
    one.put(["a", "b", "c"])
    Collector(checkpoint).run(one.read_stream())
    return one


def failure(one: Topic, checkpoint: str, **options: Any) -> tuple[str, str]:
    with pytest.raises(Exception, match="PYLOG_") as caught:
        Collector(checkpoint).run(one.read_stream(**options))
    return sentence_in(str(caught.value))


def test_a_recreated_topic_is_one_named_error(read_once: Topic, checkpoint: str) -> None:
    read_once.recreate()
    read_once.put(["x", "y", "z", "later"])
    condition, sentence = failure(read_once, checkpoint)
    assert condition == "PYLOG_TOPIC_RECREATED"
    assert f"The topic '{read_once.name}' was deleted and created again" in sentence


def test_a_recreated_topic_is_read_from_its_beginning_when_loss_is_allowed(read_once: Topic, checkpoint: str) -> None:
    read_once.recreate()
    read_once.put(["x"])
    run = Collector(checkpoint)
    run.run(read_once.read_stream(failOnDataLoss=False))
    assert run.values == ["x"]


def test_a_deleted_topic_is_named(read_once: Topic, checkpoint: str) -> None:
    read_once.client.delete_topics([read_once.name])
    condition, sentence = error_of(lambda: read_once.read_stream())
    assert (condition, read_once.name in sentence) == ("PYLOG_UNKNOWN_TOPIC", True)
    assert failure(read_once, checkpoint, subscribePattern=read_once.name)[0] == "PYLOG_DATA_LOSS"


def test_records_deleted_before_they_were_read_fail_the_query(read_once: Topic, checkpoint: str) -> None:
    read_once.put(["d", "e", "f"])
    read_once.client.delete_records([(read_once.name, 0, 5)])
    condition, sentence = failure(read_once, checkpoint)
    assert condition == "PYLOG_DATA_LOSS"
    assert f"{read_once.name}-0 holds nothing before offset 5, and this query needs it from offset 3" in sentence


def test_records_deleted_before_they_were_read_are_skipped_when_loss_is_allowed(
    read_once: Topic, checkpoint: str
) -> None:
    read_once.put(["d", "e", "f"])
    read_once.client.delete_records([(read_once.name, 0, 5)])
    run = Collector(checkpoint)
    run.run(read_once.read_stream(failOnDataLoss=False))
    assert run.values == ["f"]


def test_records_deleted_after_the_plan_was_made_are_met_in_the_task(topic: Topics) -> None:
    from pyspark.sql.types import _parse_datatype_string

    from pylog_spark.datasource import PylogDataSource

    one = topic()
    one.put(["a", "b", "c"])

    def values(fail: str) -> list[bytes]:
        options = {"kafka.bootstrap.servers": one.servers, "subscribe": one.name, "failOnDataLoss": fail}
        reader = PylogDataSource(options).reader(_parse_datatype_string("value binary"))
        return [value for batch in reader.read(planned) for value in batch.column(0).to_pylist()]

    source = PylogDataSource({"kafka.bootstrap.servers": one.servers, "subscribe": one.name})
    (planned,) = source.reader(_parse_datatype_string("value binary")).partitions()
    one.client.delete_records([(one.name, 0, 2)])
    with pytest.raises(Exception, match="PYLOG_DATA_LOSS"):
        values("true")
    assert values("false") == [b"c"]


def test_a_topic_recreated_after_the_plan_was_made_is_met_in_the_task(topic: Topics) -> None:
    from pyspark.sql.types import _parse_datatype_string

    from pylog_spark.datasource import PylogDataSource

    one = topic()
    one.put(["a"])
    options = {"kafka.bootstrap.servers": one.servers, "subscribe": one.name}
    reader = PylogDataSource(options).reader(_parse_datatype_string("value binary"))
    (planned,) = reader.partitions()
    one.recreate()
    one.put(["another"])
    with pytest.raises(Exception, match="PYLOG_TOPIC_RECREATED"):
        list(reader.read(planned))
    forgiving = PylogDataSource({**options, "failOnDataLoss": "false"}).reader(_parse_datatype_string("value binary"))
    assert list(forgiving.read(planned)) == []
