"""Replicas move without anybody who has the records going before the others have them; a move can be given up."""

from dataclasses import replace

import pytest

from pylog_spark.cluster import reassignment
from pylog_spark.cluster.election import Liveness, PartitionRules, reconcile
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.isr import IsrProposal, alter
from pylog_spark.cluster.model import Partition, Topic

RULES = PartitionRules(min_isr=2, unclean=False)
ALL = Liveness(frozenset(range(1, 7)))
HERE = Topic("t", "AAAAAAAAAAAAAAAAAAAAAA", {}, (Partition(0, (1, 2, 3), 1, 5, (1, 2, 3), 7),))


def moved(topic: Topic, *target: int, live: Liveness = ALL) -> Topic:
    after, refused = reassignment.start(topic, {0: target}, live)
    assert refused == {}
    return reconcile(after, live, RULES)


def with_isr(topic: Topic, *isr: int) -> Topic:
    partition = topic.partitions[0]
    proposal = IsrProposal(0, partition.leader_epoch, partition.partition_epoch, isr)
    after, answers = alter(topic, partition.leader, [proposal], ALL, RULES)
    assert answers == {0: ErrorCode.NONE}
    return reconcile(after, ALL, RULES)


def test_the_new_ones_come_first_and_the_old_ones_go_when_all_of_the_target_are_in_sync():
    topic = moved(HERE, 4, 5, 1)
    partition = topic.partitions[0]
    assert (partition.replicas, partition.adding, partition.removing, partition.isr) == (
        (4, 5, 1, 2, 3),
        (4, 5),
        (2, 3),
        (1, 2, 3),
    )
    assert (partition.leader, partition.leader_epoch) == (1, 5)
    assert reassignment.listing(topic) == (partition,)
    topic = with_isr(topic, 1, 2, 3, 4)
    assert topic.partitions[0].replicas == (4, 5, 1, 2, 3)
    topic = with_isr(topic, 1, 2, 3, 4, 5)
    partition = topic.partitions[0]
    assert (partition.replicas, partition.adding, partition.removing, partition.isr) == ((4, 5, 1), (), (), (4, 5, 1))
    assert (partition.leader, partition.leader_epoch) == (1, 6), "no leader may count what a replica had that is gone"
    assert reassignment.listing(topic) == ()


def test_a_leader_that_is_removed_hands_over():
    topic = with_isr(moved(HERE, 4, 5, 6), 1, 2, 3, 4, 5, 6)
    partition = topic.partitions[0]
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((4, 5, 6), (4, 5, 6), 4, 6)


def test_another_order_is_complete_at_once_and_changes_the_preferred_leader_only():
    partition = moved(HERE, 3, 2, 1).partitions[0]
    assert (partition.replicas, partition.leader, partition.leader_epoch, partition.adding, partition.removing) == (
        (3, 2, 1),
        1,
        5,
        (),
        (),
    )


def test_fewer_replicas_need_those_that_stay_to_be_in_sync():
    partition = moved(HERE, 2).partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((2,), (2,), 2)
    lagging = replace(HERE, partitions=(replace(HERE.partitions[0], isr=(1, 3)),))
    partition = moved(lagging, 2).partitions[0]
    assert (partition.replicas, partition.removing, partition.isr, partition.leader) == ((2, 1, 3), (1, 3), (1, 3), 1)


def test_a_cancelled_move_gives_back_the_replicas():
    topic = moved(HERE, 4, 5, 6)
    back, refused = reassignment.start(with_isr(topic, 1, 2, 3, 4), {0: None}, ALL)
    partition = reconcile(back, ALL, RULES).partitions[0]
    assert refused == {}
    assert (set(partition.replicas), set(partition.isr), partition.adding, partition.removing, partition.leader) == (
        {1, 2, 3},
        {1, 2, 3},
        (),
        (),
        1,
    )


def test_a_cancelled_move_takes_leadership_from_a_new_replica():
    topic = reconcile(with_isr(moved(HERE, 4, 5, 6), 1, 2, 3, 4), Liveness(frozenset({3, 4})), RULES)
    assert topic.partitions[0].leader == 4
    back, _ = reassignment.start(topic, {0: None}, Liveness(frozenset({3, 4})))
    assert (back.partitions[0].leader, back.partitions[0].isr) == (3, (3,))


def test_a_move_is_not_cancelled_when_only_a_new_replica_has_the_records():
    topic = reconcile(with_isr(moved(HERE, 4, 5, 6), 1, 2, 3, 4), Liveness(frozenset({4})), RULES)
    back, refused = reassignment.start(topic, {0: None}, Liveness(frozenset({4})))
    assert back is topic
    assert refused[0].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_cancel_that_leaves_what_is_committed_to_fewer_than_min_isr_is_refused():
    topic = reconcile(with_isr(moved(HERE, 4, 5, 6), 1, 2, 3, 4), Liveness(frozenset({3, 4})), RULES)
    assert topic.partitions[0].isr == (4, 3)
    back, refused = reassignment.start(topic, {0: None}, Liveness(frozenset({3, 4})), RULES)
    assert back is topic
    assert refused[0].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_another_target_counts_from_the_replicas_before_the_first():
    topic = moved(with_isr(moved(HERE, 4, 5, 6), 1, 2, 3, 4), 1, 2, 5)
    partition = topic.partitions[0]
    assert (partition.replicas, partition.adding, partition.removing, partition.isr) == (
        (1, 2, 5, 3),
        (5,),
        (3,),
        (1, 2, 3),
    )
    assert reassignment.original(partition) == (1, 2, 3)


@pytest.mark.parametrize(
    ("index", "target", "code"),
    [
        (0, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, (1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, (1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (1, (1, 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_wrong_move_is_refused(index, target, code):
    after, refused = reassignment.start(HERE, {index: target}, ALL)
    assert after is HERE
    assert refused[index].code is code


def test_a_dead_replica_may_be_kept_but_not_taken():
    live = Liveness(frozenset({1, 2}))
    assert reassignment.start(HERE, {0: (1, 2, 3)}, live)[1] == {}
    assert reassignment.start(HERE, {0: (1, 2, 4)}, live)[1][0].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_move_to_a_dead_broker_that_is_known_waits_for_it():
    live = Liveness(frozenset({1, 2, 3}), known=frozenset({1, 2, 3, 4}))
    partition = moved(HERE, 4, 1, 2, live=live).partitions[0]
    assert (partition.replicas, partition.adding, partition.removing, partition.isr, partition.leader) == (
        (4, 1, 2, 3),
        (4,),
        (3,),
        (1, 2, 3),
        1,
    )
    _, refused = reassignment.start(HERE, {0: (5, 1, 2)}, live)
    assert refused[0].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "no such broker is registered" in refused[0].message
