"""One broker as a member of a cluster: its session and registration, which other brokers live, what they have changed.

Only the control loop calls it. kazoo's threads put the paths that changed into a queue and wake the loop; `turn` takes them out. A watch
fires once and is lost with its connection. So the list is read again after each watch, and everything after a lost session.

When the session is lost, the lease ends at once; then this broker registers in the new session and reads everything again. It keeps
running.
"""

import contextlib
import json
import logging
import queue
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pylog_spark.broker.errors import MembershipError
from pylog_spark.broker.lease import Lease, NativeLease
from pylog_spark.broker.registry import CONFLICTS_MAX, TopicRegistry, change_notification, stored_cluster_id
from pylog_spark.cluster import documents
from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.election import Liveness, rejoin, without_log
from pylog_spark.cluster.features import not_understood
from pylog_spark.cluster.known import remembered
from pylog_spark.cluster.model import BrokerInfo, Endpoint
from pylog_spark.cluster.store import RevisionConflict, SharedStore, Stored, StoreError, Write
from pylog_spark.cluster.store.durable import make_directory, replace_file

log = logging.getLogger("pylog.broker.cluster")

SESSION = "session"
_RETRY_S = 0.5
_LOOK_S = 0.05


class NativeMember(NativeLease, Protocol):
    """The methods of `NativeBroker` that the membership calls."""

    def apply_cluster(self, view_json: str) -> None: ...


class Membership:
    """The membership of one broker; see the module.

    Attributes
    ----------
    me : BrokerInfo
        This broker as it registers; its epoch is 0 before that.
    brokers : dict of int to BrokerInfo
        The live brokers, including this one when it has registered.
    known : dict of int to BrokerInfo
        The brokers that the cluster's document lists; live ones belong to the cluster even if it does not list them.
    controller_id, controller_epoch : int
        The controller, -1 for none, and how many elections there were.
    """

    def __init__(
        self,
        store: SharedStore,
        changes: "queue.SimpleQueue[str]",
        registry: TopicRegistry,
        me: BrokerInfo,
        directory: str,
        cluster_id: str,
    ) -> None:
        self.me = me
        self.brokers: dict[int, BrokerInfo] = {}
        self.known: dict[int, BrokerInfo] = {}
        self.leaving: frozenset[int] = frozenset()
        self.controller_id = -1
        self.controller_epoch = 0
        self.store = store
        self.session: int | None = None
        self._changes = changes
        self._registry = registry
        self._directory = directory
        self.cluster_id = cluster_id
        self._lease: Lease | None = None
        self._native: NativeMember | None = None
        self._due: set[str] = set()
        self._retry_at = 0.0
        self._last_notification = ""

    # Start

    def read_all(self) -> None:
        """Read every document again, and watch for the next change of each.

        Raises
        ------
        MembershipError
            When the store is no longer that of this cluster: its missing topics would look like deleted ones.
        """
        self.store.sync()
        known = stored_cluster_id(self.store)
        if known != self.cluster_id:
            raise MembershipError(
                f"ZooKeeper has {'forgotten this cluster' if known is None else f'another cluster, {known}'}; this broker belongs "
                f"to {self.cluster_id} and leads nothing: restore ZooKeeper's data, or stop the broker."
            )
        names = self.store.watch_children(documents.CHANGES)
        self._last_notification = names[-1] if names else ""
        self._read_brokers()
        self._registry.read_all()

    def wait_for_id(self, timeout_s: float) -> None:
        """Wait until no other broker with this id is registered. A registration from this data directory is removed: its process is dead.

        Raises
        ------
        MembershipError
            When the other broker is still registered after `timeout_s`.
        """
        path, give_up = documents.registration_path(self.me.id), time.monotonic() + timeout_s
        while (stored := self.store.get(path)) is not None:
            other, directory, _ = documents.decode_registration(path, stored.data, stored.created)
            if directory == self._directory:
                # Its process held the lock of the directory that this one holds now.
                log.info("The registration of this broker's last run is still there, and is removed.")
                self._delete(path, stored)
                continue
            if time.monotonic() > give_up:
                raise MembershipError(
                    f"Broker id {self.me.id} is taken: a broker with it lives at {other.host}:{other.port}. "
                    "Stop that one, or give this one another --broker-id."
                )
            time.sleep(_LOOK_S)

    def give_up(self, lost: Collection[tuple[str, int]]) -> None:
        """Leave the ISRs of partitions whose logs are damaged; called before registering. Raises `StoreError`."""
        by_topic: dict[str, set[int]] = {}
        for topic, partition in lost:
            by_topic.setdefault(topic, set()).add(partition)
        rules = self._registry.partition_rules
        self._registry.revise(
            list(by_topic),
            lambda topic: without_log(topic, self.me.id, by_topic[topic.name], self.liveness(), rules(topic)),
        )

    def rejoin(self, clean: bool) -> None:
        """Give up the leadership and ISRs that cannot be kept over a restart; called before registering.

        `clean` says that the logs are the same as before. Raises `StoreError` when not all could be given up, `MembershipError` when the
        brokers have different settings.
        """
        self._agree()
        rules = self._registry.partition_rules
        self._registry.revise(
            list(self._registry.topics),
            lambda topic: rejoin(topic, self.me.id, clean, self.liveness(), rules(topic)),
        )

    def _agree(self) -> None:
        """Check that all brokers have the same min.insync.replicas: for topics without that setting the leader commits, and the
        controller elects, by it."""
        for other in self.brokers.values():
            if other.id != self.me.id and other.min_isr != self.me.min_isr:
                raise MembershipError(
                    f"min.insync.replicas is {self.me.min_isr} here, but {other.min_isr} at broker {other.id}: "
                    "give all brokers the same value, and set others per topic."
                )

    def set_addresses(self, endpoints: Mapping[str, Endpoint], inter_broker: str) -> None:
        """Set the addresses of the registration: of each listener by name, and which of them other brokers use."""
        self.me = self.me.at(endpoints, inter_broker)

    def register(self, native: NativeMember, lease: Lease) -> None:
        """Register: from now on the other brokers know that this one lives, and it may lead. Raises `StoreError`, `MembershipError`."""
        self._native, self._lease = native, lease
        while (session := self.store.session()) is None:
            # Between two connections, or two sessions; raises when that takes too long.
            self.store.sync()
        self._put_registration()
        self.session = session
        self._read_brokers()
        self._read_controller()
        lease.grant(session)

    # The control loop

    def turn(self) -> None:
        """Read what has changed since the last turn. Reads that fail are repeated soon."""
        while True:
            try:
                self._due.add(self._changes.get_nowait())
            except queue.Empty:  # noqa: PERF203
                break
        if not self._due or time.monotonic() < self._retry_at or self.store.session() is None:
            # Without a connection nothing can be read, and the lease ends by itself. A new connection is reported to the queue.
            return
        try:
            self._read_due()
            self._retry_at = 0.0
        except (StoreError, DocumentError, MembershipError) as error:
            log.warning("The changes of the cluster cannot be read and are read again soon: %s", error)
            self._retry_at = time.monotonic() + _RETRY_S

    def read_again(self, path: str) -> None:
        """Read `path` again in the next turn."""
        self._due.add(path)

    def wait_s(self, otherwise: float) -> float:
        """Give how many seconds the control loop may wait when nothing happens."""
        if not self._due or self.store.session() is None:
            return otherwise
        return min(otherwise, max(0.0, self._retry_at - time.monotonic()))

    def _read_due(self) -> None:
        if SESSION in self._due:
            self._check_session()
            self._due.discard(SESSION)
        for path, read in (
            (documents.REGISTRATIONS, self._read_brokers),
            (documents.CONTROLLER, self._read_controller),
            (documents.CHANGES, self._read_changes),
        ):
            if path in self._due and self.session is not None:
                read()
                self._due.discard(path)

    def _check_session(self) -> None:
        now = self.store.session()
        if now is not None and now != self.session:
            self._register_again(now)
        # The watches were lost with the connection.
        self._due.update((documents.REGISTRATIONS, documents.CONTROLLER, documents.CHANGES))

    def _register_again(self, session: int) -> None:
        assert self._lease is not None
        if self.session is not None:
            log.warning("The session with ZooKeeper is over: this broker leads nothing until it is registered again.")
        self.session = None
        self.controller_id = -1
        self._lease.revoke()
        self.wait_for_id(0)
        self.read_all()
        # The process kept running, so its logs are unchanged; but it leads a partition again only after a new election.
        self.rejoin(clean=True)
        self._put_registration()
        self.session = session
        self._registry.apply_all()
        self._read_brokers()
        self._lease.grant(session)
        log.info("Registered again as broker %d, epoch %d.", self.me.id, self.me.epoch)

    def _put_registration(self) -> None:
        """Register, and write the level unchanged in the same request: if it is being raised at the same moment, one of the two writes
        conflicts.

        From then on the others know this broker, also when it is dead.
        """
        path, data = (
            documents.registration_path(self.me.id),
            documents.encode_registration(self.me, self._directory, False),
        )
        for _ in range(CONFLICTS_MAX):
            stored, before = self.store.get_all([documents.FEATURES, documents.KNOWN_BROKERS])
            understood_level(stored)
            assert stored is not None
            writes = [Write(documents.FEATURES, stored.data, stored.revision)]
            known = documents.decode_known_brokers(before.data if before else None)
            if (after := remembered(known, self.me)) is not known:
                document = documents.encode_known_brokers(after)
                writes.append(Write(documents.KNOWN_BROKERS, document, before.revision if before else 0))
            try:
                epoch = self.store.claim(path, data, *writes)
            except RevisionConflict as error:
                if self.store.get(path) is None:
                    continue
                raise MembershipError(
                    f"Broker id {self.me.id} was taken by another broker this moment: give this one another --broker-id."
                ) from error
            self.me = replace(self.me, epoch=epoch)
            return
        raise StoreError("Too many brokers register at the same moment: start this one again.")

    def _read_brokers(self) -> None:
        names = self.store.watch_children(documents.REGISTRATIONS)
        paths = [documents.REGISTRATIONS + name for name in names]
        brokers, leaving = {}, set()
        level, known, *registered = self.store.get_all([documents.FEATURES, documents.KNOWN_BROKERS, *paths])
        self._take_level(understood_level(level))
        self.known = documents.decode_known_brokers(known.data if known else None)
        for path, stored in zip(paths, registered, strict=True):
            if stored is not None:
                broker, _, leaves = documents.decode_registration(path, stored.data, stored.created)
                brokers[broker.id] = broker
                if leaves:
                    leaving.add(broker.id)
        if brokers != self.brokers:
            log.info("Live brokers: %s.", ", ".join(map(str, sorted(brokers))) or "none")
        self.brokers, self.leaving = brokers, frozenset(leaving)
        self._publish()

    def _take_level(self, level: int) -> None:
        if self._native is not None and level != self._registry.level:
            log.info("The cluster is at level %d.", level)
        self._registry.level = level

    def _read_controller(self) -> None:
        stored = self.store.watch(documents.CONTROLLER)
        # Read after the controller, so the epoch is that of this controller or of a newer one, which the watch reports.
        epoch = self.store.get(documents.CONTROLLER_EPOCH)
        before = (self.controller_id, self.controller_epoch)
        self.controller_id = (
            -1 if stored is None else documents.decode_number(documents.CONTROLLER, stored.data, "broker_id")
        )
        self.controller_epoch = (
            0 if epoch is None else documents.decode_number(documents.CONTROLLER_EPOCH, epoch.data, "epoch")
        )
        if (self.controller_id, self.controller_epoch) != before:
            self._publish()

    def _read_changes(self) -> None:
        names = self.store.watch_children(documents.CHANGES)
        new = [name for name in names if name > self._last_notification]
        if not new:
            return
        if self._last_notification not in names:
            # Change notifications were purged before this broker read them, or it never read one.
            self._registry.read_all()
            self._registry.apply_all()
            self._read_brokers()
        else:
            self._follow(new)
        self._last_notification = new[-1]

    def _follow(self, names: list[str]) -> None:
        topics: dict[str, None] = {}
        registrations = groups = False
        secured: list[tuple[int, Sequence[str]]] = []
        paths = [documents.CHANGES + name for name in names]
        for path, stored in zip(paths, self.store.get_all(paths), strict=True):
            if stored is not None:
                change = documents.decode_change_notification(path, stored.data)
                topics.update(dict.fromkeys(change.topics))
                registrations, groups = registrations or change.brokers, groups or change.groups
                secured += [] if change.security is None else [change.security]
        if registrations:
            self._read_brokers()
        if groups:
            self._registry.read_groups()
        if secured:
            self._registry.security.follow(secured)
        self._registry.refresh(list(topics))

    # What others ask

    def liveness(self) -> Liveness:
        """Give the brokers that live, and those of them that are being stopped."""
        epochs = {broker.id: broker.epoch for broker in self.brokers.values()}
        return Liveness(frozenset(self.brokers), self.leaving, epochs, frozenset(self.known))

    def announce_leaving(self) -> None:
        """Announce that this broker is being stopped, so that it gets no new partitions to lead. Raises `StoreError`."""
        path = documents.registration_path(self.me.id)
        stored = self.store.get(path)
        if stored is None or stored.created != self.me.epoch:
            return
        data = documents.encode_registration(self.me, self._directory, True)
        self.store.write_all([Write(path, data, stored.revision)], None, change_notification([], brokers=True))
        self._read_brokers()

    def _publish(self) -> None:
        self._registry.brokers = tuple({**self.known, **self.brokers}.values())
        self._registry.liveness = self.liveness()
        if self._native is not None:
            controller = (self.controller_id, self.controller_epoch)
            self._native.apply_cluster(view(controller, self.brokers, self.known, self._registry.level))

    def _delete(self, path: str, stored: Stored) -> None:
        # A conflict: it is gone already.
        with contextlib.suppress(RevisionConflict):
            self.store.delete(path, stored.revision)


def understood_level(stored: Stored | None) -> int:
    """The level of the cluster, as stored. Raises `MembershipError` when this pylog does not understand it."""
    if stored is None:
        raise MembershipError("ZooKeeper has forgotten this cluster's level: restore its data, or stop the broker.")
    level = documents.decode_number(documents.FEATURES, stored.data, "level")
    sentence = not_understood(level)
    if sentence is not None:
        raise MembershipError(sentence)
    return level


def view(
    controller: tuple[int, int], brokers: Mapping[int, BrokerInfo], known: Mapping[int, BrokerInfo], level: int
) -> str:
    """Give the controller's id and epoch, the live brokers, the dead ones of `known`, and the level, as JSON for the native server."""

    def shown(some: Iterable[BrokerInfo]) -> list[dict[str, object]]:
        return [
            {"id": broker.id, "endpoints": broker.endpoints, "rack": broker.rack, "epoch": broker.epoch}
            for broker in some
        ]

    dead = [broker for broker in known.values() if broker.id not in brokers]
    levels = {"now": level, "min": documents.LEVEL_MIN, "max": documents.LEVEL_MAX}
    controller_id, controller_epoch = controller
    return json.dumps(
        {
            "controller_id": controller_id,
            "controller_epoch": controller_epoch,
            "brokers": shown(brokers.values()),
            "dead": shown(dead),
            "level": levels,
        }
    )


def boot_id() -> str:
    """Give the id of the machine's current boot; empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def directory_name(data_dir: str) -> str:
    """Give the unique name of the data directory, which is made at its first use and stored in it.

    Raises `MembershipError` when it cannot be read or written.
    """
    path = Path(data_dir) / ".pylog" / "directory"
    try:
        with contextlib.suppress(FileNotFoundError):
            return path.read_text(encoding="ascii").strip()
        name = uuid.uuid4().hex
        make_directory(path.parent)
        replace_file(path, name.encode())
    except OSError as error:
        raise MembershipError(
            f"{path} cannot be used ({error.strerror}): check the disk and its permissions."
        ) from error
    return name
