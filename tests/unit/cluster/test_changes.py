"""Config changes apply as a whole or not at all."""

import pytest

from pylog_spark.broker.config import broker_config
from pylog_spark.broker.registry import broker_config_rules, topic_config_rules
from pylog_spark.cluster import changes
from pylog_spark.cluster.changes import Change, ConfigOperation
from pylog_spark.cluster.errors import ErrorCode, Refusal

RULES = topic_config_rules(broker_config())


def test_set_and_delete_change_only_what_they_name():
    asked = [Change("retention.ms", ConfigOperation.SET, " 5 "), Change("segment.ms", ConfigOperation.DELETE, None)]
    after = changes.incremental({"segment.ms": "9", "flush.ms": "7"}, asked, RULES)
    assert after == {"retention.ms": "5", "flush.ms": "7"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("retention.ms", ConfigOperation.SET, "x"), ErrorCode.INVALID_CONFIG),
        (Change("retention.ms", ConfigOperation.SET, None), ErrorCode.INVALID_REQUEST),
        (Change("retention.ms", ConfigOperation.APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (Change("cleanup.policy", ConfigOperation.APPEND, "compress"), ErrorCode.INVALID_CONFIG),
        (Change("cleanup.policy", ConfigOperation.SUBTRACT, "delete"), ErrorCode.INVALID_CONFIG),
        (Change("no.such", ConfigOperation.SET, "1"), ErrorCode.INVALID_CONFIG),
        (Change("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_one_bad_change_refuses_all_of_them(change, code):
    present = {"flush.ms": "7"}
    outcome = changes.incremental(present, [Change("segment.ms", ConfigOperation.SET, "1"), change], RULES)
    assert isinstance(outcome, Refusal)
    assert outcome.code is code
    assert present == {"flush.ms": "7"}


@pytest.mark.parametrize("rules", [RULES, broker_config_rules(broker_config())], ids=["topic", "broker"])
def test_to_delete_a_setting_that_is_not_known_changes_nothing(rules):
    unknown = [
        Change("no.such", ConfigOperation.DELETE, None),
        Change("compression.type", ConfigOperation.SET, "producer"),
    ]
    assert changes.incremental({}, unknown, rules) == {"compression.type": "producer"}


def test_naming_a_config_twice_is_an_invalid_request():
    outcome = changes.incremental(
        {}, [Change("flush.ms", ConfigOperation.SET, "1"), Change("flush.ms", ConfigOperation.DELETE, None)], RULES
    )
    assert isinstance(outcome, Refusal)
    assert outcome.code is ErrorCode.INVALID_REQUEST


def test_appending_what_is_there_already_keeps_it_once():
    assert changes.incremental({}, [Change("cleanup.policy", ConfigOperation.APPEND, "delete")], RULES) == {
        "cleanup.policy": "delete"
    }


def test_a_full_change_sends_everything_else_back_to_its_default():
    assert changes.full([("retention.ms", "5")], RULES) == {"retention.ms": "5"}


def test_a_broker_setting_that_is_read_at_start_cannot_change_later():
    rules = broker_config_rules(broker_config())
    outcome = changes.incremental({}, [Change("num.partitions", ConfigOperation.SET, "4")], rules)
    assert isinstance(outcome, Refusal)
    assert "restart" in outcome.message
    assert changes.incremental({}, [Change("log.retention.ms", ConfigOperation.SET, "4")], rules) == {
        "log.retention.ms": "4"
    }
