"""Leaders come from who has every committed record, each election has its epoch, and nothing happens without a reason."""

from dataclasses import replace

import pytest

from pylog_spark.cluster.election import (
    NOBODY,
    Liveness,
    PartitionRules,
    elect_preferred,
    elect_unclean,
    imbalanced,
    leave,
    reconcile,
    reconfigured,
    rejoin,
)
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.isr import IsrProposal, alter
from pylog_spark.cluster.model import Partition, Topic

CAREFUL = PartitionRules(min_isr=2, unclean=False)
UNCLEAN = PartitionRules(min_isr=2, unclean=True)
LAX = PartitionRules(min_isr=1, unclean=False)


def topic(*partitions: Partition) -> Topic:
    return Topic("t", "AAAAAAAAAAAAAAAAAAAAAA", {}, partitions)


def three(isr: tuple[int, ...] = (1, 2, 3), leader: int = 1, **fields: object) -> Topic:
    return topic(replace(Partition(0, (1, 2, 3), leader, 5, isr, 7), **fields))  # type: ignore[arg-type]


def alive(*brokers: int, leaving: tuple[int, ...] = ()) -> Liveness:
    return Liveness(frozenset(brokers), frozenset(leaving))


def only(topic: Topic) -> Partition:
    (partition,) = topic.partitions
    return partition


def test_nothing_is_done_where_nothing_is_to_be_done():
    before = three()
    assert reconcile(before, alive(1, 2, 3), CAREFUL) is before
    assert leave(before, 9, alive(1, 2, 3, 9), CAREFUL) is before
    assert rejoin(before, 9, False, alive(1, 2, 3), CAREFUL) is before


def test_the_first_live_member_of_the_isr_leads_after_the_leader_dies():
    after = only(reconcile(three(), alive(2, 3), CAREFUL))
    assert (after.leader, after.isr, after.elr) == (2, (2, 3), ())
    assert (after.leader_epoch, after.partition_epoch) == (6, 8)


def test_a_dead_follower_leaves_the_isr_without_an_election():
    after = only(reconcile(three(), alive(1, 3), CAREFUL))
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (1, (1, 3), 5, 8)


def test_a_replica_that_is_not_in_sync_does_not_lead():
    after = only(reconcile(three(isr=(1,)), alive(2, 3), CAREFUL))
    assert (after.leader, after.isr, after.leader_epoch) == (NOBODY, (1,), 6)
    again = only(reconcile(topic(after), alive(1, 2, 3), CAREFUL))
    assert (again.leader, again.isr, again.leader_epoch) == (1, (1,), 7), "the same broker leads in another epoch"


def test_an_unclean_leader_is_all_of_the_isr_and_only_where_it_is_allowed():
    after = only(reconcile(three(isr=(1,)), alive(2, 3), UNCLEAN))
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())


def test_no_unclean_election_while_somebody_in_sync_is_alive():
    after = only(reconcile(three(isr=(3,), leader=3), alive(1, 2, 3, leaving=(3,)), UNCLEAN))
    assert (after.leader, after.isr) == (3, (3,))


def test_members_that_leave_below_min_isr_stay_eligible_and_lead_when_the_isr_is_gone():
    left = reconcile(three(), alive(1), CAREFUL)
    assert (only(left).isr, only(left).elr) == ((1,), (2, 3))
    back = only(reconcile(left, alive(3), CAREFUL))
    assert (back.leader, back.isr, back.elr) == (3, (3,), (1, 2))


def test_nobody_is_eligible_outside_the_isr_when_the_isr_alone_commits():
    assert only(reconcile(three(), alive(1), LAX)).elr == ()
    assert only(reconcile(three(), alive(1, 2), CAREFUL)).elr == ()


def test_laxer_rules_empty_the_elr_before_anybody_is_elected_from_it():
    eligible = three(isr=(1,), elr=(2, 3))
    after = only(reconcile(eligible, alive(2, 3), LAX))
    assert (after.leader, after.isr, after.elr) == (NOBODY, (1,), ())


def test_other_rules_empty_the_elr_and_nothing_else():
    eligible = three(isr=(1,), elr=(2, 3))
    assert reconfigured(eligible, CAREFUL) is eligible
    after = only(reconfigured(eligible, LAX))
    assert after == replace(only(eligible), elr=(), partition_epoch=8)
    full = three()
    assert reconfigured(full, PartitionRules(3, False)) is full


def test_min_isr_counts_at_most_the_replicas():
    alone = topic(Partition(0, (1,), 1, 0, (1,)))
    assert reconcile(alone, alive(1), CAREFUL) is alone
    assert only(reconcile(topic(Partition(0, (1, 2), 1, 0, (1, 2))), alive(1), PartitionRules(3, False))).elr == (2,)


def test_a_clean_stop_moves_leadership_first_and_leaves_the_isr():
    after = only(leave(three(), 1, alive(1, 2, 3, leaving=(1,)), CAREFUL))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 6)


def test_a_clean_stop_of_the_last_in_sync_leaves_the_partition_to_its_return():
    after = leave(three(isr=(1,)), 1, alive(1, 2, 3), UNCLEAN)
    assert (only(after).leader, only(after).isr) == (NOBODY, (1,))
    assert leave(after, 1, alive(1, 2, 3), UNCLEAN) is after
    assert only(reconcile(after, alive(1, 2, 3), UNCLEAN)).leader == 1


def test_who_is_being_stopped_leads_nothing_new_but_goes_on_where_nobody_else_can():
    assert only(reconcile(three(), alive(2, 3, leaving=(2,)), CAREFUL)).leader == 3
    assert only(reconcile(three(isr=(2,), leader=NOBODY), alive(2, leaving=(2,)), CAREFUL)).leader == NOBODY
    led = three(isr=(1,))
    assert reconcile(led, alive(1, 2, leaving=(1,)), CAREFUL) is led


def test_who_may_have_lost_records_leaves_isr_and_elr():
    after = only(rejoin(three(leader=NOBODY), 1, False, alive(), CAREFUL))
    assert (after.isr, after.elr) == ((2, 3), ())
    after = only(rejoin(three(isr=(2,), leader=2, elr=(1, 3)), 1, False, alive(2), CAREFUL))
    assert (after.isr, after.elr, after.leader) == ((2,), (3,), 2)


def test_an_eligible_replica_takes_the_place_of_the_isr_that_may_have_lost_records():
    after = only(rejoin(three(isr=(1,), leader=NOBODY, elr=(2, 3)), 1, False, alive(3), CAREFUL))
    assert (after.isr, after.elr, after.leader) == ((3,), (2,), NOBODY)


def test_the_last_one_with_the_records_stays_even_after_an_unclean_stop():
    after = only(rejoin(three(isr=(1,)), 1, False, alive(2, 3), CAREFUL))
    assert (after.isr, after.leader, after.leader_epoch) == ((1,), NOBODY, 6)


@pytest.mark.parametrize("clean", [True, False])
def test_a_broker_that_comes_back_leads_nothing(clean):
    after = only(rejoin(three(), 1, clean, alive(2), CAREFUL))
    assert (after.leader, after.leader_epoch) == (2, 6)


def test_a_clean_return_keeps_the_membership():
    before = three()
    assert rejoin(before, 2, True, alive(1, 3), CAREFUL) is before


def test_an_unclean_return_gives_each_leader_an_epoch_in_which_nothing_is_fetched_yet():
    after = only(rejoin(three(isr=(1, 2)), 3, False, alive(1, 2), CAREFUL))
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (1, (1, 2), 6, 8)


def test_nobody_joins_the_isr_by_what_it_had_fetched_before_its_power_went():
    before = three(isr=(1, 2))
    proposal = IsrProposal(0, 5, 7, (1, 2, 3))
    back = rejoin(before, 3, False, alive(1, 2), CAREFUL)
    after, answers = alter(back, 1, [proposal], alive(1, 2, 3), CAREFUL)
    assert answers == {0: ErrorCode.FENCED_LEADER_EPOCH}
    assert after is back


def test_a_deleted_topic_is_left_alone():
    gone = replace(three(), deleting=True)
    assert reconcile(gone, alive(), CAREFUL) is gone
    assert leave(gone, 1, alive(), CAREFUL) is gone
    assert rejoin(gone, 1, False, alive(), CAREFUL) is gone


def test_the_preferred_leader_is_elected_on_request():
    after, refused = elect_preferred(three(leader=2), [0], alive(1, 2, 3), CAREFUL)
    assert (only(after).leader, only(after).leader_epoch, refused) == (1, 6, {})


@pytest.mark.parametrize(
    ("before", "live", "code"),
    [
        (three(), alive(1, 2, 3), ErrorCode.ELECTION_NOT_NEEDED),
        (three(leader=2, isr=(2, 3)), alive(1, 2, 3), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (three(leader=2), alive(2, 3), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (three(leader=2), alive(1, 2, 3, leaving=(1,)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (replace(three(leader=2), deleting=True), alive(1, 2, 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_preferred_leader_that_cannot_lead_is_refused(before, live, code):
    after, refused = elect_preferred(before, [0], live, CAREFUL)
    assert after is before
    assert refused[0].code is code


def test_an_unclean_election_on_request_needs_a_partition_without_a_leader_and_a_live_replica():
    lost = three(isr=(1,), leader=NOBODY)
    after, refused = elect_unclean(lost, [0, 4], alive(3), CAREFUL)
    assert (only(after).leader, only(after).isr) == (3, (3,))
    assert refused[4].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect_unclean(three(), [0], alive(1), CAREFUL)[1][0].code is ErrorCode.ELECTION_NOT_NEEDED
    assert elect_unclean(lost, [0], alive(9), CAREFUL)[1][0].code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_leaders_are_moved_back_where_more_than_the_allowed_part_is_astray():
    partitions = [Partition(index, (1, 2), 1 if index else 2, 0, (1, 2)) for index in range(10)]
    ten = topic(*partitions)
    assert imbalanced([ten], alive(1, 2), 10) == []
    assert imbalanced([ten], alive(1, 2), 9) == [("t", 0)]
    assert imbalanced([ten], alive(2), 0) == [], "the preferred leader is not there"
    moving = replace(partitions[0], adding=(3,), replicas=(1, 2, 3))
    assert imbalanced([topic(moving, *partitions[1:])], alive(1, 2, 3), 0) == []
