"""What a user did wrong with a read, found when it is planned: one error with one sentence. As Spark shows it:
``tests/spark/test_errors.py``."""

import time
from collections.abc import Callable

import pytest

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.reading.streams import Query, batch_reader
from tests.reading.support import schema, values
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]
NOBODY = "127.0.0.1:1"


def refused(one: Topic, **options: object) -> tuple[str, str]:
    """The condition and the sentence of the error that a batch read must fail with."""
    with pytest.raises(PylogError) as caught:
        values(one, batch_reader(one, "value", **options))
    return caught.value.condition, caught.value.sentence


def test_a_client_setting_that_does_not_exist_is_refused_with_the_nearest_name(topic: Topics) -> None:
    condition, sentence = refused(topic(), **{"kafka.fetch.max.byte": "1"})
    assert condition == "PYLOG_INVALID_OPTION"
    assert "did you mean fetch.max.bytes" in sentence


def test_a_missing_topic_is_named_when_a_batch_or_a_stream_is_loaded(topic: Topics) -> None:
    one = topic()
    given = {"kafka.bootstrap.servers": one.servers, "subscribe": "no-such-topic"}
    for more in ({}, {"endingOffsets": "latest"}):  # the latter only a batch has
        with pytest.raises(PylogError) as caught:
            PylogDataSource({**given, **more}).schema()
        assert caught.value.condition == "PYLOG_UNKNOWN_TOPIC"
        assert "no topic 'no-such-topic'; create it" in caught.value.sentence


def test_a_missing_partition_is_named(topic: Topics) -> None:
    one = topic()
    condition, sentence = refused(one, assign=f'{{"{one.name}":[0,9]}}')
    assert (condition, f"{one.name}-9" in sentence) == ("PYLOG_UNKNOWN_TOPIC", True)


def test_an_offset_out_of_range_says_what_the_log_holds(topic: Topics) -> None:
    one = topic()
    one.put(["a", "b"])
    offsets = f'{{"{one.name}":{{"0":9}}}}'
    condition, sentence = refused(one, startingOffsets=offsets)
    assert condition == "PYLOG_OFFSET_OUT_OF_RANGE"
    assert f"asks for offset 9 of {one.name}-0, which holds 0 to 2 (exclusive)" in sentence
    assert values(one, startingOffsets=offsets, failOnDataLoss=False) == []


def test_every_partition_must_be_named(topic: Topics) -> None:
    one = topic(partitions=2)
    condition, sentence = refused(one, startingOffsets=f'{{"{one.name}":{{"0":0}}}}')
    assert condition == "PYLOG_INVALID_OPTION"
    assert f"must name every partition that is read, and lacks {one.name}-1" in sentence


def test_a_time_without_a_record_is_an_error_by_default(topic: Topics) -> None:
    condition, sentence = refused(topic(), startingTimestamp=1)
    assert condition == "PYLOG_NO_OFFSET_FOR_TIMESTAMP"
    assert "set startingOffsetsByTimestampStrategy to latest" in sentence


def test_an_option_of_batches_only_is_refused_in_a_stream_as_soon_as_it_is_used(topic: Topics) -> None:
    with pytest.raises(PylogError, match="The option endingOffsets has no meaning in a stream read"):
        Query(topic(), endingOffsets="latest").trigger()


def test_an_unreachable_broker_is_told_within_seconds() -> None:
    given = {"kafka.bootstrap.servers": NOBODY}
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
        assert time.monotonic() - started < 10
        assert caught.value.condition == "PYLOG_UNREACHABLE"
        assert NOBODY in caught.value.sentence
