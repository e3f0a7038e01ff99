"""Settings of one group (configs of resource GROUP, KIP-1043), kept by the topic registry. Only share groups have some."""

from collections.abc import Mapping
from typing import Any

from pylog_spark.broker import config
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.setting import BY_DURATION, INT_MAX, ConfigError, Range, Setting, Type, Value, declared, show
from pylog_spark.cluster.changes import ConfigRules
from pylog_spark.offsets.reset import duration_ms

#: Most groups that may have settings of their own. All of them are stored again with every change of one.
GROUPS_MAX = 10_000

GROUP_SETTINGS: tuple[Setting, ...] = declared("group")
GROUP: Mapping[str, Setting] = {setting.name: setting for setting in GROUP_SETTINGS}


def rules(broker: BrokerConfig) -> ConfigRules:
    """How the settings of a group may change: within the limits that `broker` sets for groups."""

    def check(name: str, text: str) -> str:
        setting = config.find(GROUP, name)
        value = setting.parse(text)
        if setting.type is Type.INT:
            _check_bounds(broker, name, value)
        return show(value) or ""

    def listed(name: str, _present: Mapping[str, str]) -> None:
        config.find(GROUP, name)

    return ConfigRules(check, listed)


def _check_bounds(broker: BrokerConfig, name: str, value: Value) -> None:
    low, high = (f"group.share.{side}.{name.removeprefix('share.')}" for side in ("min", "max"))
    if not Range(broker.number(low), broker.number(high)).accepts(value):
        sentence = f"{name}={value} is refused: it must be between {broker.number(low)} ({low}) and {broker.number(high)} ({high})."
        raise ConfigError(sentence)


def native(own: Mapping[str, str]) -> dict[str, Any]:
    """A group's settings for the native server: only those that were set for it."""
    parsed = config.parse(GROUP, own.items())
    return {name: _native(name, value) for name, value in parsed.items()}


def _native(name: str, value: Value) -> Any:
    if name == "share.auto.offset.reset" and isinstance(value, str) and value.startswith(BY_DURATION):
        return {"by_duration_ms": min(duration_ms(value.removeprefix(BY_DURATION)), INT_MAX * 1_000)}
    return value
