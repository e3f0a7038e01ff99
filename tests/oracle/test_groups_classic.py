"""The classic group protocol: joining, syncing, heartbeats, leaving, static members, describing."""

from tests.oracle.compare import case
from tests.oracle.members import (
    PROTOCOL,
    SESSION_MS,
    Member,
    joining,
    new_member,
    stable_member,
    static_member,
    subscription,
)
from tests.oracle.script import Script


@case
def test_the_first_join_is_given_a_member_id_and_the_second_makes_a_generation(s: Script) -> None:
    group = s.new("group")
    answer = s.call("JoinGroup", **joining(group))
    s.says("MEMBER_ID_REQUIRED")
    s.call("JoinGroup", **joining(group, answer["member_id"]))
    s.says("NONE")
    s.holds(generation_id=1, leader=s.last["member_id"])


@case
def test_every_version_of_join_group_answers_alike(s: Script) -> None:
    for version in range(10):
        group = s.new("group")
        answer = s.call("JoinGroup", version, **joining(group))
        if answer["error_code"]:
            s.call("JoinGroup", version, **joining(group, answer["member_id"]))
        s.says("NONE")


@case
def test_a_group_without_a_name_is_invalid(s: Script) -> None:
    s.call("JoinGroup", **joining(""))
    s.says("INVALID_GROUP_ID")


@case
def test_session_timeouts_outside_the_brokers_limits_are_invalid(s: Script) -> None:
    for timeout_ms in (5, 10_000_000):
        s.call("JoinGroup", **joining(s.new("group"), session_timeout_ms=timeout_ms))
        s.says("INVALID_SESSION_TIMEOUT")


@case
def test_a_member_without_protocol_type_or_protocols_is_inconsistent(s: Script) -> None:
    s.call("JoinGroup", **joining(s.new("group"), protocol_type=""))
    s.says("INCONSISTENT_GROUP_PROTOCOL")
    s.call("JoinGroup", **joining(s.new("group"), protocols=[]))
    s.says("INCONSISTENT_GROUP_PROTOCOL")


@case
def test_a_member_of_another_protocol_type_or_without_a_common_protocol_is_inconsistent(s: Script) -> None:
    group = s.new("group")
    stable_member(s, group)
    s.call("JoinGroup", **joining(group, protocol_type="connect"))
    s.says("INCONSISTENT_GROUP_PROTOCOL")
    s.call("JoinGroup", **joining(group, protocols=[{"name": "sticky", "metadata": "00"}]))
    s.says("INCONSISTENT_GROUP_PROTOCOL")


@case
def test_joining_with_an_id_that_was_never_given(s: Script) -> None:
    s.call("JoinGroup", **joining(s.new("group"), "nobody"))
    s.says("UNKNOWN_MEMBER_ID")
    group = s.new("group")
    stable_member(s, group)
    s.call("JoinGroup", **joining(group, "nobody"))
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_the_leaders_sync_hands_out_the_assignments(s: Script) -> None:
    member = new_member(s, s.new("group"))
    member.sync((member.member_id, "beef"))
    s.says("NONE")
    s.holds(assignment="beef")


@case
def test_every_version_of_sync_group_answers_alike(s: Script) -> None:
    for version in range(6):
        member = new_member(s, s.new("group"))
        given = [{"member_id": member.member_id, "assignment": "beef"}]
        member.line.call(
            "SyncGroup", version, **member.named, assignments=given, protocol_type="consumer", protocol_name="range"
        )
        s.says("NONE")


@case
def test_a_second_sync_of_a_stable_group_gives_the_same_assignment(s: Script) -> None:
    member = stable_member(s, s.new("group"), "cafe")
    member.sync((member.member_id, "beef"))
    s.holds(assignment="cafe")


@case
def test_syncs_that_are_refused(s: Script) -> None:
    member = new_member(s, s.new("group"))
    member.sync(member_id="nobody")
    s.says("UNKNOWN_MEMBER_ID")
    member.sync(generation_id=7)
    s.says("ILLEGAL_GENERATION")
    member.sync(group_id=s.new("absent"))
    s.says("UNKNOWN_MEMBER_ID")
    member.sync(protocol_type="connect")
    s.says("INCONSISTENT_GROUP_PROTOCOL")
    member.sync(protocol_name="sticky")
    s.says("INCONSISTENT_GROUP_PROTOCOL")
    member.sync(group_id="")
    s.says("INVALID_GROUP_ID")


@case
def test_a_sync_without_protocol_type_is_inconsistent_from_version_5_on(s: Script) -> None:
    member = new_member(s, s.new("group"))
    member.sync((member.member_id, "beef"), protocol_type=None, protocol_name=None)
    s.says("INCONSISTENT_GROUP_PROTOCOL")


@case
def test_heartbeats_of_a_stable_member_are_good(s: Script) -> None:
    member = stable_member(s, s.new("group"))
    for version in range(5):
        member.line.call("Heartbeat", version, **member.named)
    s.says("NONE")


@case
def test_heartbeats_that_are_refused(s: Script) -> None:
    member = stable_member(s, s.new("group"))
    member.heartbeat(generation_id=0)
    s.says("ILLEGAL_GENERATION")
    member.heartbeat(generation_id=2)
    s.says("ILLEGAL_GENERATION")
    member.heartbeat(member_id="nobody")
    s.says("UNKNOWN_MEMBER_ID")
    member.heartbeat(group_id=s.new("absent"))
    s.says("UNKNOWN_MEMBER_ID")
    member.heartbeat(group_id="")
    s.says("INVALID_GROUP_ID")


@case
def test_a_heartbeat_between_join_and_sync_is_good(s: Script) -> None:
    new_member(s, s.new("group")).heartbeat()
    s.says("NONE")


@case
def test_a_pending_member_may_neither_heartbeat_nor_sync(s: Script) -> None:
    group = s.new("group")
    answer = s.call("JoinGroup", **joining(group))
    pending = Member(s.main, group, answer["member_id"], 0)
    pending.heartbeat()
    s.says("UNKNOWN_MEMBER_ID")
    pending.sync()
    s.says("UNKNOWN_MEMBER_ID")
    s.call("LeaveGroup", group_id=group, members=[{"member_id": answer["member_id"], "group_instance_id": None}])


@case
def test_a_second_member_makes_the_first_rejoin_and_waits_for_the_leaders_sync(s: Script) -> None:
    group = s.new("group")
    first = stable_member(s, group)
    line = s.line()
    answer = line.call("JoinGroup", **joining(group))
    s.says("MEMBER_ID_REQUIRED")
    second = Member(line, group, answer["member_id"], -1)
    second.rejoin()
    s.until(lambda answer: bool(answer["error_code"]), "Heartbeat", **first.named)
    s.says("REBALANCE_IN_PROGRESS")
    first.rejoin()
    first.joined()
    s.says("NONE")
    s.holds(generation_id=2, leader=first.member_id)
    second.joined()
    second.line.send("SyncGroup", **second.named, **PROTOCOL)
    first.sync((first.member_id, "01"), (second.member_id, "02"))
    s.holds(assignment="01")
    second.line.receive()
    s.holds(assignment="02")


@case
def test_a_stale_generation_is_refused_after_a_rebalance(s: Script) -> None:
    member = stable_member(s, s.new("group"))
    old = dict(member.named)
    member.rejoin(protocols=[{"name": "range", "metadata": subscription("u")}])
    member.joined()
    s.holds(generation_id=2)
    s.call("Heartbeat", **old)
    s.says("ILLEGAL_GENERATION")
    s.call("SyncGroup", **old, **PROTOCOL)
    s.says("ILLEGAL_GENERATION")


@case
def test_the_leader_rejoining_unchanged_makes_a_new_generation(s: Script) -> None:
    member = stable_member(s, s.new("group"))
    member.rejoin()
    member.joined()
    s.holds(generation_id=2)


@case
def test_the_protocol_that_all_support_and_most_prefer_is_chosen(s: Script) -> None:
    protocols = [{"name": name, "metadata": "00"} for name in ("sticky", "range")]
    group = s.new("group")
    answer = s.call("JoinGroup", **joining(group, protocols=protocols))
    s.call("JoinGroup", **joining(group, answer["member_id"], protocols=protocols))
    s.holds(protocol_name="sticky")


@case
def test_a_member_that_leaves_is_gone_and_the_group_empty(s: Script) -> None:
    group = s.new("group")
    member = stable_member(s, group)
    s.call("LeaveGroup", group_id=group, members=[{"member_id": member.member_id, "reason": "done"}])
    s.says("NONE")
    member.heartbeat()
    s.says("UNKNOWN_MEMBER_ID")
    s.call("DescribeGroups", groups=[group])
    s.holds(group_state="Empty")


@case
def test_every_version_of_leave_group_answers_alike(s: Script) -> None:
    for version in range(6):
        member = stable_member(s, s.new("group"))
        who = {"member_id": member.member_id} if version < 3 else {"members": [{"member_id": member.member_id}]}
        s.call("LeaveGroup", version, group_id=member.group, **who)
        s.says("NONE")


@case
def test_leaving_that_is_refused(s: Script) -> None:
    member = stable_member(s, s.new("group"))
    s.call("LeaveGroup", 2, group_id=member.group, member_id="nobody")
    s.says("UNKNOWN_MEMBER_ID")
    s.call("LeaveGroup", group_id=member.group, members=[{"member_id": "nobody"}, {"member_id": member.member_id}])
    s.says("UNKNOWN_MEMBER_ID")
    s.call("LeaveGroup", group_id=s.new("absent"), members=[{"member_id": "nobody"}])
    s.says("UNKNOWN_MEMBER_ID")
    s.call("LeaveGroup", group_id="", members=[{"member_id": "nobody"}])
    s.says("INVALID_GROUP_ID")


@case
def test_a_static_member_needs_no_second_join(s: Script) -> None:
    s.call("JoinGroup", **joining(s.new("group"), group_instance_id="one"))
    s.says("NONE")
    s.holds(generation_id=1)


@case
def test_a_static_member_that_comes_back_takes_its_place_without_a_rebalance(s: Script) -> None:
    group = s.new("group")
    old = static_member(s, group, "one")
    again = s.call("JoinGroup", **joining(group, group_instance_id="one"))
    s.says("NONE")
    s.holds(generation_id=1)
    new = Member(s.main, group, again["member_id"], again["generation_id"])
    new.sync(group_instance_id="one")
    s.holds(assignment="01")
    old.heartbeat(group_instance_id="one")
    s.says("FENCED_INSTANCE_ID")
    old.heartbeat()
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_an_instance_with_the_wrong_member_id_is_fenced(s: Script) -> None:
    member = static_member(s, s.new("group"), "one")
    member.heartbeat(group_instance_id="one", member_id="other")
    s.says("FENCED_INSTANCE_ID")
    member.sync(group_instance_id="one", member_id="other")
    s.says("FENCED_INSTANCE_ID")
    s.call("JoinGroup", **joining(member.group, "other", group_instance_id="one"))
    s.says("FENCED_INSTANCE_ID")
    s.call("LeaveGroup", group_id=member.group, members=[{"member_id": "other", "group_instance_id": "one"}])
    s.says("FENCED_INSTANCE_ID")


@case
def test_an_instance_that_is_not_there_is_unknown(s: Script) -> None:
    member = static_member(s, s.new("group"), "one")
    member.heartbeat(group_instance_id="two")
    s.says("UNKNOWN_MEMBER_ID")
    s.call("LeaveGroup", group_id=member.group, members=[{"member_id": "", "group_instance_id": "two"}])
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_static_member_is_removed_by_its_instance_alone(s: Script) -> None:
    member = static_member(s, s.new("group"), "one")
    s.call("LeaveGroup", group_id=member.group, members=[{"member_id": "", "group_instance_id": "one"}])
    s.says("NONE")


@case
def test_a_static_member_that_comes_back_with_another_subscription_rebalances(s: Script) -> None:
    group = s.new("group")
    static_member(s, group, "one")
    changed = [{"name": "range", "metadata": subscription("u")}]
    s.call("JoinGroup", **joining(group, group_instance_id="one", protocols=changed))
    s.says("NONE")


@case
def test_a_silent_member_is_removed_when_its_session_is_over(s: Script) -> None:
    group = s.new("group")
    member = stable_member(s, group, session_timeout_ms=300)
    s.until(lambda answer: answer["groups"][0]["group_state"] == "Empty", "DescribeGroups", groups=[group])
    s.holds(group_state="Empty")
    member.heartbeat()
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_stable_group_is_described_in_every_version(s: Script) -> None:
    group = s.new("group")
    stable_member(s, group, "beef")
    for version in range(7):
        s.call("DescribeGroups", version, groups=[group])
    s.says("NONE")
    s.holds(group_state="Stable", protocol_type="consumer", protocol_data="range", member_assignment="beef")


@case
def test_a_group_before_its_sync_is_described_as_completing(s: Script) -> None:
    group = s.new("group")
    new_member(s, group)
    s.call("DescribeGroups", groups=[group])
    s.holds(group_state="CompletingRebalance")


@case
def test_a_static_member_is_described_with_its_instance(s: Script) -> None:
    member = static_member(s, s.new("group"), "one")
    s.call("DescribeGroups", groups=[member.group], include_authorized_operations=True)
    s.holds(group_instance_id="one", client_id="oracle")


@case
def test_a_group_that_is_not_there_is_dead_and_from_version_6_on_not_found(s: Script) -> None:
    group = s.new("absent")
    s.call("DescribeGroups", 5, groups=[group])
    s.says("NONE")
    s.holds(group_state="Dead")
    s.call("DescribeGroups", 6, groups=[group])
    s.says("GROUP_ID_NOT_FOUND")
    s.call("DescribeGroups", groups=[""])


@case
def test_a_member_that_joins_again_under_its_id_keeps_it(s: Script) -> None:
    member = stable_member(s, s.new("group"), session_timeout_ms=SESSION_MS)
    member.rejoin()
    s.holds(member_id=member.joined()["member_id"])
