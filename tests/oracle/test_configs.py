"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from typing import Any

from tests.oracle.compare import case
from tests.oracle.script import Script

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(s: Script, kind: int, name: str, *keys: str, **fields: Any) -> None:
    """DescribeConfigs of one resource, of some settings."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    s.call("DescribeConfigs", resources=[resource], **fields)


def change(s: Script, name: str, *changes: tuple[int, str, str | None], kind: int = TOPIC, dry: bool = False) -> None:
    """IncrementalAlterConfigs of one resource."""
    configs = [{"config_operation": step, "name": key, "value": value} for step, key, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    s.call("IncrementalAlterConfigs", resources=[resource], validate_only=dry)


def replace(s: Script, name: str, dry: bool = False, **configs: str | None) -> None:
    """AlterConfigs of one topic; settings with underscores."""
    given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    resource = {"resource_type": TOPIC, "resource_name": name, "configs": given}
    s.call("AlterConfigs", resources=[resource], validate_only=dry)


@case
def test_a_default_has_the_source_default(s: Script) -> None:
    describe(s, TOPIC, s.topic(), "retention.bytes", "segment.ms", "index.interval.bytes", include_synonyms=True)
    s.says("NONE")
    s.holds(config_source=5, value="-1")


@case
def test_a_topics_own_value_has_the_source_topic_and_its_synonyms(s: Script) -> None:
    describe(s, TOPIC, s.topic(retention_bytes="5000"), "retention.bytes", include_synonyms=True)
    s.holds(config_source=1, value="5000")


@case
def test_every_version_of_describe_configs_answers_alike(s: Script) -> None:
    topic = s.topic(retention_bytes="5000")
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.bytes"]}
    for version in range(1, 5):
        s.call("DescribeConfigs", version, resources=[resource], include_synonyms=True)
    s.says("NONE")


@case
def test_the_settings_of_an_unknown_topic(s: Script) -> None:
    describe(s, TOPIC, s.new("absent"))
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_the_settings_of_an_invalid_topic_name(s: Script) -> None:
    describe(s, TOPIC, "a b")
    s.says("INVALID_TOPIC_EXCEPTION")


@case
def test_a_setting_that_does_not_exist_is_left_out(s: Script) -> None:
    describe(s, TOPIC, s.topic(), "no.such.setting")
    s.says("NONE")


@case
def test_the_settings_that_user_interfaces_read_of_a_broker(s: Script) -> None:
    for name in ("num.partitions", "auto.create.topics.enable", "message.max.bytes", "log.retention.hours"):
        describe(s, BROKER, "1", name)
    s.says("NONE")


@case
def test_the_settings_of_a_broker_that_is_not_there(s: Script) -> None:
    describe(s, BROKER, "9")
    s.says("INVALID_REQUEST")


@case
def test_the_settings_of_a_broker_whose_number_is_none(s: Script) -> None:
    describe(s, BROKER, "one")
    s.says("INVALID_REQUEST")


@case
def test_the_defaults_of_all_brokers_are_empty(s: Script) -> None:
    describe(s, BROKER, "")
    s.says("NONE")


@case
def test_settings_of_a_kind_of_resource_that_does_not_exist(s: Script) -> None:
    describe(s, 77, "x")
    s.says("INVALID_REQUEST")


@case
def test_to_delete_a_setting_that_does_not_exist_is_no_error(s: Script) -> None:
    topic = s.topic()
    change(s, topic, (DELETE, "no.such.setting", None), (SET, "retention.ms", "1234567"))
    s.says("NONE")
    s.until(_has(1, "1234567"), "DescribeConfigs", resources=_one(topic, "retention.ms"))
    change(s, "1", (DELETE, "no.such.setting", None), kind=BROKER, dry=True)


@case
def test_a_value_is_set_and_read_back(s: Script) -> None:
    topic = s.topic()
    change(s, topic, (SET, "retention.ms", "1234567"))
    s.says("NONE")
    s.until(_has(1, "1234567"), "DescribeConfigs", resources=_one(topic, "retention.ms"))
    s.holds(value="1234567", config_source=1)


@case
def test_a_deleted_value_goes_back_to_the_default(s: Script) -> None:
    topic = s.topic(retention_bytes="5000")
    change(s, topic, (DELETE, "retention.bytes", None))
    s.says("NONE")
    s.until(_has(5, "-1"), "DescribeConfigs", resources=_one(topic, "retention.bytes"))


@case
def test_deleting_what_was_never_set_is_no_error(s: Script) -> None:
    change(s, s.topic(), (DELETE, "retention.ms", None))
    s.says("NONE")


@case
def test_changes_that_are_refused(s: Script) -> None:
    topic = s.topic()
    for step in (
        (SET, "no.such.setting", "1"),
        (SET, "retention.ms", "x"),
        (SET, "retention.ms", None),
        (APPEND, "retention.ms", "1"),
        (9, "retention.ms", "1"),
        (APPEND, "cleanup.policy", "wash"),
    ):
        change(s, topic, step)


@case
def test_the_same_setting_twice_in_a_change(s: Script) -> None:
    change(s, s.topic(), (SET, "retention.ms", "1"), (SET, "retention.ms", "2"))
    s.says("INVALID_REQUEST")


@case
def test_a_change_of_an_unknown_topic(s: Script) -> None:
    change(s, s.new("absent"), (SET, "retention.ms", "1000"))
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_change_of_no_topic(s: Script) -> None:
    change(s, "", (SET, "retention.ms", "1000"))
    s.says("INVALID_REQUEST")


@case
def test_a_dry_change_changes_nothing(s: Script) -> None:
    topic = s.topic()
    change(s, topic, (SET, "retention.bytes", "1000"), dry=True)
    s.says("NONE")
    describe(s, TOPIC, topic, "retention.bytes")
    s.holds(value="-1")


@case
def test_a_list_grows_and_shrinks(s: Script) -> None:
    topic = s.topic()
    change(s, topic, (APPEND, "cleanup.policy", "compact"))
    s.says("NONE")
    s.until(_has(1, "delete,compact"), "DescribeConfigs", resources=_one(topic, "cleanup.policy"))
    change(s, topic, (SUBTRACT, "cleanup.policy", "delete"))
    s.until(_has(1, "compact"), "DescribeConfigs", resources=_one(topic, "cleanup.policy"))
    s.says("NONE")


@case
def test_the_same_resource_twice_in_a_request(s: Script) -> None:
    configs = [{"config_operation": SET, "name": "retention.ms", "value": "1"}]
    resource = {"resource_type": TOPIC, "resource_name": s.topic(), "configs": configs}
    s.call("IncrementalAlterConfigs", resources=[resource, resource])


@case
def test_alter_configs_takes_away_what_it_does_not_name(s: Script) -> None:
    topic = s.topic(retention_bytes="5000", segment_ms="70000")
    replace(s, topic, segment_ms="80000")
    s.says("NONE")
    s.until(_has(1, "80000"), "DescribeConfigs", resources=_one(topic, "segment.ms"))
    s.until(_has(5, "-1"), "DescribeConfigs", resources=_one(topic, "retention.bytes"))


@case
def test_alter_configs_that_are_refused(s: Script) -> None:
    topic = s.topic()
    replace(s, topic, retention_ms="x")
    s.says("INVALID_CONFIG")
    replace(s, topic, retention_ms=None)
    s.says("INVALID_REQUEST")
    replace(s, topic, no_such_setting="1")
    s.says("INVALID_CONFIG")
    replace(s, s.new("absent"), retention_ms="1")
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_brokers_fixed_setting_cannot_be_changed(s: Script) -> None:
    change(s, "1", (SET, "node.id", "5"), kind=BROKER)
    change(s, "1", (SET, "num.partitions", "5"), kind=BROKER)
    s.says("INVALID_REQUEST")


@case
def test_a_change_of_a_broker_that_is_not_there(s: Script) -> None:
    change(s, "8", (SET, "log.retention.ms", "1000000"), kind=BROKER)
    s.says("INVALID_REQUEST")


@case
def test_the_level_of_the_root_logger_is_set_and_read_back(s: Script) -> None:
    for level in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"):
        change(s, "1", (SET, "root", level), kind=LOGGER)
        s.says("NONE")
        describe(s, LOGGER, "1", "root", include_synonyms=True)
        s.holds(value=level, config_source=6)
    change(s, "1", (SET, "root", "INFO"), kind=LOGGER)
    change(s, "1", (SET, "root", "DEBUG"), kind=LOGGER, dry=True)
    s.says("NONE")
    describe(s, LOGGER, "1", "root")
    s.holds(value="INFO")


@case
def test_levels_of_loggers_that_are_refused(s: Script) -> None:
    for step in (
        (SET, "no.such.logger", "INFO"),
        (DELETE, "no.such.logger", None),
        (SET, "root", "LOUD"),
        (SET, "root", "OFF"),
        (SET, "root", "info"),
        (SET, "root", None),
        (DELETE, "root", None),
        (APPEND, "root", "INFO"),
        (SUBTRACT, "root", "INFO"),
        (9, "root", "INFO"),
    ):
        change(s, "1", step, kind=LOGGER)
    change(s, "1", (SET, "root", "INFO"), (SET, "root", "WARN"), kind=LOGGER)
    s.says("INVALID_REQUEST")


@case
def test_loggers_of_a_broker_that_is_not_there(s: Script) -> None:
    for name in ("8", "one", ""):
        describe(s, LOGGER, name)
        s.says("INVALID_REQUEST")
        change(s, name, (SET, "root", "INFO"), kind=LOGGER)
        s.says("INVALID_REQUEST")


@case
def test_alter_configs_knows_no_loggers(s: Script) -> None:
    resource = {"resource_type": LOGGER, "resource_name": "1", "configs": [{"name": "root", "value": "INFO"}]}
    s.call("AlterConfigs", resources=[resource], validate_only=False)
    s.says("INVALID_REQUEST")


@case
def test_a_brokers_dynamic_setting_is_the_default_of_topics(s: Script) -> None:
    topic = s.topic()
    change(s, "1", (SET, "log.segment.delete.delay.ms", "61000"), kind=BROKER)
    s.says("NONE")
    s.until(_has(2, "61000"), "DescribeConfigs", resources=_one(topic, "file.delete.delay.ms"), include_synonyms=True)
    change(s, "1", (DELETE, "log.segment.delete.delay.ms", None), kind=BROKER)
    s.until(_has(5, "60000"), "DescribeConfigs", resources=_one(topic, "file.delete.delay.ms"), include_synonyms=True)


def _one(topic: str, key: str) -> list[dict[str, Any]]:
    return [{"resource_type": TOPIC, "resource_name": topic, "configuration_keys": [key]}]


def _has(source: int, value: str) -> Any:
    """Whether the one setting in an answer has this source and value."""

    def done(answer: dict[str, Any]) -> bool:
        (config,) = answer["results"][0]["configs"]
        return bool(config["config_source"] == source and config["value"] == value)

    return done
