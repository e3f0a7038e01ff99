"""An archive that is moved to another store: brokers and queries go on there, without a gap. The file takes about 15 s; the test on three brokers 40 s."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pylog_spark._native import Client
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.client import Admin
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.source.cold_parts import ColdParts
from pylog_spark.testing import LocalBroker, ZooKeeper
from tests.archive.brokers import (
    EARLIEST_LOCAL,
    KEPT_RECORDS,
    LATEST_TIERED,
    QUICK,
    SHORT,
    begun,
    offset,
    read_from,
    until_short,
    values,
)
from tests.archive.s3_store import Store, running_store
from tests.cluster.rounds import await_records
from tests.cluster.running import judge, running
from tests.harness.bench import Bench
from tests.harness.history import Outcome, Place
from tests.harness.waiting import said, until
from tests.mirror.support import write

pytestmark = pytest.mark.long  # a broker without its archive: test_brokers.py


@pytest.fixture
def store() -> Iterator[Store]:
    """An S3 server; its credentials are in the environment."""
    with running_store() as started:
        yield started


def fill(broker: LocalBroker, first: int, last: int) -> None:
    """Write values to ``moved``, and wait until the broker itself has only the end of them."""
    write(broker.bootstrap_servers, "moved", values(first, last), batch_num_messages=10)
    with Admin(broker.bootstrap_servers) as admin:
        until_short(admin, "moved", last - KEPT_RECORDS)


def archive(command: str, *places: Path | str) -> str:
    """What `pylog archive` prints."""
    words = [sys.executable, "-m", "pylog_spark", "archive", command, *map(str, places)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long  # test_sync.py
def test_an_archive_moves_from_a_disk_to_s3_and_clients_read_it_all(store: Store, tmp_path: Path) -> None:
    before, behind = tmp_path / "archive", store.url("moved")
    with begun(tmp_path / "broker", before) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("moved", 1, config=SHORT)
        fill(broker, 0, 400)
        # Once while it is written to, and what is new when it is not.
        archive("sync", before, behind)
        fill(broker, 400, 600)
    archive("sync", before, behind)
    shutil.rmtree(before)
    assert "moved" in archive("verify", behind)
    copied = ArchiveLog(behind).manifest("moved", 0).end
    with begun(tmp_path / "broker", behind) as broker:
        fill(broker, 600, 1_000)
        found = read_from(broker.bootstrap_servers, "moved", 0, 1_000)
    assert [value.decode() for _, value in found] == list(values(0, 1_000))
    manifest = ArchiveLog(behind).manifest("moved", 0)
    assert manifest.end > copied > 450
    assert manifest.missing(0, manifest.end) == []


@pytest.mark.long  # a broker without its archive: test_brokers.py
def test_a_broker_does_not_begin_a_second_archive_in_an_empty_place(tmp_path: Path) -> None:
    """As when `archive.url` is wrong, or a disk is not mounted."""
    before, mounted_late = tmp_path / "archive", tmp_path / "late"
    with begun(tmp_path / "broker", before) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("moved", 1, config=SHORT)
        fill(broker, 0, 400)
    mounted_late.mkdir()
    with begun(tmp_path / "broker", mounted_late) as broker, Admin(broker.bootstrap_servers) as admin:
        write(broker.bootstrap_servers, "moved", values(400, 600), batch_num_messages=10)
        line = until(lambda: [each for each in broker.logs().splitlines() if "cannot be used" in each], broker.logs)[0]
        assert (
            f"{mounted_late} is no archive: it has no pylog-archive.json. 1 topics have remote.storage.enable, such as moved,"
            in line
        )
        assert list(mounted_late.iterdir()) == []
        assert offset(admin, "moved", EARLIEST_LOCAL) < 400, "nothing is deleted"
        mounted_late.rmdir()
        before.rename(mounted_late)
        until_short(admin, "moved", 600 - KEPT_RECORDS)
        found = read_from(broker.bootstrap_servers, "moved", 0, 600)
        assert [value.decode() for _, value in found] == list(values(0, 600))
        assert ArchiveLog(str(mounted_late)).manifest("moved", 0).missing(0, 450) == []
        # Without what was archived, on purpose.
        admin.alter_configs("topic", "moved", {"remote.storage.enable": "false"})
    with begun(tmp_path / "broker", tmp_path / "anew") as broker, Admin(broker.bootstrap_servers) as admin:
        admin.alter_configs("topic", "moved", {"remote.storage.enable": "true"})
        until(lambda: (tmp_path / "anew" / "topics").exists(), "a new archive begins")


def test_an_archive_whose_disk_goes_away_under_a_broker_goes_on_when_it_is_back(tmp_path: Path) -> None:
    """What is left then is the empty folder that it was mounted in."""
    mounted, away = tmp_path / "archive", tmp_path / "away"
    with begun(tmp_path / "broker", mounted) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("moved", 1, config=SHORT)
        fill(broker, 0, 400)
        until(lambda: offset(admin, "moved", LATEST_TIERED) > 330, "all closed segments are archived")
        mounted.rename(away)
        mounted.mkdir()
        archived = ArchiveLog(str(away)).manifest("moved", 0).end
        write(broker.bootstrap_servers, "moved", values(400, 600), batch_num_messages=10)
        admin.create_topic("later", 1, config=SHORT)
        write(broker.bootstrap_servers, "later", values(0, 200), batch_num_messages=10)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_from, broker.bootstrap_servers, "moved", 0, 600)
            for line in (
                "moved-0 cannot be archived now",
                "moved-0 cannot be read from the archive at 0",
                "What the archive has of later-0 cannot be read now",
                f"{mounted} is no archive: it has no pylog-archive.json",
            ):
                until(lambda line=line: line in broker.logs(), broker.logs)
            assert [each for each in mounted.rglob("*") if each.is_file()] == []
            assert offset(admin, "moved", EARLIEST_LOCAL) <= archived, "nothing else is deleted"
            assert offset(admin, "later", EARLIEST_LOCAL) == 0
            shutil.rmtree(mounted)
            away.rename(mounted)
            found = reading.result()
        until_short(admin, "moved", 600 - KEPT_RECORDS)
        until_short(admin, "later", 200 - KEPT_RECORDS)
    assert [value.decode() for _, value in found] == list(values(0, 600))
    assert ArchiveLog(str(mounted)).manifest("moved", 0).missing(0, 450) == []
    assert ArchiveLog(str(mounted)).manifest("later", 0).missing(0, 50) == []


def test_a_query_that_runs_finds_the_archive_where_it_has_moved_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 0.0
    broker = begun(tmp_path / "broker", tmp_path / "archive").start()
    try:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("moved", 1, config=SHORT)
        fill(broker, 0, 400)
        client = Client({"bootstrap.servers": broker.bootstrap_servers})
        cold = ColdParts("read_uncommitted", lambda: now_s)
        wanted = [OffsetRange(TopicPartition("moved", 0), 0, 250)]
        assert cold.parted(client, wanted) == (wanted, [])
        assert cold.url == str(tmp_path / "archive")
        broker.terminate()
        (tmp_path / "archive").rename(tmp_path / "another")
        broker.configure(archive_url=str(tmp_path / "another"))
        broker.start()
        assert cold.parted(client, wanted) == ([], wanted), "the broker is asked"
        said(caplog, f"{tmp_path / 'archive'} is no archive")
        now_s = 61.0
        assert cold.parted(client, wanted) == (wanted, [])
        assert cold.url == str(tmp_path / "another")
    finally:
        broker.close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_an_archive_moves_under_load_while_one_broker_after_the_other_is_given_the_new_place(
    worker_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """As docs/archive.md says it: what brokers archive between the copy and the last restart is on their own disks still."""
    before, behind = tmp_path / "archive", tmp_path / "moved"
    places: list[Place] = [("moved", partition) for partition in range(3)]
    settings = {**QUICK, "archive_segment_bytes": 1_000, "archive_url": str(before)}
    with Bench(tmp_path / "cluster", worker_zookeeper, **settings) as bench:
        short = {
            "remote_storage_enable": "true",
            "segment_ms": 300,
            "local_retention_ms": 300,
            "file_delete_delay_ms": 0,
        }
        bench.make_topic("moved", len(places), min_insync_replicas=2, **short)
        with running(bench, places) as history:
            archived = ArchiveLog(str(before))

            def begins_late() -> bool:
                archived.refresh()
                with Admin(bench.servers) as admin:
                    local = admin.offsets([(*place, -4) for place in places])
                return all(each.offset > 100 for each in local) and all(
                    archived.manifest(*place).end > 100 for place in places
                )

            until(begins_late, "brokers have only the end of what they have archived")
            with Admin(bench.servers) as admin:
                admin.alter_configs("topic", "moved", {"local.retention.ms": "3600000"})
            archive("sync", before, behind)
            ends = {place: ArchiveLog(str(behind)).manifest(*place).end for place in places}
            for broker in bench.ids:
                bench.stop(broker)
                bench.brokers[broker].configure(archive_url=str(behind))
                bench.start(broker)
                bench.await_whole(["moved"])
                await_records(history, places, time.monotonic())
            shutil.rmtree(before)
            with Admin(bench.servers) as admin:
                admin.alter_configs("topic", "moved", {"local.retention.ms": "300"})

            def goes_on() -> bool:
                moved = ArchiveLog(str(behind))
                return all(moved.manifest(*place).end > ends[place] + 200 for place in places)

            until(goes_on, "the archive grows in its new place")

        def in_archive(place: Place, end: int) -> bytes:
            return b"".join(ArchiveLog(str(behind)).batches(*place, 0, end))

        assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
        assert judge(bench, history, places, in_archive) == []
    assert "moved" in archive("verify", behind)
