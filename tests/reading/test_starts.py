"""Where a read begins and ends: words, distances, offsets, times, words for whole topics, and what is refused. Through Spark:
``tests/spark/test_stream.py``, ``tests/parity/test_starts.py``."""

import random
import time
from collections.abc import Callable

import pyarrow as pa
import pytest

from pylog_spark.errors import PylogError
from tests.reading.streams import Checkpoint, Query, batch_reader, read
from tests.reading.support import batches, values
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def three(make_topic: Topics) -> Topic:
    """Three partitions with 5, 3 and no records: a0..a4, b0..b2."""
    topic = make_topic(partitions=3)
    topic.put([f"a{number}" for number in range(5)], 0)
    topic.put([f"b{number}" for number in range(3)], 1)
    return topic


def found(topic: Topic, **options: object) -> list[str]:
    """The values of a batch read."""
    return values(topic, batch_reader(topic, "value", **options))


def tasks(topic: Topic, **options: object) -> int:
    """How many tasks a batch read has."""
    return len(batch_reader(topic, "value", **options).partitions())


def refused(topic: Topic, **options: str) -> tuple[str, str]:
    """The condition and the sentence of the error that a batch read must fail with."""
    with pytest.raises(PylogError) as caught:
        found(topic, **options)
    return caught.value.condition, caught.value.sentence


@pytest.fixture
def ten(make_topic: Topics) -> Topic:
    """Two partitions: a0..a9, one a minute and the last one half a minute ago, and b0, later than now."""
    topic = make_topic(partitions=2)
    now_ms = int(time.time() * 1000)
    times = [now_ms - (9 - number) * 60_000 - 30_000 for number in range(10)]
    topic.put([f"a{number}" for number in range(10)], 0, timestamp=pa.array(times, pa.timestamp("ms", "UTC")))
    later = pa.array([now_ms + 600_000], pa.timestamp("ms", "UTC"))
    topic.put(["b0"], 1, timestamp=later)
    return topic


def test_a_read_begins_so_many_offsets_before_the_end_of_each_partition(ten: Topic) -> None:
    assert found(ten, startingOffsets="-3 offsets") == ["a7", "a8", "a9", "b0"]
    assert found(ten, startingOffsets="-3 offsets", endingOffsets="-1 offset") == ["a7", "a8"]
    ten.client.delete_records([(ten.name, 0, 8)])
    assert found(ten, startingOffsets="-5 offsets") == ["a8", "a9", "b0"]


def test_a_read_begins_so_long_ago_and_a_partition_without_such_a_record_at_its_end(ten: Topic) -> None:
    assert found(ten, startingOffsets="-2 minutes") == ["a8", "a9", "b0"]
    assert found(ten, startingOffsets="-4 minutes", endingOffsets="-2 minutes") == ["a6", "a7"]
    assert found(ten, startingOffsets="-10 seconds") == ["b0"]


def test_a_stream_begins_at_a_distance_and_goes_on_from_its_checkpoint(ten: Topic) -> None:
    checkpoint = Checkpoint()
    assert read(ten, checkpoint, startingOffsets="-1 offset").values == ["a9", "b0"]
    ten.put(["later"])
    assert read(ten, checkpoint, startingOffsets="-1000 offsets").values == ["later"]


def test_a_new_stream_starts_at_the_end_by_default(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["before"])
    query = Query(topic, startingOffsets="latest")
    query.trigger()
    topic.put(["after"])
    query.trigger()
    query.stop()
    assert query.values == ["after"]


def test_words_for_whole_topics_stand_beside_offsets(make_topic: Topics) -> None:
    first, second, third = make_topic(partitions=2), make_topic(), make_topic()
    for each in (first, second, third):
        each.put(["0", "1", "2"])
    first.put(["x"], 1)
    names = f"{first.name},{second.name},{third.name}"
    start = f'{{"{first.name}":"earliest","{second.name}":{{"0":1}},"{third.name}":"-1 offset"}}'
    end = f'{{"{first.name}":"latest","{second.name}":{{"0":2}},"{third.name}":{{"0":-1}}}}'
    made = batch_reader(
        first, "topic", "partition", "offset", subscribe=names, startingOffsets=start, endingOffsets=end
    )
    assert sorted(tuple(row.values()) for batch in batches(made) for row in batch.to_pylist()) == [
        (first.name, 0, 0),
        (first.name, 0, 1),
        (first.name, 0, 2),
        (first.name, 1, 0),
        (second.name, 0, 1),
        (third.name, 0, 2),
    ]


def test_a_word_for_a_topic_that_is_not_read_is_refused(ten: Topic) -> None:
    start = f'{{"{ten.name}":"earliest","other":"earliest"}}'
    condition, sentence = refused(ten, startingOffsets=start)
    assert condition == "PYLOG_INVALID_OPTION"
    assert "startingOffsets names the topic 'other', which this query does not read" in sentence


def test_a_start_that_resolves_to_after_the_end_is_named(ten: Topic) -> None:
    start = f'{{"{ten.name}":{{"0":9,"1":0}}}}'
    condition, sentence = refused(ten, startingOffsets=start, endingOffsets="-5 offsets")
    assert condition == "PYLOG_START_AFTER_END"
    assert f"startingOffsets is offset 9 of {ten.name}-0 and endingOffsets offset 5" in sentence


def test_minus_one_and_two_mean_latest_and_earliest_in_times_too(ten: Topic) -> None:
    times = f'{{"{ten.name}":{{"0":-1,"1":-2}}}}'
    assert found(ten, startingOffsetsByTimestamp=times) == ["b0"]


def test_large_ranges_are_split_on_request_and_lose_nothing(three: Topic) -> None:
    assert tasks(three, minPartitions=6) >= 6
    assert sorted(found(three, minPartitions=6)) == sorted(found(three))
    assert tasks(three, maxRecordsPerPartition=2) == 5
    assert sorted(found(three, maxRecordsPerPartition=2)) == sorted(found(three))


def test_offsets_given_for_each_partition_are_a_half_open_range(three: Topic) -> None:
    start = f'{{"{three.name}":{{"0":1,"1":-2,"2":-2}}}}'
    end = f'{{"{three.name}":{{"0":3,"1":1,"2":-1}}}}'
    assert found(three, startingOffsets=start, endingOffsets=end) == ["a1", "a2", "b0"]


def test_assign_reads_only_the_partitions_named(three: Topic) -> None:
    assert found(three, assign=f'{{"{three.name}":[1]}}') == ["b0", "b1", "b2"]


def test_a_pattern_reads_all_topics_in_whose_name_it_is_found(make_topic: Topics) -> None:
    first, second = make_topic(), make_topic()
    first.put(["1"])
    second.put(["2"])
    assert found(first, subscribePattern=f"{first.name[:-1]}\\p{{Digit}}") == ["1", "2"]
    assert found(first, subscribePattern=first.name[:-1]) == ["1", "2"]
    assert found(first, subscribePattern=f"^{first.name[:-1]}$") == []


def test_times_choose_the_first_record_at_or_after_them(make_topic: Topics) -> None:
    topic = make_topic(retention_ms="-1")  # retention would take records as old as these
    topic.put(["a", "b", "c"], timestamp=pa.array([1_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC")))
    assert found(topic, startingTimestamp=1_001) == ["b", "c"]
    assert found(topic, startingTimestamp=1_000, endingTimestamp=2_001) == ["a", "b"]
    by_time = f'{{"{topic.name}":{{"0":2000}}}}'
    assert found(topic, startingOffsetsByTimestamp=by_time) == ["b", "c"]
    assert found(topic, endingOffsetsByTimestamp=by_time) == ["a"]
    assert found(topic, endingTimestamp=9_000) == ["a", "b", "c"]
    assert found(topic, startingTimestamp=9_000, startingOffsetsByTimestampStrategy="latest") == []


def test_two_reads_of_a_range_are_the_same(three: Topic) -> None:
    end = f'{{"{three.name}":{{"0":5,"1":3,"2":0}}}}'
    before = found(three, endingOffsets=end)
    three.put(["later"], 0)
    assert found(three, endingOffsets=end) == before


def test_an_empty_topic_has_no_rows(make_topic: Topics) -> None:
    assert found(make_topic()) == []


def test_each_log_partition_with_records_is_one_task(three: Topic) -> None:
    assert tasks(three) == 2


@pytest.mark.parametrize("seed", range(3))
def test_between_two_times_a_read_has_what_lies_between_their_first_records_in_whatever_order_times_are(
    make_topic: Topics, seed: int
) -> None:
    # The first record at or after a time never lies behind that of a later time: there is no order of which the planner could warn.
    chance = random.Random(seed)
    topic = make_topic(retention_ms="-1")
    stamps = [chance.randrange(1, 40) for _ in range(30)]
    for number, stamp in enumerate(stamps):
        topic.put([str(number)], timestamp=pa.array([stamp], pa.timestamp("ms", "UTC")))
    for first in range(0, max(stamps), 5):
        for last in (first, first + 3, 50):
            start, end = (
                next((at for at, stamp in enumerate(stamps) if stamp >= time_ms), 30) for time_ms in (first, last)
            )
            given = {"startingTimestamp": str(first), "endingTimestamp": str(last)}
            assert found(topic, **given) == [str(number) for number in range(start, end)], stamps
