"""Where a read begins and ends: words, distances, words for whole topics, and what is refused."""

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.spark.support import Collector, Topic, error_of

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def ten(topic: Topics) -> Topic:
    """Two partitions: a0..a9, one a minute and the last one half a minute ago, and b0, now."""
    one = topic(partitions=2)
    now_ms = int(time.time() * 1000)
    times = [now_ms - (9 - number) * 60_000 - 30_000 for number in range(10)]
    one.put([f"a{number}" for number in range(10)], 0, timestamp=pa.array(times, pa.timestamp("ms", "UTC")))
    one.put(["b0"], 1)
    return one


def test_a_read_begins_so_many_offsets_before_the_end_of_each_partition(ten: Topic) -> None:
    assert ten.values(startingOffsets="-3 offsets") == ["a7", "a8", "a9", "b0"]
    assert ten.values(startingOffsets="-3 offsets", endingOffsets="-1 offset") == ["a7", "a8"]
    ten.client.delete_records([(ten.name, 0, 8)])
    assert ten.values(startingOffsets="-5 offsets") == ["a8", "a9", "b0"]


def test_a_read_begins_so_long_ago_and_a_partition_without_such_a_record_at_its_end(ten: Topic) -> None:
    assert ten.values(startingOffsets="-2 minutes") == ["a8", "a9", "b0"]
    assert ten.values(startingOffsets="-4 minutes", endingOffsets="-2 minutes") == ["a6", "a7"]
    assert ten.values(startingOffsets="-10 seconds") == ["b0"]


def test_a_stream_begins_at_a_distance_and_goes_on_from_its_checkpoint(ten: Topic, checkpoint: str) -> None:
    run = Collector(checkpoint)
    run.run(ten.read_stream(startingOffsets="-1 offset"))
    assert run.values == ["a9", "b0"]
    ten.put(["later"])
    again = Collector(checkpoint)
    again.run(ten.read_stream(startingOffsets="-1000 offsets"))
    assert again.values == ["later"]


def test_words_for_whole_topics_stand_beside_offsets(topic: Topics) -> None:
    one, two, three = topic(partitions=2), topic(), topic()
    for each in (one, two, three):
        each.put(["0", "1", "2"])
    one.put(["x"], 1)
    names = f"{one.name},{two.name},{three.name}"
    start = f'{{"{one.name}":"earliest","{two.name}":{{"0":1}},"{three.name}":"-1 offset"}}'
    end = f'{{"{one.name}":"latest","{two.name}":{{"0":2}},"{three.name}":{{"0":-1}}}}'
    rows = one.read(subscribe=names, startingOffsets=start, endingOffsets=end).collect()
    assert sorted((row.topic, row.partition, row.offset) for row in rows) == [
        (one.name, 0, 0),
        (one.name, 0, 1),
        (one.name, 0, 2),
        (one.name, 1, 0),
        (two.name, 0, 1),
        (three.name, 0, 2),
    ]


def test_a_word_for_a_topic_that_is_not_read_is_refused(ten: Topic) -> None:
    start = f'{{"{ten.name}":"earliest","other":"earliest"}}'
    condition, sentence = error_of(lambda: ten.read(startingOffsets=start).count())
    assert condition == "PYLOG_INVALID_OPTION"
    assert "startingOffsets names the topic 'other', which this query does not read" in sentence


def test_a_start_that_resolves_to_after_the_end_is_named(ten: Topic) -> None:
    start = f'{{"{ten.name}":{{"0":9,"1":0}}}}'
    condition, sentence = error_of(lambda: ten.read(startingOffsets=start, endingOffsets="-5 offsets").count())
    assert condition == "PYLOG_START_AFTER_END"
    assert f"startingOffsets is offset 9 of {ten.name}-0 and endingOffsets offset 5" in sentence


def test_minus_one_and_two_mean_latest_and_earliest_in_times_too(ten: Topic) -> None:
    times = f'{{"{ten.name}":{{"0":-1,"1":-2}}}}'
    assert ten.values(startingOffsetsByTimestamp=times) == ["b0"]
