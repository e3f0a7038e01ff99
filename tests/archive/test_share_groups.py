"""Share groups (KIP-932) over a log of which the broker itself has only the end: members are given what is archived, too. About 15 s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import SHORT, begun, until_short, values
from tests.directories.support import LEVELS, consumed
from tests.harness.waiting import turns
from tests.interop.shares import Delivered, LibrdkafkaMember, ShareGroup
from tests.mirror.support import write, write_in_transactions

pytestmark = (
    pytest.mark.long
)  # tests/interop/test_share_groups_librdkafka.py; what brokers no longer have: test_brokers.py

SHARES = {"group_share_min_record_lock_duration_ms": "1000", "group_share_min_heartbeat_interval_ms": "200"}
_DEADLINE_S = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a topic ``events`` whose beginning, with transactions, is in the archive alone."""
    with begun(tmp_path_factory.mktemp("broker"), tmp_path_factory.mktemp("archive") / "of", **SHARES) as running:
        servers = running.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("events", 1, config=SHORT)
            write(servers, "events", values(0, 200), batch_num_messages=10)
            write_in_transactions(servers, "events", "some", 10)
            write(servers, "events", values(200, 500), batch_num_messages=10)
            until_short(admin, "events", 500)
        yield running


def members_of(broker: LocalBroker, name: str, folder: Path, **settings: object) -> ShareGroup:
    """A group of the topic."""
    group = ShareGroup(broker.bootstrap_servers, name, folder)
    group.topic = "events"
    group.configure(share_heartbeat_interval_ms=500, **settings)
    return group


def taken(group: ShareGroup, count: int, members: int = 1) -> list[Delivered]:
    """What members of a group get and accept until there are so many records."""
    found: list[Delivered] = []
    opened = [LibrdkafkaMember(group.servers, group.name, group.topic) for _ in range(members)]
    try:
        for _ in turns(lambda: len(found) >= count, lambda: f"{len(found)} of {count} records", _DEADLINE_S):
            for member in opened:
                records = member.poll(200)
                member.acknowledge("accept", *records)
                found.extend(records)
        for member in opened:
            assert set(member.commit().values()) <= {"ok"}
    finally:
        for member in opened:
            with closing(member):
                pass
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_members_are_given_the_whole_log_each_record_once(broker: LocalBroker, tmp_path: Path, level: str) -> None:
    group = members_of(broker, level, tmp_path, share_auto_offset_reset="earliest", share_isolation_level=level)
    rows = consumed(broker.bootstrap_servers, "events", 1, level)
    found = taken(group, len(rows), members=2)
    assert sorted((each.offset, each.value.encode()) for each in found) == [(row.offset, row.value) for row in rows]
    assert {each.count for each in found} == {1}
    assert group.lag() == 0


def test_records_that_are_released_come_from_the_archive_again(broker: LocalBroker, tmp_path: Path) -> None:
    group = members_of(broker, "released", tmp_path, share_auto_offset_reset="earliest")
    with closing(LibrdkafkaMember(group.servers, group.name, group.topic)) as member:
        first = member.poll()
        assert first
        assert first[0].offset == 0
        member.acknowledge("release", *first)
        assert set(member.commit().values()) == {"ok"}
        again = member.poll()
        assert [(each.offset, each.value) for each in again[: len(first)]] == [
            (each.offset, each.value) for each in first
        ][: len(again)]
        assert again[0].count == 2
        member.acknowledge("accept", *again)
        member.commit()


def test_a_group_begins_at_a_time_that_only_the_archive_has(broker: LocalBroker, tmp_path: Path) -> None:
    servers, now_ms = broker.bootstrap_servers, time.time_ns() // 1_000_000
    with Admin(servers) as admin:
        admin.create_topic("timed", 1, config=SHORT)
        with Producer(servers, "timed", {"batch.size": "2000"}) as producer:
            for number, text in enumerate(values(0, 400)):
                hours = 5 if number < 100 else 1
                producer.send(text.encode(), timestamp_ms=now_ms - hours * 3_600_000)
        until_short(admin, "timed", 200)
    group = members_of(broker, "timed", tmp_path, share_auto_offset_reset="by_duration:PT3H")
    group.topic = "timed"
    assert sorted(each.offset for each in taken(group, 300)) == list(range(100, 400))
