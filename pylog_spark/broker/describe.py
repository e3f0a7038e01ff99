"""Entries of a DescribeConfigs response: the value of a setting, its source, and the values of the other sources. Pure functions.

They have the fields of Kafka's DescribeConfigsResponse, in snake_case. Sources, and the order of synonyms, are
Kafka's (org.apache.kafka.clients.admin.ConfigEntry.ConfigSource, KIP-226): the topic's or group's own value, the value that the
broker was changed to, the one given at the broker's start, the default.
"""

import enum
from collections.abc import Iterator, Mapping

from pylog_spark.broker.config import BROKER, BROKER_SETTINGS, TOPIC_SETTINGS, BrokerConfig, topic_value
from pylog_spark.broker.group_config import GROUP_SETTINGS
from pylog_spark.broker.messages import DescribeConfigsEntry, DescribeConfigsSynonym
from pylog_spark.broker.setting import Setting, Type, Value, show


class SettingSource(enum.IntEnum):
    """Where a value comes from; the protocol's numbers."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


Layer = tuple[str, Value, SettingSource]


def topic_entries(
    broker: BrokerConfig, overrides: Mapping[str, Value], synonyms: bool, docs: bool
) -> list[DescribeConfigsEntry]:
    """Give one entry for every topic setting."""
    entries = []
    for setting in TOPIC_SETTINGS:
        layers = list(_override_layers(broker, setting, overrides, SettingSource.DYNAMIC_TOPIC_CONFIG))
        entries.append(_entry(setting, topic_value(broker, setting, overrides), layers, False, synonyms, docs))
    return entries


def group_entries(
    broker: BrokerConfig, overrides: Mapping[str, Value], synonyms: bool, docs: bool
) -> list[DescribeConfigsEntry]:
    """Give one entry for every setting that a group may have."""
    entries = []
    for setting in GROUP_SETTINGS:
        layers = list(_override_layers(broker, setting, overrides, SettingSource.GROUP_CONFIG))
        entries.append(_entry(setting, topic_value(broker, setting, overrides), layers, False, synonyms, docs))
    return entries


def broker_entries(broker: BrokerConfig, synonyms: bool, docs: bool) -> list[DescribeConfigsEntry]:
    """Give one entry for every broker setting."""
    entries = []
    for setting in BROKER_SETTINGS:
        layers = list(_broker_layers(broker, setting))
        entries.append(_entry(setting, broker[setting.name], layers, not setting.dynamic, synonyms, docs))
    return entries


def _override_layers(
    broker: BrokerConfig, setting: Setting, overrides: Mapping[str, Value], source: SettingSource
) -> Iterator[Layer]:
    if setting.name in overrides:
        yield setting.name, overrides[setting.name], source
    fallbacks = [BROKER[synonym.name] for synonym in setting.synonyms]
    given = [
        layer
        for fallback in fallbacks
        for layer in _broker_layers(broker, fallback)
        if layer[2] != SettingSource.DEFAULT_CONFIG
    ]
    defaults = [
        (fallback.name, fallback.default, SettingSource.DEFAULT_CONFIG)
        for fallback in fallbacks
        if fallback.default is not None
    ]
    yield from given
    yield from defaults


def _broker_layers(broker: BrokerConfig, setting: Setting) -> Iterator[Layer]:
    if setting.name in broker.dynamic:
        yield setting.name, broker.dynamic[setting.name], SettingSource.DYNAMIC_BROKER_CONFIG
    if setting.name in broker.given:
        yield setting.name, broker.given[setting.name], SettingSource.STATIC_BROKER_CONFIG
    if setting.default is not None:
        yield setting.name, setting.default, SettingSource.DEFAULT_CONFIG


def _entry(
    setting: Setting, value: Value, layers: list[Layer], read_only: bool, synonyms: bool, docs: bool
) -> DescribeConfigsEntry:
    source = layers[0][2] if layers else SettingSource.DEFAULT_CONFIG
    # The value of a password is not shown, as in Kafka: only that the setting is sensitive.
    sensitive = setting.type is Type.PASSWORD
    shown: list[DescribeConfigsSynonym] = (
        [
            {"name": name, "value": None if sensitive else show(layer_value), "source": int(origin)}
            for name, layer_value, origin in layers
        ]
        if synonyms
        else []
    )
    return {
        "name": setting.name,
        "value": None if sensitive else show(value),
        "read_only": read_only,
        "config_source": int(source),
        "is_sensitive": sensitive,
        "synonyms": shown,
        "config_type": int(setting.type),
        "documentation": setting.doc if docs else None,
    }
