"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete; coordinators, deleting and listing groups."""

from typing import Any

from tests.oracle.compare import case
from tests.oracle.members import joining, new_member, stable_member, subscription
from tests.oracle.script import Answer, Script

METADATA_MAX = 4096


def commit(
    s: Script, group: str, topic: str, offset: int, partition: int = 0, *, version: int | None = None, **fields: Any
) -> Answer:
    """OffsetCommit of one partition; by default without a member."""
    names = {"committed_metadata", "committed_leader_epoch"}
    inner = {name: fields.pop(name) for name in names & fields.keys()}
    parts = [{"partition_index": partition, "committed_offset": offset, **inner}]
    return s.call("OffsetCommit", version, group_id=group, topics=[{"name": topic, "partitions": parts}], **fields)


def fetch(s: Script, group: str, topic: str | None, *partitions: int, **fields: Any) -> Answer:
    """OffsetFetch of one group in the newest version; of all topics when `topic` is None."""
    topics = None if topic is None else [{"name": topic, "partition_indexes": list(partitions)}]
    inner = {name: fields.pop(name) for name in {"member_id", "member_epoch"} & fields.keys()}
    return s.call("OffsetFetch", groups=[{"group_id": group, "topics": topics, **inner}], **fields)


def delete(s: Script, group: str, topic: str, *partitions: int) -> Answer:
    """OffsetDelete."""
    parts = [{"partition_index": index} for index in partitions]
    return s.call("OffsetDelete", group_id=group, topics=[{"name": topic, "partitions": parts}])


@case
def test_an_offset_is_committed_and_fetched_with_all_that_was_said(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, 42, committed_metadata="note", committed_leader_epoch=3)
    s.says("NONE")
    fetch(s, group, topic, 0)
    s.holds(committed_offset=42, metadata="note", committed_leader_epoch=3)


@case
def test_every_version_of_offset_commit_and_fetch_answers_alike(s: Script) -> None:
    topic = s.topic()
    for version in range(2, 10):
        group = s.new("group")
        commit(s, group, topic, version, version=version)
        fetch(s, group, topic, 0)
    for version in range(1, 8):
        s.call("OffsetFetch", version, group_id=group, topics=[{"name": topic, "partition_indexes": [0, 5]}])
    s.says("NONE")
    s.call("OffsetFetch", 8, groups=[{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0, 5]}]}])
    s.says("NONE")


@case
def test_the_offsets_of_a_group_that_is_not_there_are_minus_1(s: Script) -> None:
    topic = s.topic()
    fetch(s, s.new("absent"), topic, 0)
    s.says("NONE")
    s.holds(committed_offset=-1)
    fetch(s, s.new("absent"), None)
    s.says("NONE")


@case
def test_offsets_of_what_is_not_there_are_minus_1(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, 1)
    fetch(s, group, topic, 9)
    s.says("NONE")
    fetch(s, group, s.new("absent"), 0)
    s.says("NONE")


@case
def test_all_offsets_of_a_group(s: Script) -> None:
    group, topic = s.new("group"), s.topic(partitions=2)
    commit(s, group, topic, 1)
    commit(s, group, topic, 2, 1)
    fetch(s, group, None)
    s.says("NONE")
    s.call("OffsetFetch", 7, group_id=group, topics=None)
    s.says("NONE")


@case
def test_several_groups_in_one_fetch(s: Script) -> None:
    first, second, topic = s.new("group"), s.new("group"), s.topic()
    commit(s, first, topic, 1)
    commit(s, second, topic, 2)
    asked = [{"topics": [{"name": topic, "partition_indexes": [0]}], "group_id": group} for group in (first, second)]
    s.call("OffsetFetch", groups=asked)
    s.says("NONE")


@case
def test_offsets_of_an_unknown_topic_or_partition_cannot_be_committed(s: Script) -> None:
    commit(s, s.new("group"), s.new("absent"), 1)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    commit(s, s.new("group"), s.topic(), 1, 7)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_metadata_up_to_the_limit_is_kept_and_beyond_it_refused(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, 1, committed_metadata="x" * METADATA_MAX)
    s.says("NONE")
    commit(s, group, topic, 2, committed_metadata="x" * (METADATA_MAX + 1))
    s.says("OFFSET_METADATA_TOO_LARGE")
    commit(s, group, topic, 3, committed_metadata=None)
    s.says("NONE")
    fetch(s, group, topic, 0)


@case
def test_a_negative_offset(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, -5)
    fetch(s, group, topic, 0)


@case
def test_a_commit_to_a_group_that_is_not_there_as_a_member_of_it(s: Script) -> None:
    topic, nobody = s.topic(), {"generation_id_or_member_epoch": 1, "member_id": "nobody"}
    commit(s, s.new("absent"), topic, 1, version=8, **nobody)
    s.says("ILLEGAL_GENERATION")
    commit(s, s.new("absent"), topic, 1, version=9, **nobody)
    s.says("GROUP_ID_NOT_FOUND")


@case
def test_a_commit_without_a_group_name(s: Script) -> None:
    commit(s, "", s.topic(), 1)


@case
def test_a_members_commit_is_taken(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    member = stable_member(s, group)
    commit(s, group, topic, 1, generation_id_or_member_epoch=1, member_id=member.member_id)
    s.says("NONE")


@case
def test_commits_of_members_that_are_refused(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    member = stable_member(s, group)
    commit(s, group, topic, 1, generation_id_or_member_epoch=0, member_id=member.member_id)
    s.says("ILLEGAL_GENERATION")
    commit(s, group, topic, 1, generation_id_or_member_epoch=1, member_id="nobody")
    s.says("UNKNOWN_MEMBER_ID")
    commit(s, group, topic, 1, generation_id_or_member_epoch=1, member_id=member.member_id, group_instance_id="x")
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_commit_without_a_member_to_a_group_that_has_some_is_refused(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    stable_member(s, group)
    commit(s, group, topic, 1)
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_commit_between_join_and_sync_is_answered_with_the_rebalance(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    member = new_member(s, group)
    commit(s, group, topic, 1, generation_id_or_member_epoch=1, member_id=member.member_id)
    s.says("REBALANCE_IN_PROGRESS")


@case
def test_a_deleted_offset_is_gone(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, 5)
    delete(s, group, topic, 0)
    s.says("NONE")
    fetch(s, group, topic, 0)
    s.holds(committed_offset=-1)


@case
def test_deleting_offsets_that_are_not_there(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, 5)
    delete(s, group, topic, 7)
    delete(s, group, s.new("absent"), 0)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    delete(s, s.new("absent"), topic, 0)
    s.says("GROUP_ID_NOT_FOUND")
    delete(s, "", topic, 0)


@case
def test_offsets_of_a_topic_that_members_subscribe_to_cannot_be_deleted(s: Script) -> None:
    group, topic, other = s.new("group"), s.topic(), s.topic()
    subscribed = [{"name": "range", "metadata": subscription(topic)}]
    member = stable_member(s, group, protocols=subscribed)
    for name in (topic, other):
        commit(s, group, name, 1, generation_id_or_member_epoch=1, member_id=member.member_id)
    delete(s, group, topic, 0)
    s.says("GROUP_SUBSCRIBED_TO_TOPIC")
    delete(s, group, other, 0)
    s.says("NONE")


@case
def test_an_empty_group_is_deleted_with_its_offsets(s: Script) -> None:
    group, topic = s.new("group"), s.topic()
    commit(s, group, topic, 5)
    for version in range(3):
        s.call("DeleteGroups", version, groups_names=[group])
    s.says("GROUP_ID_NOT_FOUND")
    fetch(s, group, topic, 0)
    s.holds(committed_offset=-1)


@case
def test_deleting_groups_that_cannot_be(s: Script) -> None:
    group = s.new("group")
    stable_member(s, group)
    s.call("DeleteGroups", groups_names=[group, s.new("absent"), ""])


@case
def test_groups_are_listed_by_state_and_type(s: Script) -> None:
    joined, simple = s.new("group"), s.new("group")
    stable_member(s, joined)
    commit(s, simple, s.topic(), 1)
    for version in range(6):
        s.call("ListGroups", version)
        s.only_mine()
    for filters in (
        {"states_filter": ["Stable"]},
        {"states_filter": ["empty"]},
        {"states_filter": ["Nonsense"]},
        {"types_filter": ["classic"]},
        {"types_filter": ["Consumer"]},
        {"types_filter": ["nonsense"]},
    ):
        s.call("ListGroups", **filters)
        s.only_mine()
    s.says("NONE")


@case
def test_a_simple_group_is_described_as_empty(s: Script) -> None:
    group = s.new("group")
    commit(s, group, s.topic(), 1)
    s.call("DescribeGroups", groups=[group])
    s.holds(group_state="Empty", protocol_type="")


@case
def test_a_simple_group_can_be_joined(s: Script) -> None:
    group = s.new("group")
    commit(s, group, s.topic(), 1)
    answer = s.call("JoinGroup", **joining(group))
    s.call("JoinGroup", **joining(group, answer["member_id"]))
    s.says("NONE")


@case
def test_the_coordinator_of_a_group_in_every_version(s: Script) -> None:
    group = s.new("group")
    for version in range(4):
        s.until(lambda answer: not answer["error_code"], "FindCoordinator", version, key=group)
    for version in range(4, 7):
        s.call("FindCoordinator", version, key_type=0, coordinator_keys=[group, s.new("group")])
    s.says("NONE")


@case
def test_coordinators_that_cannot_be_found(s: Script) -> None:
    s.call("FindCoordinator", key_type=9, coordinator_keys=["x"])
    s.call("FindCoordinator", 3, key_type=9, key="x")
    s.call("FindCoordinator", key_type=0, coordinator_keys=[""])
    s.call("FindCoordinator", key_type=0, coordinator_keys=[])
