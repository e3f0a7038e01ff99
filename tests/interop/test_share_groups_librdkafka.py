"""Share groups (KIP-932) with librdkafka's share consumer: the same program on pylog and on Apache Kafka gives the same.

What it adds to Kafka's own client (`test_share_groups`): records that are accepted by the next poll, a commit without waiting, and
requests as another program writes them. Apache Kafka is asked in `make test-long`. pylog's tests take about a
second each, Apache Kafka's two; its first share group takes eight, its start four. A cluster of three has its own in `tests/cluster/test_share_groups.py`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import IllegalStateException, KafkaException, Producer, TopicPartition

from pylog_spark.testing import LocalBroker
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.harness.waiting import stays, until
from tests.interop.shares import Delivered, LibrdkafkaMember, ShareGroup, error_name
from tests.interop.test_share_groups import SETTINGS, made, offsets, produce

OURS = {**SETTINGS, "group_share_min_heartbeat_interval_ms": "200"}
IMPLICIT = {"share_acknowledgement_mode": "implicit"}


@pytest.fixture(scope="module", params=BOTH)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of both brokers."""
    with either(request, **OURS) as servers:
        yield servers


@pytest.fixture
def group(servers: str, new_topic: str, tmp_path: Path) -> ShareGroup:
    """A share group that begins at the start of a topic of one partition."""
    group = made(servers, new_topic, tmp_path)
    # Apache Kafka assigns a partition to a new group with the second heartbeat.
    group.configure(share_heartbeat_interval_ms=500)
    return group


@pytest.fixture
def members(group: ShareGroup) -> Iterator["Members"]:
    """Members of it."""
    with ExitStack() as open_ones:
        yield Members(group, open_ones)


class Members:
    """Makes members, and closes them in the end."""

    def __init__(self, group: ShareGroup, open_ones: ExitStack) -> None:
        self._group, self._open_ones = group, open_ones

    def start(self, **settings: object) -> LibrdkafkaMember:
        """Another one."""
        group = self._group
        member = LibrdkafkaMember(group.servers, group.name, group.topic, **settings)
        return self._open_ones.enter_context(closing(member))


def poll_together(member: LibrdkafkaMember, count: int) -> list[Delivered]:
    """That many records, delivered at once: fewer are given back first."""
    while len(found := member.poll()) < count:
        member.acknowledge("release", *found)
    return found


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_two_members_read_one_partition_and_each_record_once(group: ShareGroup, members: Members, mode: str) -> None:
    produce(group, 40)
    both = [members.start(max_poll_records=5, share_acknowledgement_mode=mode) for _ in range(2)]
    read: list[list[Delivered]] = [[], []]
    while sum(map(len, read)) < 40:
        for mine, member in zip(read, both, strict=True):
            found = member.poll(500)
            if mode == "explicit":
                member.acknowledge("accept", *found)
            mine += found
    for member in both:
        assert set(member.commit().values()) <= {"ok"}
    assert all(read), "one of them got nothing"
    assert sorted(offsets(read[0] + read[1])) == list(range(40))
    assert {record.count for record in read[0] + read[1]} == {1}
    assert group.lag() == 0
    described = group.describe()
    assert (described["group_state"], described["assignor_name"]) == ("Stable", "simple")
    assert [member["assignment"]["topic_partitions"][0]["partitions"] for member in described["members"]] == [[0], [0]]


def test_each_record_meets_the_fate_that_its_member_says(group: ShareGroup, members: Members) -> None:
    produce(group, 4)
    member = members.start()
    accepted, released, rejected, last = poll_together(member, 4)
    member.acknowledge("accept", accepted, last)
    member.acknowledge("release", released)
    with pytest.raises(IllegalStateException):
        member.poll(0)
    member.acknowledge("reject", rejected)
    assert member.commit() == {0: "ok"}
    assert group.lag() == 1
    again = member.poll()
    assert [(record.offset, record.count) for record in again] == [(1, released.count + 1)]
    member.acknowledge("accept", *again)
    assert member.commit() == {0: "ok"}
    stays(lambda: member.poll(100) == [], "nothing is left", for_s=1)
    assert group.lag() == 0


def test_a_record_that_nobody_accepts_is_delivered_five_times(group: ShareGroup, members: Members) -> None:
    produce(group, 1)
    member, counts = members.start(), []
    for _ in range(5):
        found = member.poll()
        counts.append(found[0].count)
        member.acknowledge("release", *found)
        assert member.commit() == {0: "ok"}
    assert counts == [1, 2, 3, 4, 5]
    stays(lambda: member.poll(100) == [], "it is not delivered a sixth time", for_s=1)
    assert group.lag() == 0


def test_a_poll_accepts_what_the_one_before_gave(group: ShareGroup, members: Members) -> None:
    produce(group, 1)
    member = members.start(**IMPLICIT)
    (first,) = member.poll()
    # Apache Kafka does not know it before it has written something.
    assert group.lag() != 0, "it is delivered, and not accepted"
    produce(group, 1, first=1)
    (second,) = member.poll()
    assert (first.offset, second.offset) == (0, 1)
    until(lambda: group.lag() == 1, "the first is accepted")


def test_who_closes_gives_back_what_it_did_not_acknowledge_and_leaves(group: ShareGroup, members: Members) -> None:
    produce(group, 4)
    first = members.start()
    found = poll_together(first, 4)
    first.acknowledge("accept", *found[:2])
    first.close()
    assert group.lag() == 2
    assert group.describe()["members"] == []
    second, read = members.start(), list[Delivered]()
    while len(read) < 2:
        came = second.poll()
        second.acknowledge("accept", *came)
        read += came
    # At once, not when locks run out.
    assert [(record.offset, record.count) for record in read] == [
        (record.offset, record.count + 1) for record in found[2:]
    ]


def test_a_late_acknowledgement_says_that_another_member_has_the_record(group: ShareGroup, members: Members) -> None:
    group.configure(share_record_lock_duration_ms=1_000)
    produce(group, 1)
    slow, quick = members.start(), members.start()
    (kept,) = slow.poll()
    (taken,) = quick.poll()
    # More than 2 where a fetch of its client had it for too long before it was polled.
    assert (taken.offset, kept.count) == (kept.offset, 1)
    assert taken.count >= 2
    slow.acknowledge("accept", kept)
    assert slow.commit() == {0: "INVALID_RECORD_STATE"}
    quick.acknowledge("reject", taken)


def test_a_commit_that_is_not_waited_for_tells_its_outcome(group: ShareGroup, members: Members) -> None:
    produce(group, 3)
    member, outcomes = members.start(), list[tuple[set[int], str]]()

    def note(outcome: dict[TopicPartition, set[int]], error: KafkaException | None) -> None:
        outcomes.extend((done, error_name(error)) for done in outcome.values())

    member.consumer.set_acknowledgement_commit_callback(note)
    found = poll_together(member, 3)
    outcomes.clear()
    member.acknowledge("accept", *found)
    member.consumer.commit_async()
    until(lambda: member.poll(100) == [] and bool(outcomes), "the outcome is there")
    assert outcomes == [({0, 1, 2}, "ok")]
    assert group.lag() == 0


def test_a_group_that_reads_committed_records_gets_no_others(group: ShareGroup, members: Members) -> None:
    group.configure(share_isolation_level="read_committed")
    producer = Producer({"transactional.id": group.name, "bootstrap.servers": group.servers, "linger.ms": 0})
    producer.init_transactions(30)
    for fate in ("abort", "commit", "abort", "commit"):
        producer.begin_transaction()
        for number in range(3):
            producer.produce(group.topic, f"{fate}-{number}")
        assert producer.flush(30) == 0
        (producer.abort_transaction if fate == "abort" else producer.commit_transaction)(30)
    member, read = members.start(**IMPLICIT), list[Delivered]()
    while len(read) < 6:
        read += member.poll()
    assert sorted(record.value for record in read) == sorted(
        f"commit-{number}" for number in range(3) for _ in range(2)
    )
    producer.begin_transaction()
    producer.produce(group.topic, "open")
    assert producer.flush(30) == 0
    assert member.poll(500) == []
    producer.commit_transaction(30)
    (late,) = member.poll()
    assert late.value == "open"


def test_a_member_goes_on_where_it_was_when_the_broker_is_killed_and_back(new_topic: str, tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", **OURS) as broker, ExitStack() as open_ones:
        group = made(broker.bootstrap_servers, new_topic, tmp_path)
        produce(group, 30)
        member = Members(group, open_ones).start(max_poll_records=5)
        accepted = set[int]()
        found = member.poll()
        member.acknowledge("accept", *found)
        assert member.commit() == {0: "ok"}
        accepted |= set(offsets(found))
        held = member.poll()
        broker.kill()
        broker.start()
        member.acknowledge("accept", *held)
        member.commit()
        while group.lag() > 0:
            found = member.poll(500)
            assert accepted.isdisjoint(offsets(found))
            member.acknowledge("accept", *found)
            if set(member.commit().values()) == {"ok"}:
                accepted |= set(offsets(found))
        assert accepted | set(offsets(held)) == set(range(30))
