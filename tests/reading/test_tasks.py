"""What the tasks of a batch read give, and what is not even fetched: filters, limit, shared tasks."""

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.reading.support import EITHER, batches, fetched, reader, tasks, values
from tests.spark.support import Topic

pytestmark = [pytest.mark.cluster, EITHER]

Topics = Callable[..., Topic]


def times(values: list[int]) -> pa.Array:
    return pa.array(values, pa.timestamp("ms", "UTC"))


def keys(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary())


def with_letters(topic: Topic, count: int = 4) -> Topic:
    """00, 01, ... in partition 0, 10, 11, ... in partition 1."""
    for partition in range(topic.partitions):
        topic.put([f"{partition}{number}" for number in range(count)], partition)
    return topic


@pytest.fixture
def unordered(make_topic: Topics) -> Topic:
    """One partition whose timestamps go up and down, each record in a batch of its own."""
    topic = make_topic(retention_ms="-1")
    for value, time_ms in (("a", 5_000), ("b", 1_000), ("c", 3_000), ("d", 4_000), ("e", 2_000)):
        topic.put([value], timestamp=times([time_ms]))
    return topic


@pytest.fixture
def keyed(make_topic: Topics) -> Topic:
    topic = make_topic()
    topic.put(["1", "2", "3", "4", "5"], key=keys([b"ab", b"a", None, b"\x00\xff", b"b"]))
    return topic


@pytest.fixture
def large(make_topic: Topics) -> Topic:
    """Many segments of one partition: 1000 records of 10 kB, a second apart."""
    topic = make_topic(retention_ms="-1", segment_bytes="1048576")
    for start in range(0, 1_000, 20):
        seconds = [1_000 * (start + number + 1) for number in range(20)]
        topic.put([b"%05d" % (start + number) + b"x" * 10_000 for number in range(20)], timestamp=times(seconds))
    return topic


def test_partitions_and_offsets_are_chosen_by_number(make_topic: Topics) -> None:
    topic = with_letters(make_topic(partitions=3))
    assert values(topic, filterPartition="0,2", filterOffset="1,3..") == ["01", "03", "21", "23"]
    assert values(topic, filterPartition="1..", filterOffset="..1") == ["10", "20"]
    assert values(topic, filterPartition="7") == values(topic, filterOffset="100..200") == []


def test_the_pieces_of_one_partition_are_one_task(make_topic: Topics) -> None:
    topic = with_letters(make_topic(), 50)
    wanted = ",".join(str(number) for number in range(0, 50, 5))
    assert tasks(topic, filterOffset=wanted) == 1
    assert values(topic, filterOffset=wanted) == [f"0{number}" for number in range(0, 50, 5)]


def test_timestamps_in_no_order_lose_no_row(unordered: Topic) -> None:
    assert values(unordered, filterTimestamp="2000..4000") == ["c", "e"]
    assert values(unordered, filterTimestamp="..2001") == ["b", "e"]
    assert values(unordered, filterTimestamp="1970-01-01T00:00:04Z..") == ["a", "d"]
    assert values(unordered, filterTimestamp="5000") == ["a"]
    assert values(unordered, filterTimestamp="5001..") == []


def test_the_time_of_the_append_is_filtered_as_any_other(make_topic: Topics) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    topic.put(["a", "b"], timestamp=times([1_000, 2_000]))
    assert values(topic, filterTimestamp="..100000") == []
    assert values(topic, filterTimestamp="100000..") == ["a", "b"]


@pytest.mark.parametrize("seed", range(3))
def test_any_timestamps_in_any_batches_give_exactly_the_rows_wanted(make_topic: Topics, seed: int) -> None:
    # What is cut relies on what the brokers call the first record at or after a time.
    chance = random.Random(seed)
    topic = make_topic(retention_ms="-1")
    stamps: list[int] = []
    for _ in range(12):
        some = [chance.randrange(1, 40) for _ in range(chance.choice([1, 1, 5]))]
        topic.put([str(len(stamps) + number) for number in range(len(some))], timestamp=times(some))
        stamps += some
    for first in range(0, 42, 3):
        last = first + chance.choice([1, 4, 40])
        wanted = [str(offset) for offset, stamp in enumerate(stamps) if first <= stamp < last]
        assert values(topic, filterTimestamp=f"{first}..{last}") == wanted, stamps


def test_keys_are_chosen_by_value_and_by_prefix(keyed: Topic) -> None:
    assert values(keyed, filterKey="a") == ["2"]
    assert values(keyed, filterKey='["ab", null, {"hex": "00ff"}]') == ["1", "3", "4"]
    assert values(keyed, filterKeyPrefix="a") == ["1", "2"]
    assert values(keyed, filterKeyPrefix='["b", {"hex": "00"}]') == ["4", "5"]
    assert values(keyed, filterKey='["ab","b"]', filterKeyPrefix="a") == ["1"]
    assert values(keyed, filterKey="none") == []


def test_what_a_filter_rules_out_by_index_is_not_fetched(large: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    every, whole = fetched(large, monkeypatch)
    assert (len(every), whole > 10_000_000) == (1_000, True)
    for option, text, kept in (
        ("filterOffset", "900..910", every[900:910]),
        ("filterTimestamp", "980000..", every[979:]),
    ):
        some, part = fetched(large, monkeypatch, **{option: text})
        assert some == kept
        assert part < whole / 2, option
    assert fetched(large, monkeypatch, filterTimestamp="1000001..") == ([], 0)
    some, part = fetched(large, monkeypatch, filterOffset="5,7,9..12,400,999")
    assert some == [every[number] for number in (5, 7, 9, 10, 11, 400, 999)]
    assert part < whole / 10


def test_a_limit_gives_the_first_rows_and_fetches_little(large: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    every, whole = fetched(large, monkeypatch)
    some, part = fetched(large, monkeypatch, limit=30)
    assert (some, part < whole / 10) == (every[:30], True)


def test_a_limit_holds_for_all_partitions_together(make_topic: Topics) -> None:
    topic = with_letters(make_topic(partitions=3))
    assert values(topic, limit=6) == ["00", "01", "02", "03", "10", "11"]
    assert values(topic, limit=50) == values(topic)
    assert values(topic, limit=2, filterPartition="1..", filterOffset="2..") == ["12", "13"]
    assert tasks(topic, limit=6, minPartitions=4) == 1


def test_small_partitions_share_a_task_and_large_ones_have_their_own(make_topic: Topics) -> None:
    topic = with_letters(make_topic(partitions=8))
    every = [f"{partition}{number}" for partition in range(8) for number in range(4)]
    assert tasks(topic) == 8
    for options, count in (
        ({"minRecordsPerPartition": 1_000}, 1),
        ({"minRecordsPerPartition": 8}, 4),
        ({"minRecordsPerPartition": 1_000, "minPartitions": 2}, 2),
        ({"minRecordsPerPartition": 12, "maxRecordsPerPartition": 12}, 3),
        ({"minRecordsPerPartition": 3, "maxRecordsPerPartition": 3}, 16),
    ):
        assert tasks(topic, **options) == count, options
        assert values(topic, **options) == every, options


def test_a_shared_task_keeps_rows_of_different_partitions_apart(make_topic: Topics) -> None:
    topic = with_letters(make_topic(partitions=3), 2)
    found = batches(reader(topic, "topic", "partition", "offset", minRecordsPerPartition=100))
    assert [batch.to_pydict() for batch in found] == [
        {"topic": [topic.name] * 2, "partition": [partition] * 2, "offset": [0, 1]} for partition in range(3)
    ]


def test_a_loss_in_a_shared_task_names_its_partition_and_the_others_are_read(make_topic: Topics) -> None:
    topic = with_letters(make_topic(partitions=3), 3)
    (planned,) = reader(topic, "value", minRecordsPerPartition=100).partitions()
    topic.client.delete_records([(topic.name, 1, 2)])
    with pytest.raises(Exception, match=rf"\[PYLOG_DATA_LOSS\] .*{topic.name}-1"):
        list(reader(topic, "value").read(planned))
    forgiving = reader(topic, "value", failOnDataLoss=False)
    rows = [value for batch in forgiving.read(planned) for value in batch.column(0).to_pylist()]
    assert rows == [b"00", b"01", b"02", b"12", b"20", b"21", b"22"]
