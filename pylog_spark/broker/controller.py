"""The controller of a cluster, as in Kafka: the one broker that is elected to watch which brokers live and to elect leaders.

The broker that made the ephemeral document `controller` is elected; the same write raises the number in `controller_epoch` by one.
Every write of the controller checks that number, so an old controller that does not know of the next election (because it was paused
or cut off) can change nothing any more.

`cluster.election` makes the decisions; this file says when: for all topics when this broker becomes the controller and when brokers
start or stop, otherwise for the topics that changed. Only the control loop calls it.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pylog_spark.broker.membership import Membership
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster import documents
from pylog_spark.cluster.election import Liveness, elect_preferred, imbalanced, reconcile
from pylog_spark.cluster.model import Topic
from pylog_spark.cluster.store import Guard, RevisionConflict, StoreError, Write

log = logging.getLogger("pylog.broker.cluster")

#: This many of the newest change notifications are kept. Older ones are deleted by the second purge that sees them.
_NOTIFICATIONS_KEPT = 100
PURGE_EVERY_S = 150.0
_PURGED_AT_ONCE = 500
_RETRY_S = 0.5


class Controller:
    """Takes part in the controller's election, and does the controller's work while elected. The control loop calls `turn` repeatedly."""

    def __init__(self, membership: Membership, registry: TopicRegistry) -> None:
        self._membership = membership
        self._registry = registry
        self._store = membership.store
        self._guard: Guard | None = None
        self._elected_in: int | None = None
        self._live: Liveness | None = None
        self._to_reconcile: set[str] = set()
        self._retry_at = 0.0
        now = time.monotonic()
        self._balance_at = now + self._balance_every_s()
        self._purge_at = now + PURGE_EVERY_S
        self._seen_notifications: frozenset[str] = frozenset()
        registry.on_change = self._to_reconcile.update

    @property
    def elected(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._guard is not None

    def turn(self) -> None:
        """Do what is due. Work that fails is repeated soon."""
        if time.monotonic() < self._retry_at:
            return
        try:
            self._turn()
        except RevisionConflict:
            self._resign("another broker is the controller by now")
        except StoreError as error:
            log.warning("The controller's work waits: %s", error)
            self._retry_at = time.monotonic() + _RETRY_S

    def wait_s(self, otherwise: float) -> float:
        """Give how many seconds the control loop may wait when nothing happens."""
        now = time.monotonic()
        if self._retry_at > now:
            return min(otherwise, self._retry_at - now)
        if not self.elected:
            return otherwise
        if self._to_reconcile:
            return 0.0
        return max(0.0, min(otherwise, self._balance_at - now, self._purge_at - now))

    def _turn(self) -> None:
        session, controller_id = self._membership.session, self._membership.controller_id
        if self._guard is not None and session != self._elected_in:
            self._resign("its session is over")
        elif self._guard is not None and controller_id not in (-1, self._membership.me.id):
            self._resign(f"broker {controller_id} is")
        if session is None:
            return
        if self._guard is None and controller_id == self._membership.me.id:
            # This broker was elected in a session that it then considered lost: no broker can be elected until it releases the document.
            self._store.release(documents.CONTROLLER)
            self._membership.read_again(documents.CONTROLLER)
        if self._guard is None and self._membership.controller_id == -1:
            self._try_to_be_elected(session)
        if self._guard is None:
            self._to_reconcile.clear()
            return
        live = self._membership.liveness()
        if live != self._live:
            self._to_reconcile.update(self._registry.topics)
        if self._to_reconcile:
            names, self._live = sorted(self._to_reconcile), live
            self._to_reconcile.clear()
            try:
                self._reconcile(names, live)
            except StoreError:
                self._to_reconcile.update(names)
                raise
        self._do_periodic_work()

    def _try_to_be_elected(self, session: int) -> None:
        stored = self._store.get(documents.CONTROLLER_EPOCH)
        epoch = 0 if stored is None else documents.decode_number(documents.CONTROLLER_EPOCH, stored.data, "epoch")
        write = Write(
            documents.CONTROLLER_EPOCH,
            documents.encode_number("epoch", epoch + 1),
            0 if stored is None else stored.revision,
        )
        me = self._membership.me.id
        try:
            self._store.claim(documents.CONTROLLER, documents.encode_number("broker_id", me), write)
        except RevisionConflict:
            # Another broker was faster; read which one.
            self._membership.read_again(documents.CONTROLLER)
            return
        self._guard, self._elected_in, self._live = Guard(documents.CONTROLLER_EPOCH, write.revision + 1), session, None
        self._membership.read_again(documents.CONTROLLER)
        self._to_reconcile.update(self._registry.topics)
        log.info("Broker %d is the controller, epoch %d.", me, epoch + 1)

    def _resign(self, why: str) -> None:
        log.info("This broker is the controller no more: %s.", why)
        self._guard, self._elected_in, self._live = None, None, None
        self._to_reconcile.clear()
        self._membership.read_again(documents.CONTROLLER)

    def _reconcile(self, names: Iterable[str], live: Liveness) -> None:
        started = time.perf_counter()
        changed = self._decide(names, lambda topic: reconcile(topic, live, self._registry.partition_rules(topic)))
        if changed:
            log.info(
                "Reconciled %d topics (%s%s) in %.3f s.", len(changed), ", ".join(changed[:3]),
                "..." if len(changed) > 3 else "", time.perf_counter() - started,
            )  # fmt: skip

    def _decide(self, names: Iterable[str], decide: Callable[[Topic], Topic]) -> list[str]:
        return self._registry.revise(names, decide, self._guard, self._check_guard)

    def _check_guard(self) -> None:
        """Raise `RevisionConflict` when another controller was elected."""
        stored = self._store.get(documents.CONTROLLER_EPOCH)
        if self._guard is None or stored is None or stored.revision != self._guard.revision:
            raise RevisionConflict("The controller's epoch has changed.")

    def _do_periodic_work(self) -> None:
        now = time.monotonic()
        if now >= self._balance_at:
            self._balance_at = now + self._balance_every_s()
            if self._registry.broker["auto.leader.rebalance.enable"]:
                self._balance()
        if now >= self._purge_at:
            self._purge_at = now + PURGE_EVERY_S
            self._purge()

    def _balance_every_s(self) -> float:
        return float(self._registry.broker.number("leader.imbalance.check.interval.seconds"))

    def _balance(self) -> None:
        live = self._membership.liveness()
        percentage = self._registry.broker.number("leader.imbalance.per.broker.percentage")
        not_preferred: dict[str, list[int]] = defaultdict(list)
        for name, partition in imbalanced(list(self._registry.topics.values()), live, percentage):
            not_preferred[name].append(partition)

        def given_back(topic: Topic) -> Topic:
            return elect_preferred(topic, not_preferred[topic.name], live, self._registry.partition_rules(topic))[0]

        changed = self._decide(not_preferred, given_back)
        if changed:
            log.info("Leadership was given back to preferred replicas in %d topics.", len(changed))

    def _purge(self) -> None:
        """Delete the change notifications that the last purge saw already: every live broker has read them since."""
        names: Sequence[str] = self._store.paths(documents.CHANGES)
        old = [name for name in names[:-_NOTIFICATIONS_KEPT] if name in self._seen_notifications]
        for start in range(0, len(old), _PURGED_AT_ONCE):
            batch = old[start : start + _PURGED_AT_ONCE]
            self._store.write_all([Write(name, None, 1) for name in batch], self._guard)
        self._seen_notifications = frozenset(names)
