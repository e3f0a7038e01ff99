"""A topic in a file and back: the same bytes, offsets, times, transactions and settings, from pylog and from Apache Kafka."""

import shutil
import subprocess
import tarfile
from datetime import datetime, timezone
from pathlib import Path

import pytest
import zstandard
from confluent_kafka import Producer

from pylog_spark.archive.checking import verify
from pylog_spark.client import Admin, read_directory, read_range
from pylog_spark.client.admin import EARLIEST
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.support import batches_of, behind_the_end, exported, restored
from tests.mirror.support import committed, ends, raw_batches, write, write_in_transactions
from tests.mirror.test_mirror import CODECS, given


def starts(admin: Admin, topic: str, partitions: int) -> list[int]:
    """Where the partitions start."""
    return [found.offset for found in admin.offsets([(topic, number, EARLIEST) for number in range(partitions)])]


def filled(source: str, admin: Admin, name: str) -> list[int]:
    """Fill a topic of three partitions with all codecs and transactions; where they end."""
    admin.create_topic(name, 3, config={"segment.bytes": "1048576", "retention.ms": "123456789"})
    for codec in CODECS:
        write(source, name, (f"{codec}-{number}" for number in range(300)), compression_type=codec)
    write_in_transactions(source, name, f"{name}-first", 6)
    return ends(source, name, 3)


def test_a_restored_topic_has_the_bytes_offsets_transactions_and_settings(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, name: str, tmp_path: Path
) -> None:
    wanted = filled(source, admin, name)
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    said: list[str] = []
    assert restored(copies, path, name, said.append) > 15
    assert ends(target.bootstrap_servers, name, 3) == behind_the_end(wanted)
    for partition, end in enumerate(wanted):
        whole = raw_batches(source, name, partition, 0, end)
        assert batches_of(path, partition) == whole
        assert raw_batches(target.bootstrap_servers, name, partition, 0, end) == whole
    assert committed(target.bootstrap_servers, name, 3, wanted) == committed(source, name, 3, wanted)
    assert given(copies, name) == {"segment.bytes": "1048576", "retention.ms": "-1", "retention.bytes": "-1"}
    assert [line for line in said if "retention.ms=123456789" in line]
    write(target.bootstrap_servers, name, ["anybody may write"])


def test_an_unpacked_archive_is_a_data_directory(source: str, admin: Admin, name: str, tmp_path: Path) -> None:
    filled(source, admin, name)
    admin.delete_records([(name, 1, 7)])
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    with (
        path.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        tar.extractall(tmp_path / "unpacked")
    for level in ("read_committed", "read_uncommitted"):
        rows = (
            read_range(source, name, config={"isolation.level": level})
            .read_all()
            .sort_by([("partition", "ascending"), ("offset", "ascending")])
        )
        read = read_directory(tmp_path / "unpacked", name, isolation_level=level).read_all()
        assert read.sort_by([("partition", "ascending"), ("offset", "ascending")]).equals(rows)
    assert rows.num_rows > 1_500


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the tool zstd is not installed")
def test_the_tools_zstd_and_tar_read_it(source: str, admin: Admin, name: str, tmp_path: Path) -> None:
    admin.create_topic(name, 1)
    write(source, name, ["a"])
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    listed = subprocess.run(["tar", "--zstd", "-tf", path], check=True, capture_output=True, text=True).stdout.split()
    begin, end = f"{name}.archive.json", f"{name}.end.json"
    assert listed == [begin, "log-start-offset-checkpoint", f"{name}-0/{0:020d}.log", end]


def test_what_was_deleted_what_is_empty_and_a_gap_come_back_as_they_are(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, name: str, tmp_path: Path
) -> None:
    admin.create_topic(name, 4)
    producer = Producer({"bootstrap.servers": source, "linger.ms": 100, "enable.idempotence": True})
    for number in range(60):
        producer.produce(name, f"{number}", partition=number % 3)
    assert producer.flush(30) == 0
    admin.delete_records([(name, 0, 13), (name, 1, -1)])
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    restored(copies, path, name)
    assert starts(copies, name, 4) == starts(admin, name, 4) == [13, 20, 0, 0]
    assert ends(target.bootstrap_servers, name, 4) == behind_the_end([20, 20, 20, 0])
    read = read_range(target.bootstrap_servers, name)
    assert read.read_all().num_rows == 7 + 20


def test_an_open_transaction_is_not_in_it(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, name: str, tmp_path: Path
) -> None:
    admin.create_topic(name, 1)
    write(source, name, ["before"])
    producer = Producer({"bootstrap.servers": source, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, "open")
    producer.flush(30)
    write(source, name, ["behind"])
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    producer.abort_transaction(30)
    restored(copies, path, name)
    assert ends(target.bootstrap_servers, name, 1) == behind_the_end([1])
    assert committed(target.bootstrap_servers, name, 1, [1]) == [[(0, b"before")]]


def test_a_part_of_the_time_has_its_records_and_starts_at_the_first_of_them(
    source: str, admin: Admin, copies: Admin, target: LocalBroker, name: str, tmp_path: Path
) -> None:
    admin.create_topic(name, 1)
    producer = Producer({"bootstrap.servers": source, "linger.ms": 0})
    first = int(datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp() * 1000)
    for number in range(100):
        producer.produce(name, f"{number}", timestamp=first + 1000 * number)
        if number % 10 == 9:
            assert producer.flush(30) == 0
    path = exported(admin, name, tmp_path / "topic.pylog.zst", since_ms=first + 25_000, until_ms=first + 60_000)
    beginning, _ = verify(str(path))
    assert [(each.start, each.end) for each in beginning.ranges] == [(25, 60)]
    restored(copies, path, name)
    assert starts(copies, name, 1) == [25]
    values = read_range(target.bootstrap_servers, name, columns=["value"]).read_all()["value"].to_pylist()
    assert values == [f"{number}".encode() for number in range(25, 60)]


def test_a_compacted_topic_keeps_its_gaps(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, name: str, tmp_path: Path
) -> None:
    admin.create_topic(name, 1, config={"cleanup.policy": "compact"})
    write(source, name, (f"{number}" for number in range(50)))
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    restored(copies, path, name)
    assert given(copies, name)["cleanup.policy"] == "compact"
    wanted = ends(source, name, 1)
    assert committed(target.bootstrap_servers, name, 1, wanted) == committed(source, name, 1, wanted)


def test_a_topic_that_is_there_is_left_alone(
    source: str, admin: Admin, copies: Admin, target: LocalBroker, name: str, tmp_path: Path
) -> None:
    admin.create_topic(name, 1)
    write(source, name, ["a"])
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    copies.create_topic(name, 1)
    with pytest.raises(LogError, match=f"Topic {name} is there, .*--topic"):
        restored(copies, path, name)
    assert ends(target.bootstrap_servers, name, 1) == [0]
    with pytest.raises(LogError, match="is there: delete it"):
        exported(admin, name, path)


def test_the_configs_of_the_command_win(source: str, admin: Admin, copies: Admin, name: str, tmp_path: Path) -> None:
    admin.create_topic(name, 1, config={"retention.ms": "123456789"})
    path = exported(admin, name, tmp_path / "topic.pylog.zst")
    said: list[str] = []
    restored(copies, path, name, said.append, retention_ms="86400000", max_message_bytes="2000000")
    wanted = {"retention.ms": "86400000", "retention.bytes": "-1", "max.message.bytes": "2000000"}
    assert (given(copies, name), said) == (wanted, [])
