"""The settings of brokers and topics: finding them by name, parsing them, and the value of one that is not given.

They are declared in the native half (`broker_native/settings`), each once. An unknown name is refused, with the nearest known one. Nothing here reads a file or starts anything.

A setting that each listener of a broker may have of its own is also known as ``listener.name.<name>.<setting>``.
A topic setting that is not given falls back to its broker settings in the order of its `synonyms` (Kafka's table:
ServerTopicConfigSynonyms), then to its default. The defaults are Kafka 4.4's.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pylog_spark._native import nearest
from pylog_spark.broker.setting import LONG_MAX, ConfigError, Setting, Value, declared

TOPIC_SETTINGS: tuple[Setting, ...] = declared("topic")
BROKER_SETTINGS: tuple[Setting, ...] = declared("broker")

TOPIC: Mapping[str, Setting] = {setting.name: setting for setting in TOPIC_SETTINGS}
BROKER: Mapping[str, Setting] = {setting.name: setting for setting in BROKER_SETTINGS}
#: Begins the name of a setting of one listener.
LISTENER_PREFIX = "listener.name."
#: SASL mechanisms, by which a setting of one listener may be told apart further: ``listener.name.<name>.<mechanism>.<setting>``.
MECHANISMS = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer")
_SASL_PREFIX = "sasl."
_ALIASES = {alias: setting for setting in BROKER_SETTINGS for alias in setting.aliases}


def find(settings: Mapping[str, Setting], name: str) -> Setting:
    """The setting called `name` (aliases count).

    Raises
    ------
    ConfigError
        There is none; the sentence has the nearest known name.
    """
    if settings is BROKER and name.startswith(LISTENER_PREFIX):
        return _find_of_listener(name)
    setting = settings.get(name) or (_ALIASES.get(name) if settings is BROKER else None)
    if setting is not None:
        return setting
    kind = "broker" if settings is BROKER else "topic" if settings is TOPIC else "group"
    near = nearest(name, list(settings))
    hint = f"did you mean {near}" if near else f"the known ones are {', '.join(settings)}"
    raise ConfigError(f"{name} is not a {kind} setting of pylog: {hint}.")


def _find_of_listener(name: str) -> Setting:
    """The setting of one listener, under its whole name, with the listener's in lower case."""
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    mechanism, _, plain = rest.partition(".")
    if mechanism not in MECHANISMS or not plain.startswith(_SASL_PREFIX):
        mechanism, plain = "", rest
    setting = find(BROKER, plain)
    if not setting.per_listener:
        raise ConfigError(f"{name} is refused: a listener has no {plain} of its own, so set it for the broker.")
    return replace(setting, name=_of_listener(listener, setting.name, mechanism))


def _of_listener(listener: str, name: str, mechanism: str = "") -> str:
    return ".".join(filter(None, (f"{LISTENER_PREFIX}{listener.lower()}", mechanism.lower(), name)))


def parse(settings: Mapping[str, Setting], given: Iterable[tuple[str, str]]) -> dict[str, Value]:
    """Parse (name, text) pairs; when a name is given twice, the last one wins. Raises `ConfigError` for the first one that is refused."""
    parsed: dict[str, Value] = {}
    for name, text in given:
        setting = find(settings, name)
        parsed[setting.name] = setting.parse(text)
    return parsed


def keyword_settings(keywords: Mapping[str, object]) -> list[tuple[str, str]]:
    """Turn Python keywords (``num_partitions=4, log_preallocate=True``) into (Kafka name, text) pairs."""
    pairs = []
    for name, value in keywords.items():
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        pairs.append((name.replace("_", "."), text.lower() if isinstance(value, bool) else text))
    return pairs


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings of one broker: what was given at the start, and what AlterConfigs has changed since, which wins."""

    given: Mapping[str, Value]
    dynamic: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        for layer in (self.dynamic, self.given):
            if name in layer:
                return layer[name]
        return BROKER[name].default

    def of_listener(self, listener: str, name: str, mechanism: str = "") -> Value:
        """The value of a setting for one listener, and one SASL mechanism if that is given: its own, else the broker's."""
        for own in (_of_listener(listener, name, mechanism), _of_listener(listener, name)):
            if own in self.given:
                return self.given[own]
        return self[name]

    def listener_settings(self) -> Iterator[tuple[str, str]]:
        """The settings that are given for single listeners: (name of the listener in lower case, setting)."""
        for name in self.given:
            if name.startswith(LISTENER_PREFIX):
                listener, _, setting = name.removeprefix(LISTENER_PREFIX).partition(".")
                yield listener, setting

    def number(self, name: str) -> int:
        """The value of a whole-number setting."""
        value = self[name]
        if not isinstance(value, int):
            raise ConfigError(f"{name} has no value: give one with --config {name}=NUMBER.")
        return value

    def text(self, name: str) -> str | None:
        """The value of a text setting, None when not set."""
        value = self[name]
        return None if value is None else str(value)

    def is_given(self, name: str) -> bool:
        """Whether it was set, at the start or later."""
        return name in self.dynamic or name in self.given


def broker_config(given: Iterable[tuple[str, str]] = ()) -> BrokerConfig:
    """Parse the broker's settings. Raises `ConfigError`."""
    return BrokerConfig(parse(BROKER, given), {})


def topic_value(broker: BrokerConfig, setting: Setting, overrides: Mapping[str, Value]) -> Value:
    """The value for a topic: its own, else that of the first broker setting that is set, else the default."""
    if setting.name in overrides:
        return overrides[setting.name]
    for synonym in setting.synonyms:
        value = broker[synonym.name] if broker.is_given(synonym.name) else None
        if value is not None:
            return _times(value, synonym.factor)
    return setting.default


def _times(value: Value, factor: int) -> Value:
    """A value in a smaller unit. Every negative value means no limit, as in Kafka."""
    if factor == 1 or not isinstance(value, int):
        return value
    return value * factor if value > 0 else max(value, -1)


def log_config(broker: BrokerConfig, overrides: Mapping[str, Value], *, internal: bool = False) -> dict[str, Any]:
    """The configuration of one topic's logs for the native server, which needs every setting.

    `internal`: the topic is one of the brokers' own, whose segments are rolled early so that they can be compacted.
    """
    resolved: dict[str, Any] = {}
    for setting in TOPIC_SETTINGS:
        if setting.native:
            value = topic_value(broker, setting, overrides)
            resolved[setting.name] = native_value(value)
    resolved["compaction_roll_bytes"] = broker.number("log.cleaner.internal.roll.bytes") if internal else LONG_MAX
    return resolved


def native_value(value: Value) -> bool | int | float | str | None:
    """The value as the native half reads it: a list is one text."""
    return ",".join(value) if isinstance(value, tuple) else value


def native_settings(broker: BrokerConfig, cluster_id: str, inter_broker: str, client: Mapping[str, str]) -> str:
    """The JSON from which `NativeBroker` is built: every setting that it reads but those of listeners, the cluster id, the name of the
    listener over which brokers reach each other, and the settings of a `client` with which they do."""
    values: dict[str, Any] = {
        setting.name: native_value(broker[setting.name])
        for setting in BROKER_SETTINGS
        if setting.native and not setting.per_listener
    }
    given = {"cluster_id": cluster_id, "inter_broker": inter_broker, "inter_broker_client": client}
    return json.dumps({**values, **given, "clustered": broker.text("zookeeper.connect") is not None})
