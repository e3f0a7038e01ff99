"""Small ranges of many partitions that are read at once are what a reader of each range gives."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark import _native
from pylog_spark.testing import LocalBroker
from tests.client.support import ALL_COLUMNS, read, values_batch, write

PARTITIONS = 5
ROWS = 40
MOST = 1 << 20
Ranges = Sequence[tuple[str, int, int, int, str]]


def at_once(client: Any, ranges: Ranges, columns: Sequence[str] = ALL_COLUMNS, most: int = MOST, **more: Any) -> Any:
    """The rows, None for too many; what the native client gives."""
    batches, rows, size = client.read_at_once(ranges, list(columns), most, **more)
    if batches is None:
        assert size > most
        return None
    found = [pa.record_batch(batch) for batch in batches]
    assert sum(batch.num_rows for batch in found) == rows
    # Arrow's two halves round the ends of offsets and validity bits differently.
    assert abs(sum(batch.nbytes for batch in found) - size) <= 8 * len(columns) * len(found)
    return found


def rows_of(batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def filled(config: dict[str, str], topic: str, partitions: int = PARTITIONS, **settings: str) -> None:
    """`ROWS` records in each partition, in batches of a few."""
    for partition in range(partitions):
        values = [b"%d-%d" % (partition, number) for number in range(ROWS)]
        where = pa.array([partition] * ROWS, pa.int32())
        write({**config, "batch.size": "200", **settings}, topic, values_batch(values, partition=where))


@pytest.mark.cluster
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_ranges_of_all_partitions_are_those_of_a_reader_of_each(
    config: dict[str, str], new_topic: Callable[..., str], codec: str
) -> None:
    topic, randomness = new_topic(PARTITIONS), random.Random(7)
    filled(config, topic, **{"compression.type": codec})
    client = _native.Client(config)
    for _ in range(20):
        ends = [sorted(randomness.choices(range(ROWS + 1), k=2)) for _ in range(PARTITIONS)]
        order = randomness.sample(range(PARTITIONS), PARTITIONS)
        ranges = [(topic, number, *ends[number], "") for number in order]
        columns = randomness.sample(ALL_COLUMNS, randomness.randint(1, len(ALL_COLUMNS)))
        expected = [row for one in ranges for row in read(config, *one[:4], columns).to_pylist()]
        assert rows_of(at_once(client, ranges, columns)) == expected


@pytest.mark.cluster
def test_pieces_of_one_partition_come_in_their_order(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    filled(config, topic, 2)
    pieces = [(topic, 0, 3, 5, ""), (topic, 1, 0, 2, ""), (topic, 0, 8, 9, ""), (topic, 0, 30, 33, "")]
    found = rows_of(at_once(_native.Client(config), pieces, ["partition", "offset"]))
    assert [(row["partition"], row["offset"]) for row in found] == [
        (partition, offset) for _, partition, start, end, _ in pieces for offset in range(start, end)
    ]


@pytest.mark.cluster
def test_filters_leave_rows_out(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    keys = [b"a", b"b", None, b"a"]
    write(config, topic, values_batch([b"0", b"1", b"2", b"3"], key=pa.array(keys, pa.binary())))
    client, ranges = _native.Client(config), [(topic, 0, 0, 4, "")]
    for wanted in ([b"a"], [None], [b"c"]):
        found = rows_of(at_once(client, ranges, ["key"], keys=[("in", wanted)]))
        assert [row["key"] for row in found] == [key for key in keys if key in wanted]


@pytest.mark.cluster
def test_more_than_the_bound_is_not_read(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    filled(config, topic, 2)
    client, ranges = _native.Client(config), [(topic, number, 0, ROWS, "") for number in range(2)]
    _, _, size = client.read_at_once(ranges, list(ALL_COLUMNS), MOST)
    assert len(rows_of(at_once(client, ranges, most=size))) == 2 * ROWS
    assert at_once(client, ranges, most=size - 1) is None
    assert at_once(client, ranges, most=1) is None


@pytest.mark.cluster
def test_answers_that_are_cut_are_followed_by_others(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(PARTITIONS)
    filled(config, topic)
    client = _native.Client({**config, "max.partition.fetch.bytes": "250", "fetch.max.bytes": "700"})
    found = rows_of(at_once(client, [(topic, number, 0, ROWS, "") for number in range(PARTITIONS)], ["value"]))
    assert [row["value"] for row in found] == [b"%d-%d" % (p, n) for p in range(PARTITIONS) for n in range(ROWS)]


@pytest.mark.cluster
def test_doubt_is_an_error_with_a_name(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    filled(config, topic, 1)
    client = _native.Client({**config, "fetch.max.wait.ms": "10"})
    client.delete_records([(topic, 0, 10)])
    (described,) = client.describe_topics([topic])
    other = "AAAAAAAAAAAAAAAAAAAAAQ"
    for ranges, kind in [
        ([(topic, 0, 5, ROWS, "")], "OFFSET_OUT_OF_RANGE"),
        ([(topic, 0, 20, ROWS + 1, "")], "TIMED_OUT"),
        ([(topic, 1, 0, 1, "")], "UNKNOWN_TOPIC_OR_PARTITION"),
        ([(topic, 0, 20, ROWS, other)], "UNKNOWN_TOPIC_ID"),
        ([(f"{topic}-not-there", 0, 0, 1, "")], "UNKNOWN_TOPIC_OR_PARTITION"),
    ]:
        with pytest.raises(_native.NativeError) as raised:
            at_once(client, ranges)
        assert raised.value.args[0] == kind
        # The client is as good as before.
        assert len(rows_of(at_once(client, [(topic, 0, 20, ROWS, described["topic_id"])]))) == ROWS - 20


def test_a_connection_that_the_broker_closed_meanwhile_is_opened_again(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data") as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        _native.Client(config).create_topics([{"name": "t", "num_partitions": 1}])
        filled(config, "t", 1)
        client, ranges = _native.Client(config), [("t", 0, 0, ROWS, "")]
        assert len(rows_of(at_once(client, ranges))) == ROWS
        broker.kill()
        broker.start()
        assert len(rows_of(at_once(client, ranges))) == ROWS
