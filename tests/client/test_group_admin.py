"""Groups through `Admin`, with consumers of confluent-kafka in them, at pylog's broker and at Apache Kafka."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster

TIMEOUT_S = 30


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap, {"default.api.timeout.ms": "30000"}) as admin:
        yield admin


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


def fill(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=partition, timestamp=1000 * (number + 1))
    assert producer.flush(TIMEOUT_S) == 0


@contextmanager
def member(bootstrap: str, group: str, topic: str, **more: object) -> Iterator[Consumer]:
    """A member of the group that has its partitions."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "client.id": "the-member", **more,
    })  # fmt: skip
    try:
        consumer.subscribe([topic])

        def assigned() -> list[TopicPartition]:
            consumer.poll(0.1)
            return consumer.assignment()

        until(assigned, "the member has partitions", TIMEOUT_S)
        yield consumer
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shows_its_members_partitions_and_offsets(
    admin: Admin, bootstrap: str, new_topic: Callable[..., str], group: str, protocol: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 5)
    with member(bootstrap, group, topic, **{"group.protocol": protocol}) as consumer:
        consumer.commit(offsets=[one_at(topic, 0, 3)], asynchronous=False)
        # A member may have its partitions a moment before it says so.
        until(lambda: admin.group(group).state == "Stable", "the group is stable", TIMEOUT_S)
        found = admin.group(group)
        assert (found.group_id, found.type, found.state) == (group, protocol, "Stable")
        assert found.protocol_type == "consumer"
        (only,) = found.members
        assert (only.client_id, only.instance_id) == ("the-member", None)
        assert sorted(map(tuple, only.partitions)) == [(topic, 0), (topic, 1)]
        assert admin.group_offsets(group) == {(topic, 0): 3}
        listed = {listing.group_id: listing for listing in admin.groups()}
        assert (listed[group].state, listed[group].type) == ("Stable", protocol)
        assert group not in {listing.group_id for listing in admin.groups(states=["Empty"])}


def one_at(topic: str, partition: int, offset: int) -> object:
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, partition, offset)


def test_a_group_without_members_is_moved_and_deleted(
    admin: Admin, bootstrap: str, new_topic: Callable[..., str], group: str
) -> None:
    topic = new_topic(2)
    fill(bootstrap, topic, 5)
    admin.alter_group_offsets(group, {(topic, 0): 4, (topic, 1): 0})
    assert admin.group_offsets(group) == {(topic, 0): 4, (topic, 1): 0}
    assert admin.group(group).state == "Empty"
    with member(bootstrap, group, topic) as consumer:
        committed = consumer.committed([one_at(topic, 0, 0)], timeout=TIMEOUT_S)
        assert [partition.offset for partition in committed] == [4]
    assert [result.error for result in admin.delete_group_offsets(group, [(topic, 0)])] == [None]
    assert admin.group_offsets(group) == {(topic, 1): 0}
    assert [result.error for result in admin.delete_groups([group])] == [None]
    assert [result.error for result in admin.delete_groups([group])] == ["GROUP_ID_NOT_FOUND"]


def test_a_group_with_members_is_neither_moved_nor_deleted(
    admin: Admin, bootstrap: str, new_topic: Callable[..., str], group: str
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, 2)
    with member(bootstrap, group, topic) as consumer:
        consumer.commit(offsets=[one_at(topic, 0, 1)], asynchronous=False)
        with pytest.raises(LogError) as refused:
            admin.alter_group_offsets(group, {(topic, 0): 0})
        assert refused.value.kind == "UNKNOWN_MEMBER_ID"
        (result,) = admin.delete_groups([group])
        assert (result.error, "has members" in result.message) == ("NON_EMPTY_GROUP", True)
        assert [result.error for result in admin.delete_group_offsets(group, [(topic, 0)])] == [
            "GROUP_SUBSCRIBED_TO_TOPIC"
        ]
        assert admin.group_offsets(group) == {(topic, 0): 1}


def test_an_unknown_group_is_said_to_be(admin: Admin, group: str) -> None:
    with pytest.raises(LogError) as refused:
        admin.group(group)
    assert (refused.value.kind, refused.value.sentence) == ("GROUP_ID_NOT_FOUND", f"Group '{group}' does not exist.")
    assert admin.group_offsets(group) == {}
