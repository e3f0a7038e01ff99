"""The decisions of one broker, made durable and handed to the native server. Not thread-safe: one control loop calls it.

Every change runs in the same order: decide (pure, `cluster`), store by compare-and-set, apply to the native server, then
answer. A kill in between leaves a stored decision that `start` applies; a topic whose deletion is decided is never served
again, and its directories are removed at the next start at the latest.
"""

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pylog_spark.broker import config
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.setting import ConfigError, Value, show
from pylog_spark.cluster import documents
from pylog_spark.cluster.changes import ConfigRules
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import Topic, topic_id_uuid
from pylog_spark.cluster.store import Store, StoreError
from pylog_spark.cluster.topics import Rules

log = logging.getLogger("pylog.broker")

_PARTITION_DIRECTORY = re.compile(r"(.+)-(\d+)")
_NAMED_STRAYS = 5


class NativeTopics(Protocol):
    """What the controller needs of `NativeBroker`."""

    def apply_topics(self, topics_json: str) -> None: ...
    def remove_topic(self, name: str) -> None: ...


def stored_cluster_id(store: Store) -> str | None:
    """The id of this cluster, None before its first start. Raises `StoreError`, `DocumentError`."""
    stored = store.get(documents.CLUSTER)
    return None if stored is None else documents.decode_cluster(stored.data)


def stored_config(store: Store, given: BrokerConfig) -> BrokerConfig:
    """`given` and above it what was changed while the broker ran earlier."""
    path = documents.broker_config_path(given.number("node.id"))
    stored = store.get(path)
    if stored is None:
        return given
    changed = documents.decode_broker_config(path, stored.data)
    return BrokerConfig(given.given, config.parse(config.BROKER, changed.items()))


class Controller:
    """Topics and settings of one broker.

    Attributes
    ----------
    topics : dict of str to Topic
        What is stored, by name, topics being deleted included.

    `native_error` is what `native` raises; it is handed in so that decisions can be tested without the native module.
    """

    def __init__(
        self, store: Store, native: NativeTopics, broker: BrokerConfig, native_error: type[Exception] = Exception
    ) -> None:
        self.broker = broker
        self.topics: dict[str, Topic] = {}
        self._revisions: dict[str, int] = {}
        self._store = store
        self._native = native
        self._native_error = native_error

    def start(self) -> None:
        """Read all stored topics and hand them to the native server. Raises `StoreError`, `DocumentError`, `NativeError`."""
        for path in self._store.list(documents.TOPICS):
            stored = self._store.get(path)
            if stored is not None:
                topic = documents.decode_topic(path, stored.data)
                self.topics[topic.name] = topic
                self._revisions[topic.name] = stored.revision
        unfinished = [topic for topic in self.topics.values() if topic.deleting]
        self._apply(list(self.topics.values()))
        for topic in unfinished:
            log.info("Finishing the deletion of topic %s.", topic.name)
            self.remove(topic)

    def rules(self) -> Rules:
        """What the settings say about topics now."""
        return Rules(
            node_id=self.broker.number("node.id"),
            num_partitions=self.broker.number("num.partitions"),
            replication_factor=self.broker.number("default.replication.factor"),
            delete_enabled=bool(self.broker["delete.topic.enable"]),
            check_config=check_topic_config,
        )

    def overrides(self, topic: Topic) -> dict[str, Value]:
        """The topic's own settings as values."""
        return config.parse(config.TOPIC, topic.configs.items())

    def commit(self, topics: Sequence[Topic]) -> list[Refusal | None]:
        """Store new or changed topics and serve them; for each, None or why the disk refused it."""
        results: list[Refusal | None] = []
        stored = []
        for topic in topics:
            refused = self._write(topic)
            results.append(refused)
            if refused is None:
                stored.append(topic)
        try:
            self._apply(stored)
        except self._native_error as error:
            log.error(
                "Topics %s are stored but cannot be served: %s", [topic.name for topic in stored], message_of(error)
            )
            refused = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message_of(error))
            return [one or refused for one in results]
        return results

    def remove(self, topic: Topic) -> Refusal | None:
        """Make the deletion of `topic` (marked so) durable, stop serving it, delete its directories, forget it."""
        refused = self._write(topic)
        if refused is not None:
            return refused
        try:
            self._native.remove_topic(topic.name)
            self._store.delete(documents.topic_path(topic.name), self._revisions[topic.name])
        except (self._native_error, StoreError) as error:
            log.error(
                "Topic %s is deleted, but not yet off the disk (the next start goes on): %s",
                topic.name,
                message_of(error),
            )
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message_of(error))
        del self.topics[topic.name], self._revisions[topic.name]
        return None

    def change_broker(self, configs: Mapping[str, str]) -> Refusal | None:
        """Store the changed broker settings (all of them) and let every topic feel them."""
        path = documents.broker_config_path(self.broker.number("node.id"))
        stored = self._store.get(path)
        try:
            self._store.compare_and_set(path, documents.encode_broker_config(configs), stored.revision if stored else 0)
        except StoreError as error:
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        self.broker = BrokerConfig(self.broker.given, config.parse(config.BROKER, configs.items()))
        self._apply([topic for topic in self.topics.values() if not topic.deleting])
        return None

    def strays(self, data_dir: str) -> list[str]:
        """Partition directories that belong to no stored topic: never touched, only named."""
        found = []
        with os.scandir(data_dir) as entries:
            for entry in entries:
                match = _PARTITION_DIRECTORY.fullmatch(entry.name)
                if match and match[1] not in self.topics and not entry.name.endswith("-delete") and entry.is_dir():
                    found.append(entry.name)
        return sorted(found)

    def warn_of_strays(self, data_dir: str) -> None:
        """One line in the log when there are directories that nobody is served from."""
        found = self.strays(data_dir)
        if found:
            named = ", ".join(found[:_NAMED_STRAYS]) + (" ..." if len(found) > _NAMED_STRAYS else "")
            log.warning("%d directories belong to no known topic and are not served: %s.", len(found), named)

    def _write(self, topic: Topic) -> Refusal | None:
        if self.topics.get(topic.name) == topic:
            return None
        revision = self._revisions.get(topic.name, 0)
        path = documents.topic_path(topic.name)
        try:
            self._revisions[topic.name] = self._store.compare_and_set(path, documents.encode_topic(topic), revision)
        except StoreError as error:
            log.error("Topic %s is not stored: %s", topic.name, error)
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        self.topics[topic.name] = topic
        return None

    def _apply(self, topics: Sequence[Topic]) -> None:
        if topics:
            self._native.apply_topics(json.dumps([self._native_topic(topic) for topic in topics]))

    def _native_topic(self, topic: Topic) -> dict[str, Any]:
        return {
            "name": topic.name,
            "topic_id": str(topic_id_uuid(topic.topic_id)),
            "internal": topic.internal,
            "config": config.log_config(self.broker, self.overrides(topic)),
            "partitions": [
                {
                    "partition": one.partition,
                    "leader": one.leader,
                    "leader_epoch": one.leader_epoch,
                    "replicas": one.replicas,
                    "isr": one.isr,
                }
                for one in topic.partitions
            ],
        }


def check_topic_config(name: str, text: str) -> str:
    """The text to store for a topic setting. Raises `ConfigError`."""
    setting = config.find(config.TOPIC, name)
    return show(setting.parse(text)) or ""


def topic_config_rules(broker: BrokerConfig) -> ConfigRules:
    """How the configs of a topic may change."""

    def listed(name: str, present: Mapping[str, str]) -> Sequence[str] | None:
        setting = config.find(config.TOPIC, name)
        value = config.topic_value(broker, setting, config.parse(config.TOPIC, present.items()))
        return value if isinstance(value, tuple) else None

    return ConfigRules(check_topic_config, listed)


def broker_config_rules(broker: BrokerConfig) -> ConfigRules:
    """How the settings of this broker may change while it runs."""

    def check(name: str, text: str) -> str:
        setting = config.find(config.BROKER, name)
        if not setting.dynamic:
            raise ConfigError(f"{name} cannot change while the broker runs: restart it with --config {name}={text}.")
        return show(setting.parse(text)) or ""

    def listed(name: str, present: Mapping[str, str]) -> Sequence[str] | None:
        setting = config.find(config.BROKER, name)
        value = setting.parse(present[name]) if name in present else broker[name]
        return value if isinstance(value, tuple) else None

    return ConfigRules(check, listed)


def message_of(error: BaseException) -> str:
    """The sentence of an error; native errors carry (kind, sentence)."""
    return str(error.args[1]) if len(error.args) == 2 else str(error)
