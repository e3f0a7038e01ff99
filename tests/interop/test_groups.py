"""Groups of real clients on one broker: they come, leave, die; every record is read and every offset committed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.harness.brokers import Brokers
from tests.interop.groups import PARTITIONS, Group, gaps, until
from tests.peers.kafka import dump_log

pytestmark = pytest.mark.cluster

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
MANY = 50
#: Of members that no test kills: on a busy machine a broker may be away for as long as the others' sessions last.
PATIENT = {"session.timeout.ms": 45_000, "reconnect.backoff.max.ms": 500}


@pytest.fixture
def group(servers: str, new_topic: str) -> Iterator[Group]:
    """A topic of six partitions and a group without members."""
    with Group(servers, new_topic) as made:
        yield made


def test_every_record_is_read_while_members_of_three_clients_come_leave_and_die(group: Group) -> None:
    group.keep_producing()
    first = group.start("confluent", {"partition.assignment.strategy": "range"})
    until(lambda: len(first.read) > 50, "the first member reads")
    others = [group.start("aiokafka"), group.start("kcat")]
    for other in others:
        until(lambda other=other: len(other.read) > 20, "the others read")
    until(lambda: first.partitions() == 2, "each has two partitions")
    others[0].kill()
    until(lambda: first.partitions() == 3, "the dead member's partitions go to those that are left")
    late = group.start("aiokafka")
    until(lambda: len(late.read) > 20, "a late member reads")
    first.leave()
    until(lambda: late.partitions() == 3, "so do those of the one that left")
    others[1].kill()
    until(lambda: late.partitions() == PARTITIONS, "the last one has them all")
    group.stop_producing()
    group.until_all_is_read()
    until(lambda: group.committed() == group.ends(), "all is committed")
    assert group.state() == "STABLE"
    late.leave()
    until(lambda: group.state() == "EMPTY", "no member is left")
    assert group.committed() == group.ends()


@pytest.mark.long  # members that die: above
def test_what_a_member_did_not_commit_before_it_was_killed_is_read_again(group: Group) -> None:
    group.produce(600)
    dying = group.start("confluent")
    until(lambda: len(dying.read) > 100, "it reads")
    dying.kill()
    heir = group.start("confluent")
    group.until_all_is_read()
    until(lambda: group.committed() == group.ends(), "all is committed")
    assert gaps(heir.read) == 0
    assert len(dying.read) + len(heir.read) - 600 <= PARTITIONS, "each record was committed by itself"


def test_cooperative_members_keep_what_stays_theirs(group: Group) -> None:
    group.keep_producing()
    first = group.start("confluent", COOPERATIVE)
    until(lambda: len({partition for partition, _, _ in first.read}) == PARTITIONS, "the first reads everything")
    second = group.start("confluent", COOPERATIVE)
    until(lambda: (first.revocations, second.partitions()) == (1, 3), "half of it moves, at once")
    until(lambda: len({partition for partition, _, _ in second.read}) == 3, "the second reads all that it has")
    kept = {
        topic_partition.partition
        for member in group.describe().members
        for topic_partition in member.assignment.topic_partitions
    }
    assert kept == set(range(PARTITIONS))
    second.leave()
    until(lambda: len(first.assignments) > 1 and first.partitions() == PARTITIONS, "and comes back")
    group.stop_producing()
    group.until_all_is_read()
    stayed = {partition for partition, _, _ in first.read} - {partition for partition, _, _ in second.read}
    assert len(stayed) == 3
    assert gaps(event for event in first.read if event[0] in stayed) == 0


def test_a_static_member_that_restarts_gets_its_partitions_back_without_a_rebalance(group: Group) -> None:
    group.produce(600)
    settings = [{"group.instance.id": name, "session.timeout.ms": 30_000} for name in ("one", "two")]
    first, second = (group.start("confluent", own) for own in settings)
    until(lambda: (first.partitions(), second.partitions()) == (3, 3), "both have their share")
    group.until_all_is_read()
    before = {member.group_instance_id: member for member in group.describe().members}
    rebalances = len(first.assignments)
    second.kill()
    again = group.start("confluent", settings[1])
    until(lambda: again.partitions() == 3, "it has three partitions again")
    after = {member.group_instance_id: member for member in group.describe().members}
    assert (first.assignments, first.revocations) == (first.assignments[:rebalances], rebalances - 1), (
        "no other member noticed"
    )
    assert before["two"].member_id != after["two"].member_id
    for name in ("one", "two"):
        assert before[name].assignment.topic_partitions == after[name].assignment.topic_partitions


@pytest.mark.long  # three clients: below
def test_fifty_members_join_one_generation(group: Group) -> None:
    group.produce(PARTITIONS)
    settings = {
        "bootstrap.servers": group.servers,
        "group.id": group.name,
        "auto.offset.reset": "earliest",
        # Metadata of a good size for each: a long list of topics that are not there.
        "allow.auto.create.topics": False,
    }
    topics = [group.topic, *(f"not-there-{number}" for number in range(200))]
    members = [Consumer(settings) for _ in range(MANY)]
    try:
        for member in members:
            member.subscribe(topics)
        seen: set[bytes] = set()

        def all_in() -> bool:
            for member in members:
                message = member.poll(0)
                if message is not None and not message.error():
                    seen.add(message.value())
            return len(seen) == PARTITIONS and len(group.describe().members) == MANY and group.state() == "STABLE"

        until(all_in, "all members are in and every record is read")
        shares = [len(member.assignment.topic_partitions) for member in group.describe().members]
        assert sorted(shares) == [0] * (MANY - PARTITIONS) + [1] * PARTITIONS
        for member in members:
            member.unsubscribe()
        until(lambda: [member.poll(0) for member in members] and group.state() == "EMPTY", "all members have left")
    finally:
        # Only now: librdkafka 2.16 may wait for ever in a close that meets a new assignment.
        for member in members:
            member.close()
    assert group.state() == "EMPTY"


@pytest.mark.long  # test_offsets.py
def test_members_go_on_when_the_broker_was_restarted(tmp_path: Path, new_topic: str) -> None:
    broker = Brokers(tmp_path)
    with broker, Group(broker.bootstrap_servers, new_topic) as group:
        group.produce(300)
        first, second = group.start("confluent", PATIENT), group.start("confluent", PATIENT)
        until(lambda: (first.partitions(), second.partitions()) == (3, 3), "both have their share")
        group.until_all_is_read()
        until(lambda: group.committed() == group.ends(), "all is committed")
        before, rebalances = group.describe(), (len(first.assignments), len(second.assignments))
        for stop in (broker.kill, broker.terminate):
            stop()
            broker.start()
            group.reconnect()
            group.produce(300)
            group.until_all_is_read()
            until(lambda: group.committed() == group.ends(), "all is committed")
        assert (len(first.assignments), len(second.assignments)) == rebalances, "they did not have to join again"
        assert gaps(first.read) == gaps(second.read) == 0, "and read nothing twice"
        after = group.describe()
        assert {member.member_id for member in before.members} == {member.member_id for member in after.members}


@pytest.mark.long  # test_offsets.py
@pytest.mark.peers
def test_kafkas_own_tool_reads_the_groups_records(tmp_path: Path, new_topic: str) -> None:
    with (
        Brokers(tmp_path, group_initial_rebalance_delay_ms=0) as broker,
        Group(broker.bootstrap_servers, new_topic) as group,
    ):
        group.produce(60)
        member = group.start("confluent", {"group.instance.id": "fixed"})
        group.until_all_is_read()
        until(lambda: group.committed() == group.ends(), "all is committed")
        member_id = group.describe().members[0].member_id
        name, topic = group.name, group.topic
        member.kill()
    written = [log for log in sorted(broker.data_dir.glob("__consumer_offsets-*/*.log")) if log.stat().st_size]
    printed = dump_log(written, "--offsets-decoder")
    groups = re.findall(r'key: {"type":"2","data":({.*?})} payload: {"version":"3","data":({.*})}', printed)
    assert json.loads(groups[0][0]) == {"group": name}
    written = json.loads(groups[0][1])
    assert (written["protocolType"], written["protocol"], written["generation"]) == ("consumer", "range", 1)
    [stored] = written["members"]
    assert (stored["memberId"], stored["groupInstanceId"]) == (member_id, "fixed")
    commits = re.findall(rf'"group":"{name}","topic":"{topic}","partition":(\d+).*?"offset":(\d+)', printed)
    assert dict(commits) == {str(partition): "10" for partition in range(PARTITIONS)}
