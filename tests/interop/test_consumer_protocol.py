"""Groups of the KIP-848 protocol with real clients on one broker: they come, leave, die; topics grow; the broker dies.

What a group is now is asked with ConsumerGroupDescribe, which shows epochs, as no client library does.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic

from pylog_spark._native import RawConnection
from tests.harness.brokers import Brokers
from tests.interop.groups import PARTITIONS, Group, Member, gaps, until
from tests.peers.kafka import dump_log

pytestmark = pytest.mark.cluster

CONSUMER = {"group.protocol": "consumer"}
# Dead members are detected soon, and members get their assignments soon.
SETTINGS = {"group_consumer_session_timeout_ms": 6_000, "group_consumer_heartbeat_interval_ms": 300}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """One broker for the tests that do not kill it."""
    with Brokers(tmp_path_factory.mktemp("consumer-protocol"), **SETTINGS) as running:
        yield running


@pytest.fixture
def group(broker: Brokers, new_topic: str) -> Iterator[Group]:
    """A topic of six partitions and a group without members."""
    with Group(broker.bootstrap_servers, new_topic) as made:
        yield made


def ask(group: Group, api: str, version: int, **fields: Any) -> dict[str, Any]:
    """The answer of the group's coordinator to one request over a connection of its own."""
    answer: dict[str, Any] = json.loads(RawConnection(*coordinator(group)).call(api, version, json.dumps(fields)))
    return answer


def coordinator(group: Group) -> tuple[str, int]:
    """Host and port of the broker that coordinates the group; waits until there is one."""
    host, port = group.servers.split(",")[0].split(":")
    wish = json.dumps({"key": group.name, "key_type": 0})
    found: list[dict[str, Any]] = []

    def known() -> bool:
        found[:] = [json.loads(RawConnection(host, int(port)).call("FindCoordinator", 3, wish))]
        return bool(found[0]["error_code"] == 0)

    until(known, "the group has a coordinator")
    return found[0]["host"], found[0]["port"]


def describe(group: Group) -> dict[str, Any]:
    """The group as ConsumerGroupDescribe gives it."""
    (described,) = ask(group, "ConsumerGroupDescribe", 1, group_ids=[group.name])["groups"]
    return dict(described)


def committed(group: Group) -> dict[int, int]:
    """Committed offsets by partition. librdkafka's AdminClient does not answer this any more when the broker was restarted."""
    (found,) = ask(group, "OffsetFetch", 8, groups=[{"group_id": group.name, "topics": None}])["groups"]
    return {
        partition["partition_index"]: partition["committed_offset"]
        for topic in found["topics"]
        for partition in topic["partitions"]
    }


def owned(member: dict[str, Any]) -> set[tuple[str, int]]:
    """Topics and partitions that a member owns."""
    topics = member["assignment"]["topic_partitions"]
    return {(topic["topic_name"], partition) for topic in topics for partition in topic["partitions"]}


def shares(group: Group) -> list[int]:
    """How many partitions each member owns, sorted; empty while the group is not stable."""
    described = describe(group)
    if described["error_code"] != 0 or described["group_state"] != "Stable":
        return []
    return sorted(len(owned(member)) for member in described["members"])


def until_shared(group: Group, *wanted: int) -> None:
    """The group is stable and its members own so many partitions each."""
    until(lambda: shares(group) == list(wanted), f"the shares become {wanted}, they are {shares(group)}")


def epochs(group: Group) -> tuple[int, dict[str, int]]:
    """The group's epoch and its members'."""
    described = describe(group)
    return described["group_epoch"], {member["member_id"]: member["member_epoch"] for member in described["members"]}


@pytest.mark.long  # of the classic protocol: test_groups.py
@pytest.mark.peers
def test_every_record_is_read_while_members_of_two_clients_come_leave_and_die(group: Group) -> None:
    group.keep_producing()
    first = group.start("confluent", CONSUMER)
    until_shared(group, 6)
    java = group.start("java", CONSUMER)
    until_shared(group, 3, 3)
    until(lambda: len(java.read) > 20, "Kafka's own consumer reads")
    third = group.start("confluent", {**CONSUMER, "group.remote.assignor": "uniform"})
    until_shared(group, 2, 2, 2)
    until(lambda: len(third.read) > 20, "the third reads")
    first.kill()
    until_shared(group, 3, 3)
    java.leave()
    until_shared(group, 6)
    group.stop_producing()
    group.until_all_is_read()
    until(lambda: committed(group) == group.ends(), "all is committed")
    third.leave()
    assert describe(group)["group_state"] == "Empty"
    assert committed(group) == group.ends()


@pytest.mark.long  # members of two clients that die: above
@pytest.mark.peers
def test_a_java_member_that_is_killed_is_found_out(group: Group) -> None:
    group.keep_producing()
    members = [group.start(client, CONSUMER) for client in ("confluent", "java")]
    until_shared(group, 3, 3)
    members[1].kill()
    until_shared(group, 6)
    group.stop_producing()
    group.until_all_is_read()


def test_members_notice_that_a_topic_has_more_partitions(group: Group) -> None:
    for _ in range(2):
        group.start("confluent", CONSUMER)
    until_shared(group, 3, 3)
    for grown in group.admin.create_partitions([NewPartitions(group.topic, PARTITIONS + 2)]).values():
        grown.result(30)
    until_shared(group, 4, 4)


def test_a_regular_expression_matches_topics_that_come_later(group: Group) -> None:
    members = [group.start("confluent", CONSUMER), group.start("confluent", CONSUMER)]
    until_shared(group, 3, 3)
    for member in members:
        member.leave()
    group.members.append(Member("confluent", group.servers, group.name, f"^{group.topic}.*", CONSUMER))
    until_shared(group, 6)
    later = f"{group.topic}-later"
    for made in group.admin.create_topics([NewTopic(later, 2), NewTopic(f"no-{later}", 2)]).values():
        made.result(30)
    until_shared(group, 8)
    (member,) = describe(group)["members"]
    assert {topic for topic, _ in owned(member)} == {group.topic, later}
    assert group.topic in member["subscribed_topic_regex"]


def test_a_static_member_that_restarts_gets_its_partitions_back_without_a_rebalance(group: Group) -> None:
    group.produce(60)
    own = [{**CONSUMER, "group.instance.id": name} for name in ("one", "two")]
    first, second = (group.start("confluent", settings) for settings in own)
    until_shared(group, 3, 3)
    group.until_all_is_read()
    before = describe(group)
    second.leave()
    assert {member["member_epoch"] for member in describe(group)["members"]} == {before["group_epoch"], -2}
    again = group.start("confluent", own[1])
    # Until then its share is kept for it, and the group looks as if it were back.
    until(lambda: again.partitions() == 3, "it has its share again")
    until_shared(group, 3, 3)
    after = describe(group)
    assert {member["member_epoch"] for member in after["members"]} == {before["group_epoch"]}
    assert after["group_epoch"] == before["group_epoch"]
    owners = [
        {member["instance_id"]: owned(member) for member in described["members"]} for described in (before, after)
    ]
    assert owners[0] == owners[1]
    assert first.revocations <= 1, "only when the other came first"


@pytest.mark.long  # broker_native/coordinator
def test_nobody_loses_its_epoch_when_the_broker_is_killed(tmp_path: Path, new_topic: str) -> None:
    # No member is to be found dead here, and a busy machine's broker may be away for longer than the sessions of `SETTINGS`.
    broker = Brokers(tmp_path, **{**SETTINGS, "group_consumer_session_timeout_ms": 45_000})
    with broker, Group(broker.bootstrap_servers, new_topic) as group:
        group.produce(300)
        first, second = group.start("confluent", CONSUMER), group.start("confluent", CONSUMER)
        until_shared(group, 3, 3)
        # The coordinator has given them their shares; they learn that with the answers to their heartbeats.
        until(lambda: (first.partitions(), second.partitions()) == (3, 3), "both know their shares")
        group.until_all_is_read()
        until(lambda: committed(group) == group.ends(), "all is committed")
        before, seen = (
            epochs(group),
            (len(first.assignments), len(second.assignments), first.revocations, second.revocations),
        )
        for stop in (broker.kill, broker.terminate):
            stop()
            broker.start()
            group.produce(300)
            group.until_all_is_read()
            until(lambda: committed(group) == group.ends(), "all is committed")
        assert epochs(group) == before
        assert (len(first.assignments), len(second.assignments), first.revocations, second.revocations) == seen
        assert gaps(first.read) == gaps(second.read) == 0, "and they read nothing twice"


@pytest.mark.long  # tests/oracle/test_groups_mixed.py
def test_an_empty_group_changes_its_protocol_and_keeps_its_offsets_through_kill_9(
    tmp_path: Path, new_topic: str
) -> None:
    broker = Brokers(tmp_path, group_initial_rebalance_delay_ms=0, **SETTINGS)
    with broker, Group(broker.bootstrap_servers, new_topic) as group:
        for settings, type_name in (({}, "classic"), (CONSUMER, "consumer"), ({}, "classic"), (CONSUMER, "consumer")):
            group.produce(60)
            member = group.start("confluent", settings)
            until(lambda: committed(group) == group.ends(), "all is committed")
            # Its last position is on its way while it reads; then it goes.
            member.leave()
            broker.kill()
            broker.start()
            until(lambda: ask(group, "ListGroups", 5)["error_code"] == 0, "the coordinator is there again")
            (listed,) = ask(group, "ListGroups", 5)["groups"]
            assert (listed["group_type"], listed["group_state"]) == (type_name, "Empty")
        assert group.read() == {f"record-{number}" for number in range(240)}
        assert sum(len(member.read) for member in group.members) == 240, "nothing was read twice"


@pytest.mark.peers
def test_kafkas_own_tool_reads_the_groups_records(tmp_path: Path, new_topic: str) -> None:
    with Brokers(tmp_path, **SETTINGS) as broker, Group(broker.bootstrap_servers, new_topic) as group:
        group.produce(60)
        group.start("confluent", {**CONSUMER, "group.instance.id": "fixed"})
        until_shared(group, 6)
        group.until_all_is_read()
        (member,) = describe(group)["members"]
        name, member_id = group.name, member["member_id"]
    written = [log for log in sorted(broker.data_dir.glob("__consumer_offsets-*/*.log")) if log.stat().st_size]
    printed = dump_log(written, "--offsets-decoder")
    of_the_group = [line for line in printed.splitlines() if f'"groupId":"{name}"' in line]
    kinds = {json.loads(line[line.index("key: ") + 5 : line.index(" payload: ")])["type"] for line in of_the_group}
    assert kinds >= {"3", "5", "6", "7", "8"}, printed
    assert any(f'"memberId":"{member_id}"' in line and '"instanceId":"fixed"' in line for line in of_the_group)
    current = [line for line in of_the_group if '"assignedPartitions"' in line]
    assert f'"memberEpoch":{member["member_epoch"]}' in current[0]
    assert '"partitions":[0,1,2,3,4,5]' in current[0]
