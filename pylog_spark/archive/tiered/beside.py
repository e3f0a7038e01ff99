"""The archive beside a broker (`archive.url`): what it needs to know of the broker and its cluster. Loaded by brokers where that is set.

Its threads are in `pylog_spark.archive.tiered`; they read the topics that the control loop keeps, and ask the store themselves only whether a topic
was really deleted.
"""

import time
from collections.abc import Callable

from pylog_spark._native import NativeBroker
from pylog_spark.archive.store.layout import StoredTopic
from pylog_spark.archive.tiered.service import ArchiveService, ArchiveSettings
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cluster import documents
from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.store import StoreError

__all__ = ["ArchiveService", "ArchiveSettings", "archive_of", "archive_settings"]


def archive_settings(broker: BrokerConfig) -> ArchiveSettings:
    """The settings of a broker's archive. Raises `ConfigError`."""
    url = broker.text("archive.url") or ""
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("/")[0]:
        sentence = f"archive.url is refused: the {scheme} URL has credentials in it, which DescribeConfigs would show. Leave them to the environment."
        raise ConfigError(sentence)
    return ArchiveSettings(
        url,
        broker.number("archive.compression.level"),
        broker.number("archive.segment.bytes"),
        bool(broker["archive.compression.long.range"]),
        broker.number("remote.log.manager.task.interval.ms"),
        broker.number("remote.log.manager.copy.max.bytes.per.second"),
        broker.number("remote.log.reader.threads"),
        broker.number("archive.cache.bytes"),
    )


class OfBroker:
    """The cluster, as one broker knows it (`pylog_spark.archive.tiered.sweeping.Cluster`)."""

    def __init__(self, registry: TopicRegistry, cluster_id: str, is_decider: Callable[[], bool]) -> None:
        self._registry, self.cluster_id, self.is_decider = registry, cluster_id, is_decider

    def topic_ids(self) -> set[str]:
        """The ids of all topics that are not being deleted."""
        return {topic.topic_id for topic in list(self._registry.topics.values()) if not topic.deleting}

    def stored_topic_id(self, topic: str) -> str | None:
        """The id of a topic in the store; None when it is not there, or is being deleted. Raises OSError."""
        path = documents.topic_path(topic)
        try:
            stored = self._registry.store.get(path)
            found = None if stored is None else documents.decode_topic(path, stored.data)
        except (StoreError, DocumentError) as error:
            raise OSError(str(error)) from error
        return None if found is None or found.deleting else found.topic_id

    def stored_topic(self, name: str) -> StoredTopic | None:
        """A topic as it is written into the archive."""
        topic = self._registry.topics.get(name)
        if topic is None:
            return None
        configs = dict(sorted(topic.configs.items()))
        count, now_ms = len(topic.partitions), time.time_ns() // 1_000_000
        return StoredTopic(name, topic.topic_id, self.cluster_id, count, configs, now_ms)


def archive_of(
    settings: ArchiveSettings,
    native: NativeBroker,
    registry: TopicRegistry,
    cluster_id: str,
    is_decider: Callable[[], bool],
) -> ArchiveService:
    """Make the archive of a broker; it is started when the broker listens."""
    cluster = OfBroker(registry, cluster_id, is_decider)
    return ArchiveService(native.archives(), settings, cluster, cluster.stored_topic, registry.archived_topics())
