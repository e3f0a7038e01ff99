"""Settings of single groups: what may be set, where it is kept, what the native server gets."""

import json

import pytest

from pylog_spark.broker import requests
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.store.file import FileStore

GROUP = requests.RESOURCE_GROUP


class Native:
    """Remembers the settings of groups."""

    def __init__(self):
        self.groups = {}

    def apply_topics(self, topics_json):
        """There are none."""

    def apply_security(self, security_json):
        self.security = json.loads(security_json)

    def apply_group_configs(self, configs_json):
        self.groups = json.loads(configs_json)


@pytest.fixture
def native():
    return Native()


@pytest.fixture
def registry(tmp_path, native):
    return started(tmp_path, native)


def started(folder, native):
    made = TopicRegistry(FileStore(folder), native, broker_config([("group.share.delivery.count.limit", "7")]))
    made.start()
    return made


def alter(registry, group, operation=0, **configs):
    asked = [
        {"name": name.replace("_", "."), "config_operation": operation, "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": GROUP, "resource_name": group, "configs": asked}
    request = {"resources": [resource], "validate_only": False}
    return requests.incremental_alter_configs(registry, request)["responses"][0]["error_code"]


def described(registry, group):
    resource = {"resource_type": GROUP, "resource_name": group, "configuration_keys": None}
    (result,) = requests.describe_configs(registry, {"resources": [resource]})["results"]
    return {config["name"]: (config["value"], config["config_source"]) for config in result["configs"]}


def test_what_a_group_sets_is_stored_applied_and_shown(registry, native, tmp_path):
    assert alter(registry, "g", share_auto_offset_reset="by_duration:PT1H", share_isolation_level="read_committed") == 0
    handed_over = {"share.auto.offset.reset": {"by_duration_ms": 3_600_000}, "share.isolation.level": "read_committed"}
    assert native.groups == {"g": handed_over}
    shown = described(registry, "g")
    assert shown["share.isolation.level"] == ("read_committed", 8)
    assert shown["share.delivery.count.limit"] == ("7", 4)
    assert shown["share.record.lock.duration.ms"] == ("30000", 5)
    again = Native()
    after = started(tmp_path, again)
    assert again.groups == native.groups
    assert alter(after, "g", 1, share_auto_offset_reset=None, share_isolation_level=None) == 0
    assert again.groups == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share_auto_offset_reset", "never"),
        ("share_auto_offset_reset", "by_duration:1h"),
        ("share_delivery_count_limit", "11"),
        ("share_delivery_count_limit", "1"),
        ("share_heartbeat_interval_ms", "4999"),
        ("share_session_timeout_ms", "60001"),
        ("share_record_lock_duration_ms", "14999"),
        ("share_partition_max_record_locks", "4001"),
        ("share_isolation_level", "none"),
        ("retention_ms", "5"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(registry, native, name, value):
    assert alter(registry, "g", **{name: value}) == ErrorCode.INVALID_CONFIG
    assert alter(registry, "", share_auto_offset_reset="latest") == ErrorCode.INVALID_REQUEST
    assert native.groups == {}


def test_the_broker_says_between_which_bounds_a_group_may_choose(tmp_path, native):
    broker = broker_config(
        [("group.share.max.delivery.count.limit", "25"), ("group.share.min.session.timeout.ms", "1000")]
    )
    registry = TopicRegistry(FileStore(tmp_path), native, broker)
    registry.start()
    assert alter(registry, "g", share_delivery_count_limit="25", share_session_timeout_ms="1000") == 0
    assert native.groups == {"g": {"share.delivery.count.limit": 25, "share.session.timeout.ms": 1000}}
    assert alter(registry, "g", share_delivery_count_limit="26") == ErrorCode.INVALID_CONFIG


def test_no_more_groups_have_settings_than_the_bound(registry, native, monkeypatch):
    monkeypatch.setattr("pylog_spark.broker.group_config.GROUPS_MAX", 1)
    assert alter(registry, "g", share_delivery_count_limit="3") == 0
    assert alter(registry, "h", share_delivery_count_limit="3") == ErrorCode.POLICY_VIOLATION
    assert alter(registry, "g", share_delivery_count_limit="4") == 0
    assert native.groups == {"g": {"share.delivery.count.limit": 4}}
