"""Brokers that share a store, each step called by hand: who leads, who controls, what a lost session or answer does."""

import json

import pytest

from pylog_spark.broker import requests
from pylog_spark.broker.errors import MembershipError
from pylog_spark.cluster import documents
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.features import FEATURE
from pylog_spark.cluster.store import RevisionConflict, StoreError
from tests.unit.broker.shared_world import Member, create, turn

NOW, NEXT = documents.LEVEL_MAX, documents.LEVEL_MAX + 1


def test_one_broker_controls_and_all_know_everybody(members):
    assert [member.clustered.controller.elected for member in members] == [True, False, False]
    for member in members:
        assert member.native.view["controller_id"] == 1
        assert sorted(broker["id"] for broker in member.native.view["brokers"]) == [1, 2, 3]
        assert member.native.may_lead()
    assert len({member.cluster_id for member in members}) == 1


def test_a_topic_reaches_every_broker_and_so_does_its_end(members):
    assert create(members[2], "t")["error_code"] == 0
    turn(members)
    assert members[0].native.topics["t"] == members[1].native.topics["t"] == members[2].native.topics["t"]
    assert create(members[1], "t")["error_code"] == 36
    answer = requests.delete_topics(members[1].registry, {"topics": [{"name": "t", "topic_id": None}]})
    assert answer["responses"][0]["error_code"] == 0
    turn(members)
    assert [member.native.topics for member in members] == [{}, {}, {}]


def test_an_internal_topic_waits_for_as_many_brokers_as_it_has_replicas(world, tmp_path, caplog):
    first = Member(world, 1, tmp_path / "1")
    for _ in range(2):
        requests.auto_create_topics(first.registry, {"topics": ["__consumer_offsets"]})
    assert first.native.topics == {}
    assert caplog.text.count("Start more brokers, or lower offsets.topic.replication.factor.") == 1
    others = [Member(world, number, tmp_path / str(number)) for number in (2, 3)]
    turn([first, *others])
    requests.auto_create_topics(first.registry, {"topics": ["__consumer_offsets"]})
    assert {len(partition["replicas"]) for partition in first.partitions("__consumer_offsets").values()} == {3}
    assert requests.auto_create_topics(others[0].registry, {"topics": ["__consumer_offsets"]}) == {}
    assert caplog.text.count("is not created") == 1
    for member in (first, *others):
        member.close()


def test_two_brokers_that_create_the_same_topic_make_one(members):
    # Broker 3 has not read yet what broker 2 stored.
    assert create(members[1], "t")["error_code"] == 0
    assert create(members[2], "t")["error_code"] == 36
    assert members[2].native.topics["t"]["topic_id"] == members[1].native.topics["t"]["topic_id"]


def test_the_controller_gives_partitions_of_a_dead_broker_to_others(members):
    create(members[0], "t")
    turn(members)
    members[2].store.close()
    turn(members[:2])
    for member in members[:2]:
        assert {partition["leader"] for partition in member.partitions("t").values()} <= {1, 2}
        assert all(3 not in partition["isr"] for partition in member.partitions("t").values())


def test_a_deposed_controller_changes_nothing(members):
    create(members[0], "t")
    turn(members)
    # Its node goes without its knowing: it hears nothing, and another one is elected.
    members[0].store.heard = lambda _what: None
    members[0].store.world.remove(documents.CONTROLLER)
    members[1].turn()
    assert members[1].clustered.controller.elected
    before = dict(members[0].store.world.documents)
    members[0].clustered.membership.brokers.pop(3)
    members[0].clustered.controller.turn()
    assert not members[0].clustered.controller.elected
    assert members[0].store.world.documents == before


def test_who_is_elected_in_a_session_that_it_does_not_know_yet_controls_all_the_same(members):
    create(members[0], "t")
    turn(members)
    other = members[1].store
    claim = other.claim

    def claimed_in_the_next_session(*asked):
        other.claim = claim
        other.expire()
        return claim(*asked)

    other.claim = claimed_in_the_next_session
    members[0].store.expire()
    members[1].turn(1)
    assert other.world.owners[documents.CONTROLLER] == other.number
    turn(members)
    assert sum(member.clustered.controller.elected for member in members) == 1
    members[2].store.close()
    turn(members[:2])
    assert {partition["leader"] for partition in members[0].partitions("t").values()} <= {1, 2}


def test_a_lost_session_ends_the_lease_and_the_broker_registers_again(members):
    create(members[0], "t")
    turn(members)
    old = members[1].clustered.membership.me.epoch
    members[1].store.expire()
    led = members[1].native.lease
    members[0].turn()
    members[2].turn()
    assert all(partition["leader"] != 2 for partition in members[0].partitions("t").values())
    members[1].turn()
    assert members[1].clustered.membership.me.epoch > old
    assert members[1].native.lease >= led
    assert members[1].native.topics == members[0].native.topics
    turn(members)
    assert {broker["id"]: broker["epoch"] for broker in members[0].native.view["brokers"]}[2] > old


def test_a_renewal_of_another_session_extends_nothing(members):
    lease = members[1].clustered._lease
    lease.revoke()
    lease.renew_once()
    assert not members[1].native.may_lead()
    lease._session = members[1].store.number
    members[1].store.number += 100
    lease.renew_once()
    assert not members[1].native.may_lead()


def test_a_broker_that_missed_change_notifications_reads_everything_anew(members):
    create(members[0], "before")
    turn(members)
    create(members[0], "t")
    world = members[0].store.world
    for path in [path for path in world.documents if path.startswith(documents.CHANGES)][:2]:
        del world.documents[path]
    create(members[0], "u")
    members[2].turn()
    assert set(members[2].native.topics) == {"before", "t", "u"}


def test_a_zookeeper_that_forgot_everything_deletes_nothing(members):
    create(members[0], "t")
    turn(members)
    for path in [path for path in members[0].store.world.documents if not path.startswith(documents.REGISTRATIONS)]:
        del members[0].store.world.documents[path]
    members[1].store.expire()
    members[1].turn()
    assert "t" in members[1].native.topics
    assert not members[1].native.may_lead()


def test_a_broker_id_of_a_live_broker_is_refused_unless_the_directory_is_the_same(
    members, world, tmp_path, monkeypatch
):
    monkeypatch.setattr("pylog_spark.broker.clustered._SESSIONS_AWAITED", 0)
    with pytest.raises(MembershipError, match=r"Broker id 2 is taken: a broker with it lives at 127.0.0.1:9002"):
        Member(world, 2, tmp_path / "elsewhere")
    again = Member(world, 2, tmp_path / "2")
    assert again.clustered.membership.me.epoch > members[1].clustered.membership.me.epoch
    again.close()


def test_a_broker_that_stops_leads_nothing_when_its_session_ends(members):
    create(members[0], "t")
    turn(members)
    members[1].clustered.leave()
    turn([members[0], members[2]])
    for member in (members[0], members[2]):
        assert all(partition["leader"] in (1, 3) for partition in member.partitions("t").values())
    # While it stops new replicas are placed on it only where there are not enough others, and it leads none of them.
    assert create(members[0], "u", factor=2)["error_code"] == create(members[0], "v", factor=3)["error_code"] == 0
    for partition in members[0].partitions("u").values():
        assert set(partition["replicas"]) == {1, 3}
    for partition in members[0].partitions("v").values():
        assert (set(partition["replicas"]), set(partition["isr"])) == ({1, 2, 3}, {1, 3})


def test_a_restart_without_a_clean_stop_leaves_the_isr_before_it_registers(members, world, tmp_path, monkeypatch):
    create(members[0], "t")
    turn(members)
    monkeypatch.setattr("pylog_spark.broker.clustered.boot_id", lambda: "another start of the machine")
    again = Member(world, 3, tmp_path / "3")
    for partition in again.partitions("t").values():
        assert 3 not in partition["isr"]
        assert partition["leader"] != 3
    again.close()


def test_an_unclean_stop_is_not_forgotten_by_a_start_that_failed(members, world, tmp_path, monkeypatch):
    create(members[0], "t")
    turn(members)
    members[2].store.expire()
    monkeypatch.setattr("pylog_spark.broker.clustered.boot_id", lambda: "another start of the machine")
    monkeypatch.setattr("pylog_spark.broker.clustered._SESSIONS_AWAITED", 0)
    with monkeypatch.context() as broken:
        broken.setattr("pylog_spark.broker.membership.Membership.read_all", lambda _self: raised("gone"))
        with pytest.raises(StoreError, match="gone"):
            Member(world, 3, tmp_path / "3")
    # The failed start closed its logs in good order, which says nothing about what the power took before.
    monkeypatch.setattr("tests.unit.broker.shared_world.Native.was_clean", lambda _self: True)
    again = Member(world, 3, tmp_path / "3")
    for partition in again.partitions("t").values():
        assert 3 not in partition["isr"]
    again.close()


def test_a_broker_of_the_next_version_works_in_a_cluster_of_this_one(members, world, tmp_path, monkeypatch):
    encode = documents.encode_registration
    with monkeypatch.context() as newer:
        newer.setattr(documents, "LEVEL_MAX", NEXT)
        newer.setattr(documents, "encode_registration", lambda *given: with_more(encode(*given)))
        fourth = Member(world, 4, tmp_path / "4")
    turn([*members, fourth])
    assert create(fourth, "t", partitions=4, factor=4)["error_code"] == 0
    turn([*members, fourth])
    for member in (*members, fourth):
        assert member.clustered.membership.brokers[4].level_max == NEXT
        assert {partition["leader"] for partition in member.partitions("t").values()} == {1, 2, 3, 4}
    fourth.close()
    turn(members)
    assert 4 not in {partition["leader"] for partition in members[0].partitions("t").values()}


def with_more(registration):
    """As a later version may write it."""
    return json.dumps({**json.loads(registration), "later": ["x"]}).encode()


def test_a_cluster_of_a_higher_level_refuses_a_broker_that_does_not_understand_it(world, tmp_path, monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr(documents, "LEVEL_MAX", NEXT)
        Member(world, 1, tmp_path / "1").close()
    with pytest.raises(MembershipError, match=rf"at level {NEXT}.*start a newer pylog"):
        Member(world, 2, tmp_path / "2")


def raise_level(member, level, validate_only=False):
    update = {"feature": FEATURE, "max_version_level": level}
    return requests.HANDLERS["update_features"](
        member.registry, {"feature_updates": [update], "validate_only": validate_only}
    )


def test_the_level_is_raised_when_every_broker_understands_it_and_all_hear_of_it(members, world, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LEVEL_MAX", NEXT)
    answer = raise_level(members[1], NEXT)
    assert answer["error_code"] == ErrorCode.INVALID_UPDATE_VERSION
    assert answer["error_message"].startswith(
        f"Level {NEXT} is not understood by broker 1 (1 to {NOW}), broker 2 (1 to {NOW}), broker 3 (1 to {NOW}):"
    )
    for number, member in enumerate(members, 1):
        member.close()
        members[number - 1] = Member(world, number, tmp_path / str(number))
    turn(members)
    assert raise_level(members[1], NEXT, validate_only=True)["error_code"] == 0
    turn(members)
    assert {member.native.view["level"]["now"] for member in members} == {NOW}
    assert raise_level(members[1], NEXT)["error_code"] == raise_level(members[2], NEXT)["error_code"] == 0
    turn(members)
    assert [member.native.view["level"] for member in members] == [{"now": NEXT, "min": 1, "max": NEXT}] * 3
    assert "cannot be lowered" in raise_level(members[0], 1)["error_message"]


def set_of_group(member, group, value):
    config = {"name": "share.auto.offset.reset", "config_operation": 0, "value": value}
    resource = {"resource_type": requests.RESOURCE_GROUP, "resource_name": group, "configs": [config]}
    answer = requests.HANDLERS["incremental_alter_configs"](
        member.registry, {"resources": [resource], "validate_only": False}
    )
    (outcome,) = answer["responses"]
    return outcome


def test_the_settings_of_a_group_are_those_of_all_brokers(members, world, tmp_path):
    assert set_of_group(members[0], "g", "earliest")["error_code"] == 0
    # No broker has read the first change: one that decides on what was there before decides again.
    assert set_of_group(members[1], "h", "by_duration:PT1S")["error_code"] == 0
    turn(members)
    expected = {
        "g": {"share.auto.offset.reset": "earliest"},
        "h": {"share.auto.offset.reset": {"by_duration_ms": 1_000}},
    }
    assert [member.native.groups for member in members] == [expected] * 3
    members[2].close()
    members[2] = Member(world, 3, tmp_path / "3")
    assert members[2].native.groups == expected, "a broker that starts reads them"


def test_a_cluster_of_the_level_before_share_groups_has_no_settings_of_groups(members):
    for member in members:
        member.registry.level = documents.LEVEL_OF_SHARE_GROUPS - 1
    assert "need level 2 of pylog.version" in set_of_group(members[0], "g", "earliest")["error_message"]


def test_a_broker_that_registers_while_the_level_is_raised_is_asked_too(members, world, tmp_path, monkeypatch):
    late, raising = members[2].clustered.membership, members[0]
    get = raising.store.get

    def registers_meanwhile(path):
        found = get(path)
        if path == documents.FEATURES and raising.store.get is not get:
            raising.store.get = get
            world.remove(documents.registration_path(3))
            late._put_registration()
        return found

    raising.store.get = registers_meanwhile
    asked = []
    monkeypatch.setattr(
        "pylog_spark.broker.features.raised",
        lambda now, wanted, brokers, kind: asked.append([broker.epoch for broker in brokers]),
    )
    assert raise_level(raising, NEXT)["error_code"] == 0
    assert len(asked) == 2
    assert late.me.epoch in asked[1]


def test_a_registered_broker_that_meets_a_level_it_does_not_understand_does_not_register_again(members, world):
    world.put(documents.FEATURES, documents.encode_number("level", NEXT), world.documents[documents.FEATURES].revision)
    members[2].store.expire()
    turn(members)
    assert not members[2].native.may_lead()
    assert documents.registration_path(3) not in world.documents


@pytest.mark.parametrize(
    ("updates", "code"),
    [
        ([], 0),
        ([{"feature": "no.such", "max_version_level": 1}], ErrorCode.INVALID_UPDATE_VERSION),
        ([{"feature": FEATURE, "max_version_level": NOW, "upgrade_type": 1}], 0),
        ([{"feature": FEATURE, "max_version_level": NOW, "upgrade_type": 7}], ErrorCode.INVALID_UPDATE_VERSION),
        ([{"feature": FEATURE, "max_version_level": 0, "upgrade_type": 3}], ErrorCode.INVALID_UPDATE_VERSION),
        ([{"feature": FEATURE, "max_version_level": -1}], ErrorCode.INVALID_UPDATE_VERSION),
        ([{"feature": FEATURE, "max_version_level": NEXT, "upgrade_type": 2}], ErrorCode.INVALID_UPDATE_VERSION),
        ([{"feature": FEATURE, "max_version_level": NEXT, "allow_downgrade": True}], ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_only_the_level_of_pylog_can_be_raised(members, updates, code):
    answer = requests.HANDLERS["update_features"](members[0].registry, {"feature_updates": updates})
    assert answer["error_code"] == code
    assert [result["feature"] for result in answer["results"]] == (
        [] if code else [update["feature"] for update in updates]
    )


def raised(sentence):
    raise StoreError(sentence)


def test_nobody_is_eligible_any_more_once_fewer_replicas_are_enough_to_commit(members):
    create(members[0], "t", partitions=1, configs=[{"name": "min.insync.replicas", "value": "2"}])
    turn(members)
    members[1].close()
    members[2].close()
    turn(members[:1])
    partition = members[0].registry.topics["t"].partitions[0]
    assert (partition.isr, set(partition.elr)) == ((1,), {2, 3})
    config = {"name": "min.insync.replicas", "config_operation": 0, "value": "1"}
    resource = {"resource_type": requests.RESOURCE_TOPIC, "resource_name": "t", "configs": [config]}
    answer = requests.incremental_alter_configs(members[0].registry, {"resources": [resource], "validate_only": False})
    assert answer["responses"][0]["error_code"] == 0
    partition = members[0].registry.topics["t"].partitions[0]
    assert (partition.isr, partition.elr) == ((1,), ())


def test_brokers_agree_on_how_many_replicas_commit(members, world, tmp_path):
    with pytest.raises(MembershipError, match=r"min.insync.replicas is 2 here, but 1 at broker 1"):
        Member(world, 4, tmp_path / "4", **{"min.insync.replicas": "2"})
    config = {"name": "min.insync.replicas", "config_operation": 0, "value": "2"}
    resource = {"resource_type": requests.RESOURCE_BROKER, "resource_name": "1", "configs": [config]}
    request = {"resources": [resource], "validate_only": False}
    answer = requests.incremental_alter_configs(members[0].registry, request)["responses"][0]
    assert answer["error_code"] == ErrorCode.INVALID_CONFIG


def test_a_broker_does_not_come_back_before_it_gave_up_what_it_cannot_keep(members, world, tmp_path, monkeypatch):
    create(members[0], "t")
    turn(members)
    monkeypatch.setattr("pylog_spark.broker.clustered.boot_id", lambda: "another start of the machine")
    monkeypatch.setattr("pylog_spark.broker.registry.CONFLICTS_MAX", 3)
    with monkeypatch.context() as busy:
        busy.setattr("tests.unit.broker.shared_world.MemoryStore.write_all", conflicting)
        with pytest.raises(StoreError, match="being changed by other brokers"):
            Member(world, 3, tmp_path / "3")


def conflicting(_self, writes, *_more):
    raise RevisionConflict(f"Somebody was faster at {writes[0].path}.")


class TestAlterPartition:
    """The answer is final: 0 is stored, anything else never will be."""

    def propose(self, member, isr, partition=None, event=7):
        known = partition or member.partitions("t")[0]
        proposal = {
            "topic": "t", "partition": 0, "leader_epoch": known["leader_epoch"],
            "partition_epoch": known["partition_epoch"], "new_isr": isr,
        }  # fmt: skip
        member.clustered.answer(event, "alter_partition", {"partitions": [proposal]})

    @pytest.fixture
    def leader(self, members):
        create(members[0], "t", partitions=1)
        turn(members)
        return members[members[0].partitions("t")[0]["leader"] - 1]

    def answered(self, leader, event=7):
        return leader.native.answers[event]["partitions"][0]["error_code"]

    def test_a_proposal_is_stored_and_applied_before_the_answer(self, leader, members):
        me = leader.clustered.membership.me.id
        self.propose(leader, [me])
        assert self.answered(leader) == 0
        assert leader.partitions("t")[0]["isr"] == [me]
        assert leader.partitions("t")[0]["partition_epoch"] == 1
        turn(members)
        assert all(member.partitions("t")[0]["isr"] == [me] for member in members)

    def test_a_proposal_on_an_older_state_is_refused(self, leader):
        old = leader.partitions("t")[0]
        self.propose(leader, [leader.clustered.membership.me.id])
        self.propose(leader, [1, 2, 3], old, event=8)
        assert self.answered(leader, 8) == 95

    def test_who_returned_uncleanly_does_not_come_in_by_what_it_had_before(
        self, leader, members, world, tmp_path, monkeypatch
    ):
        me = leader.clustered.membership.me.id
        self.propose(leader, [broker_id for broker_id in (1, 2, 3) if broker_id != me % 3 + 1])
        returned = members[me % 3]
        known, epochs = leader.partitions("t")[0], leader.registry.live().epochs
        returned.store.expire()
        monkeypatch.setattr("pylog_spark.broker.clustered.boot_id", lambda: "another start of the machine")
        again = Member(world, me % 3 + 1, tmp_path / str(me % 3 + 1))
        # The leader knows nothing of this, and counts on what the replica had fetched before its machine was started anew.
        assert leader.registry.live().epochs == epochs
        self.propose(leader, [1, 2, 3], partition=known, event=8)
        assert self.answered(leader, event=8) == ErrorCode.FENCED_LEADER_EPOCH
        assert me % 3 + 1 not in leader.partitions("t")[0]["isr"]
        again.close()

    def test_a_change_of_somebody_else_is_read_and_decided_again(self, leader, members):
        other = next(member for member in members if member is not leader)
        requests.incremental_alter_configs(
            other.registry,
            {"validate_only": False, "resources": [{"resource_type": 2, "resource_name": "t", "configs": [
                {"name": "retention.ms", "config_operation": 0, "value": "5"}]}]},
        )  # fmt: skip
        self.propose(leader, [leader.clustered.membership.me.id])
        assert self.answered(leader) == 0
        assert leader.registry.topics["t"].configs == {"retention.ms": "5"}

    @pytest.mark.parametrize("unknown", ["lost", "carried out"])
    def test_an_answer_that_is_not_known_is_not_given_until_it_is(self, leader, unknown, monkeypatch):
        leader.store.unknown = unknown
        self.propose(leader, [leader.clustered.membership.me.id])
        assert leader.native.answers == {}
        monkeypatch.setattr(leader.clustered, "_ask_again_at", 0.0)
        leader.turn(1)
        assert self.answered(leader) == 0
        assert leader.partitions("t")[0]["partition_epoch"] == 1

    def test_while_the_store_is_away_it_stays_open(self, leader, monkeypatch):
        leader.store.away = True
        leader.store.unknown = "lost"
        self.propose(leader, [leader.clustered.membership.me.id])
        leader.turn()
        assert leader.native.answers == {}
        leader.store.away = False
        monkeypatch.setattr(leader.clustered, "_ask_again_at", 0.0)
        leader.turn(1)
        assert self.answered(leader) == 0


def test_a_throttle_changes_while_the_broker_runs(members):
    assert members[0].native.throttles == (2**63 - 1, 2**63 - 1)
    changed = {"name": "follower.replication.throttled.rate", "config_operation": 0, "value": "1000"}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [changed]}
    answer = requests.incremental_alter_configs(members[0].registry, {"validate_only": False, "resources": [resource]})
    assert answer["responses"][0]["error_code"] == 0
    assert members[0].native.throttles == (2**63 - 1, 1000)


def test_blocks_of_producer_ids_are_never_given_twice(members):
    for number, member in enumerate([*members, *members]):
        member.clustered.answer(number, "allocate_producer_ids", {})
    blocks = [block for member in members for block in member.native.answers.values()]
    ids = [block["first"] + index for block in blocks for index in range(block["count"])]
    assert len(set(ids)) == len(ids) == 6000
