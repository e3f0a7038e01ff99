"""Consumers that divide the partitions of topics among themselves, as in the Kafka paper (NetDB 2011, section 3.2).

All state of a group is stored in ZooKeeper (`documents` lists it); there is no coordinator. Each member watches the
group's members, the brokers and its topics. When something changes it computes its share (`assignment`), commits and
releases the partitions that are no longer in it, and claims the new ones, for which it may have to wait until their owners release them.

What is promised:

- *At least once.* A record counts as processed when the program asks for the next one. Only processed records are committed: at
  intervals, and before a partition is released. The next owner of a partition begins at the last commit. So after a member dies,
  another one delivers its records since the last commit again.
- *One owner.* No partition has two owners, whatever fails. A member delivers records only while an answer of ZooKeeper that is
  younger than the session time-out proves that its session lives. If the program was paused for longer than that, its work on a
  record that was delivered before may overlap with the work of the next owner.
- A member releases partitions only inside `poll`: while the program works on a record, it keeps them.
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

# ZooKeeper's watches report when another member releases a partition; the claim is also repeated, in case a report was missed.
_CLAIM_AGAIN_S = 1.0
# If the brokers' topics are not in the same ZooKeeper, new partitions of a topic are found by asking the brokers.
_LOOK_AGAIN_S = 30.0
_READ_WAIT_MS = 10
_WITHOUT_MS = 100


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A change of a member's partitions.

    Attributes
    ----------
    what : str
        ``releasing``: the member still owns them and is about to release them; finish the work on their records and commit.
        ``claimed``: the member owns them from now on. ``lost``: the session with ZooKeeper ended, others may own them already.
    partitions : frozenset of (str, int)
        Topics and partitions.
    """

    what: Literal["releasing", "claimed", "lost"]
    partitions: frozenset[TopicPartition]


class ConsumerGroup:
    """One member of a consumer group: iterate over it, or `poll`. Not thread-safe; must not be used after a fork.

    Parameters
    ----------
    zookeeper : str
        ``HOST:PORT,HOST:PORT/chroot``: the ZooKeeper that stores the group.
    group : str
        The group's name.
    topics : collection of str
        The topics that this member reads; members of a group may read different topics.
    bootstrap_servers : str, optional
        The brokers; by default those that are registered in the same ZooKeeper.
    start : str
        Where to begin a partition when the group has no offset of it, or one that the log does not hold any more: ``earliest``,
        ``latest`` (only records that come later), or ``none`` (an error).
    auto_commit : bool
        Whether offsets of processed records are committed every `auto_commit_interval_ms`, before partitions are released, and at
        the end. Without it the program calls `commit`, best also in `on_rebalance`.
    auto_commit_interval_ms : int
        Milliseconds between two commits.
    on_rebalance : callable, optional
        Is called with a `Rebalance`, inside `poll`; it may call `commit`.
    session_timeout_ms : int
        How many milliseconds after a member's death its partitions go to others. ZooKeeper may grant another time.
    connection_timeout_ms : int, optional
        How many milliseconds to wait for ZooKeeper's first answer; by default as long as `session_timeout_ms`.
    consumer_id : str, optional
        Name of this member; by default made of the host, the process id and a random number.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names.

    Raises
    ------
    LogError
        When ZooKeeper or the brokers cannot be reached, or a topic does not exist.

    Examples
    --------
    >>> with ConsumerGroup("zk1:2181/logs", "billing", ["orders"]) as group:  # doctest: +SKIP
    ...     for record in group:
    ...         handle(record)
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
        #: Partitions that are not read any more, and whose release is not confirmed yet.
        self._leaving: set[TopicPartition] = set()
        #: The offset after the last record that was delivered, after the last one that was processed, and the committed offset.
        self._delivered: dict[TopicPartition, int] = {}
        self._processed: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._look_at = self._commit_at = 0.0
        self._closed = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The topics and partitions that this member owns, as of the last `poll`."""
        return frozenset(self._owned)

    def __iter__(self) -> Iterator[Record]:
        """Iterate over records without an end, waiting for new ones."""
        while True:
            yield from self.poll(max_records=1)

    def poll(self, timeout_s: float = 1.0, max_records: int = 500) -> list[Record]:
        """Give the next records. Those of earlier calls then count as processed.

        The first call joins the group. When ZooKeeper does not answer for longer than the session lasts, no records are given.

        Parameters
        ----------
        timeout_s : float
            How many seconds to wait for records.
        max_records : int
            Most records to give.

        Returns
        -------
        list of Record
            Empty when no record came in time.

        Raises
        ------
        LogError
            When the brokers do not answer, or ``OFFSET_OUT_OF_RANGE`` with ``start="none"``. The next call tries again.
        """
        if self._closed:
            raise LogError("CLOSED", f"This member of group {self.group} is closed: create a new one.")
        self._processed.update(self._delivered)
        until = time.monotonic() + timeout_s
        while True:
            may_deliver = self._maintain()
            if may_deliver and not self._waiting:
                # Wait only briefly for one partition, so that the others have their turn.
                self._waiting.extend(self._readers.next(_READ_WAIT_MS))
            if may_deliver and self._waiting and self._lives():
                return self._deliver(max_records)
            left_s = until - time.monotonic()
            if left_s <= 0:
                return []
            if not may_deliver or self._readers.count == 0:
                self._changed.wait(min(left_s, _WITHOUT_MS / 1000))

    def commit(self) -> None:
        """Commit the offsets of all records delivered so far, so that they are not delivered again.

        Raises
        ------
        LogError
            ``UNKNOWN_MEMBER_ID``: the session with ZooKeeper is over, others may own the partitions, nothing was committed.
            ``UNREACHABLE``: ZooKeeper does not answer; another `commit` may succeed.
        """
        self._processed.update(self._delivered)
        try:
            self._commit()
        except SessionLost as error:
            sentence = f"{error} The next owners of its partitions deliver the records since the last commit again."
            raise LogError("UNKNOWN_MEMBER_ID", sentence) from error
        except StoreError as error:
            raise LogError("UNREACHABLE", str(error)) from error

    def close(self) -> None:
        """Commit the delivered records' offsets when `auto_commit` is on, and leave the group. Idempotent."""
        self._close(self._delivered)

    def __enter__(self) -> "ConsumerGroup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The last records are not processed when the program failed.
        self._close(self._delivered if error is None else {})

    def _close(self, done: Mapping[TopicPartition, int]) -> None:
        if self._closed:
            return
        self._closed = True
        self._processed.update(done)
        try:
            if self._auto_commit_s is not None and self._membership.registered:
                with suppress(StoreError):
                    self._commit()
        finally:
            self._readers.close()
            self._admin.close()
            self._membership.close()

    def _deliver(self, most: int) -> list[Record]:
        records = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        for record in records:
            self._delivered[TopicPartition(record.topic, record.partition)] = record.offset + 1
        return records

    def _lives(self) -> bool:
        try:
            return self._membership.lives()
        except SessionLost:
            self._forget()
            return False

    def _maintain(self) -> bool:
        """Join, rebalance and commit when it is time to. Returns whether this member may deliver records now."""
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
        """Drop all partitions: the session is over, and others may own them by now."""
        lost, self._owned, self._leaving = frozenset(self._owned), set(), set()
        self._drop(lost)
        if lost:
            _log.warning("Group %s: consumer %s lost its session and joins again.", self.group, self.consumer_id)
            self._on_rebalance(Rebalance("lost", lost))

    def _drop(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading `partitions`, and deliver no more of their records."""
        self._readers.end(partitions)
        self._waiting = deque(record for record in self._waiting if (record.topic, record.partition) not in partitions)
        for offsets in (self._delivered, self._processed, self._committed):
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
        """Release and claim partitions. Returns whether this member owns its whole share now."""
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
            # The brokers do not say where to begin. Without the release no member would read these partitions.
            self._membership.release(stored)
            self._owned.difference_update(stored)
            raise
        # Commit where the group begins, so that the next owner also reads the records that come from now on.
        self._membership.commit(
            {partition: offset for partition, offset in offsets.items() if stored[partition] is None}
        )
        self._committed.update(offsets)
        if stored:
            self._on_rebalance(Rebalance("claimed", frozenset(stored)))

    def _commit(self) -> None:
        news = {partition: at for partition, at in self._processed.items() if self._committed.get(partition) != at}
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
        raise ValueError("topics is empty: name the topics to read.")
    if start not in ("earliest", "latest", "none"):
        raise ValueError(f"start={start!r} is not earliest, latest or none.")
