"""What a user did wrong with a read, found when it is planned: one error with one sentence. As Spark shows it:
``tests/spark/test_errors.py``."""

import time
from collections.abc import Callable

import pytest

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.harness.ports import nowhere
from tests.reading.streams import Query, batch_reader
from tests.reading.support import schema, values
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]
NO_BROKER = nowhere()


def refused(topic: Topic, **options: object) -> tuple[str, str]:
    """The condition and the sentence of the error that a batch read must fail with."""
    with pytest.raises(PylogError) as caught:
        values(topic, batch_reader(topic, "value", **options))
    return caught.value.condition, caught.value.sentence


def test_a_client_setting_that_does_not_exist_is_refused_with_the_nearest_name(make_topic: Topics) -> None:
    condition, sentence = refused(make_topic(), **{"kafka.fetch.max.byte": "1"})
    assert condition == "PYLOG_INVALID_OPTION"
    assert "did you mean fetch.max.bytes" in sentence


def test_a_missing_topic_is_named_when_a_batch_or_a_stream_is_loaded(make_topic: Topics) -> None:
    topic = make_topic()
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": "no-such-topic"}
    for more in ({}, {"endingOffsets": "latest"}):  # the latter only a batch has
        with pytest.raises(PylogError) as caught:
            PylogDataSource({**given, **more}).schema()
        assert caught.value.condition == "PYLOG_UNKNOWN_TOPIC"
        assert "no topic 'no-such-topic'; create it" in caught.value.sentence


def test_a_missing_partition_is_named(make_topic: Topics) -> None:
    topic = make_topic()
    condition, sentence = refused(topic, assign=f'{{"{topic.name}":[0,9]}}')
    assert (condition, f"{topic.name}-9" in sentence) == ("PYLOG_UNKNOWN_TOPIC", True)


def test_an_offset_out_of_range_says_what_the_log_holds(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a", "b"])
    offsets = f'{{"{topic.name}":{{"0":9}}}}'
    condition, sentence = refused(topic, startingOffsets=offsets)
    assert condition == "PYLOG_OFFSET_OUT_OF_RANGE"
    assert f"asks for offset 9 of {topic.name}-0, which holds 0 to 2 (exclusive)" in sentence
    assert values(topic, startingOffsets=offsets, failOnDataLoss=False) == []


def test_every_partition_must_be_named(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    condition, sentence = refused(topic, startingOffsets=f'{{"{topic.name}":{{"0":0}}}}')
    assert condition == "PYLOG_INVALID_OPTION"
    assert f"must name every partition that is read, and lacks {topic.name}-1" in sentence


def test_a_time_without_a_record_is_an_error_by_default(make_topic: Topics) -> None:
    condition, sentence = refused(make_topic(), startingTimestamp=1)
    assert condition == "PYLOG_NO_OFFSET_FOR_TIMESTAMP"
    assert "set startingOffsetsByTimestampStrategy to latest" in sentence


def test_an_option_of_batches_only_is_refused_in_a_stream_as_soon_as_it_is_used(make_topic: Topics) -> None:
    with pytest.raises(PylogError, match="The option endingOffsets has no meaning in a stream read"):
        Query(make_topic(), endingOffsets="latest").trigger()


def test_an_unreachable_broker_is_reported_within_seconds() -> None:
    given = {"kafka.bootstrap.servers": NO_BROKER}
    read, write = PylogDataSource({**given, "subscribe": "t"}), PylogDataSource({**given, "topic": "t"})
    for ask in (
        read.schema,
        lambda: read.reader(schema("value")).partitions(),
        lambda: write.writer(schema("value"), False),
        # In a task: nothing has spoken to the broker before.
        lambda: write.streamWriter(schema("value"), False).write(iter([])),
    ):
        started = time.monotonic()
        with pytest.raises(PylogError) as caught:
            ask()
        # Clients wait a minute for what they may wait for.
        assert time.monotonic() - started < 30
        assert caught.value.condition == "PYLOG_UNREACHABLE"
        assert NO_BROKER in caught.value.sentence
