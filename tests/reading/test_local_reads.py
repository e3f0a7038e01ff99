"""Records out of the broker's own files: the same rows as over the network, and the network again wherever a file is doubtful."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark._native import Client, NativeError, RangeReader, RecordWriter
from pylog_spark.testing import LocalBroker
from tests.harness.capabilities import bound_by_permissions
from tests.harness.runs import rounds, seed
from tests.harness.waiting import said, until
from tests.reading.support import batches, reader
from tests.spark.support import Topic

Topics = Callable[..., Topic]
COLUMNS = ["key", "value", "offset", "timestamp", "headers"]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_CLEANER_MS = 20
_names = (f"local-{number}" for number in count())


@dataclass
class Reading:
    """What a range gave, and by which way."""

    rows: list[tuple[Any, ...]]
    local: int
    wire: int
    fallbacks: int
    why: str | None


def read(topic: Topic, start: int = 0, end: int | None = None, *, local: bool = True, **more: Any) -> Reading:
    """Offsets of partition 0, up to `end` or to the end of the log. `more`: settings of the client, or what a `RangeReader` takes."""
    taken = {name: more.pop(name) for name in ("timestamps", "limit", "then", "topic_id") if name in more}
    config = {"bootstrap.servers": topic.servers, **{name.replace("_", "."): str(text) for name, text in more.items()}}
    end = topic.offsets()[0] if end is None else end
    found = RangeReader(config, topic.name, 0, start, end, COLUMNS, local_reads=local, **taken)
    try:
        table = pa.RecordBatchReader.from_stream(found).read_all()
        rows = [tuple(row.values()) for row in table.to_pylist()]
        return Reading(rows, found.bytes_local, found.bytes_fetched, found.fallbacks, found.why_not_local)
    except (pa.ArrowException, OSError) as error:
        raise NativeError(*(found.error or ("?", str(error)))) from None
    finally:
        found.stop()


def seen(topic: Topic) -> Topic:
    """The topic, of a broker whose directory this process knows that it sees: the first answer says where it is."""
    if not read(topic).local:
        assert read(topic).wire == 0
    return topic


def same_both_ways(topic: Topic, start: int = 0, end: int | None = None, **more: Any) -> list[tuple[Any, ...]]:
    """The rows, which came from files the one time and over the network the other."""
    near, far = read(topic, start, end, **more), read(topic, start, end, local=False, **more)
    assert near.rows == far.rows
    assert (near.wire, near.fallbacks) == (0, 0), near.why
    assert (far.local, far.fallbacks) == (0, 0)
    assert near.local > 0
    return near.rows


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker of this file's own, that cleans often."""
    settings = {"log_cleaner_backoff_ms": _CLEANER_MS, "log_retention_check_interval_ms": _CLEANER_MS}
    with LocalBroker(tmp_path_factory.mktemp("local"), **settings) as running:
        yield running


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[Callable[..., LocalBroker]]:
    """Makes a broker of the test's own: ``new_broker(num_partitions=4)``."""
    with ExitStack() as brokers:
        yield lambda **settings: brokers.enter_context(LocalBroker(tmp_path / "data", **settings))


def empty(broker: LocalBroker, **configs: str) -> Topic:
    """A new topic of one partition."""
    servers = broker.bootstrap_servers
    topic = Topic(None, servers, Client({"bootstrap.servers": servers}), next(_names), 1)
    topic.create(**configs)
    return topic


def made(broker: LocalBroker, **configs: str) -> Topic:
    """A new topic with some records, which this process reads from files."""
    topic = empty(broker, **configs)
    topic.put(["first", "second"])
    return seen(topic)


def put(topic: Topic, values: list[bytes | None], keys: list[bytes | None] | None = None, **settings: str) -> None:
    """Append records in batches of a few kB."""
    config = {"bootstrap.servers": topic.servers, "batch.size": "4000", **settings}
    writer = RecordWriter(config, topic.name)
    headers = [[{"key": "n", "value": b"%d" % number}] * (number % 3) for number in range(len(values))]
    writer.write(
        pa.record_batch(
            {
                "value": pa.array(values, pa.binary()),
                "key": pa.array(keys or [None] * len(values), pa.binary()),
                "headers": pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            }
        )
    )
    writer.flush()
    writer.close()


def folder(broker: LocalBroker, topic: Topic) -> Path:
    return Path(broker.data_dir) / f"{topic.name}-0"


def test_a_topic_with_keys_nulls_and_headers_gives_the_same_rows_both_ways(broker: LocalBroker) -> None:
    topic = made(broker, segment_bytes="100000")
    values = [None if n % 7 == 0 else b"%d" % n * 50 for n in range(3_000)]
    put(topic, values, [b"k%d" % n if n % 2 else None for n in range(3_000)])
    assert len(list(folder(broker, topic).glob("*.log"))) > 3
    rows = same_both_ways(topic)
    assert [row[1] for row in rows[2:]] == values
    for start, end in ((1, 2), (777, 2_222), (2_999, 3_002)):
        assert same_both_ways(topic, start, end) == rows[start:end]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_the_same_rows_both_ways(broker: LocalBroker, codec: str) -> None:
    topic = made(broker)
    put(topic, [b"%d" % n * 40 for n in range(2_000)], **{"compression.type": codec})
    assert len(same_both_ways(topic)) == 2_002


def test_batches_larger_than_a_piece_give_the_same_rows_both_ways(broker: LocalBroker) -> None:
    topic = made(broker, max_message_bytes="5000000")
    put(topic, [b"x" * 900_000, b"y" * 10, b"z" * 3_000_000, b"a" * 10], **{"batch.size": "1048576"})
    assert [len(row[1]) for row in same_both_ways(topic)[2:]] == [900_000, 10, 3_000_000, 10]


def test_small_answers_give_the_same_rows_both_ways(broker: LocalBroker) -> None:
    topic = made(broker, segment_bytes="50000")
    put(topic, [b"%d" % n * 30 for n in range(2_000)])
    assert len(same_both_ways(topic, max_partition_fetch_bytes=5_000)) == 2_002
    assert len(same_both_ways(topic, limit=321)) == 321
    some = [(topic.name, 0, start, start + 50, "") for start in range(100, 1_900, 100)]
    assert len(same_both_ways(topic, 10, 20, then=some)) == 10 + 18 * 50


def test_a_range_by_timestamps_gives_the_same_rows_both_ways(broker: LocalBroker) -> None:
    topic = empty(broker, retention_ms="-1")
    for second in range(20):
        stamps = pa.array([1_700_000_000_000_000 + second * 1_000_000] * 50, pa.timestamp("us", tz="UTC"))
        topic.put([f"{second}"] * 50, timestamp=stamps)
    seen(topic)
    span = (1_700_000_005_000, 1_700_000_008_999)
    assert len(same_both_ways(topic, timestamps=[span])) == 200
    wanted = {"startingTimestamp": span[0], "endingTimestamp": 1_700_000_009_000}
    near = batches(reader(topic, "value", **wanted))
    far = batches(reader(topic, "value", localReads="never", **wanted))
    assert pa.Table.from_batches(near) == pa.Table.from_batches(far)
    assert sum(batch.num_rows for batch in near) == 200


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_are_seen_the_same_both_ways(broker: LocalBroker, isolation: str) -> None:
    topic = made(broker)
    for number in range(6):
        writer = RecordWriter(
            {"bootstrap.servers": topic.servers}, topic.name, transactional_id=f"{topic.name}-{number}"
        )
        values = pa.array([b"%d" % number] * 100, pa.binary())
        writer.write(pa.record_batch({"value": values}))
        writer.flush()
        topic.put(["between"])
        if number < 5:
            writer.end(number % 2 == 0)
        writer.close()
    is_committed = isolation == "read_committed"
    (end,) = topic.offsets()
    stable = topic.client.list_offsets([(topic.name, 0, -1)], isolation)[0][2]
    assert (stable < end) == is_committed  # the last transaction is open
    rows = [row[1] for row in same_both_ways(topic, end=min(stable, end), isolation_level=isolation)]
    assert rows.count(b"1") == rows.count(b"3") == (0 if is_committed else 100)
    assert rows.count(b"0") == rows.count(b"4") == 100
    assert rows.count(b"5") == (0 if is_committed else 100)


def test_a_compacted_topic_gives_the_same_rows_both_ways(broker: LocalBroker) -> None:
    compacted = empty(broker, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_bytes="20000")
    for begin in range(0, 4_000, 1_000):
        put(compacted, [b"%d" % n * 20 for n in range(begin, begin + 1_000)], [b"%d" % (n % 50) for n in range(1_000)])
    until(lambda: len(read(compacted, local=False).rows) < 2_000, "most records are superseded")
    seen(compacted)
    # Cleaning may go on between two reads: what both have is the same, and the newest of each key is there.
    near, far = until(lambda: _from_files(compacted), "no file is replaced meanwhile"), read(compacted, local=False)
    agreed = {row[2]: row for row in near.rows}
    assert all(agreed.get(row[2], row) == row for row in far.rows)
    assert {row[1] for row in near.rows} >= {b"%d" % n * 20 for n in range(3_950, 4_000)}


def _from_files(topic: Topic) -> Reading | None:
    found = read(topic)
    return found if found.local > 0 else None


def test_never_takes_the_network(broker: LocalBroker, caplog: pytest.LogCaptureFixture) -> None:
    topic = made(broker)
    with caplog.at_level(logging.DEBUG, "pylog_spark"):
        assert sum(batch.num_rows for batch in batches(reader(topic, localReads="never"))) == 2
        assert "from brokers' files" not in caplog.text
        assert sum(batch.num_rows for batch in batches(reader(topic))) == 2
    said(caplog, "and 0 over the network")


def test_a_directory_that_is_not_to_be_seen_leaves_everything_to_the_network(
    new_broker: Callable[..., LocalBroker], tmp_path: Path
) -> None:
    alone = new_broker()
    topic = empty(alone)
    topic.put(["a"] * 10)
    nonce = Path(alone.data_dir) / "local-reads"
    assert nonce.stat().st_mode == (folder(alone, topic) / f"{0:020}.log").stat().st_mode
    nonce.write_text("AAAAAAAAAAAAAAAAAAAAAQ")
    first, second = read(topic), read(topic)
    assert (first.local, first.fallbacks, len(first.rows)) == (0, 0, 10)
    assert "not that of the broker" in (first.why or "")
    assert (second.local, second.why, len(second.rows)) == (0, None, 10)  # it is not asked again


def test_a_broker_may_forbid_it(new_broker: Callable[..., LocalBroker]) -> None:
    alone = new_broker(local_reads_enable="false")
    topic = empty(alone)
    topic.put(["a"] * 10)
    assert [read(topic).local for _ in range(2)] == [0, 0]
    assert not (Path(alone.data_dir) / "local-reads").exists()


def test_files_that_are_gone_or_cut_send_the_reader_to_the_network(broker: LocalBroker) -> None:
    topic = made(broker, segment_bytes="100000")
    put(topic, [b"%d" % n * 50 for n in range(3_000)])
    rows = same_both_ways(topic)
    second = sorted(folder(broker, topic).glob("*.log"))[1]
    moved = second.rename(second.with_suffix(".moved"))
    found = read(topic)
    assert found.rows == rows
    assert found.local > 0
    assert found.wire > 0
    assert found.fallbacks == 1
    assert second.name in (found.why or "")
    # Another file under its name.
    second.write_bytes(moved.read_bytes())
    replaced = read(topic)
    assert (replaced.rows, replaced.fallbacks) == (rows, 1)
    assert "was replaced" in (replaced.why or "")
    moved.replace(second)
    assert same_both_ways(topic) == rows


def test_a_file_that_may_not_be_read_leaves_everything_to_the_network(new_broker: Callable[..., LocalBroker]) -> None:
    alone = new_broker()
    topic = empty(alone)
    topic.put(["a"] * 10)
    read(topic)
    folder(alone, topic).chmod(0)
    try:
        assert bound_by_permissions(lambda: [read(topic).fallbacks for _ in range(2)]) == [1, 0]
    finally:
        folder(alone, topic).chmod(0o755)


def test_a_topic_that_is_deleted_and_made_anew_is_never_mixed_up(broker: LocalBroker) -> None:
    topic = made(broker)
    (shown,) = topic.client.describe_topics([topic.name])
    for number in range(5):
        topic.recreate()
        values = [b"%d" % number] * 20
        put(topic, list(values))
        with pytest.raises(NativeError, match="UNKNOWN_TOPIC_ID"):
            read(topic, 0, 20, topic_id=shown["topic_id"])
        assert [row[1] for row in read(topic).rows] == values
    assert same_both_ways(topic)


def test_a_restarted_broker_is_proved_anew(new_broker: Callable[..., LocalBroker]) -> None:
    alone = new_broker()
    topic = empty(alone)
    topic.put(["a"] * 10)
    seen(topic)
    nonce = (Path(alone.data_dir) / "local-reads").read_text()
    alone.restart()
    assert (Path(alone.data_dir) / "local-reads").read_text() != nonce
    assert len(same_both_ways(topic)) == 10


def append(topic: Topic, over: threading.Event) -> None:
    """Append until it is over: record number n has offset n, and says so."""
    (number,) = topic.offsets()
    writer = RecordWriter({"bootstrap.servers": topic.servers, "batch.size": "2000"}, topic.name)
    while not over.is_set():
        numbers = range(number, number + 200)
        values = pa.array([b"%d" % n + b"." * (n % 200) for n in numbers], pa.binary())
        keys = pa.array([b"%d" % (n % 70) for n in numbers], pa.binary())
        writer.write(pa.record_batch({"value": values, "key": keys}))
        writer.flush()
        number += 200
    writer.close()


def short_read(topic: Topic, draw: random.Random) -> tuple[range, Reading | None]:
    """A range somewhere in the log, and what it gave; None when retention was faster."""
    (first,), (end,) = topic.offsets(-2), topic.offsets()
    start = draw.randrange(first, end)
    wanted = range(start, min(end, start + draw.randrange(1, 2_000)))
    try:
        return wanted, read(topic, wanted.start, wanted.stop)
    except NativeError as error:
        if error.args[0] == "OFFSET_OUT_OF_RANGE" and topic.offsets(-2)[0] > start:
            return wanted, None
        raise


@pytest.mark.long  # segments that go once: above
def test_short_reads_while_segments_go_and_come_give_no_wrong_row(broker: LocalBroker) -> None:
    reads, draw = rounds("PYLOG_LOCAL_READS", 400, 10_000), random.Random(seed("PYLOG_LOCAL_SEED"))
    small = {"segment_bytes": "20000", "file_delete_delay_ms": "0"}
    topics = [
        empty(broker, retention_bytes="200000", **small),
        empty(broker, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", **small),
    ]
    over, local, wire = threading.Event(), 0, 0
    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(append, topic, over) for topic in topics]
        try:
            until(lambda: all(topic.offsets()[0] > 4_000 for topic in topics), "there is something to read")
            for number in range(reads):
                topic = topics[number % 2]
                wanted, found = short_read(topic, draw)
                if found is None:
                    assert topic is topics[0]
                    continue
                offsets = [row[2] for row in found.rows]
                assert [int(row[1].split(b".")[0]) for row in found.rows] == offsets
                assert offsets == (list(wanted) if topic is topics[0] else sorted(set(offsets) & set(wanted)))
                local, wire = local + found.local, wire + found.wire
        finally:
            over.set()
        for writer in writers:
            writer.result()
    assert local > 5 * wire
