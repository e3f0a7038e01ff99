"""How internal topics are made: as many replicas as their settings say, one where there is no cluster."""

import pytest

from pylog_spark.broker import config
from pylog_spark.broker.internal_topics import GROUPS, SINK, TRANSACTIONS, new_topic, with_factor
from pylog_spark.cluster.topics import NewTopic

DEFAULTS = config.BrokerConfig({}, {})


@pytest.mark.parametrize(("alone", "factor"), [(True, 1), (False, 3)])
def test_they_have_three_replicas_and_one_where_there_is_no_cluster(alone: bool, factor: int) -> None:
    asked_by_a_client = with_factor(DEFAULTS, NewTopic(SINK), alone)
    made = [new_topic(DEFAULTS, GROUPS, alone), new_topic(DEFAULTS, TRANSACTIONS, alone), asked_by_a_client]
    assert [topic.replication_factor for topic in made] == [factor] * 3


@pytest.mark.parametrize(("alone", "isr"), [(True, "1"), (False, "2")])
def test_transactions_need_two_replicas_where_there_is_a_cluster(alone: bool, isr: str) -> None:
    assert dict(new_topic(DEFAULTS, TRANSACTIONS, alone).configs)["min.insync.replicas"] == isr


def test_the_settings_decide_in_a_cluster() -> None:
    given = {
        "offsets.topic.replication.factor": 2,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 2,
    }
    broker = config.BrokerConfig(given, {})
    made = {name: new_topic(broker, name, False) for name in (GROUPS, TRANSACTIONS)}
    assert [topic.replication_factor for topic in made.values()] == [2, 1]
    assert dict(made[TRANSACTIONS].configs)["min.insync.replicas"] == "1"


def test_what_a_client_chose_and_other_topics_are_left_alone() -> None:
    for asked in (NewTopic("mine"), NewTopic(SINK, replication_factor=2), NewTopic(SINK, assignments=[(0, [1])])):
        assert with_factor(DEFAULTS, asked, False) is asked
    assert new_topic(DEFAULTS, "mine", False) == NewTopic("mine")
