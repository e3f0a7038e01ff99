"""Only the leader of what is stored changes the ISR, and only to replicas that are there."""

from dataclasses import replace

import pytest

from pylog_spark.cluster.election import Liveness, PartitionRules
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.isr import IsrProposal, alter
from pylog_spark.cluster.model import Partition, Topic

RULES = PartitionRules(min_isr=2, unclean=False)
ALL = Liveness(frozenset({1, 2, 3}))
SHRUNK = Topic("t", "AAAAAAAAAAAAAAAAAAAAAA", {}, (Partition(0, (1, 2, 3), 1, 5, (1,), 7, elr=(2,)),))


def propose(*isr: int, leader_epoch: int = 5, partition_epoch: int = 7, partition: int = 0) -> IsrProposal:
    return IsrProposal(partition, leader_epoch, partition_epoch, isr)


def test_the_isr_grows_and_the_elr_is_emptied_with_enough_members():
    after, answers = alter(SHRUNK, 1, [propose(3, 1)], ALL, RULES)
    (partition,) = after.partitions
    assert answers == {0: ErrorCode.NONE}
    assert (partition.isr, partition.elr, partition.leader_epoch, partition.partition_epoch) == ((1, 3), (), 5, 8)


def test_who_is_shrunk_away_below_min_isr_stays_eligible():
    full = replace(SHRUNK, partitions=(replace(SHRUNK.partitions[0], isr=(1, 2, 3), elr=()),))
    after, _ = alter(full, 1, [propose(1)], ALL, RULES)
    assert (after.partitions[0].isr, after.partitions[0].elr) == ((1,), (2, 3))
    after, _ = alter(full, 1, [propose(1, 2)], ALL, RULES)
    assert (after.partitions[0].isr, after.partitions[0].elr) == ((1, 2), ())


@pytest.mark.parametrize(
    ("broker", "proposal", "live", "code"),
    [
        (1, propose(1, 2, leader_epoch=4), ALL, ErrorCode.FENCED_LEADER_EPOCH),
        (1, propose(1, 2, leader_epoch=6), ALL, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, propose(1, 2), ALL, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, propose(1, 2, partition_epoch=6), ALL, ErrorCode.INVALID_UPDATE_VERSION),
        (1, propose(1, 2, partition_epoch=8), ALL, ErrorCode.INVALID_UPDATE_VERSION),
        (1, propose(2), ALL, ErrorCode.INVALID_REQUEST),
        (1, propose(1, 2, 2), ALL, ErrorCode.INVALID_REQUEST),
        (1, propose(1, 4), Liveness(frozenset({1, 4})), ErrorCode.INELIGIBLE_REPLICA),
        (1, propose(1, 2), Liveness(frozenset({1, 3})), ErrorCode.INELIGIBLE_REPLICA),
        (1, propose(1, 2), Liveness(ALL.alive, frozenset({2})), ErrorCode.INELIGIBLE_REPLICA),
        (1, propose(1, 2, partition=1), ALL, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_proposal_that_does_not_fit_changes_nothing(broker, proposal, live, code):
    after, answers = alter(SHRUNK, broker, [proposal], live, RULES)
    assert after is SHRUNK
    assert answers == {proposal.partition: code}


def test_who_was_registered_anew_since_the_leader_looked_does_not_come_in():
    live = replace(ALL, epochs={1: 11, 2: 12, 3: 13})
    outdated = replace(propose(1, 2), epochs=(-1, 10))
    assert alter(SHRUNK, 1, [outdated], live, RULES) == (SHRUNK, {0: ErrorCode.INELIGIBLE_REPLICA})
    after, answers = alter(SHRUNK, 1, [replace(outdated, epochs=(-1, 12))], live, RULES)
    assert (after.partitions[0].isr, answers) == ((1, 2), {0: ErrorCode.NONE})


def test_a_refused_proposal_does_not_hold_up_another_one():
    two = replace(SHRUNK, partitions=(*SHRUNK.partitions, replace(SHRUNK.partitions[0], partition=1)))
    after, answers = alter(two, 1, [propose(1, 2, leader_epoch=1), propose(1, 2, partition=1)], ALL, RULES)
    assert answers == {0: ErrorCode.FENCED_LEADER_EPOCH, 1: ErrorCode.NONE}
    assert [partition.isr for partition in after.partitions] == [(1,), (1, 2)]


def test_the_isr_that_is_stored_is_no_change():
    after, answers = alter(SHRUNK, 1, [propose(1)], ALL, RULES)
    assert after is SHRUNK
    assert answers == {0: ErrorCode.NONE}


def test_no_isr_of_a_topic_that_is_being_deleted_changes():
    gone = replace(SHRUNK, deleting=True)
    assert alter(gone, 1, [propose(1, 2)], ALL, RULES) == (gone, {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
