"""Brokers that archive by themselves: what any client reads is what was written, wherever it lies; and what is deleted, and when.

One real broker, with segments that are copied and removed within some tenths of a second. The whole file takes about 40 s.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from pylog_spark.archive.store.cutting import create_cut
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.local_broker import LocalBrokerError
from tests.archive.brokers import (
    EARLIEST,
    EARLIEST_LOCAL,
    KEPT_RECORDS,
    LATEST,
    LATEST_TIERED,
    SHORT,
    begun,
    offset,
    read_from,
    until_short,
    values,
)
from tests.directories.support import LEVELS, consumed
from tests.harness import runs
from tests.harness.waiting import said, until
from tests.mirror.support import ends, environment, raw_batches, write, write_in_transactions

KILLS = runs.rounds("PYLOG_ARCHIVE_KILLS", 3, 30)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the file's broker."""
    return tmp_path_factory.mktemp("archive") / "of" / "broker"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Iterator[LocalBroker]:
    """The file's broker."""
    with begun(tmp_path_factory.mktemp("broker"), archive) as running:
        yield running


@pytest.fixture
def admin(broker: LocalBroker) -> Iterator[Admin]:
    """Of the broker."""
    with Admin(broker.bootstrap_servers) as client:
        yield client


def fill(broker: LocalBroker, admin: Admin, topic: str, records: int = 600, **configs: str) -> None:
    """Make a topic of one partition, write to it, and wait until the broker itself has only the end of it."""
    admin.create_topic(topic, 1, config={**SHORT, **configs})
    write(broker.bootstrap_servers, topic, values(0, records), batch_num_messages=10)
    until_short(admin, topic, records * 3 // 4)


def test_clients_read_what_was_written_wherever_it_lies(broker: LocalBroker, admin: Admin, archive: Path) -> None:
    servers, drawn = broker.bootstrap_servers, random.Random(SEED)
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    # It is archived when all has been read.
    plain = {**SHORT, "remote.storage.enable": "false"}
    admin.create_topic("mixed", 2, config=plain)
    write(servers, "mixed", values(0, 600), batch_num_messages=10)
    write_in_transactions(servers, "mixed", "some", 30)
    write(servers, "mixed", values(600, 1_000), batch_num_messages=10)
    behind = ends(servers, "mixed", 2)
    rows = {level: consumed(servers, "mixed", 2, level) for level in LEVELS}
    assert len(rows["read_committed"]) < len(rows["read_uncommitted"])
    raw = [raw_batches(servers, "mixed", number, 0, behind[number]) for number in range(2)]
    times = sorted({drawn.randrange(behind[0]) for _ in range(20)})
    stamps = [int(admin.offsets([("mixed", 0, 0)])[0].timestamp_ms) + each for each in times]
    found = admin.offsets([("mixed", 0, stamp) for stamp in stamps])
    admin.alter_configs("topic", "mixed", {"remote.storage.enable": "true"})
    starts = [until_short(admin, "mixed", behind[number] // 2, number) for number in range(2)]

    assert {level: consumed(servers, "mixed", 2, level) for level in LEVELS} == rows
    assert [raw_batches(servers, "mixed", number, 0, behind[number]) for number in range(2)] == raw
    assert admin.offsets([("mixed", 0, stamp) for stamp in stamps]) == found
    assert [offset(admin, "mixed", EARLIEST, number) for number in range(2)] == [0, 0]
    log = ArchiveLog(str(archive))
    for number in range(2):
        end = log.manifest("mixed", number).end
        assert starts[number] <= end <= behind[number]
        assert offset(admin, "mixed", LATEST_TIERED, number) == end - 1
    for level in LEVELS:
        mine = [(row.offset, row.value) for row in rows[level] if row.partition == 0]
        for _ in range(10):
            first = drawn.randrange(len(mine) - 50)
            assert read_from(servers, "mixed", mine[first][0], 50, level) == mine[first : first + 50]


def test_a_new_topic_has_a_beginning_and_an_end_at_once(broker: LocalBroker, admin: Admin) -> None:
    """librdkafka asks once for both, and gives an error that passes to its user."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "any"})
    for number in range(20):
        admin.create_topic(f"new-{number}", 1, config=SHORT)
        assert consumer.get_watermark_offsets(TopicPartition(f"new-{number}", 0), timeout=60) == (0, 0)
    consumer.close()


def test_a_broker_whose_archive_is_on_a_disk_does_not_load_pyarrow(broker: LocalBroker, admin: Admin) -> None:
    fill(broker, admin, "small")
    assert len(read_from(broker.bootstrap_servers, "small", 0, 100)) == 100
    assert "libarrow" not in Path(f"/proc/{broker.pid}/maps").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux")
def test_the_threads_that_read_the_archive_for_clients_run_behind_the_others(broker: LocalBroker, admin: Admin) -> None:
    fill(broker, admin, "nice")
    read_from(broker.bootstrap_servers, "nice", 0, 1)
    usual = os.getpriority(os.PRIO_PROCESS, broker.pid)

    def behind() -> int:
        stats = Path(f"/proc/{broker.pid}/task").glob("*/stat")
        return [int(stat.read_text().rpartition(") ")[2].split()[16]) for stat in stats].count(min(usual + 10, 19))

    until(lambda: behind() == 4, "remote.log.reader.threads are nice, and no others")


@pytest.mark.long  # one that is killed: above
def test_who_starts_again_gives_the_same_records(tmp_path: Path) -> None:
    with begun(tmp_path / "broker", tmp_path / "archive") as running:
        with Admin(running.bootstrap_servers) as admin:
            fill(running, admin, "again")
            rows = consumed(running.bootstrap_servers, "again", 1, "read_committed")
            assert len(rows) == 600
        running.restart()
        with Admin(running.bootstrap_servers) as admin:
            assert offset(admin, "again", EARLIEST) == 0
            assert consumed(running.bootstrap_servers, "again", 1, "read_committed") == rows
            write(running.bootstrap_servers, "again", values(0, 600), batch_num_messages=10)
            until_short(admin, "again", 900)
            assert len(consumed(running.bootstrap_servers, "again", 1, "read_committed")) == 1_200
    assert ArchiveLog(str(tmp_path / "archive")).manifest("again", 0).missing(0, 900) == []


def test_a_broker_that_is_started_without_its_archive_says_so_and_deletes_nothing(tmp_path: Path) -> None:
    with begun(tmp_path / "broker", tmp_path / "archive") as running, Admin(running.bootstrap_servers) as admin:
        fill(running, admin, "left")
    with LocalBroker(tmp_path / "broker", log_retention_check_interval_ms=100) as running:
        until(
            lambda: (
                "This broker has no archive.url, and 1 topics have remote.storage.enable, such as left"
                in running.logs()
            ),
            "the log says so",
        )
        impatient = {"default.api.timeout.ms": "1000"}
        with Admin(running.bootstrap_servers) as admin, Admin(running.bootstrap_servers, impatient) as asking:
            start = offset(admin, "left", EARLIEST_LOCAL)
            with pytest.raises(LogError, match="does not know yet"):
                offset(asking, "left", EARLIEST)
            assert [number for number, _ in read_from(running.bootstrap_servers, "left", start, 600 - start)] == list(
                range(start, 600)
            )


def test_deleted_records_are_gone_from_the_archive_too(broker: LocalBroker, admin: Admin) -> None:
    fill(broker, admin, "deleted")
    local = offset(admin, "deleted", EARLIEST_LOCAL)
    (deleted,) = admin.delete_records([("deleted", 0, 601)])
    assert deleted.error == "OFFSET_OUT_OF_RANGE"
    (deleted,) = admin.delete_records([("deleted", 0, 200)])
    assert (deleted.error, deleted.low_watermark) == (None, 200)
    assert (offset(admin, "deleted", EARLIEST), offset(admin, "deleted", EARLIEST_LOCAL)) == (200, local)
    assert read_from(broker.bootstrap_servers, "deleted", 200, 400)[0][0] == 200
    with pytest.raises(AssertionError, match=r"OFFSET_OUT_OF_RANGE|no offset|out of range"):
        read_from(broker.bootstrap_servers, "deleted", 199, 1)
    # More than the archive has.
    (deleted,) = admin.delete_records([("deleted", 0, 600)])
    assert (deleted.error, deleted.low_watermark) == (None, 600)
    assert [offset(admin, "deleted", each) for each in (EARLIEST, LATEST)] == [600, 600]
    write(broker.bootstrap_servers, "deleted", values(600, 1_000), batch_num_messages=10)
    until_short(admin, "deleted", 800)
    assert [number for number, _ in read_from(broker.bootstrap_servers, "deleted", 600, 400)] == list(range(600, 1_000))


def test_records_that_a_cut_needs_are_not_deleted(broker: LocalBroker, admin: Admin, archive: Path) -> None:
    fill(broker, admin, "pinned")
    create_cut(open_archive(str(archive)), ArchiveLog(str(archive)), "keep", "pinned", {0: (100, 300)}, is_own=False)
    (deleted,) = admin.delete_records([("pinned", 0, 200)])
    assert deleted.error == "POLICY_VIOLATION"
    said(broker, "a cut needs the offsets from 100 on")
    local = offset(admin, "pinned", EARLIEST_LOCAL)
    (deleted,) = admin.delete_records([("pinned", 0, 599)])
    assert deleted.error == "POLICY_VIOLATION"
    assert [offset(admin, "pinned", each) for each in (EARLIEST, EARLIEST_LOCAL)] == [0, local], "nothing is deleted"
    (deleted,) = admin.delete_records([("pinned", 0, 100)])
    assert (deleted.error, offset(admin, "pinned", EARLIEST)) == (None, 100)


def test_retention_of_the_whole_log_holds_for_the_archive(broker: LocalBroker, admin: Admin, archive: Path) -> None:
    fill(broker, admin, "short")
    log = ArchiveLog(str(archive))
    folder = archive / "topics" / "short" / log.manifest("short", 0).topic_id / "0"
    before = len(list(folder.glob("*.pylog.zst")))
    admin.alter_configs("topic", "short", {"retention.bytes": "30000"})
    start = until(lambda: offset(admin, "short", EARLIEST), "the log begins later")
    assert 0 < start <= offset(admin, "short", EARLIEST_LOCAL)
    until(lambda: len(list(folder.glob("*.pylog.zst"))) < before, "objects are gone")
    assert [number for number, _ in read_from(broker.bootstrap_servers, "short", start, 600 - start)] == list(
        range(start, 600)
    )
    admin.alter_configs("topic", "short", {"retention.ms": "1"})
    until(lambda: offset(admin, "short", EARLIEST) == offset(admin, "short", EARLIEST_LOCAL), "the archive is empty")


def test_a_topic_that_is_deleted_goes_from_the_archive_and_another_of_its_name_does_not(
    broker: LocalBroker, admin: Admin, archive: Path
) -> None:
    fill(broker, admin, "gone")
    fill(broker, admin, "stays")
    (folder,) = (archive / "topics" / "gone").iterdir()
    admin.delete_topics(["gone"])
    fill(broker, admin, "gone")
    until(
        lambda: not list(folder.rglob("*.zst")) and not (folder / "topic.json").exists(), "the old topic's objects go"
    )
    assert len(read_from(broker.bootstrap_servers, "gone", 0, 600)) == 600
    assert len(read_from(broker.bootstrap_servers, "stays", 0, 600)) == 600


@pytest.mark.long  # a store that hangs: below
def test_what_cannot_be_archived_stays_on_the_broker_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("a file where a folder should be")
    with (
        begun(tmp_path / "broker", tmp_path / "in the way" / "archive") as running,
        Admin(running.bootstrap_servers) as admin,
    ):
        admin.create_topic("kept", 1, config=SHORT)
        write(running.bootstrap_servers, "kept", values(0, 600), batch_num_messages=10)
        until(lambda: "cannot be used, and is tried again" in running.logs(), running.logs)
        # Retention has looked several times by then.
        looks = running.logs
        until(lambda: len(list((tmp_path / "broker" / "kept-0").glob("*.log"))) > 5, looks)
        assert offset(admin, "kept", EARLIEST_LOCAL) == 0
        assert len(read_from(running.bootstrap_servers, "kept", 0, 600)) == 600
        (tmp_path / "in the way").unlink()
        until_short(admin, "kept", 600 - KEPT_RECORDS)
        assert len(read_from(running.bootstrap_servers, "kept", 0, 600)) == 600


def test_a_store_that_hangs_holds_up_nobody_who_reads_what_the_broker_has(tmp_path: Path) -> None:
    with begun(tmp_path / "broker", tmp_path / "archive", remote_log_reader_threads=1) as running:
        servers = running.bootstrap_servers
        with Admin(servers) as admin:
            fill(running, admin, "cold")
            admin.create_topic("hot", 1)
        (folder,) = (tmp_path / "archive" / "topics" / "cold").iterdir()
        first = min((folder / "0").glob("*.pylog.zst"))
        whole, pipe = tmp_path / "whole", tmp_path / "pipe"
        first.rename(whole)
        os.mkfifo(pipe)
        first.hardlink_to(pipe)
        with pytest.raises(AssertionError, match="0 of 1 records from 0 on"):
            read_within(servers, "cold", 2)
        write(servers, "hot", ["one"])
        assert len(read_from(servers, "hot", 0, 1)) == 1
        # Who opened it gets an end of file, an object that is damaged, and asks again: it must not meet the pipe a second time.
        whole.replace(first)
        with pipe.open("wb"):
            pass
        assert len(read_from(servers, "cold", 0, 600)) == 600


def read_within(servers: str, topic: str, seconds: float) -> None:
    """Read one record from the beginning on. Raises AssertionError when there is none for so long."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "any", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(seconds)
        assert message is not None, "0 of 1 records from 0 on"
    finally:
        consumer.close()


def test_a_broker_that_is_killed_while_it_archives_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    acknowledged: list[bytes] = []

    def said(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(message.value())

    broker = begun(tmp_path / "broker", tmp_path / "archive").start()
    try:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("killed", 1, config=SHORT)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "log_level": 0,
            }
        )
        number = 0
        for _ in range(KILLS):
            wanted = len(acknowledged) + drawn.randrange(100, 300)
            while len(acknowledged) < wanted:
                assert number < 100_000
                producer.produce("killed", f"{number:0200}".encode(), on_delivery=said)
                number += 1
                producer.poll(0.002)
            broker.kill()
            broker.start()
        assert producer.flush(60) == 0
        with Admin(broker.bootstrap_servers) as admin:
            end = offset(admin, "killed", LATEST)
            until_short(admin, "killed", end * 3 // 4)
            found = [value for _, value in read_from(broker.bootstrap_servers, "killed", 0, number)]
        assert found == [f"{each:0200}".encode() for each in range(number)]
        assert sorted(acknowledged) == found
        assert ArchiveLog(str(tmp_path / "archive")).manifest("killed", 0).missing(0, end * 3 // 4) == []
    finally:
        broker.close()


@pytest.mark.long  # restoring: test_round_trip.py
def test_after_all_brokers_and_disks_are_lost_a_new_cluster_is_made_of_the_archive_alone(tmp_path: Path) -> None:
    with begun(tmp_path / "broker", tmp_path / "archive") as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topic("drill", 2, config={**SHORT, "retention.ms": "86400000"})
        write(running.bootstrap_servers, "drill", values(0, 900), batch_num_messages=10)
        write_in_transactions(running.bootstrap_servers, "drill", "some", 10)
        write(running.bootstrap_servers, "drill", values(0, 300), batch_num_messages=10)
        for number, end in enumerate(ends(running.bootstrap_servers, "drill", 2)):
            until_short(admin, "drill", end * 2 // 3, number)
        rows = {level: consumed(running.bootstrap_servers, "drill", 2, level) for level in LEVELS}
    archived = ArchiveLog(str(tmp_path / "archive"))
    behind = [archived.manifest("drill", number).end for number in range(2)]
    shutil.rmtree(tmp_path / "broker")
    with begun(tmp_path / "new", tmp_path / "archive") as running:
        words = [sys.executable, "-m", "pylog_spark", "archive", "restore", str(tmp_path / "archive"), "drill"]
        servers = {"PYLOG_BOOTSTRAP_SERVERS": running.bootstrap_servers}
        done = subprocess.run(words, env={**environment(), **servers}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Topic drill is whole: ")
        assert "topic drill keeps all records: retention.ms=86400000 of the archive is not set" in done.stderr
        with Admin(running.bootstrap_servers) as admin:
            # It is archived anew, under its new id, and removed from the new broker.
            for number in range(2):
                until_short(admin, "drill", behind[number] // 2, number)
            for level in LEVELS:
                found = consumed(running.bootstrap_servers, "drill", 2, level)
                assert found == [row for row in rows[level] if row.offset < behind[row.partition]]
            write(running.bootstrap_servers, "drill", ["it goes on"])


@pytest.mark.long  # a broker without its archive: below
def test_a_log_that_lost_what_was_archived_is_not_mixed_with_it(tmp_path: Path) -> None:
    broker = begun(tmp_path / "broker", tmp_path / "archive").start()
    try:
        with Admin(broker.bootstrap_servers) as admin:
            fill(broker, admin, "lost")
            broker.terminate()
            shutil.copytree(tmp_path / "broker", tmp_path / "before")
            broker.start()
        with Admin(broker.bootstrap_servers) as admin:
            write(broker.bootstrap_servers, "lost", values(600, 1_000), batch_num_messages=10)
            until_short(admin, "lost", 800)
            broker.terminate()
        shutil.rmtree(tmp_path / "broker")
        (tmp_path / "before").rename(tmp_path / "broker")
        broker.start()
        manifest = ArchiveLog(str(tmp_path / "archive")).manifest("lost", 0)
        assert manifest.end > 800
        for turn in range(2):
            with Admin(broker.bootstrap_servers) as admin:
                end = offset(admin, "lost", LATEST)
                assert end == 600 + turn * 500
                write(
                    broker.bootstrap_servers,
                    "lost",
                    (f"{number} other" for number in range(500)),
                    batch_num_messages=10,
                )
                said(broker, "has lost records since they were archived")
                found = read_from(broker.bootstrap_servers, "lost", 0, end + 500)
                assert [number for number, _ in found] == list(range(end + 500))
                texts = [value.decode() for _, value in found]
                assert texts[:600] == list(values(0, 600))
                assert texts[600:] == [f"{number} other" for number in range(500)] * (turn + 1)
                assert ArchiveLog(str(tmp_path / "archive")).manifest("lost", 0) == manifest, "nothing is copied"
            broker.terminate()
            broker.start()
    finally:
        broker.close()


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        (
            {"remote.storage.enable": "true", "cleanup.policy": "compact"},
            "remote.storage.enable=true is refused: a compacted topic cannot be archived, because its records change places.",
        ),
        ({"local.retention.ms": "-3"}, "local.retention.ms=-3 is refused: it must be at least -2."),
    ],
)
def test_settings_that_do_not_go_together_are_refused(admin: Admin, configs: dict[str, str], sentence: str) -> None:
    with pytest.raises(LogError) as refused:
        admin.create_topic("refused", 1, config=configs)
    assert refused.value.sentence.endswith(sentence)
    admin.create_topic(f"altered-{len(configs)}", 1)
    with pytest.raises(LogError) as refused:
        admin.alter_configs("topic", f"altered-{len(configs)}", configs)
    assert sentence in refused.value.sentence


def test_a_broker_without_an_archive_refuses_topics_that_want_one_and_a_url_with_a_password(tmp_path: Path) -> None:
    no_archive = r"the broker has no archive\. Start all brokers with archive\.url=URL\."
    with (
        LocalBroker(tmp_path / "broker") as running,
        Admin(running.bootstrap_servers) as admin,
        pytest.raises(LogError, match=no_archive),
    ):
        admin.create_topic("refused", 1, config={"remote.storage.enable": "true"})
    other = LocalBroker(tmp_path / "other", archive_url="s3://me:secret@bucket/logs")
    try:
        with pytest.raises(LocalBrokerError, match=r"archive\.url is refused: the s3 URL has credentials in it"):
            other.start()
    finally:
        other.close()


def test_the_topic_that_is_written_into_the_archive_has_its_settings(
    broker: LocalBroker, admin: Admin, archive: Path
) -> None:
    fill(broker, admin, "described", **{"retention.ms": "3600000"})
    (folder,) = (archive / "topics" / "described").iterdir()
    document = json.loads((folder / "topic.json").read_text())
    assert document["configs"] == {**SHORT, "retention.ms": "3600000"}
    assert (document["topic"], document["partitions"]) == ("described", 1)
    assert document["topic_id"] == folder.name == admin.topic("described").topic_id
