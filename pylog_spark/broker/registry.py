"""The topics and settings that one broker knows: decisions about them are stored and handed to the native server.

Not thread-safe: the control loop is the only caller.

Every change runs in the same order: decide (pure, `cluster`), store by compare-and-set, apply to the native server, then
answer. A kill in between leaves a stored decision that `start` applies; a topic whose deletion is decided is never served
again, and its directories are removed at the next start at the latest.
"""

import json
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pylog_spark.broker import config, group_config
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.security import NativeSecurity, SecurityRegistry
from pylog_spark.broker.setting import ConfigError, Value, show
from pylog_spark.broker.topic_configs import check_together
from pylog_spark.cluster import documents
from pylog_spark.cluster.changes import ConfigRules
from pylog_spark.cluster.election import Liveness, PartitionRules
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.features import FEATURE
from pylog_spark.cluster.model import BrokerInfo, Topic, topic_id_uuid
from pylog_spark.cluster.store import (
    Guard,
    OutcomeUnknown,
    RevisionConflict,
    SessionLost,
    Store,
    Stored,
    StoreError,
    Write,
)
from pylog_spark.cluster.topics import Rules, unknown_topic

if TYPE_CHECKING:
    from pylog_spark.broker.messages import NativeTopic

log = logging.getLogger("pylog.broker")

_PARTITION_DIRECTORY = re.compile(r"(.+)-(\d+)")
_NAMED_MAX = 5
# One request to ZooKeeper takes 1 MiB; the documents in it are JSON of about this size.
_BATCH_BYTES = 512 * 1024
_PARTITION_BYTES = 200
_TOPIC_BYTES = 1000

#: Another broker changed the topic first: read it again and decide again. After `CONFLICTS_MAX` times the client gets this error, after
#: which it tries again.
CONFLICT = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "Other brokers keep changing the same topics: try again.")
CONFLICTS_MAX = 50

_MIN_ISR = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"


class NativeTopics(NativeSecurity, Protocol):
    """The methods of `NativeBroker` that the registry calls."""

    def expect_topics(self, topics_json: str) -> None: ...
    def apply_topics(self, topics_json: str) -> None: ...
    def remove_topic(self, name: str) -> None: ...
    def set_throttles(self, leader: int, follower: int) -> None: ...
    def apply_group_configs(self, configs_json: str) -> None: ...
    def set_cleaner_backoff(self, backoff_ms: int) -> None: ...


def stored_cluster_id(store: Store) -> str | None:
    """The id of this cluster, None before its first start. Raises `StoreError`, `DocumentError`."""
    stored = store.get(documents.CLUSTER)
    return None if stored is None else documents.decode_cluster(stored.data)


def stored_config(store: Store, given: BrokerConfig) -> BrokerConfig:
    """`given`, and above it the settings that were changed while the broker ran earlier."""
    path = documents.broker_config_path(given.number("node.id"))
    stored = store.get(path)
    if stored is None:
        return given
    changed = documents.decode_broker_config(path, stored.data)
    return BrokerConfig(given.given, config.parse(config.BROKER, changed.items()))


class TopicRegistry:
    """Topics and settings of one broker.

    Attributes
    ----------
    topics : dict of str to Topic
        The stored topics by name, including those that are being deleted.
    brokers : tuple of BrokerInfo
        The brokers that may have replicas, including dead ones; empty when this broker is alone.
    liveness : Liveness
        The live brokers of the cluster; only this broker when it is alone.
    level : int
        The cluster's level: all its brokers understand what is written.
    groups : dict of str to dict of str to str
        The settings that single groups have, as text.
    security : SecurityRegistry
        Users, ACLs and quotas.
    warned : dict of str to str
        Internal topic -> the last logged reason why it cannot be created yet.

    `native_error` is the exception that `native` raises; it is a parameter so that decisions can be tested without the native module.
    `shared` says that other brokers write the same store: each change is then stored together with a change notification for them, and if
    another broker wrote first, the result is `CONFLICT`: the caller reads again (`refresh`) and decides again.
    """

    def __init__(
        self,
        store: Store,
        native: NativeTopics,
        broker: BrokerConfig,
        native_error: type[Exception] = Exception,
        *,
        shared: bool = False,
    ) -> None:
        self.broker = broker
        self.topics: dict[str, Topic] = {}
        self.brokers: tuple[BrokerInfo, ...] = ()
        self.liveness = Liveness(frozenset({broker.number("node.id")}))
        self.level = documents.LEVEL_MAX
        self.warned: dict[str, str] = {}
        self.groups: dict[str, dict[str, str]] = {}
        self.store = store
        self.shared = shared
        self._revisions: dict[str, int] = {}
        self._groups_revision = 0
        # Topics with a log that could not be opened and may be later, such as when file descriptors are free again.
        self._unopened: set[str] = set()
        self._native = native
        self._native_error = native_error
        self.security = SecurityRegistry(
            store, native, lambda sequence, paths: change_notification(security=(sequence, paths)), shared=shared
        )
        #: Called with the names of topics that changed, by this broker or another one.
        self.on_change: Callable[[Iterable[str]], None] = lambda _names: None

    def start(self) -> None:
        """Read all stored topics and hand them to the native server. Raises `StoreError`, `DocumentError`, `NativeError`."""
        self.read_all()
        unfinished = [topic for topic in self.topics.values() if topic.deleting]
        self.apply_all()
        for topic in unfinished:
            log.info("Finishing the deletion of topic %s.", topic.name)
            self.remove(topic)

    def read_all(self) -> None:
        """Read every stored topic; drop topics that are gone. New topics are not served yet. Read and apply the settings of groups, users,
        ACLs and quotas."""
        self.read_groups()
        self.security.read_all()
        paths = self.store.paths(documents.TOPICS)
        gone = set(self.topics) - {path.removeprefix(documents.TOPICS) for path in paths}
        for path, stored in zip(paths, self.store.get_all(paths), strict=True):
            self._take(path, stored)
        for name in gone:
            self._take(documents.topic_path(name), None)

    def refresh(self, names: Sequence[str]) -> None:
        """Read these topics again and serve what changed."""
        paths = [documents.topic_path(name) for name in names]
        changed = [
            name
            for name, path, stored in zip(names, paths, self.store.get_all(paths), strict=True)
            if self._take(path, stored)
        ]
        self._serve([self.topics[name] for name in changed if name in self.topics])
        if changed:
            self.on_change(changed)

    def expect_all(self) -> None:
        """Tell the native server that all logs of this broker were in a data directory that is gone."""
        self._native.expect_topics(json.dumps([self._native_topic(topic) for topic in self.topics.values()]))

    def apply_all(self) -> None:
        """Hand all topics to the native server."""
        self._serve(list(self.topics.values()))
        self.on_change(list(self.topics))

    def _take(self, path: str, stored: Stored | None) -> bool:
        """Keep a stored topic. Returns whether it differs from the one before. A topic that is gone is no longer served."""
        name = path.removeprefix(documents.TOPICS)
        known = self.topics.get(name)
        topic = None if stored is None else documents.decode_topic(path, stored.data)
        if known is not None and (topic is None or topic.topic_id != known.topic_id):
            self._native.remove_topic(name)
            del self.topics[name], self._revisions[name]
            if topic is None:
                log.info("Topic %s is deleted.", name)
        if topic is not None and stored is not None:
            self.topics[name], self._revisions[name] = topic, stored.revision
        return topic != known

    def _serve(self, topics: Sequence[Topic]) -> None:
        """`_apply`, but in a cluster a log that cannot be opened is only logged: just its partition is not served."""
        try:
            self._apply(topics)
        except self._native_error as error:
            if not self.shared:
                raise
            log.error(
                "Some partitions of %s cannot be served: %s",
                [topic.name for topic in topics][:_NAMED_MAX],
                message_of(error),
            )

    def rules(self) -> Rules:
        """Give the settings about topics, as they are now."""
        return Rules(
            node_id=self.broker.number("node.id"),
            num_partitions=self.broker.number("num.partitions"),
            replication_factor=self.broker.number("default.replication.factor"),
            delete_enabled=bool(self.broker["delete.topic.enable"]),
            check_config=check_topic_config,
            check_configs=lambda configs: check_together(self.broker, configs),
            brokers=self.brokers,
            absent=frozenset(broker.id for broker in self.brokers) - self.liveness.active,
        )

    def live(self) -> Liveness:
        """Give the brokers that live, and those of them that are being stopped; only this one when it is alone."""
        return self.liveness

    def partition_rules(self, topic: Topic) -> PartitionRules:
        """Give the settings about electing leaders of `topic`."""
        values = self.overrides(topic)

        def value(name: str) -> Value:
            return config.topic_value(self.broker, config.find(config.TOPIC, name), values)

        return PartitionRules(int(str(value(_MIN_ISR))), bool(value(_UNCLEAN)))

    def change(
        self, name: str, decide: Callable[[Topic], tuple[Topic, Mapping[int, Refusal]]]
    ) -> Refusal | Mapping[int, Refusal]:
        """Store and serve topic `name` as `decide` wants it. Returns why the topic, or some of its partitions, are refused."""
        for _ in range(CONFLICTS_MAX):
            topic = self.topics.get(name)
            if topic is None or topic.deleting:
                return unknown_topic(name)
            after, refused = decide(topic)
            not_stored = self.commit([after])[0]
            if not_stored is not CONFLICT:
                return not_stored or refused
            self.refresh([name])
        return CONFLICT

    def overrides(self, topic: Topic) -> dict[str, Value]:
        """Give the topic's own settings as values."""
        return config.parse(config.TOPIC, topic.configs.items())

    def commit(self, topics: Sequence[Topic], guard: Guard | None = None) -> list[Refusal | None]:
        """Store new or changed topics and serve them. Returns for each None, why the disk refused it, or `CONFLICT`.

        Raises
        ------
        OutcomeUnknown
            When the shared store stopped answering: the topics have to be read again to know whether they are stored.
        """
        outcomes: dict[str, Refusal | None] = {}
        for batch in self._batches([topic for topic in topics if self.topics.get(topic.name) != topic]):
            # The store of a single broker writes no two documents at once: of each it is known whether it is stored.
            for part in [batch] if self.shared else [[topic] for topic in batch]:
                outcomes.update(self._write(part, guard))
            stored = [topic for topic in batch if outcomes[topic.name] is None]
            outcomes.update(self._not_served(stored))
            self.on_change([topic.name for topic in stored])
        return [outcomes.get(topic.name) for topic in topics]

    def revise(
        self,
        names: Iterable[str],
        decide: Callable[[Topic], Topic],
        guard: Guard | None = None,
        on_conflict: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Change topics as `decide` says (it gives the same object for no change), deciding again where other brokers were faster.

        Returns
        -------
        list of str
            The names of the topics that changed. `on_conflict` is called before each further try; it may raise.

        Raises
        ------
        StoreError
            When not all changes are stored.
        """
        left, changed = list(names), []
        for _ in range(CONFLICTS_MAX):
            present = [self.topics[name] for name in left if name in self.topics]
            wanted = [after for before in present if (after := decide(before)) is not before]
            outcomes = list(zip(wanted, self.commit(wanted, guard), strict=True))
            changed += [topic.name for topic, refused in outcomes if refused is None]
            left = [topic.name for topic, refused in outcomes if refused is CONFLICT]
            for topic, refused in outcomes:
                if refused is not None and refused is not CONFLICT and self.topics.get(topic.name) is not topic:
                    raise StoreError(refused.message)
            if not left:
                return changed
            on_conflict()
            self.refresh(left)
        raise StoreError(f"Topics {left[:_NAMED_MAX]} keep being changed by other brokers: try again later.")

    def remove(self, topic: Topic) -> Refusal | None:
        """Store that `topic`, which is marked as deleted, is deleted; stop serving it, delete its directories, drop it."""
        if self.shared:
            return self._remove_everywhere(topic)
        refused = self._write([topic])[topic.name] if self.topics.get(topic.name) != topic else None
        if refused is not None:
            return refused
        try:
            self._native.remove_topic(topic.name)
            self.store.delete(documents.topic_path(topic.name), self._revisions[topic.name])
        except (self._native_error, StoreError) as error:
            log.error(
                "Topic %s is deleted, but not yet off the disk (the next start goes on): %s",
                topic.name,
                message_of(error),
            )
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message_of(error))
        del self.topics[topic.name], self._revisions[topic.name]
        return None

    def _remove_everywhere(self, topic: Topic) -> Refusal | None:
        """Delete the document. Every broker that learns of it, or starts and does not find it, removes the topic's directories."""
        write = Write(documents.topic_path(topic.name), None, self._revisions[topic.name])
        try:
            self.store.write_all([write], None, change_notification([topic.name]))
        except RevisionConflict:
            return CONFLICT
        del self.topics[topic.name], self._revisions[topic.name]
        try:
            self._native.remove_topic(topic.name)
        except self._native_error as error:
            log.error("Topic %s is deleted, but not yet off the disk: %s", topic.name, message_of(error))
        return None

    def change_broker(self, configs: Mapping[str, str]) -> Refusal | None:
        """Store the changed broker settings (all of them) and apply them to every topic."""
        wanted = BrokerConfig(self.broker.given, config.parse(config.BROKER, configs.items()))
        if self.shared and wanted.number(_MIN_ISR) != self.broker.number(_MIN_ISR):
            sentence = (
                f"{_MIN_ISR} is the same at all brokers of a cluster, so it cannot change at one of them: set it per topic, "
                "or restart all brokers with another value."
            )
            return Refusal(ErrorCode.INVALID_CONFIG, sentence)
        path = documents.broker_config_path(self.broker.number("node.id"))
        stored = self.store.get(path)
        try:
            self.store.compare_and_set(path, documents.encode_broker_config(configs), stored.revision if stored else 0)
        except StoreError as error:
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        self.broker = wanted
        self._native.set_cleaner_backoff(self.broker.number("log.cleaner.backoff.ms"))
        self.set_throttles()
        self._apply([topic for topic in self.topics.values() if not topic.deleting])
        return None

    def read_groups(self) -> None:
        """Read the settings of single groups and apply them."""
        stored = self.store.get(documents.GROUPS)
        groups = {} if stored is None else documents.decode_groups(stored.data)
        self._groups_revision = 0 if stored is None else stored.revision
        if groups != self.groups:
            self.groups = groups
            self._apply_groups()

    def change_group(self, group: str, configs: Mapping[str, str]) -> Refusal | None:
        """Store the settings of one group (all of them) and apply them, here and at the other brokers.

        Returns `CONFLICT` when another broker changed some meanwhile; `read_groups` reads them.
        """
        if self.shared and self.level < documents.LEVEL_OF_SHARE_GROUPS:
            sentence = (
                "Only share groups have settings of their own, and they need level "
                f"{documents.LEVEL_OF_SHARE_GROUPS} of {FEATURE}: raise it when all brokers understand it."
            )
            return Refusal(ErrorCode.INVALID_REQUEST, sentence)
        wanted = (
            {**self.groups, group: dict(configs)}
            if configs
            else {other: own for other, own in self.groups.items() if other != group}
        )
        if len(wanted) > group_config.GROUPS_MAX:
            sentence = f"{group_config.GROUPS_MAX} groups have settings of their own already: delete those of other groups first."
            return Refusal(ErrorCode.POLICY_VIOLATION, sentence)
        write = Write(documents.GROUPS, documents.encode_groups(wanted), self._groups_revision)
        try:
            [self._groups_revision] = self.store.write_all(
                [write], None, change_notification([], groups=True) if self.shared else None
            )
        except RevisionConflict:
            return CONFLICT
        except StoreError as error:
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        self.groups = wanted
        self._apply_groups()
        return None

    def _apply_groups(self) -> None:
        configs = {group: group_config.native(own) for group, own in self.groups.items()}
        self._native.apply_group_configs(json.dumps(configs))

    def set_throttles(self) -> None:
        """Hand the limits for copying replicas to the native server. A broker without a cluster copies none."""
        if self.shared:
            leader, follower = (
                self.broker.number(f"{role}.replication.throttled.rate") for role in ("leader", "follower")
            )
            self._native.set_throttles(leader, follower)

    def stray_logs(self, data_dir: str) -> list[str]:
        """Give the partition directories that belong to no stored topic. They are never touched."""
        found = []
        with os.scandir(data_dir) as entries:
            for entry in entries:
                match = _PARTITION_DIRECTORY.fullmatch(entry.name)
                if match and match[1] not in self.topics and not entry.name.endswith("-delete") and entry.is_dir():
                    found.append(entry.name)
        return sorted(found)

    def archived_topics(self) -> list[str]:
        """The topics with ``remote.storage.enable``."""
        return [name for name, topic in self.topics.items() if self.overrides(topic).get("remote.storage.enable")]

    def warn_of_archived_topics(self) -> None:
        """Log that topics are to be archived, on a broker without an archive."""
        if names := self.archived_topics():
            log.error(
                "This broker has no archive.url, and %d topics have remote.storage.enable, such as %s: of those that it leads it deletes "
                "nothing, and clients cannot begin at their first records. Start it with the archive.url of the other brokers.",
                len(names),
                names[0],
            )

    def warn_of_stray_logs(self, data_dir: str) -> None:
        """Log one line when there are partition directories that belong to no stored topic."""
        found = self.stray_logs(data_dir)
        if found:
            named = ", ".join(found[:_NAMED_MAX]) + (" ..." if len(found) > _NAMED_MAX else "")
            log.warning("%d directories belong to no known topic and are not served: %s.", len(found), named)

    def _batches(self, topics: Sequence[Topic]) -> Iterator[list[Topic]]:
        """Divide topics into those that are stored in one request, as many as ZooKeeper takes, and served together: the native server
        notes new logs once for all of them, in a file that names every log."""
        batch: list[Topic] = []
        room = _BATCH_BYTES
        for topic in topics:
            size = len(topic.partitions) * _PARTITION_BYTES + _TOPIC_BYTES
            if batch and size > room:
                yield batch
                batch, room = [], _BATCH_BYTES
            batch.append(topic)
            room -= size
        if batch:
            yield batch

    def _write(self, topics: Sequence[Topic], guard: Guard | None = None) -> dict[str, Refusal | None]:
        names = [topic.name for topic in topics]
        writes = [
            Write(
                documents.topic_path(topic.name),
                documents.encode_topic(topic, self.level),
                self._revisions.get(topic.name, 0),
            )
            for topic in topics
        ]
        try:
            revisions = self.store.write_all(writes, guard, change_notification(names) if self.shared else None)
        except (OutcomeUnknown, SessionLost):
            raise
        except RevisionConflict as error:
            if len(topics) > 1:
                return {topic.name: self._write([topic], guard)[topic.name] for topic in topics}
            log.log(logging.DEBUG if self.shared else logging.ERROR, "Topic %s is not stored: %s", names[0], error)
            return {names[0]: CONFLICT}
        except StoreError as error:
            log.error("Topics %s are not stored: %s", names[:_NAMED_MAX], error)
            return dict.fromkeys(names, Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        for topic, revision in zip(topics, revisions, strict=True):
            self.topics[topic.name], self._revisions[topic.name] = topic, revision
        return dict.fromkeys(names)

    @property
    def has_unopened(self) -> bool:
        """Whether a log could not be opened and may be later: see `open_again`."""
        return bool(self._unopened)

    def open_again(self) -> None:
        """Open the logs that could not be opened before, as far as they can be now; nothing else changes."""
        names, self._unopened = self._unopened, set()
        known = (self.topics.get(name) for name in sorted(names))
        topics = [topic for topic in known if topic is not None and not topic.deleting]
        try:
            self._apply(topics)
        except self._native_error as error:
            log.debug("Some partitions of %s cannot be served yet: %s", sorted(names)[:_NAMED_MAX], message_of(error))

    def _apply(self, topics: Sequence[Topic]) -> None:
        names = {topic.name for topic in topics}
        try:
            if topics:
                self._native.apply_topics(json.dumps([self._native_topic(topic) for topic in topics]))
        except self._native_error:
            self._unopened |= names
            raise
        self._unopened -= names

    def _not_served(self, topics: Sequence[Topic]) -> dict[str, Refusal]:
        """Serve topics that are stored. Returns why, for those that cannot be served."""
        try:
            self._apply(topics)
        except self._native_error as error:
            if len(topics) > 1:
                return {name: refused for topic in topics for name, refused in self._not_served([topic]).items()}
            log.error("Topic %s is stored but cannot be served: %s", topics[0].name, message_of(error))
            return {topics[0].name: Refusal(ErrorCode.KAFKA_STORAGE_ERROR, message_of(error))}
        return {}

    def _native_topic(self, topic: Topic) -> "NativeTopic":
        return {
            "name": topic.name,
            "topic_id": str(topic_id_uuid(topic.topic_id)),
            "internal": topic.internal,
            "config": config.log_config(self.broker, self.overrides(topic), internal=topic.internal),
            "partitions": [
                {
                    "partition": partition.partition,
                    "leader": partition.leader,
                    "leader_epoch": partition.leader_epoch,
                    "replicas": partition.replicas,
                    "isr": partition.isr,
                    "partition_epoch": partition.partition_epoch,
                    "adding": partition.adding,
                    "removing": partition.removing,
                    "elr": partition.elr,
                }
                for partition in topic.partitions
            ],
        }


def change_notification(
    names: Sequence[str] = (),
    *,
    brokers: bool = False,
    groups: bool = False,
    security: tuple[int, Sequence[str]] | None = None,
) -> bytes:
    """Make the document from which other brokers learn of a write: what it changed, see `documents.ChangeNotification`."""
    change = documents.ChangeNotification(names, brokers, groups, security)
    return documents.encode_change_notification(change, uuid.uuid4().hex)


def check_topic_config(name: str, text: str) -> str:
    """Give the text to store for a topic setting. Raises `ConfigError`."""
    setting = config.find(config.TOPIC, name)
    return show(setting.parse(text)) or ""


def topic_config_rules(broker: BrokerConfig) -> ConfigRules:
    """Give the rules by which the configs of a topic may change."""

    def listed(name: str, present: Mapping[str, str]) -> Sequence[str] | None:
        setting = config.find(config.TOPIC, name)
        value = config.topic_value(broker, setting, config.parse(config.TOPIC, present.items()))
        return value if isinstance(value, tuple) else None

    return ConfigRules(check_topic_config, listed)


def broker_config_rules(broker: BrokerConfig) -> ConfigRules:
    """Give the rules by which the settings of this broker may change while it runs."""

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
    """Give the sentence of an error; native errors carry (kind, sentence)."""
    return str(error.args[1]) if len(error.args) == 2 else str(error)
