"""Settings: each declared once, refused with a sentence when wrong, resolved in Kafka's order."""

import json

import pytest

from pylog_spark.broker import config
from pylog_spark.broker.config import BROKER_SETTINGS, TOPIC_SETTINGS, ConfigError, broker_config, log_config
from pylog_spark.broker.setting import show

HOUR_MS = 3_600_000


@pytest.mark.parametrize("setting", [*BROKER_SETTINGS, *TOPIC_SETTINGS], ids=lambda setting: setting.name)
def test_every_default_is_a_valid_value_of_its_own_setting(setting):
    assert setting.doc.endswith(".")
    if setting.default is not None:
        assert setting.parse(show(setting.default)) == setting.default


def test_no_setting_is_declared_twice_and_every_fallback_exists():
    for settings in (BROKER_SETTINGS, TOPIC_SETTINGS):
        names = [setting.name for setting in settings]
        assert names == sorted(set(names))
    for setting in TOPIC_SETTINGS:
        # Kafka has no broker settings for these; what a topic is a copy of, which schemas it asks for, whether it is archived, and which groups it is kept for, is
        # about that topic.
        alone = (
            "replication.throttled.replicas",
            "mirror.source",
            ".schema.validation",
            "remote.storage.enable",
            "remote.log.copy.disable",
            "dead.letter.topic",
            "dead.letter.owner",
            "until.checkpointed",
            "until.checkpointed.max.bytes",
            "until.checkpointed.max.ms",
        )
        assert setting.synonyms or setting.name.endswith(alone), setting.name
        for synonym in setting.synonyms:
            broker = config.BROKER[synonym.name]
            assert broker.type is setting.type or synonym.factor > 1


def test_every_topic_default_equals_what_its_broker_settings_give():
    for setting in TOPIC_SETTINGS:
        fallbacks = [(config.BROKER[synonym.name].default, synonym.factor) for synonym in setting.synonyms]
        given = [value * factor if factor > 1 else value for value, factor in fallbacks if value is not None]
        assert not fallbacks or given[0] == setting.default, setting.name


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("num.partition", "4", "did you mean num.partitions"),
        ("log.segment.byte", "4", "did you mean log.segment.bytes"),
        ("retention.ms", "4", "did you mean log.retention.ms"),
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", "four", "whole number"),
        ("num.partitions", "1_0", "whole number"),
        ("num.partitions", "4294967296", "does not fit"),
        ("log.retention.ms", "9223372036854775808", "does not fit"),
        ("num.network.threads", "1000", "between 1 and 256"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.cleanup.policy", "compacted", "delete, compact"),
        ("log.cleaner.io.buffer.load.factor", "1.5", "between 0 and 1"),
        ("log.cleanup.policy", "", "delete"),
        ("log.message.timestamp.type", "createtime", "CreateTime, LogAppendTime"),
        ("log.durability", "fsync", "page-cache, flushed"),
        ("min.insync.replicas", "0", "at least 1"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence_that_helps(name, text, sentence):
    with pytest.raises(ConfigError) as refused:
        broker_config([(name, text)])
    assert sentence in str(refused.value)
    assert name in str(refused.value)


def test_the_last_one_wins_and_aliases_are_the_same_setting():
    assert broker_config([("node.id", "3"), ("broker.id", "4")]).number("node.id") == 4


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], 168 * HOUR_MS),
        ([("log.retention.hours", "1")], HOUR_MS),
        ([("log.retention.hours", "-1")], -1),
        ([("log.retention.hours", "-5")], -1),
        ([("log.retention.hours", "1"), ("log.retention.minutes", "5")], 300_000),
        ([("log.retention.ms", "7"), ("log.retention.minutes", "5")], 7),
    ],
)
def test_retention_takes_the_finest_unit_that_is_set(given, expected):
    assert log_config(broker_config(given), {})["retention.ms"] == expected


def test_a_topic_may_be_compacted_and_deleted_from():
    resolved = log_config(
        broker_config([("log.cleaner.min.cleanable.ratio", "0.25")]), {"cleanup.policy": ("compact", "delete")}
    )
    assert resolved["cleanup.policy"] == "compact,delete"
    assert resolved["min.cleanable.dirty.ratio"] == 0.25
    assert resolved["delete.retention.ms"] == 24 * HOUR_MS


def test_a_topics_own_value_wins_over_the_brokers():
    broker = broker_config([("log.segment.bytes", "1000")])
    assert log_config(broker, {})["segment.bytes"] == 1000
    assert log_config(broker, {"segment.bytes": 2000})["segment.bytes"] == 2000


def test_a_value_changed_while_running_wins_over_the_one_given_at_the_start():
    broker = config.BrokerConfig({"log.roll.ms": 5}, {"log.roll.hours": 2})
    assert log_config(broker, {})["segment.ms"] == 5
    assert log_config(config.BrokerConfig({"log.roll.ms": 5}, {"log.roll.ms": 6}), {})["segment.ms"] == 6


def test_keywords_are_kafkas_names_with_underscores():
    pairs = config.keyword_settings({"num_partitions": 4, "log_preallocate": True, "log_cleanup_policy": ["delete"]})
    assert pairs == [("num.partitions", "4"), ("log.preallocate", "true"), ("log.cleanup.policy", "delete")]


def test_native_settings_carry_the_inter_broker_listener_and_no_settings_of_listeners():
    native = json.loads(config.native_settings(broker_config([("node.id", "7")]), "c", "INSIDE", {}))
    assert (native["inter_broker"], native["node.id"]) == ("INSIDE", 7)
    assert "ssl.client.auth" not in native


def test_a_listeners_own_setting_wins_over_the_brokers_and_others_keep_the_brokers():
    broker = broker_config([("ssl.client.auth", "requested"), ("listener.name.OUTSIDE.ssl.client.auth", "required")])
    assert broker.of_listener("OUTSIDE", "ssl.client.auth") == "required"
    assert broker.of_listener("INSIDE", "ssl.client.auth") == "requested"
    assert list(broker.listener_settings()) == [("outside", "ssl.client.auth")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("listener.name.outside.num.partitions", "a listener has no num.partitions of its own"),
        ("listener.name.outside.ssl.client.aut", "did you mean ssl.client.auth"),
    ],
)
def test_a_setting_that_listeners_do_not_have_is_refused(name, sentence):
    with pytest.raises(ConfigError, match=sentence):
        broker_config([(name, "1")])
