"""Replicas are spread over racks, then brokers; the same question has the same answer."""

from collections import Counter

import pytest

from pylog_spark.cluster.assignment import assign
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo

SIX = [BrokerInfo(node, rack=f"rack{node % 3}") for node in range(1, 7)]


def placed(brokers: list[BrokerInfo], partitions: int, factor: int, start: int = 0) -> tuple[tuple[int, ...], ...]:
    found = assign(brokers, partitions, factor, start=start)
    assert not isinstance(found, Refusal)
    return found


def test_each_broker_leads_and_holds_the_same():
    found = placed(SIX, 60, 3)
    assert set(Counter(replicas[0] for replicas in found).values()) == {10}
    assert set(Counter(broker for replicas in found for broker in replicas).values()) == {30}


def test_the_replicas_of_a_partition_stand_in_different_racks():
    assert all(len({broker % 3 for broker in replicas}) == 3 for replicas in placed(SIX, 60, 3))


def test_the_death_of_a_broker_burdens_all_others():
    plain = [BrokerInfo(node) for node in range(6)]
    followers = Counter(replicas[1] for replicas in placed(plain, 60, 3) if replicas[0] == 0)
    assert set(followers) == {1, 2, 3, 4, 5}


def test_other_topics_begin_at_other_brokers():
    assert {placed(SIX, 1, 1, start)[0][0] for start in range(6)} == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize(("brokers", "factor"), [([], 1), (SIX, 7), (SIX, 0)])
def test_a_factor_that_cannot_be_reached_is_refused(brokers, factor):
    refused = assign(brokers, 1, factor, start=0)
    assert isinstance(refused, Refusal)
    assert refused.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_absent_brokers_lead_nothing_and_hold_only_what_the_others_cannot():
    plain = [BrokerInfo(node) for node in range(1, 5)]
    found = assign(plain, 40, 3, start=5, absent={4})
    assert {broker for replicas in found for broker in replicas} == {1, 2, 3}
    needed = assign(plain, 40, 3, start=5, absent={1, 4})
    assert all(replicas[0] in (2, 3) and {2, 3} < set(replicas) for replicas in needed)
    assert max(Counter(replicas[0] for replicas in needed).values()) == 20
    assert max(Counter(broker for replicas in needed for broker in replicas if broker in (1, 4)).values()) == 20


def test_another_rack_is_worth_more_than_a_broker_that_is_there():
    absent = {3, 6}
    for replicas in assign(SIX, 60, 3, start=0, absent=absent):
        assert replicas[0] not in absent
        assert {broker % 3 for broker in replicas} == {0, 1, 2}
        assert len(absent.intersection(replicas)) == 1


@pytest.mark.parametrize(("absent", "sentence"), [({1, 2, 3}, "no broker is ready"), ({1}, "only 3 broker")])
def test_absent_brokers_count_for_the_factor_but_one_must_be_there(absent, sentence):
    refused = assign([BrokerInfo(node) for node in (1, 2, 3)], 1, 4, start=0, absent=absent)
    assert isinstance(refused, Refusal)
    assert sentence in refused.message
