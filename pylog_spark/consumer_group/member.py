"""Consumers that divide the partitions of topics among themselves, as in the Kafka paper (NetDB 2011, section 3.2).

Everything a group knows stands in ZooKeeper (`documents` lists it); there is no coordinator. Each member watches the
group's members, the brokers and its topics; when something changes it works its share out (`assignment`), commits and
releases what is not its own any more, and claims what is, waiting for whoever still owns it.

What is promised:

- *At least once.* A record counts as done when the next one is asked for. Only what is done is committed: now and then, and
  before a partition is released. Who owns a partition next begins at the last commit. So a member that dies has its records
  since the last commit handed out again, by another.
- *One owner.* No partition has two owners, whatever fails. A member hands out nothing unless its session surely lives, by an
  answer of ZooKeeper that is younger than the session time-out; its work on a record that it was handed before may overlap
  with the next owner's, when it was paused for longer than that.
- A member gives up partitions only while it is asked for records: one that works on a record for long keeps them.
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from pylog_spark.client.admin import Admin
from pylog_spark.client.consumer import Record
from pylog_spark.client.errors import LogError
from pylog_spark.cluster import documents
from pylog_spark.cluster.store import SessionLost, SharedStore, StoreError
from pylog_spark.consumer_group.assignment import next_step
from pylog_spark.consumer_group.documents import is_name
from pylog_spark.consumer_group.membership import GroupMembership
from pylog_spark.consumer_group.readers import Readers
from pylog_spark.consumer_group.store import brokers_of, open_store
from pylog_spark.topic_partition import TopicPartition

_log = logging.getLogger("pylog_spark")

# ZooKeeper tells of the release of a partition that another member owns; this is for news that were missed.
_CLAIM_AGAIN_S = 1.0
# Where no broker keeps its topics in the same ZooKeeper, a topic that grows is seen by asking.
_LOOK_AGAIN_S = 30.0
_READ_WAIT_MS = 10
_WITHOUT_MS = 100


@dataclass(frozen=True, slots=True)
class Rebalance:
    """What happens to a member's partitions.

    Attributes
    ----------
    what : str
        ``releasing``: they are still this member's, and about to be given up: the time to finish and commit.
        ``claimed``: they are this member's from now on. ``lost``: the session with ZooKeeper ended, they are another's already.
    partitions : frozenset of (str, int)
        Topics and partitions.
    """

    what: Literal["releasing", "claimed", "lost"]
    partitions: frozenset[TopicPartition]


class ConsumerGroup:
    """One member of a consumer group: iterate over it, or `poll`. Not thread-safe; not to be used after a fork.

    >>> with ConsumerGroup("zk1:2181/logs", "billing", ["orders"]) as group:  # doctest: +SKIP
    ...     for record in group:
    ...         handle(record)

    Parameters
    ----------
    zookeeper : str
        ``HOST:PORT,HOST:PORT/chroot``: where the group keeps itself.
    group : str
        Its name.
    topics : collection of str
        What this member reads; members of a group may read different topics.
    bootstrap_servers : str, optional
        Brokers; those that are registered in the same ZooKeeper when it is left out.
    start : str
        ``earliest``, ``latest`` (records that come later), or ``none`` (an error): where to begin a partition of which the
        group has no offset, or one that the log does not hold any more.
    auto_commit : bool
        Whether what is done is committed every `auto_commit_interval_ms`, before partitions are released, and at the end.
        Without it `commit` is the caller's, best also in `on_rebalance`.
    on_rebalance : callable, optional
        Is called with a `Rebalance`, inside `poll`; it may call `commit`.
    session_timeout_ms : int
        How long after a member died its partitions go to others. ZooKeeper may grant another time.
    connection_timeout_ms : int, optional
        How long to wait for ZooKeeper's first answer; as long as a session lasts when it is left out.
    consumer_id : str, optional
        Name of this member; host, process and a random number when it is left out.
    config : mapping, optional
        Settings of the client by Kafka's names.

    Raises
    ------
    LogError
        ZooKeeper or the brokers cannot be reached, a topic does not exist, or kazoo is not installed.
    """

    def __init__(
        self,
        zookeeper: str,
        group: str,
        topics: Collection[str],
        *,
        bootstrap_servers: str | None = None,
        start: Literal["earliest", "latest", "none"] = "latest",
        auto_commit: bool = True,
        auto_commit_interval_ms: int = 5_000,
        on_rebalance: Callable[[Rebalance], None] | None = None,
        session_timeout_ms: int = 6_000,
        connection_timeout_ms: int | None = None,
        consumer_id: str | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.group = group
        self.consumer_id = consumer_id or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._topics = sorted(set(topics))
        _check(group, self.consumer_id, self._topics, start)
        self._on_rebalance = on_rebalance or (lambda _: None)
        self._auto_commit_s = auto_commit_interval_ms / 1000 if auto_commit else None
        self._changed = threading.Event()
        wait_ms = session_timeout_ms if connection_timeout_ms is None else connection_timeout_ms
        self._store: SharedStore = open_store(zookeeper, session_timeout_ms, wait_ms, lambda _: self._changed.set())
        self._membership = GroupMembership(self._store, group, self.consumer_id, self._topics)
        try:
            servers = bootstrap_servers or brokers_of(self._store, zookeeper)
            settings = {**(config or {}), "bootstrap.servers": servers}
            self._admin = Admin(servers, settings)
            self._partitions()
        except BaseException:
            self._membership.close()
            raise
        self._readers = Readers(settings, start)
        self._waiting: deque[Record] = deque()
        self._owned: set[TopicPartition] = set()
        #: Not read any more, and not known to be released.
        self._leaving: set[TopicPartition] = set()
        #: The offset after the last record handed out, after the last one done, and as committed.
        self._handed: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._look_at = self._commit_at = 0.0
        self._closed = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The topics and partitions that this member owns, as of the last `poll`."""
        return frozenset(self._owned)

    def __iter__(self) -> Iterator[Record]:
        """Give records one by one, without an end; wait for new ones."""
        while True:
            yield from self.poll(max_records=1)

    def poll(self, timeout_s: float = 1.0, max_records: int = 500) -> list[Record]:
        """Give up to `max_records` records, none when none came within `timeout_s`. What was given before counts as done.

        The first call joins the group. While ZooKeeper is away for longer than the session lasts, nothing is given.

        Raises
        ------
        LogError
            The brokers do not answer, or ``OFFSET_OUT_OF_RANGE`` with ``start="none"``. The next call tries again.
        """
        if self._closed:
            raise LogError("CLOSED", f"This member of group {self.group} is closed: make a new one.")
        self._done.update(self._handed)
        until = time.monotonic() + timeout_s
        while True:
            tended = self._tend()
            if tended and not self._waiting:
                # One partition is waited on for a moment, so that others have their turn.
                self._waiting.extend(self._readers.next(_READ_WAIT_MS))
            if tended and self._waiting and self._lives():
                return self._hand_out(max_records)
            left_s = until - time.monotonic()
            if left_s <= 0:
                return []
            if not tended or self._readers.count == 0:
                self._changed.wait(min(left_s, _WITHOUT_MS / 1000))

    def commit(self) -> None:
        """Store the offsets of everything handed out so far, so that it is not handed out again.

        Raises
        ------
        LogError
            ``UNKNOWN_MEMBER_ID``: the session with ZooKeeper is over, others have the partitions, nothing was stored.
            ``UNREACHABLE``: ZooKeeper is away; another `commit` may store it.
        """
        self._done.update(self._handed)
        try:
            self._commit()
        except SessionLost as error:
            sentence = (
                f"{error} Records since the last commit are handed out again, by whoever owns their partitions now."
            )
            raise LogError("UNKNOWN_MEMBER_ID", sentence) from error
        except StoreError as error:
            raise LogError("UNREACHABLE", str(error)) from error

    def close(self) -> None:
        """Commit what was handed out when `auto_commit` is on, and leave the group. Idempotent."""
        self._close(self._handed)

    def __enter__(self) -> "ConsumerGroup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A record whose handling failed is not done.
        self._close(self._handed if error is None else {})

    def _close(self, done: Mapping[TopicPartition, int]) -> None:
        if self._closed:
            return
        self._closed = True
        self._done.update(done)
        try:
            if self._auto_commit_s is not None and self._membership.registered:
                with suppress(StoreError):
                    self._commit()
        finally:
            self._readers.close()
            self._admin.close()
            self._membership.close()

    def _hand_out(self, most: int) -> list[Record]:
        records = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        for record in records:
            self._handed[TopicPartition(record.topic, record.partition)] = record.offset + 1
        return records

    def _lives(self) -> bool:
        try:
            return self._membership.lives()
        except SessionLost:
            self._forget()
            return False

    def _tend(self) -> bool:
        """Join, rebalance and commit as due. True when this member may hand out records now."""
        try:
            if not self._membership.registered:
                self._join()
            if not self._membership.lives():
                return False
            now = time.monotonic()
            if self._changed.is_set() or now >= self._look_at:
                self._rebalance()
            if self._auto_commit_s is not None and now >= self._commit_at:
                self._commit_at = now + self._auto_commit_s
                self._commit()
        except SessionLost:
            self._forget()
            return False
        except StoreError as error:
            _log.warning("Group %s, consumer %s: %s", self.group, self.consumer_id, error)
            self._look_at = 0.0
            return self._membership.registered and self._lives()
        return True

    def _join(self) -> None:
        self._forget()
        self._membership.register()
        self._changed.set()
        self._commit_at = time.monotonic() + (self._auto_commit_s or 0.0)

    def _forget(self) -> None:
        """Forget everything that was owned: the session is over, and others may own it by now."""
        lost, self._owned, self._leaving = frozenset(self._owned), set(), set()
        self._drop(lost)
        if lost:
            _log.warning("Group %s: consumer %s lost its session and joins again.", self.group, self.consumer_id)
            self._on_rebalance(Rebalance("lost", lost))

    def _drop(self, partitions: frozenset[TopicPartition]) -> None:
        """Read and hand out nothing more of `partitions`."""
        self._readers.end(partitions)
        self._waiting = deque(record for record in self._waiting if (record.topic, record.partition) not in partitions)
        for offsets in (self._handed, self._done, self._committed):
            for partition in partitions:
                offsets.pop(partition, None)

    def _rebalance(self) -> None:
        self._changed.clear()
        try:
            self._look_at = time.monotonic() + (_LOOK_AGAIN_S if self._balance() else _CLAIM_AGAIN_S)
        except BaseException:
            self._changed.set()
            raise

    def _balance(self) -> bool:
        """Release and claim until this member owns its share. True when it owns all of it."""
        self._store.watch_children(documents.REGISTRATIONS)
        for topic in self._topics:
            self._store.watch(documents.topic_path(topic))
        members = self._membership.members()
        step = next_step(self.consumer_id, self._owned, members, self._partitions())
        if step.release:
            self._on_rebalance(Rebalance("releasing", step.release))
            if self._auto_commit_s is not None:
                self._commit()
            self._drop(step.release)
            self._owned -= step.release
            self._leaving |= step.release
        if self._leaving:
            self._membership.release(self._leaving)
            self._leaving.clear()
        if step.claim:
            self._claim(step.claim)
        return step.claim <= self._owned

    def _claim(self, partitions: frozenset[TopicPartition]) -> None:
        stored = self._membership.claim(partitions)
        self._owned.update(stored)
        try:
            offsets = self._readers.begin(stored)
        except LogError:
            # The brokers do not say where to begin. A partition that is owned and not read would be read by nobody.
            self._membership.release(stored)
            self._owned.difference_update(stored)
            raise
        # Where a group begins is kept: what comes from now on is read, whoever owns the partition then.
        self._membership.commit(
            {partition: offset for partition, offset in offsets.items() if stored[partition] is None}
        )
        self._committed.update(offsets)
        if stored:
            self._on_rebalance(Rebalance("claimed", frozenset(stored)))

    def _commit(self) -> None:
        news = {partition: at for partition, at in self._done.items() if self._committed.get(partition) != at}
        self._membership.commit(news)
        self._committed.update(news)

    def _partitions(self) -> dict[str, list[int]]:
        return {
            topic: [partition.partition for partition in self._admin.topic(topic).partitions] for topic in self._topics
        }


def _check(group: str, consumer: str, topics: Collection[str], start: str) -> None:
    for what, name in (("group", group), ("consumer_id", consumer)):
        if not is_name(name):
            raise ValueError(f"{what}={name!r} must be 1 to 249 letters, digits, dots, underscores and hyphens.")
    if not topics:
        raise ValueError("topics is empty: name what to read.")
    if start not in ("earliest", "latest", "none"):
        raise ValueError(f"start={start!r} is not earliest, latest or none.")
