"""Properties of all decisions together, under any sequence of events: epochs, ISR, moves that end, a small model of what is committed."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog_spark.cluster import reassignment
from pylog_spark.cluster.assignment import assign
from pylog_spark.cluster.election import (
    NOBODY,
    Liveness,
    PartitionRules,
    effective_min_isr,
    elect_preferred,
    elect_unclean,
    leave,
    reconcile,
    rejoin,
)
from pylog_spark.cluster.errors import Refusal
from pylog_spark.cluster.isr import IsrProposal, alter
from pylog_spark.cluster.model import BrokerInfo, Partition, Topic

BROKERS = (1, 2, 3, 4)
RULES = st.builds(PartitionRules, st.sampled_from([1, 2, 2, 3]), st.just(False))
BROKER = st.sampled_from(BROKERS)
SOME = st.lists(BROKER, min_size=1, max_size=4, unique=True)
REPLICAS = st.lists(BROKER, min_size=2, max_size=4, unique=True).map(tuple)
KIND = ["die", "die", "die cleanly", "die cleanly", "return", "return", "stop", "leaving", "prefer"]
STEP = st.one_of(
    st.tuples(st.sampled_from(KIND), BROKER),
    st.tuples(st.sampled_from(KIND), BROKER),
    st.tuples(st.sampled_from(["isr", "move"]), SOME),
    st.tuples(st.sampled_from(["reconcile", "cancel", "commit"]), st.none()),
)
# Whether the controller and the leader do their part at once, or only later.
EVENT = st.tuples(STEP, st.booleans())


class Model:
    """A partition, the brokers that live, and those that have everything that was ever committed.

    A broker that dies uncleanly counts as having lost all it had; the leader commits whenever the rules let it.
    """

    def __init__(self, replicas: tuple[int, ...], rules: PartitionRules) -> None:
        partition = Partition(0, replicas, replicas[0], 0, replicas)
        self.topic = Topic("t", "AAAAAAAAAAAAAAAAAAAAAA", {}, (partition,))
        self.rules = rules
        self.alive = set(BROKERS)
        self.leaving: set[int] = set()
        self.dirty: set[int] = set()
        self.whole = set(replicas)
        self.leaders = {0: replicas[0]}

    @property
    def partition(self) -> Partition:
        return self.topic.partitions[0]

    @property
    def live(self) -> Liveness:
        return Liveness(frozenset(self.alive), frozenset(self.leaving & self.alive))

    def store(self, after: Topic) -> None:
        """What holds for each change."""
        old, new = self.partition, after.partitions[0]
        assert (after is self.topic) == (new == old)
        assert new.partition_epoch >= old.partition_epoch
        assert (new.partition_epoch == old.partition_epoch) == (new == old)
        assert new.leader_epoch >= old.leader_epoch
        assert self.leaders.setdefault(new.leader_epoch, new.leader) == new.leader, "two leaders in one epoch"
        assert new.isr
        assert set(new.isr) | set(new.elr) <= set(new.replicas)
        assert not set(new.isr) & set(new.elr)
        assert new.leader in (NOBODY, *new.isr)
        assert set(new.adding) | set(new.removing) <= set(new.replicas)
        assert not set(new.adding) & set(new.removing)
        self.whole &= set(new.replicas)
        self.topic = after

    def step(self, kind: str, what: object) -> None:
        getattr(self, "_" + kind.replace(" ", "_"))(what)

    def run(self, event: tuple[tuple[str, object], bool]) -> None:
        step, prompt = event
        for kind, what in [step, ("reconcile", None), ("commit", None)] if prompt else [step]:
            self.step(kind, what)
            partition = self.partition
            if partition.leader != NOBODY and partition.leader in self.alive:
                assert partition.leader in self.whole, (kind, what, partition)

    def _die(self, broker: int) -> None:
        # As many as min.insync.replicas bears may be without what they had; but nothing bears the loss of the only copy, as of
        # what was committed while a partition on its way to other brokers had one replica.
        lost = self.dirty | (set(self.partition.replicas) - self.whole - self.dirty) & set(self.partition.isr)
        borne = len(lost | {broker}) < effective_min_isr(self.partition.replicas, self.rules)
        if borne and self.whole != {broker}:
            self.alive.discard(broker)
            self.dirty.add(broker)
            self.whole.discard(broker)

    def _die_cleanly(self, broker: int) -> None:
        self.alive.discard(broker)

    def _return(self, broker: int) -> None:
        if broker not in self.alive:
            self.leaving.discard(broker)
            self.store(rejoin(self.topic, broker, broker not in self.dirty, self.live, self.rules))
            self.alive.add(broker)

    def _stop(self, broker: int) -> None:
        if broker in self.alive:
            self.store(leave(self.topic, broker, self.live, self.rules))
            assert self.partition.leader != broker
            self.alive.discard(broker)

    def _leaving(self, broker: int) -> None:
        self.leaving.add(broker)

    def _prefer(self, _: int) -> None:
        self.store(elect_preferred(self.topic, [0], self.live, self.rules)[0])

    def _isr(self, wanted: list[int]) -> None:
        """The leader proposes: who joins has fetched everything first."""
        partition = self.partition
        if partition.leader in self.alive:
            isr = tuple({partition.leader, *(broker for broker in wanted if broker in (*partition.isr, *self.alive))})
            proposal = IsrProposal(0, partition.leader_epoch, partition.partition_epoch, isr)
            after, _ = alter(self.topic, partition.leader, [proposal], self.live, self.rules)
            joined = set(after.partitions[0].isr) - set(partition.isr)
            if partition.leader in self.whole:
                self.whole |= joined
            self.dirty -= joined
            self.store(after)

    def _move(self, target: list[int]) -> None:
        self.store(
            reconcile(reassignment.start(self.topic, {0: target}, self.live, self.rules)[0], self.live, self.rules)
        )

    def _cancel(self, _: None) -> None:
        self.store(
            reconcile(reassignment.start(self.topic, {0: None}, self.live, self.rules)[0], self.live, self.rules)
        )

    def _reconcile(self, _: None) -> None:
        after = reconcile(self.topic, self.live, self.rules)
        assert reconcile(after, self.live, self.rules) is after, "reconciled is reconciled"
        self.store(after)

    def _commit(self, _: None) -> None:
        """The leader commits something new: only replicas in the ISR have it, and all of them must have fetched it."""
        partition = self.partition
        there = partition.leader in self.alive and set(partition.isr) <= self.alive
        if there and len(partition.isr) >= effective_min_isr(partition.replicas, self.rules):
            self.whole = set(partition.isr)
            self.dirty -= set(partition.isr)


@settings(max_examples=600, deadline=None)
@given(REPLICAS, RULES, st.lists(EVENT, max_size=20))
def test_a_leader_has_every_committed_record_and_an_epoch_of_its_own(replicas, rules, events):
    model = Model(replicas, rules)
    for event in events:
        model.run(event)


@settings(max_examples=200, deadline=None)
@given(REPLICAS, RULES, st.lists(EVENT, max_size=30), SOME)
def test_every_move_ends_once_all_are_back_and_a_cancelled_one_gives_back_the_replicas(replicas, rules, events, target):
    model = Model(replicas, rules)
    for event in events:
        model.run(event)
    model.leaving.clear()
    for broker in BROKERS:
        model.step("return", broker)
    model.step("reconcile", None)
    assert model.partition.leader != NOBODY, model.partition
    model.step("isr", list(model.partition.replicas))
    model.step("reconcile", None)
    assert reassignment.listing(model.topic) == ()
    assert set(model.partition.isr) == set(model.partition.replicas)
    before = model.partition
    started, _ = reassignment.start(model.topic, {0: target}, model.live, rules)
    cancelled, refused = reassignment.start(started, {0: None}, model.live, rules)
    if reassignment.listing(started):
        assert refused == {}
        after = reconcile(cancelled, model.live, rules).partitions[0]
        assert (set(after.replicas), set(after.isr), after.leader) == (
            set(before.replicas),
            set(before.isr),
            before.leader,
        )
    model.store(reconcile(started, model.live, rules))
    model.step("isr", list(model.partition.replicas))
    model.step("reconcile", None)
    assert (model.partition.replicas, model.partition.adding, model.partition.removing) == (tuple(target), (), ())
    assert model.partition.leader in target


@settings(max_examples=200, deadline=None)
@given(REPLICAS, RULES, st.lists(EVENT, max_size=30))
def test_an_unclean_election_gives_a_leader_to_whatever_has_a_live_replica(replicas, rules, events):
    model = Model(replicas, rules)
    for event in events:
        model.run(event)
    if not model.leaving and not model.live.active.isdisjoint(model.partition.replicas):
        asked, refused = elect_unclean(model.topic, [0], model.live, rules)
        allowed = reconcile(model.topic, model.live, replace(rules, unclean=True)).partitions[0]
        assert asked.partitions[0].leader != NOBODY
        assert (refused == {}) == (model.partition.leader == NOBODY)
        assert allowed.leader in model.alive


@pytest.mark.parametrize("racks", [1, 2, 3, 4])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_replicas_are_spread_evenly_over_equal_racks(racks, data):
    each = data.draw(st.integers(1, 4))
    brokers = [BrokerInfo(node, rack=None if racks == 1 else f"r{node % racks}") for node in range(racks * each)]
    factor = data.draw(st.integers(1, min(4, len(brokers))))
    partitions = data.draw(st.integers(1, 40))
    start = data.draw(st.integers(0, 1000))
    placed = assign(brokers, partitions, factor, start=start)
    assert not isinstance(placed, Refusal)
    assert placed == assign(list(reversed(brokers)), partitions, factor, start=start)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        on = [sum(node % racks == rack for node in replicas) for rack in range(racks)]
        assert max(on) - min(on) <= 1, replicas
    led = [sum(replicas[0] == broker.id for replicas in placed) for broker in brokers]
    held = [sum(broker.id in replicas for replicas in placed) for broker in brokers]
    assert max(led) - min(led) <= 1
    assert max(held) - min(held) <= 2
