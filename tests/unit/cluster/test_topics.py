"""Topics are created, deleted and grown under Kafka's rules, each refusal with Kafka's code."""

from dataclasses import replace

import pytest

from pylog_spark.broker.registry import check_topic_config
from pylog_spark.cluster import topics
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo, Topic, new_topic_id
from pylog_spark.cluster.topics import NEW_PARTITIONS_MAX, NewTopic, Rules

THREE = Rules(
    1,
    num_partitions=3,
    replication_factor=3,
    delete_enabled=True,
    check_config=check_topic_config,
    brokers=[BrokerInfo(1), BrokerInfo(2), BrokerInfo(3)],
)
RULES = Rules(1, num_partitions=3, replication_factor=1, delete_enabled=True, check_config=check_topic_config)


def create_one(topic: NewTopic, present: dict[str, Topic] | None = None) -> Topic | Refusal:
    return topics.create(present or {}, [topic], RULES, new_topic_id)[0]


def code(decision: object) -> ErrorCode:
    assert isinstance(decision, Refusal), decision
    assert decision.message.endswith("."), "a refusal is a sentence"
    return decision.code


def created(name: str) -> Topic:
    decision = create_one(NewTopic(name))
    assert isinstance(decision, Topic)
    return decision


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "../x", "a b", "a\0b", "ü", "a" * 250, "a\n", "a:b", "\u0660"],
)
def test_a_name_that_could_leave_the_directory_or_break_a_tool_is_invalid(name):
    assert code(create_one(NewTopic(name))) is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a", "a.b-c_D9", "...", "a" * 249, "-", "__consumer_offsets"])
def test_every_name_kafka_allows_is_allowed(name):
    assert created(name).name == name


def test_no_topic_is_called_like_the_log_of_the_metadata():
    assert code(create_one(NewTopic("__cluster_metadata"))) is ErrorCode.INVALID_REQUEST


def test_defaults_come_from_the_broker():
    topic = created("t")
    assert [partition.partition for partition in topic.partitions] == [0, 1, 2]
    assert {
        (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) for partition in topic.partitions
    } == {((1,), (1,), 1, 0)}


def test_a_recreated_topic_gets_another_id():
    assert created("t").topic_id != created("t").topic_id


def test_an_existing_topic_is_not_created_again():
    assert code(create_one(NewTopic("t"), {"t": created("t")})) is ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_only_in_dot_and_underscore_collide_also_within_one_request():
    assert code(create_one(NewTopic("a.b"), {"a_b": created("a_b")})) is ErrorCode.INVALID_TOPIC_EXCEPTION
    first, second = topics.create({}, [NewTopic("a.b"), NewTopic("a_b")], RULES, new_topic_id)
    assert isinstance(first, Topic)
    assert code(second) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_named_twice_is_refused_twice_and_others_are_created():
    first, second, third = topics.create({}, [NewTopic("a"), NewTopic("a"), NewTopic("b")], RULES, new_topic_id)
    assert code(first) is code(second) is ErrorCode.INVALID_REQUEST
    assert isinstance(third, Topic)


@pytest.mark.parametrize("count", [0, -2])
def test_a_partition_count_below_one_is_invalid(count):
    assert code(create_one(NewTopic("t", count))) is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("factor", [0, -2, 2])
def test_a_replication_factor_other_than_one_is_invalid_with_one_broker(factor):
    assert code(create_one(NewTopic("t", 1, factor))) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_one_request_cannot_add_more_partitions_than_the_limit():
    assert code(create_one(NewTopic("t", NEW_PARTITIONS_MAX + 1))) is ErrorCode.POLICY_VIOLATION
    half = NEW_PARTITIONS_MAX // 2 + 1
    first, second = topics.create({}, [NewTopic("a", half), NewTopic("b", half)], RULES, new_topic_id)
    assert isinstance(first, Topic)
    assert code(second) is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ([(0, [1]), (2, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [2])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1, 1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_manual_assignment_must_number_partitions_and_name_this_broker(assignments, expected):
    assert code(create_one(NewTopic("t", assignments=assignments))) is expected


def test_a_manual_assignment_decides_the_partition_count():
    topic = create_one(NewTopic("t", assignments=[(1, [1]), (0, [1])]))
    assert isinstance(topic, Topic)
    assert len(topic.partitions) == 2
    assert code(create_one(NewTopic("t", 2, -1, assignments=[(0, [1])]))) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "config", [("retention.mss", "1"), ("retention.ms", "x"), ("cleanup.policy", "compress"), ("retention.ms", None)]
)
def test_a_wrong_config_is_invalid(config):
    assert code(create_one(NewTopic("t", configs=[config]))) is ErrorCode.INVALID_CONFIG


def test_a_topic_is_deleted_by_name_or_by_id():
    topic = created("t")
    for decision in (
        topics.delete({"t": topic}, "t", None, {}, RULES),
        topics.delete({"t": topic}, None, topic.topic_id, {topic.topic_id: "t"}, RULES),
    ):
        assert isinstance(decision, Topic)
        assert decision.deleting
    assert code(topics.delete({}, "t", None, {}, RULES)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(topics.delete({}, None, topic.topic_id, {}, RULES)) is ErrorCode.UNKNOWN_TOPIC_ID


def test_nothing_is_deleted_where_deletion_is_disabled():
    rules = Rules(1, 1, 1, delete_enabled=False, check_config=check_topic_config)
    assert code(topics.delete({"t": created("t")}, "t", None, {}, rules)) is ErrorCode.TOPIC_DELETION_DISABLED


def test_partitions_are_added_after_the_present_ones():
    topic = topics.add_partitions({"t": created("t")}, "t", 5, None, RULES)
    assert isinstance(topic, Topic)
    assert [partition.partition for partition in topic.partitions] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("count", "assignments", "expected"),
    [
        (3, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (0, None, ErrorCode.INVALID_PARTITIONS),
        (5, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[7]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NEW_PARTITIONS_MAX + 4, None, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_partitions_are_never_removed_and_only_placed_here(count, assignments, expected):
    assert code(topics.add_partitions({"t": created("t")}, "t", count, assignments, RULES)) is expected


def created_on_three(**fields: object) -> Topic | Refusal:
    return topics.create({}, [NewTopic("t", **fields)], THREE, new_topic_id)[0]  # type: ignore[arg-type]


def test_replicas_are_placed_on_live_brokers_all_in_sync():
    topic = created_on_three()
    assert isinstance(topic, Topic)
    assert sorted(partition.leader for partition in topic.partitions) == [1, 2, 3]
    for partition in topic.partitions:
        assert sorted(partition.replicas) == [1, 2, 3]
        assert (partition.isr, partition.leader) == (partition.replicas, partition.replicas[0])


def test_a_factor_larger_than_the_live_brokers_is_refused():
    assert code(created_on_three(replication_factor=4)) is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    "assignments", [[(0, [1, 4])], [(0, [1, 1])], [(0, [1, 2]), (1, [1])], [(0, [1]), (0, [2])], [(0, [])]]
)
def test_a_manual_assignment_names_live_brokers_once_and_as_many_for_each_partition(assignments):
    assert code(created_on_three(assignments=assignments)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_manual_assignment_is_followed():
    topic = created_on_three(assignments=[(1, [2, 3]), (0, [3, 1])])
    assert isinstance(topic, Topic)
    assert [partition.replicas for partition in topic.partitions] == [(3, 1), (2, 3)]


def test_added_partitions_have_as_many_replicas_and_go_on_where_the_others_ended():
    topic = created_on_three(replication_factor=2)
    assert isinstance(topic, Topic)
    grown = topics.add_partitions({"t": topic}, "t", 6, None, THREE)
    assert isinstance(grown, Topic)
    assert grown.partitions[:3] == topic.partitions
    assert sorted(partition.leader for partition in grown.partitions[3:]) == [1, 2, 3]
    assert {len(partition.replicas) for partition in grown.partitions} == {2}
    refused = topics.add_partitions({"t": topic}, "t", 4, [[1, 2, 3]], THREE)
    assert code(refused) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    alone = topics.add_partitions({"t": topic}, "t", 4, None, RULES)
    assert code(alone) is ErrorCode.INVALID_REPLICATION_FACTOR


class TestWhileABrokerIsDead:
    """Known brokers count for placement; leaders and in-sync replicas are only brokers that live."""

    RULES = replace(THREE, absent=frozenset({3}))

    def created(self, topic: NewTopic) -> Topic | Refusal:
        return topics.create({}, [topic], self.RULES, new_topic_id)[0]

    def test_a_topic_of_all_brokers_has_a_replica_on_the_dead_one_that_is_not_in_sync(self):
        topic = self.created(NewTopic("t", 6, 3))
        assert isinstance(topic, Topic)
        for partition in topic.partitions:
            assert set(partition.replicas) == {1, 2, 3}
            assert set(partition.isr) == {1, 2}
            assert (partition.leader, partition.elr) == (partition.isr[0], ())

    def test_partitions_are_added_alike(self):
        topic = topics.create({}, [NewTopic("t", 1, 3)], THREE, new_topic_id)[0]
        grown = topics.add_partitions({"t": topic}, "t", 3, None, self.RULES)
        assert isinstance(grown, Topic)
        assert grown.partitions[0] is topic.partitions[0]
        assert [(set(partition.replicas), set(partition.isr)) for partition in grown.partitions[1:]] == [
            ({1, 2, 3}, {1, 2})
        ] * 2

    def test_fewer_replicas_than_live_brokers_leave_the_dead_one_out(self):
        topic = self.created(NewTopic("t", 12, 2))
        assert {broker for partition in topic.partitions for broker in partition.replicas} == {1, 2}

    def test_a_manual_assignment_may_begin_with_the_dead_one_but_not_have_it_alone(self):
        topic = self.created(NewTopic("t", assignments=[(0, [3, 1])]))
        assert [(partition.replicas, partition.isr, partition.leader) for partition in topic.partitions] == [
            ((3, 1), (1,), 1)
        ]
        assert code(self.created(NewTopic("t", assignments=[(0, [3])]))) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        grown = topics.add_partitions({"t": topic}, "t", 2, [[3, 2]], self.RULES)
        assert (grown.partitions[1].isr, grown.partitions[1].leader) == ((2,), 2)

    def test_an_unregistered_broker_is_not_counted(self):
        assert code(self.created(NewTopic("t", 1, 4))) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_that_a_topic_is_a_mirror_from_its_creation_and_ends_being_one_in_two_steps() -> None:
    def change(before: str, after: str) -> str | None:
        topic = topics.Topic("t", "id", {topics.MIRROR_SOURCE: before} if before else {}, ())
        refused = topics.mirror_change(topic, {topics.MIRROR_SOURCE: after} if after else {})
        return refused and refused.message

    for before, after in (("", ""), ("a", "a"), ("a", "ended"), ("ended", "ended"), ("ended", "")):
        assert change(before, after) is None, (before, after)
    for before, after in (("a", ""), ("a", "b")):
        assert "pylog mirror promote t" in (change(before, after) or "")
    for before, after in (("", "a"), ("", "ended"), ("ended", "a")):
        assert "only when a topic is created" in (change(before, after) or "")
