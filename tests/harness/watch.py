"""What the cluster's documents say, read as soon as ZooKeeper reports a change, past every fault but ZooKeeper's own."""

import queue
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from pylog_spark.cluster.documents import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    REGISTRATIONS,
    TOPICS,
    decode_number,
    decode_topic,
    topic_path,
)
from pylog_spark.cluster.model import Partition
from pylog_spark.cluster.store import StoreError
from pylog_spark.cluster.store.zookeeper import SESSION, ZooKeeperStore
from tests.harness.history import History, Place, State
from tests.harness.waiting import pause, until

#: Seconds after which everything is read again, also without a report of ZooKeeper.
_LOOK_S = 1.0
#: Pause before what ZooKeeper did not answer is asked again.
_AGAIN_S = 0.05
_TIMEOUT_S = 30
_START_S = 60


class Watcher:
    """Notes every state of a partition that it sees into a history."""

    def __init__(self, connect: str, history: History) -> None:
        self._connect = connect
        self._history = history
        self._changed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._store = ZooKeeperStore(connect, _TIMEOUT_S * 1000, _START_S * 1000, self._changed.put)
        self._newest: dict[Place, State] = {}
        self._revisions: dict[str, int] = {}
        self._registered: set[int] = set()
        self.controller = -1
        #: How often another broker became controller.
        self.controllers = 0
        #: How often one was elected, the same one as before included.
        self.controller_epoch = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def state(self, place: Place) -> State:
        """The newest state of a partition. Raises KeyError when there is none."""
        return self._newest[place]

    def registered(self, broker: int) -> bool:
        """Whether a broker was registered when last looked."""
        return broker in self._registered

    def lacking(self, topics: Iterable[str]) -> list[State]:
        """Partitions without a leader or with replicas outside the ISR."""
        wanted = set(topics)
        states = [state for place, state in list(self._newest.items()) if place[0] in wanted]
        return [state for state in states if state.leader < 0 or set(state.isr) != set(state.replicas)]

    def is_whole(self, topics: Iterable[str]) -> bool:
        """Whether all topics are there, with leaders and full ISRs."""
        names = {place[0] for place in list(self._newest)}
        return set(topics) <= names and not self.lacking(topics)

    def close(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._changed.put(SESSION)
        self._thread.join()
        self._store.close()

    def _run(self) -> None:
        look_at = 0.0
        unread: set[str] = set()
        while not self._stopped.is_set():
            if time.monotonic() >= look_at:
                unread.add(SESSION)
            try:
                while unread:
                    path = next(iter(unread))
                    if path == SESSION:
                        look_at = time.monotonic() + _LOOK_S
                    unread |= self._read(path)
                    unread.discard(path)
            except StoreError:
                # ZooKeeper may be away.
                pause(self._stopped, _AGAIN_S)
                continue
            with suppress(queue.Empty):
                unread.add(self._changed.get(timeout=max(0.0, look_at - time.monotonic())))

    def _read(self, path: str) -> set[str]:
        """Read what is at a path, with a watch for its next change; what is to be read for that, too."""
        if path == SESSION:
            return {TOPICS, REGISTRATIONS, CONTROLLER, CONTROLLER_EPOCH}
        if path == TOPICS:
            return {TOPICS + name for name in self._store.watch_children(TOPICS)}
        if path == REGISTRATIONS:
            self._registered = {int(name) for name in self._store.watch_children(REGISTRATIONS)}
            return set()
        stored = self._store.watch(path)
        if path == CONTROLLER:
            now = -1 if stored is None else decode_number(CONTROLLER, stored.data, "broker_id")
            self.controllers += now not in (-1, self.controller)
            self.controller = now
        elif path == CONTROLLER_EPOCH:
            # Stored in one with who was elected: that is read before the epoch is published, so that no test uses the controller before.
            self._read(CONTROLLER)
            self.controller_epoch = 0 if stored is None else decode_number(CONTROLLER_EPOCH, stored.data, "epoch")
        elif stored is not None and self._revisions.get(path) != stored.revision:
            self._revisions[path] = stored.revision
            self._note(path, stored.data)
        return set()

    def _note(self, path: str, data: bytes) -> None:
        topic, at = decode_topic(path, data), time.monotonic()
        for partition in topic.partitions:
            place = (topic.name, partition.partition)
            state = State(
                place,
                at,
                partition.replicas,
                partition.leader,
                partition.leader_epoch,
                partition.isr,
                partition.partition_epoch,
            )
            if place not in self._newest or self._newest[place].partition_epoch != state.partition_epoch:
                self._newest[place] = state
                self._history.states.append(state)


@contextmanager
def _asking(connect: str) -> Iterator[KazooClient]:
    """A client of ZooKeeper for a few questions."""
    client = KazooClient(hosts=connect, timeout=_TIMEOUT_S)
    client.start(_TIMEOUT_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def written_at(connect: str, path: str) -> float:
    """When the document at `path` was last written, by the clock of `time.monotonic`; to a millisecond, and never too late."""
    with _asking(connect) as client:
        written = client.exists(f"/{path}").mtime / 1000
    return written - time.time() + time.monotonic()


def stored_partitions(connect: str, topic: str) -> tuple[Partition, ...]:
    """A topic's partitions, by the document as it is stored now: a watcher of changes may not have read it yet."""
    path = topic_path(topic)
    with _asking(connect) as client:
        client.sync(f"/{path}")
        data, _ = client.get(f"/{path}")
    return decode_topic(path, data).partitions


def sessions(connect: str) -> set[int]:
    """The numbers of all sessions that ZooKeeper keeps."""
    host, _, port = connect.partition("/")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as connection:
        connection.sendall(b"dump")
        text = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    return {int(word, 16) for word in text.replace(":", " ").split() if word.startswith("0x")}


def expire_session(connect: str, broker: int) -> bool:
    """End a broker's session as ZooKeeper would after its time-out; False when it has none.

    A client that shows a session's number and password takes it over, and may close it. ZooKeeper makes the password from the
    number alone.
    """
    with _asking(connect) as client:
        found = client.exists(f"/{REGISTRATIONS}{broker}")
    return found is not None and steal_session(connect, found.ephemeralOwner)


def steal_session(connect: str, session: int) -> bool:
    """As `expire_session`, for the session with that number. When this returns it is over.

    Its owner comes back at once, and may have it back before it is closed: then it is taken over again.
    """
    if session not in sessions(connect):
        return False

    def over() -> bool:
        _take_over_and_close(connect, session)
        return session not in sessions(connect)

    until(over, f"the session {session:#x} is over")
    return True


def _take_over_and_close(connect: str, session: int) -> None:
    thief = KazooClient(hosts=connect.partition("/")[0], client_id=(session, _password(session)), timeout=_TIMEOUT_S)
    try:
        with suppress(KazooException):
            thief.start(_TIMEOUT_S)
    finally:
        thief.stop()
        thief.close()


def _password(session: int) -> bytes:
    """What ZooKeeper's server gives out for a session: 16 bytes of Java's generator, seeded with the number and a constant."""
    mask = (1 << 48) - 1
    seed = (session ^ 0xB3415C00 ^ 0x5DEECE66D) & mask
    words = []
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & mask
        words.append(seed >> 16)
    return struct.pack("<4I", *words)
