"""Share groups (KIP-932) with Kafka's own client: the same program on pylog and on Apache Kafka gives the same.

A record is acquired by one member, which accepts, releases, rejects or keeps it; a member that is gone gives back what it held. Apache Kafka is asked
in `make test-long`. They take more than a minute there: locks run out by the clock.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pylog_spark.testing import LocalBroker
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.harness.waiting import stays, turns, until
from tests.interop.shares import Delivered, ShareGroup, ShareMember
from tests.peers.tools import java

# with librdkafka: test_share_groups_librdkafka.py
pytestmark = [pytest.mark.long, pytest.mark.peers]

#: Of the groups that are about locks; a busy machine is slower than a short one.
LOCK_MS = 6_000
TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS = {"group_share_min_record_lock_duration_ms": "1000"}


@pytest.fixture(scope="module", params=BOTH)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of both brokers."""
    with either(request, **SETTINGS) as servers:
        yield servers


@pytest.fixture
def group(servers: str, new_topic: str, tmp_path: Path) -> Iterator[ShareGroup]:
    """A share group that begins at the start of a topic of one partition."""
    with made(servers, new_topic, tmp_path) as group:
        yield group


def made(servers: str, topic: str, folder: Path) -> ShareGroup:
    """The group and its topic."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    group = ShareGroup(servers, topic, folder)
    group.configure(share_auto_offset_reset="earliest")
    return group


def produce(group: ShareGroup, count: int, first: int = 0) -> None:
    """Records, each in a batch of its own."""
    producer = Producer({"bootstrap.servers": group.servers, "linger.ms": 0, "batch.num.messages": 1})
    for number in range(first, first + count):
        producer.produce(group.topic, f"record-{number}")
    assert producer.flush(30) == 0


def poll_together(member: ShareMember, count: int) -> list[Delivered]:
    """That many records, delivered at once: fewer are given back first."""
    found = member.poll()
    while len(found) < count:
        member.acknowledge("release", *found)
        found = member.poll()
    return found


def offsets(records: list[Delivered]) -> list[int]:
    """Where they are."""
    return [record.offset for record in records]


def test_two_members_read_one_partition_and_each_record_once(group: ShareGroup) -> None:
    produce(group, 40)
    both = [group.start(max_poll_records=5, share_acquire_mode="record_limit") for _ in range(2)]
    read: list[list[Delivered]] = [[], []]
    while sum(map(len, read)) < 40:
        for mine, member in zip(read, both, strict=True):
            found = member.poll(ms=500)
            assert len(found) <= 5
            member.acknowledge("accept", *found)
            assert set(member.commit().values()) <= {"ok"}
            mine += found
    assert all(read), "one of them got nothing"
    assert sorted(offsets(read[0] + read[1])) == list(range(40))
    assert {record.count for record in read[0] + read[1]} == {1}
    assert group.lag() == 0
    described = group.describe()
    assert (described["group_state"], described["assignor_name"]) == ("Stable", "simple")
    assert [member["assignment"]["topic_partitions"][0]["partitions"] for member in described["members"]] == [[0], [0]]


def test_each_record_meets_the_fate_that_its_member_says(group: ShareGroup) -> None:
    produce(group, 4)
    member = group.start()
    found = poll_together(member, 4)
    accepted, released, rejected, last = found
    member.acknowledge("accept", accepted, last)
    member.acknowledge("release", released)
    member.acknowledge("reject", rejected)
    assert member.commit() == {0: "ok"}
    assert group.lag() == 1
    again = member.poll()
    assert [(record.offset, record.count) for record in again] == [(1, released.count + 1)]
    member.acknowledge("accept", *again)
    assert member.commit() == {0: "ok"}
    stays(lambda: member.poll(ms=100) == [], "nothing is left", for_s=1)
    assert group.lag() == 0


@pytest.mark.long  # test_share_groups_librdkafka.py
def test_a_record_that_nobody_accepts_is_delivered_five_times(group: ShareGroup) -> None:
    produce(group, 1)
    member = group.start()
    counts = []
    for _ in range(5):
        found = member.poll()
        counts.append(found[0].count)
        member.acknowledge("release", *found)
        assert member.commit() == {0: "ok"}
    assert counts == [1, 2, 3, 4, 5]
    stays(lambda: member.poll(ms=100) == [], "it is not delivered a sixth time", for_s=1)
    assert group.lag() == 0


def test_a_member_that_is_killed_gives_its_records_back(group: ShareGroup) -> None:
    produce(group, 3)
    first = group.start()
    held = first.poll()
    first.kill()
    second = group.start()
    read: list[Delivered] = []
    while len(read) < 3:
        found = second.poll()
        second.acknowledge("accept", *found)
        assert second.commit() == {0: "ok"}
        read += found
    assert sorted(offsets(read)) == [0, 1, 2]
    # Its session ended with its connection; the delivery counts.
    assert {record.count for record in read if record.offset in offsets(held)} == {2}


@pytest.mark.long  # broker_native/coordinator, on a clock of its own
def test_a_record_that_is_kept_too_long_goes_to_another_member(group: ShareGroup) -> None:
    group.configure(share_record_lock_duration_ms=LOCK_MS)
    produce(group, 1)
    slow, quick = group.start(), group.start()
    (kept,) = slow.poll()
    (taken,) = quick.poll()
    # More than 2 where a fetch of its client had it for too long before it was polled.
    assert (taken.offset, kept.count) == (kept.offset, 1)
    assert taken.count >= 2
    slow.acknowledge("accept", kept)
    assert slow.commit() == {0: "InvalidRecordStateException"}
    quick.acknowledge("accept", taken)
    assert quick.commit() == {0: "ok"}
    assert group.lag() == 0


@pytest.mark.long  # broker_native/coordinator, on a clock of its own
def test_a_member_may_prolong_the_time_that_it_keeps_a_record(group: ShareGroup) -> None:
    group.configure(share_record_lock_duration_ms=LOCK_MS)
    produce(group, 1)
    slow, quick = group.start(), group.start()
    (kept,) = slow.poll()
    # Longer than the lock, in parts that are shorter.
    for _ in range(4):
        slow.acknowledge("renew", kept)
        assert slow.commit() == {0: "ok"}
        assert quick.poll(ms=LOCK_MS // 3) == []
        slow.poll(ms=1)
    slow.acknowledge("accept", kept)
    assert slow.commit() == {0: "ok"}
    assert group.lag() == 0


@pytest.mark.long  # tests/cli/test_group.py
def test_a_group_without_members_can_be_moved_and_deleted(group: ShareGroup) -> None:
    produce(group, 5)
    member = group.start()
    found = poll_together(member, 5)
    member.acknowledge("accept", *found)
    member.commit()
    there = {"topic_name": group.topic, "partitions": [{"partition_index": 0, "start_offset": 3}]}
    refused = group.ask("AlterShareGroupOffsets", 0, group_id=group.name, topics=[there])
    assert refused["error_code"] == 68, "NON_EMPTY_GROUP"
    member.close()
    until(lambda: group.describe()["group_state"] == "Empty", "the group is empty")
    moved = group.ask("AlterShareGroupOffsets", 0, group_id=group.name, topics=[there])
    assert (moved["error_code"], moved["responses"][0]["partitions"][0]["error_code"]) == (0, 0)
    assert group.offsets()[0] == 3
    listed = group.ask("ListGroups", 5, states_filter=[], types_filter=["share"])["groups"]
    assert (group.name, "share", "Empty") in [
        (group["group_id"], group["group_type"], group["group_state"]) for group in listed
    ]
    after = group.start()
    assert sorted(offsets(after.poll()))[0] == 3
    after.close()
    until(
        lambda: group.ask("DeleteGroups", 2, groups_names=[group.name])["results"][0]["error_code"] == 0,
        "the group is deleted",
    )
    assert group.describe()["error_code"] == 69, "GROUP_ID_NOT_FOUND"


@pytest.mark.long  # tests/oracle/test_share_groups.py
def test_a_group_begins_at_the_end_unless_it_says_otherwise(servers: str, new_topic: str, tmp_path: Path) -> None:
    with made(servers, new_topic, tmp_path) as group:
        group.configure(share_auto_offset_reset="latest")
        produce(group, 3)
        member = group.start()
        # Where "the end" is, only its first look at the partition says.
        for number in range(3, 103):
            produce(group, 1, first=number)
            if found := member.poll(ms=500):
                break
        assert found[0].offset >= 3
        assert found[0].value == f"record-{found[0].offset}"


def tool(group: ShareGroup, *words: str) -> list[dict[str, str]]:
    """What Kafka's own tool prints as a table: its rows, by the names of its columns."""
    printed = java(TOOL, "--bootstrap-server", group.servers, *words)
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    heads = next((line for line in lines if "TOPIC" in line), [])
    return [dict(zip(heads, line, strict=False)) for line in lines if group.topic in line]


@pytest.mark.long  # tests/cli/test_group.py
def test_kafkas_own_tool_shows_moves_and_deletes_a_group(group: ShareGroup) -> None:
    produce(group, 5)
    member = group.start()
    found = poll_together(member, 5)
    member.acknowledge("accept", *found[:3])
    member.acknowledge("release", *found[3:])
    assert member.commit() == {0: "ok"}
    of_group = ("--group", group.name)
    assert group.name in java(TOOL, "--bootstrap-server", group.servers, "--list").split()
    (row,) = tool(group, "--describe", *of_group)
    assert (row["GROUP"], row["PARTITION"], row["LAG"]) == (group.name, "0", "2")
    assert "Stable" in java(TOOL, "--bootstrap-server", group.servers, "--describe", *of_group, "--state")
    member.close()
    until(lambda: group.describe()["group_state"] == "Empty", "the group is empty")
    tool(group, "--reset-offsets", *of_group, "--topic", group.topic, "--to-earliest", "--execute")
    assert group.offsets() == (0, 5)
    java(TOOL, "--bootstrap-server", group.servers, "--delete-offsets", *of_group, "--topic", group.topic)
    java(TOOL, "--bootstrap-server", group.servers, "--delete", *of_group)
    assert group.name not in java(TOOL, "--bootstrap-server", group.servers, "--list").split()


@pytest.mark.long  # test_share_groups_librdkafka.py
def test_a_group_that_reads_committed_records_gets_no_others(group: ShareGroup) -> None:
    group.configure(share_isolation_level="read_committed")
    names = {"transactional.id": group.name, "bootstrap.servers": group.servers}
    producer = Producer({**names, "linger.ms": 0, "batch.num.messages": 1})
    producer.init_transactions(30)
    for fate in ("abort", "commit", "abort", "commit"):
        producer.begin_transaction()
        for number in range(3):
            producer.produce(group.topic, f"{fate}-{number}")
        assert producer.flush(30) == 0
        (producer.abort_transaction if fate == "abort" else producer.commit_transaction)(30)
    member = group.start()
    read: list[Delivered] = []
    while len(read) < 6:
        found = member.poll()
        member.acknowledge("accept", *found)
        assert member.commit() == {0: "ok"}
        read += found
    assert sorted(record.value for record in read) == sorted(
        f"commit-{number}" for number in range(3) for _ in range(2)
    )
    producer.begin_transaction()
    producer.produce(group.topic, "open")
    assert producer.flush(30) == 0
    stays(lambda: member.poll(ms=100) == [], "nothing is left", for_s=1)
    producer.commit_transaction(30)
    (late,) = member.poll()
    assert late.value == "open"


@pytest.mark.long  # broker_native/coordinator
def test_a_record_that_ends_each_member_that_gets_it_takes_no_other_along(group: ShareGroup) -> None:
    # One batch: nothing but the deliveries takes its records apart.
    producer = Producer({"bootstrap.servers": group.servers, "linger.ms": 1_000})
    producer.list_topics(group.topic, 30)
    for number in range(20):
        producer.produce(group.topic, f"record-{number}")
    assert producer.flush(30) == 0
    member, accepted = group.start(), set[int]()
    while len(accepted) < 19:
        found = member.poll()
        assert found, f"nothing comes any more: {accepted}"
        assert {record.count for record in found} <= {1, 2, 3, 4, 5}
        poison = any(record.value == "record-7" for record in found)
        member.acknowledge("release" if poison else "accept", *found)
        assert member.commit() == {0: "ok"}
        if not poison:
            accepted |= set(offsets(found))
    for _ in turns(lambda: group.lag() == 0, "all is done with"):
        if found := member.poll(ms=500):
            member.acknowledge("release", *found)
            assert member.commit() == {0: "ok"}
    assert (sorted(accepted), group.lag()) == ([*range(7), *range(8, 20)], 0)


@pytest.mark.long  # broker_native/coordinator
def test_what_a_group_did_is_kept_in_little_room_and_found_again(new_topic: str, tmp_path: Path) -> None:
    compacting = {
        "share_coordinator_state_topic_num_partitions": 1,
        "share_coordinator_state_topic_segment_bytes": 4_096,
        "log_cleaner_backoff_ms": 20,
        "log_cleaner_min_cleanable_ratio": 0.01,
        "log_segment_delete_delay_ms": 0,
    }
    with (
        LocalBroker(tmp_path / "data", **SETTINGS, **compacting) as broker,
        made(broker.bootstrap_servers, new_topic, tmp_path) as group,
    ):
        produce(group, 200)
        member = group.start(max_poll_records=1, share_acquire_mode="record_limit")
        accepted = 0
        while accepted < 199:
            found = member.poll()
            member.acknowledge("accept", *found)
            assert member.commit() == {0: "ok"}
            accepted += len(found)

        def kept() -> int:
            logs = (tmp_path / "data" / "__share_group_state-0").glob("*.log")
            return sum(log.stat().st_size for log in logs)

        # Each of the 200 changes is a record of more than 100 bytes.
        until(lambda: kept() < 10_000, lambda: f"the topic is compacted: it has {kept()} bytes")
        broker.kill()
        member.kill()
        broker.start()
        assert group.offsets() == (199, 1)


@pytest.mark.long  # tests/crash/test_share_groups.py
def test_a_broker_that_is_killed_loses_nothing_and_repeats_nothing_that_was_accepted(
    new_topic: str, tmp_path: Path
) -> None:
    with (
        LocalBroker(tmp_path / "data", **SETTINGS) as broker,
        made(broker.bootstrap_servers, new_topic, tmp_path) as group,
    ):
        produce(group, 30)
        accepted: set[int] = set()
        for round_number in range(3):
            member = group.start(max_poll_records=6, share_acquire_mode="record_limit")
            found = member.poll()
            member.acknowledge("accept", *found[:3])
            member.acknowledge("release", *found[3:])
            assert member.commit() == {0: "ok"}
            assert accepted.isdisjoint(offsets(found))
            accepted |= set(offsets(found[:3]))
            # Some are held while the broker dies.
            assert accepted.isdisjoint(offsets(member.poll()))
            broker.kill()
            member.kill()
            broker.start()
            assert group.offsets()[0] == min(set(range(31)) - accepted), f"round {round_number}"
        last = group.start()
        rest: list[Delivered] = []
        while len(accepted) + len(rest) < 30:
            found = last.poll()
            last.acknowledge("accept", *found)
            assert last.commit() == {0: "ok"}
            rest += found
        assert sorted([*accepted, *offsets(rest)]) == list(range(30))
        assert max(record.count for record in rest) <= 5
        assert group.offsets() == (30, 0)
