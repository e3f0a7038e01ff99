"""A broker that shares a ZooKeeper with others: what it does more than a broker alone, from its start to its stop.

Start: connect, agree on the cluster's id, lock and open the data directory, wait until the broker id is free, give up the leadership
and ISRs that cannot be kept over a restart, serve, register, take the lease, take part in the controller's election. Stop: announce it,
move leadership away, close the native server, and only then end the session. One thread at a time calls this: the one that starts the
broker, then the control loop. Only `ChangeQueue` is called by other threads.
"""

import contextlib
import json
import logging
import os
import queue
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from pylog_spark.broker import partitions, stray_logs
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.controller import Controller
from pylog_spark.broker.errors import MembershipError
from pylog_spark.broker.lease import Lease
from pylog_spark.broker.listeners import Listeners
from pylog_spark.broker.membership import (
    Membership,
    NativeMember,
    boot_id,
    directory_name,
    understood_level,
)
from pylog_spark.broker.registry import TopicRegistry, stored_cluster_id
from pylog_spark.cluster import documents
from pylog_spark.cluster.election import leave
from pylog_spark.cluster.model import BrokerInfo, new_topic_id
from pylog_spark.cluster.store import RevisionConflict, SharedStore, Store, StoreError
from pylog_spark.cluster.store.access import Access, Tls, read_digest

log = logging.getLogger("pylog.broker.cluster")

# How many session time-outs to wait for another registration with the same broker id to end, before the start fails.
_SESSIONS_AWAITED = 1.5
_RETRY_S = 0.2
BOOT = os.path.join(".pylog", "boot")
#: A file that is in the data directory from its first log on.
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class ChangeQueue:
    """Takes the changes that kazoo's threads report: puts them into a queue and wakes the control loop. Nothing else may happen in
    those threads."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.wake: Callable[[], None] = lambda: None

    def __call__(self, what: str) -> None:
        self.queue.put(what)
        self.wake()


def connect(broker: BrokerConfig, changes: ChangeQueue) -> SharedStore:
    """The store that `broker` shares with others. Raises `StoreError`, `MembershipError`."""
    address = broker.text("zookeeper.connect")
    assert address is not None
    from pylog_spark.cluster.store.zookeeper import ZooKeeperStore

    session_ms = broker.number("zookeeper.session.timeout.ms")
    connection_ms = broker["zookeeper.connection.timeout.ms"] or session_ms
    assert isinstance(connection_ms, int)
    return ZooKeeperStore(address, session_ms, connection_ms, changes, access=_access(broker))


def _access(broker: BrokerConfig) -> Access:
    """How this broker logs in to ZooKeeper. Raises `MembershipError`, `StoreError`."""
    digest_file, protect = broker.text("zookeeper.digest.file"), bool(broker["zookeeper.set.acl"])
    if protect and digest_file is None:
        raise MembershipError(
            "zookeeper.set.acl=true needs a user of ZooKeeper to whom the documents belong: set zookeeper.digest.file."
        )
    tls = None
    if broker["zookeeper.ssl.client.enable"]:
        tls = Tls(
            broker.text("zookeeper.ssl.truststore.location"),
            broker.text("zookeeper.ssl.keystore.location"),
            bool(broker.text("zookeeper.ssl.endpoint.identification.algorithm")),
        )
    return Access(None if digest_file is None else read_digest(digest_file), protect, tls)


def agreed_cluster_id(store: Store) -> str:
    """The id of the cluster, made by its first broker. Raises `MembershipError` when this pylog does not understand the cluster's level."""
    stored = store.get(documents.FEATURES)
    if stored is None:
        _make(store, documents.FEATURES, documents.encode_number("level", documents.LEVEL_MAX))
        stored = store.get(documents.FEATURES)
        assert stored is not None
    understood_level(stored)
    known = stored_cluster_id(store)
    if known is None:
        _make(store, documents.CLUSTER, documents.encode_cluster(new_topic_id()))
        known = stored_cluster_id(store)
        assert known is not None
    return known


def _make(store: Store, path: str, data: bytes) -> None:
    # A conflict: another broker started at the same moment.
    with contextlib.suppress(RevisionConflict):
        store.compare_and_set(path, data, 0)


class NativeCluster(NativeMember, Protocol):
    """The methods of `NativeBroker` that a broker of a cluster calls."""

    def offline_partitions(self) -> list[tuple[str, int]]: ...
    def was_clean(self) -> bool: ...
    def complete(self, event_id: int, answer_json: str) -> None: ...
    def wake(self) -> None: ...


class Clustered:
    """A broker of a cluster. Made when its data directory is open; `join` is called when it listens."""

    def __init__(
        self,
        store: SharedStore,
        changes: ChangeQueue,
        native: NativeCluster,
        registry: TopicRegistry,
        broker: BrokerConfig,
        data_dir: str,
        cluster_id: str,
    ) -> None:
        self._store = store
        self._native = native
        self._registry = registry
        self._session_s = broker.number("zookeeper.session.timeout.ms") / 1000
        self._data_dir = data_dir
        self._lease: Lease | None = None
        self._open: list[tuple[int, str, Mapping[str, object]]] = []
        self._ask_again_at = 0.0
        me = BrokerInfo(
            broker.number("node.id"), rack=broker.text("broker.rack"),
            level_min=documents.LEVEL_MIN, level_max=documents.LEVEL_MAX, min_isr=broker.number("min.insync.replicas"),
        )  # fmt: skip
        self.membership = Membership(store, changes.queue, registry, me, directory_name(data_dir), cluster_id)
        self.controller = Controller(self.membership, registry)
        changes.wake = native.wake

    def prepare(self) -> None:
        """Before serving: wait for the broker id, and give up the leadership and ISRs that a restart does not keep. Raises `MembershipError`..."""
        kept = self._kept()
        self.membership.wait_for_id(self._session_s * _SESSIONS_AWAITED)
        self.membership.read_all()
        stray_logs.put_aside(self._data_dir, self._registry.topics, self.membership.me.id)
        if not os.path.exists(os.path.join(self._data_dir, RECOVERY_POINTS)):
            # The data directory never had a log, and the broker has replicas: their records are gone. Known before any is served.
            self._registry.expect_all()
        self.membership.rejoin(kept)
        self._registry.set_throttles()
        self._registry.apply_all()
        self.membership.give_up(self._native.offline_partitions())

    def join(self, listeners: Listeners) -> None:
        """Register with the addresses of the `listeners`; from now on this broker may lead."""
        self.membership.set_addresses(listeners.endpoints(), listeners.inter_broker)
        self._lease = Lease(self._store, self._native, self._session_s)
        self.membership.register(self._native, self._lease)
        self._remember_boot()

    # The control loop

    def turn(self) -> None:
        """Apply what other brokers changed, and do the controller's work if this broker is elected."""
        self.membership.turn()
        self.controller.turn()
        if self._open and time.monotonic() >= self._ask_again_at:
            waiting, self._open = self._open, []
            for event_id, kind, request in waiting:
                self.answer(event_id, kind, request)

    def wait_s(self, otherwise: float) -> float:
        """How long the control loop may wait for a request."""
        asked = max(0.0, self._ask_again_at - time.monotonic()) if self._open else otherwise
        return min(asked, self.membership.wait_s(otherwise), self.controller.wait_s(otherwise))

    def answer(self, event_id: int, kind: str, request: Mapping[str, object]) -> bool:
        """Answer a request of `partitions`; False for any other. While the store does not answer, the request waits."""
        handler = partitions.HANDLERS.get(kind)
        if handler is None:
            return False
        try:
            answer = handler(self._registry, request)
        except StoreError as error:
            log.warning("A %s request waits: %s", kind, error)
            self._open.append((event_id, kind, request))
            self._ask_again_at = time.monotonic() + _RETRY_S
            return True
        self._native.complete(event_id, json.dumps(answer))
        return True

    # Stop

    def leave(self) -> None:
        """Before the native server closes: give the leadership of this broker's partitions to others."""
        membership = self.membership
        if not self._registry.broker["controlled.shutdown.enable"]:
            return
        if membership.session is None or membership.session != self._store.session():
            return
        try:
            membership.announce_leaving()
            rules = self._registry.partition_rules
            self._registry.revise(
                list(self._registry.topics),
                lambda topic: leave(topic, membership.me.id, membership.liveness(), rules(topic)),
            )
        except StoreError as error:
            log.warning("Leadership could not be moved away before the stop: %s", error)

    def close(self) -> None:
        """After the native server has closed: end the session."""
        if self._lease is not None:
            self._lease.stop()
        self._store.close()

    def _kept(self) -> bool:
        """Whether the logs are the same as when this broker last registered.

        A file in the data directory has the machine's boot id of that time. After a clean stop, or when the machine has not been booted
        since, nothing is lost. Otherwise the file is removed at once, since a start that fails may still stop cleanly; the next
        registration writes it again.
        """
        path = os.path.join(self._data_dir, BOOT)
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            noted = file.read().strip()
            if self._native.was_clean() or (noted == boot_id() != ""):
                return True
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return False

    def _remember_boot(self) -> None:
        # Without the file, which a full disk may prevent, the next start treats the logs as changed.
        try:
            with open(os.path.join(self._data_dir, BOOT), "w", encoding="ascii") as file:
                file.write(boot_id())
        except OSError as error:
            log.warning("The file that notes this start of the machine cannot be written: %s", error)
