"""Placements of replicas that are moved: complete, even, over racks, and with as few moves as that takes."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo
from pylog_spark.cluster.placement import changes, plan, spread


def brokers(*ids, racks=()):
    return [BrokerInfo(broker_id, rack=racks[place] if racks else None) for place, broker_id in enumerate(ids)]


def placed(present, there, factor=None):
    found = spread(present, there, factor)
    assert not isinstance(found, Refusal), found
    return found


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 9)),
        st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
        min_size=1,
    ),
    st.sets(st.integers(1, 6), min_size=3),
    st.sampled_from([None, 1, 2, 3]),
)
@settings(deadline=None)
def test_every_partition_has_its_replicas_on_brokers_that_take_them_and_no_broker_two_more_than_another(
    present, there, factor
):
    found = placed(present, brokers(*sorted(there)), factor)
    assert found.keys() == present.keys()
    for partition, replicas in found.items():
        assert len(replicas) == len(set(replicas)) == (factor or len(present[partition]))
        assert there.issuperset(replicas)
    held = Counter(broker for replicas in found.values() for broker in replicas)
    if all(len(replicas) == 1 for replicas in found.values()):
        assert max(held.values()) - min(held[broker] for broker in there) <= 1
    assert spread(present, brokers(*sorted(there)), factor) == found


def test_a_replica_stays_where_it_is_when_its_broker_stays_and_the_burden_is_even():
    present = {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    assert placed(present, brokers(1, 2, 3)) == present


def test_a_broker_that_goes_gives_only_its_own_replicas_away():
    present = {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    found = placed(present, brokers(1, 2, 4))
    moved = sum(len(set(found[partition]) - set(present[partition])) for partition in present)
    assert moved == 2
    assert all(3 not in replicas for replicas in found.values())


def test_a_new_broker_takes_its_share():
    present = {("t", index): (1 + index % 2,) for index in range(6)}
    held = Counter(replicas[0] for replicas in placed(present, brokers(1, 2, 3)).values())
    assert held == {1: 2, 2: 2, 3: 2}


def test_more_replicas_go_to_other_racks():
    there = brokers(1, 2, 3, 4, racks=["a", "a", "b", "b"])
    for replicas in placed({("t", index): (1 + index % 4,) for index in range(8)}, there, factor=2).values():
        assert {replica > 2 for replica in replicas} == {False, True}


def test_leaders_are_spread_without_a_record_that_moves():
    present = {("t", index): (1, 2, 3) for index in range(6)}
    found = placed(present, brokers(1, 2, 3))
    assert Counter(replicas[0] for replicas in found.values()) == {1: 2, 2: 2, 3: 2}
    assert {frozenset(replicas) for replicas in found.values()} == {frozenset({1, 2, 3})}


def test_more_replicas_than_brokers_are_refused():
    refused = spread({("t", 0): (1,)}, brokers(1, 2), factor=3)
    assert isinstance(refused, Refusal)
    assert refused.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_plan_names_only_partitions_whose_replicas_change():
    present = {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    assert plan(present, brokers(1, 2, 3)) == {}
    found = plan(present, brokers(1, 2, 3, 4), broker_ids=[1, 2, 4])
    assert found.keys() == {("t", 1), ("t", 2)}
    assert all(set(replicas) <= {1, 2, 4} for replicas in found.values())


def test_a_plan_for_a_broker_that_does_not_live_is_refused():
    refused = plan({("t", 0): (1,)}, brokers(1, 2), broker_ids=[2, 9])
    assert refused == Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Broker 9 is not alive; the live brokers are 1,2.")


def test_what_is_wanted_and_there_already_is_no_change():
    assert changes({("t", 0): [1, 2]}, {("t", 0): (1, 2), ("t", 1): (2, 1)}) == {("t", 1): (2, 1)}
