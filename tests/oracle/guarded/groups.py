"""Requests about groups of every kind: see `test_authorization`."""

from typing import Any

from tests.oracle.guarded.names import CONSUMERS, EMPTY, INTERNAL, SHARERS, STATES, UNKNOWN_ID, Names, committed
from tests.oracle.script import Answer, Script

#: Apache Kafka raises epochs of groups, and assigns, at its own time.
_IN_TIME = ("member_epoch", "group_epoch", "assignment_epoch", "assignment", "group_state",
            "subscribed_topic_names")  # fmt: skip
#: Who joins under this epoch is no member, and is told so after all is allowed.
_NOT_A_MEMBER = {"member_id": "AAAAAAAAAAAAAAAAAAAACA", "member_epoch": 5}
_READER = "AAAAAAAAAAAAAAAAAAAAEQ"
_ACCEPT, _OPENS, _CLOSES = 1, 0, -1
#: An offset that nobody has acquired.
_NOT_ACQUIRED = 1_000_000
_ERRORS = ("error_code", "acknowledge_error_code")
_INVALID_REQUEST, _INVALID_RECORD_STATE = 42, 121
_NOT_TAKEN = {_INVALID_REQUEST: _INVALID_RECORD_STATE}


def groups(s: Script, n: Names) -> None:
    """The classic group protocol, offsets by name and by id, groups of KIP-848."""
    for group in n.both():
        member = {"group_id": group, "generation_id": 1, "member_id": "m"}
        s.call("JoinGroup", 3, group_id=group, session_timeout_ms=1)
        s.without("member_id")
        s.call("SyncGroup", 3, **member)
        s.call("Heartbeat", 3, **member)
        s.call("LeaveGroup", 3, group_id=group, members=[{"member_id": "m"}])
        _offsets(s, n, group)
        s.call("DescribeGroups", 5, groups=[group, group + CONSUMERS], include_authorized_operations=True)
    s.listed("group_id", "ListGroups", 4)
    s.without("group_state")
    s.call("DeleteGroups", 2, groups_names=[n.missing, n.mine + CONSUMERS, n.other + CONSUMERS])


def _offsets(s: Script, n: Names, group: str) -> None:
    topics, ids = (*n.both(), n.missing, INTERNAL[0]), (*n.ids.values(), UNKNOWN_ID)
    s.call("OffsetCommit", 8, group_id=group, topics=[committed(topic) for topic in topics])
    s.call("OffsetCommit", 10, group_id=group, topics=[committed(topic, named="topic_id") for topic in ids])
    wanted = [{"name": topic, "partition_indexes": [0]} for topic in topics]
    by_id = [{"topic_id": topic, "partition_indexes": [0]} for topic in ids]
    for version, asked in ((8, None), (8, wanted), (10, None), (10, by_id)):
        s.call("OffsetFetch", version, groups=[{"group_id": group, "topics": asked}])
    s.call("OffsetFetch", 7, group_id=group, topics=wanted[:1])
    s.call("OffsetFetch", 7, group_id=group, topics=None, require_stable=True)
    # The partition has no offset.
    deleted = [{"name": topic, "partitions": [{"partition_index": 1}]} for topic in topics]
    s.call("OffsetDelete", 0, group_id=group, topics=deleted)


def consumer_groups(s: Script, n: Names) -> None:
    """ConsumerGroupHeartbeat and ConsumerGroupDescribe."""
    for group in n.both():
        named = {"group_id": group + CONSUMERS, **_NOT_A_MEMBER}
        for topics in ([n.mine], [n.other], [*n.both(), n.missing], [INTERNAL[0]], None):
            s.call("ConsumerGroupHeartbeat", 1, **named, subscribed_topic_names=topics)
        s.call("ConsumerGroupHeartbeat", 1, **named, subscribed_topic_regex=".*")
        s.call("ConsumerGroupHeartbeat", 0, group_id=group + "-new", member_id="", member_epoch=-1)
        s.call("ConsumerGroupDescribe", 1, group_ids=[group + CONSUMERS, n.missing], include_authorized_operations=True)
        s.without(*_IN_TIME)


def share_groups(s: Script, n: Names) -> None:
    """Heartbeats, description, sessions and offsets of share groups."""
    for group in n.both():
        name = group + SHARERS
        for topics in ([n.mine], [n.other], [*n.both(), n.missing], None):
            s.call("ShareGroupHeartbeat", 1, group_id=name, **_NOT_A_MEMBER, subscribed_topic_names=topics)
        s.call("ShareGroupDescribe", 1, group_ids=[name, n.missing], include_authorized_operations=True)
        s.without(*_IN_TIME)
        _share_session(s, n, name)
        _share_offsets(s, n, group)


def _share_session(s: Script, n: Names, group: str) -> None:
    """A session of a member that accepts what it has not acquired."""
    member = {"group_id": group, "member_id": _READER}
    ids = [*n.ids.values()]
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_records": 1, "batch_size": 1}
    topics = [{"topic_id": topic, "partitions": [{"partition_index": 0}]} for topic in ids]
    errors_alone(s, s.call("ShareFetch", 2, **member, **limits, share_session_epoch=_OPENS, topics=topics))
    errors_alone(s, s.call("ShareFetch", 2, **member, **limits, share_session_epoch=1))
    said = [{"first_offset": _NOT_ACQUIRED, "last_offset": _NOT_ACQUIRED, "acknowledge_types": [_ACCEPT]}]
    for topic in topics:
        topic["partitions"] = [{"partition_index": 0, "acknowledgement_batches": said}]
    errors_alone(s, s.call("ShareAcknowledge", 2, **member, share_session_epoch=2, topics=topics))
    errors_alone(s, s.call("ShareAcknowledge", 2, **member, share_session_epoch=_CLOSES))


def errors_alone(s: Script, answer: Answer) -> None:
    """Of an answer about records keep the errors: what is acquired, and partitions without news, depend on time.

    So does why an acknowledgement of what is not acquired is not taken.
    """
    asked, normal = s.transcript.pop()
    errors = {
        f"{topic['topic_id']} {partition['partition_index']}": {
            name: _NOT_TAKEN.get(code, code) for name, code in partition.items() if name in _ERRORS
        }
        for topic in normal["responses"]
        for partition in topic["partitions"]
    }
    said = {where: found for where, found in errors.items() if any(found.values())}
    s.transcript.append((asked, {"error_code": answer["error_code"], "errors": said}))


def _share_offsets(s: Script, n: Names, group: str) -> None:
    """Of groups with a member and without."""
    topics: list[dict[str, Any]] = [{"topic_name": topic, "partitions": [0]} for topic in (*n.both(), n.missing)]
    for asked in (topics, None):
        s.call("DescribeShareGroupOffsets", 1, groups=[{"group_id": group + SHARERS, "topics": asked}])
        s.without("start_offset", "leader_epoch", "lag")
    names = (*n.both(), n.missing)
    for asked in (names, names[1:2]):
        there = [{"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 0}]} for name in asked]
        for end in (SHARERS, EMPTY):
            s.call("AlterShareGroupOffsets", 0, group_id=group + end, topics=there)
            s.without("topic_id")
    gone = [{"topic_name": name} for name in names]
    s.call("DeleteShareGroupOffsets", 0, group_id=group + SHARERS, topics=gone)
    s.call("DeleteShareGroupOffsets", 0, group_id=group + EMPTY, topics=gone)


def share_states(s: Script, n: Names) -> None:
    """What brokers ask each other: the life of a state, of a group that nobody else uses."""
    partitions = {
        "InitializeShareGroupState": (0, {"state_epoch": 1, "start_offset": 0}),
        "ReadShareGroupState": (0, {"leader_epoch": 1}),
        "WriteShareGroupState": (
            1,
            {"state_epoch": 1, "leader_epoch": 1, "start_offset": 1, "delivery_complete_count": 0},
        ),
        "ReadShareGroupStateSummary": (1, {"leader_epoch": 1}),
        "DeleteShareGroupState": (0, {}),
    }
    for group in n.both():
        for api, (version, fields) in partitions.items():
            topics = [{"topic_id": n.ids[n.mine], "partitions": [{"partition": 0, **fields}]}]
            s.call(api, version, group_id=group + STATES, topics=topics)
