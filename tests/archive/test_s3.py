"""An archive in S3, and what it comes to when the store refuses, loses answers, or shows lists as they were before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.errors import PylogError
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import SHORT, begun, until_short, values
from tests.archive.s3_store import Store, running_store
from tests.directories.support import LEVELS, Row, consumed, stored
from tests.harness import runs
from tests.harness.runs import mostly_long
from tests.mirror.support import ends, write, write_in_transactions

ROUNDS = runs.rounds("PYLOG_ARCHIVE_FAULTS", 4, 60)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")
SMALL = CopyOptions(segment_bytes=4_000, frame_bytes=1_500)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """An S3 server; its credentials are in the environment."""
    with running_store() as running:
        yield running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a topic ``events`` of two partitions, with transactions."""
    with LocalBroker(tmp_path_factory.mktemp("source"), group_initial_rebalance_delay_ms=0) as running:
        servers = running.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("events", 2)
        write(servers, "events", (f"{number:0100}" for number in range(800)), batch_num_messages=10)
        write_in_transactions(servers, "events", "some", 4)
        yield running


@pytest.fixture
def admin(broker: LocalBroker) -> Iterator[Admin]:
    """Of the broker."""
    with Admin(broker.bootstrap_servers) as opened:
        yield opened


def rows(url: str, **options: Any) -> list[Row]:
    """What a read of the archive gives."""
    return stored("", "events", **{"isolationLevel": "read_committed", **options, "path": url})


def copy(admin: Admin, url: str) -> int:
    """Copy what is new; how many segments."""
    return len(list(copy_topic(admin, open_archive(url, create=True), "events", SMALL, pytest.fail)))


@pytest.mark.parametrize("level", mostly_long(LEVELS, "read_committed"))
def test_an_archive_in_s3_gives_the_rows_that_a_client_saw(
    store: Store, broker: LocalBroker, admin: Admin, level: str
) -> None:
    url = store.url(level)
    assert copy(admin, url) > 2
    assert copy(admin, url) == 0
    assert rows(url, isolationLevel=level) == consumed(broker.bootstrap_servers, "events", 2, level)
    with pytest.raises(LogError, match="is no archive"):
        open_archive(store.url("nothing"))


@pytest.mark.long  # copies that are cut: test_store.py
def test_whatever_the_store_does_nothing_is_missing_doubled_or_wrong(
    store: Store, broker: LocalBroker, admin: Admin
) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    wanted = consumed(broker.bootstrap_servers, "events", 2, "read_committed")
    whole = failed = 0
    for turn in range(ROUNDS):
        url = store.url(f"faults-{turn}")
        store.fail(0.15, SEED + turn)
        failed += sum(_fails(admin, url) for _ in range(6))
        for _ in range(3):
            with suppress(PylogError, OSError):
                found = rows(url)
                assert found == [row for row in wanted if row in set(found)], "what is read is right, and in order"
                whole += found == wanted
        store.fail(0)
        copy(admin, url)
        assert rows(url) == wanted, f"round {turn}"
        named = {f"{each.name}" for each in _segments(url)}
        assert named <= set(_objects(url))
    print(f"{failed} copies failed")
    assert whole > 0


@pytest.mark.long  # a store that hangs: test_brokers.py
def test_a_broker_whose_store_fails_serves_every_record_and_loses_none(store: Store, tmp_path: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    with begun(tmp_path / "broker", store.url("broker")) as running:
        servers = running.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("events", 2, config={**SHORT, "remote.storage.enable": "false"})
            write(servers, "events", values(0, 900), batch_num_messages=10)
            write_in_transactions(servers, "events", "some", 8)
            write(servers, "events", values(0, 300), batch_num_messages=10)
            wanted = {level: consumed(servers, "events", 2, level) for level in LEVELS}
            behind = ends(servers, "events", 2)
            for turn in range(ROUNDS):
                store.fail(0.15, SEED + turn)
                if turn == 0:
                    admin.alter_configs("topic", "events", {"remote.storage.enable": "true"})
                    for number in range(2):
                        until_short(admin, "events", behind[number] * 2 // 3, number)
                else:
                    running.kill()
                    running.start()
                for level in LEVELS:
                    assert consumed(servers, "events", 2, level) == wanted[level], f"round {turn}"
            store.fail(0)
    found = rows(store.url("broker"), endingOffsets=f'{{"events": {{"0": {behind[0] // 2}, "1": {behind[1] // 2}}}}}')
    assert found == [row for row in wanted["read_committed"] if row.offset < behind[row.partition] // 2]


def _fails(admin: Admin, url: str) -> bool:
    """Copy what is new; whether the store kept that from being done."""
    try:
        copy(admin, url)
    except (OSError, LogError):
        return True
    return False


def _segments(url: str) -> list[Any]:
    from pylog_spark.archive.store.reading import ArchiveLog

    log = ArchiveLog(url)
    return [segment for number in range(2) for segment in log.manifest("events", number).segments]


def _objects(url: str) -> list[str]:
    objects = Objects(url)
    (topic_id,) = objects.folders("topics/events")
    return [name for number in range(2) for name in objects.files(f"topics/events/{topic_id}/{number}")]


def test_credentials_in_a_url_are_refused_since_plans_and_logs_would_show_them() -> None:
    with pytest.raises(LogError, match="has credentials in it") as refused:
        open_archive("s3://key:hidden@logs/archive")
    assert "hidden" not in refused.value.sentence


def test_what_fsspec_opens_is_an_archive_too(broker: LocalBroker, admin: Admin) -> None:
    assert copy(admin, "memory://archive") > 2
    assert rows("memory://archive") == consumed(broker.bootstrap_servers, "events", 2, "read_committed")
