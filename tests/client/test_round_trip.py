"""What is written is read back, in each shape that the contract allows."""

import datetime
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.client.support import ALL_COLUMNS, read, values_batch, values_of, write

pytestmark = pytest.mark.cluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_every_column_comes_back_as_written(config: dict[str, str], new_topic: Callable[..., str], codec: str) -> None:
    topic = new_topic()
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.timezone.utc)
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = values_batch(
        [b"one", None, b""],
        key=pa.array([b"k", None, b""], pa.binary()),
        headers=pa.array([[("a", b"1"), ("b", None)], None, []], header),
        timestamp=pa.array([moment] * 3, pa.timestamp("ms", "UTC")),
        partition=pa.array([0, 0, 0], pa.int32()),
    )
    flushed = write({**config, "compression.type": codec}, topic, batch)
    assert flushed["offsets"] == {(topic, 0): [0, 2]}
    table = read(config, topic, 0, 0, 3)
    assert table.column_names == list(ALL_COLUMNS)
    assert table["key"].to_pylist() == [b"k", None, b""]
    assert table["value"].to_pylist() == [b"one", None, b""]
    assert table["topic"].to_pylist() == [topic] * 3
    assert table["partition"].to_pylist() == [0] * 3
    assert table["offset"].to_pylist() == [0, 1, 2]
    assert table["timestamp"].to_pylist() == [moment] * 3
    assert table["timestampType"].to_pylist() == [0] * 3
    first, *others = table["headers"].to_pylist()
    assert first == [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    assert not any(others)


@pytest.mark.parametrize("codec", CODECS)
def test_many_batches_come_back_in_order(config: dict[str, str], new_topic: Callable[..., str], codec: str) -> None:
    topic = new_topic()
    values = [b"%07d-" % n + b"x" * (n % 90) for n in range(30_000)]
    settings = {**config, "compression.type": codec, "batch.size": "20000", "max.partition.fetch.bytes": "50000"}
    batches = [values_batch(values[at : at + 5_000]) for at in range(0, len(values), 5_000)]
    assert write(settings, topic, *batches)["records"] == len(values)
    assert values_of(settings, topic, 0, len(values)) == values


def test_a_range_is_exact_at_both_ends(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    write({**config, "batch.size": "300"}, topic, values_batch([b"%d" % n for n in range(100)]))
    for start, end in [(0, 0), (0, 1), (3, 4), (17, 83), (99, 100)]:
        offsets = read(config, topic, 0, start, end, ["offset"])["offset"].to_pylist()
        assert offsets == list(range(start, end))


def test_no_columns_still_count_rows(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    write(config, topic, values_batch([b"x"] * 10))
    assert read(config, topic, 0, 2, 9, []).num_rows == 7


def test_keys_choose_their_murmur2_partition(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    from pylog_spark._native import murmur2

    topic = new_topic(5)
    keys = [b"key-%d" % n for n in range(200)]
    flushed = write(config, topic, values_batch(keys, key=pa.array(keys, pa.binary())))
    for partition in range(5):
        _, last = flushed["offsets"][(topic, partition)]
        found = values_of(config, topic, partition, last + 1)
        assert found == [key for key in keys if (murmur2(key) & 0x7FFFFFFF) % 5 == partition]


def test_the_topic_column_spreads_rows_over_topics(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    first, second = new_topic(), new_topic()
    names = [first, second] * 50
    batch = values_batch([b"%d" % n for n in range(100)], topic=pa.array(names))
    write(config, None, batch)
    assert values_of(config, first, 0, 50) == [b"%d" % n for n in range(0, 100, 2)]
    assert values_of(config, second, 0, 50) == [b"%d" % n for n in range(1, 100, 2)]


def test_a_batch_larger_than_the_topic_takes_is_split(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(max_message_bytes="5000")
    values = [b"%04d" % n + b"y" * 400 for n in range(500)]
    flushed = write(config, topic, values_batch(values))
    assert flushed["records"] == 500
    assert values_of(config, topic, 0, 500) == values


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acks_delivers(config: dict[str, str], new_topic: Callable[..., str], acks: str) -> None:
    topic = new_topic()
    values = [b"%d" % n for n in range(1000)]
    flushed = write({**config, "acks": acks}, topic, values_batch(values))
    assert flushed["records"] == 1000
    assert flushed["offsets"] == {(topic, 0): [-1, -1] if acks == "0" else [0, 999]}
    assert values_of(config, topic, 0, 1000) == values


def test_a_writer_may_flush_and_go_on(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    from pylog_spark._native import RecordWriter

    topic = new_topic()
    writer = RecordWriter(config, topic)
    assert writer.flush() == {"records": 0, "bytes": 0, "offsets": {}}
    for n in range(1, 4):
        writer.write(values_batch([b"%d" % n]))
        assert writer.flush()["offsets"] == {(topic, 0): [0, n - 1]}
    writer.close()
    assert values_of(config, topic, 0, 3) == [b"1", b"2", b"3"]


def test_a_small_buffer_blocks_but_loses_nothing(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(4)
    settings = {**config, "buffer.memory": "65536", "batch.size": "100000"}
    flushed = write(settings, topic, *[values_batch([bytes([n]) * 1000] * 500) for n in range(5)])
    assert flushed["records"] == 2500
    assert sum(last + 1 for _, last in flushed["offsets"].values()) == 2500


def test_a_writer_creates_the_topic_where_the_broker_does(config: dict[str, str]) -> None:
    topic = f"auto-{id(config)}"
    assert write(config, topic, values_batch([b"x"]))["records"] == 1


def test_following_gives_what_comes_and_none_when_nothing_does(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    from pylog_spark._native import RangeReader

    topic = new_topic()
    reader = RangeReader(config, topic, 0, 0, 0, ["value"], follow=True)
    assert reader.next_batch(50) is None
    for n in range(3):
        write(config, topic, values_batch([b"%d" % n]))
        batch = pa.record_batch(reader.next_batch(5_000))
        assert batch["value"].to_pylist() == [b"%d" % n]
        assert reader.next_offset == n + 1
    assert not reader.at_end
    reader.stop()
