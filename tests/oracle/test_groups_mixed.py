"""Requests of one group protocol to a group of the other. KIP-848 groups themselves: `test_consumer_groups`."""

from tests.oracle.compare import case
from tests.oracle.members import PROTOCOL, joining, stable_member
from tests.oracle.script import Script


def consumer_group(s: Script) -> str:
    """A KIP-848 group with one member, "a", that subscribes to nothing. Not compared."""
    group = s.new("group")
    joined = {"member_id": "a", "member_epoch": 0, "rebalance_timeout_ms": 5000, "topic_partitions": []}
    s.quietly("ConsumerGroupHeartbeat", group_id=group, subscribed_topic_names=[], **joined)
    return group


@case
def test_classic_requests_of_a_member_of_a_consumer_group_are_refused(s: Script) -> None:
    named = {"group_id": consumer_group(s), "generation_id": 1, "member_id": "a"}
    s.call("Heartbeat", **named)
    s.says("UNKNOWN_MEMBER_ID")
    s.call("SyncGroup", **named, **PROTOCOL)
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_member_of_a_consumer_group_is_removed_by_the_classic_leave_request(s: Script) -> None:
    group = consumer_group(s)
    s.call("LeaveGroup", group_id=group, members=[{"member_id": "b"}])
    s.says("UNKNOWN_MEMBER_ID")
    s.call("LeaveGroup", group_id=group, members=[{"member_id": "a"}])
    s.says("NONE")


@case
def test_a_member_of_another_protocol_type_cannot_join_a_consumer_group(s: Script) -> None:
    s.call("JoinGroup", **joining(consumer_group(s), protocol_type="connect"))
    s.says("INCONSISTENT_GROUP_PROTOCOL")


@case
def test_a_consumer_group_without_a_name_cannot_be_described(s: Script) -> None:
    s.call("ConsumerGroupDescribe", group_ids=[""])
    s.says("INVALID_GROUP_ID")


@case
def test_a_classic_group_is_not_described_as_a_consumer_group(s: Script) -> None:
    group = s.new("group")
    stable_member(s, group)
    s.call("ConsumerGroupDescribe", group_ids=[group])
    s.says("GROUP_ID_NOT_FOUND")
