"""The store that several brokers share: Apache ZooKeeper. The only file that imports kazoo.

Sessions. kazoo keeps one and, when ZooKeeper says that it has expired, begins a new one by itself. All ephemeral nodes went
with the old one, so code that registered something compares `session()` with the number it registered under. kazoo's callbacks
run in its own threads; here they do nothing but call `notify`, which must only put a value into a queue.

Lost connections. A read is repeated. A write is never repeated blindly: when its connection is lost, it is not known whether
ZooKeeper carried it out. Requests of one session are carried out in order, and a session that has expired carries out nothing
more; so once the connection is back, after a `sync`, the change notification of the write is either there (it happened) or
not (it never will, and is tried again). Change notifications are kept for `NOTIFICATIONS_KEPT_S` at least (`broker/controller`), longer than
that is not searched. A write without one is judged by the document itself.

Who may read and change the documents: see `access`. When protection is switched on, the documents that are there already are protected
at the next start, before anything else.

Documents that are large are stored compressed (a byte ``z``, then zlib): a topic of 10,000 partitions fits into the 1 MiB that
ZooKeeper takes.
"""

import contextlib
import contextvars
import logging
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions as zk
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_acl

from pylog_spark.cluster import documents
from pylog_spark.cluster.store import (
    Guard,
    OutcomeUnknown,
    RevisionConflict,
    Session,
    SessionLost,
    Stored,
    StoreError,
    Write,
)
from pylog_spark.cluster.store.access import OPEN, Access, Tls

log = logging.getLogger("pylog.zookeeper")

#: The argument of `notify` when the session's state changes; otherwise it is the path that changed.
SESSION = "session"
NOTIFICATIONS_KEPT_S = 120.0
_COMPRESSED_FROM_BYTES = 16 * 1024
# jute.maxbuffer of ZooKeeper is 1 MiB - 1 for a whole request.
_DOCUMENT_BYTES_MAX = 1_000_000
_CLOSING_LOOK_S = 0.2
_READ = READ_ACL_UNSAFE[0].perms
_PROTECTED = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]
# Of the first document, while others are not protected yet: nobody adds or takes away any, and who starts next goes on with it.
_BEING_PROTECTED = [*CREATOR_ALL_ACL, make_acl("world", "anyone", read=True, write=True)]
_UNKNOWN = (zk.ConnectionLoss, zk.ConnectionClosedError, zk.OperationTimeoutError, zk.SessionExpiredError)
_CONFLICTS = (zk.BadVersionError, zk.NoNodeError, zk.NodeExistsError, zk.RolledBackError, zk.RuntimeInconsistency)


class _Client(KazooClient):
    """kazoo's client, which does not keep the session time-out that ZooKeeper granted; this one does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.granted_s = 0.0
        connect = self._connection._connect

        def remembered(*address: Any) -> tuple[float, float]:
            read_timeout_ms, connect_timeout_ms = connect(*address)
            # kazoo's read time-out is two thirds of the granted one.
            self.granted_s = read_timeout_ms * 1.5 / 1000
            return read_timeout_ms, connect_timeout_ms

        self._connection._connect = remembered


class _TlsHandler(SequentialThreadingHandler):
    """Connects by TLS 1.2 or newer. kazoo's own way would trust the system's certificates beside those that are given."""

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._context = _tls_context(tls)

    def create_connection(self, *_args: Any, **options: Any) -> ssl.SSLSocket:
        """Connect to ``address``, which is where ``hostname`` was found."""
        connection = socket.create_connection(options["address"], options["timeout"])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self._context.wrap_socket(connection, server_hostname=options["hostname"])
        except BaseException:
            connection.close()
            raise


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_hostname
    path = tls.truststore
    try:
        if path is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(path)
        path = tls.keystore
        if path is not None:
            context.load_cert_chain(path)
    except (OSError, ssl.SSLError) as error:
        raise StoreError(f"{path} cannot be used for TLS to ZooKeeper ({error}): it must be a PEM file.") from error
    return context


class ZooKeeperStore:
    """Documents as nodes under a chroot. Safe for several threads.

    Parameters
    ----------
    connect : str
        ``HOST:PORT,HOST:PORT/chroot``, as Kafka's zookeeper.connect. The chroot is made when missing.
    session_timeout_ms, connection_timeout_ms : int
        The session time-out to ask for (ZooKeeper may grant another one); how long to wait for the first connection and its first answers.
    request_timeout_ms : int, optional
        How long a later request waits for an answer; without it the longer one of the two.
    notify : callable
        Takes `SESSION` or the path that changed. Called from kazoo's threads: it may only put that into a queue.
    access : Access
        How to log in, and whether documents are protected.
    """

    def __init__(
        self,
        connect: str,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        notify: Callable[[str], None],
        request_timeout_ms: int | None = None,
        access: Access = OPEN,
    ) -> None:
        hosts, slash, chroot = connect.strip().partition("/")
        self._root = "/" + chroot.strip("/") if slash and chroot.strip("/") else ""
        self._where = connect
        self._notify = notify
        # What is logged by kazoo's threads is of the broker that made this store.
        self._context = contextvars.copy_context()
        self._closing = False
        self._watchers: dict[str, Callable[[object], None]] = {}
        # A read fails after this time without ZooKeeper; a lost session is detected in about the same time.
        self._request_timeout_s = max(session_timeout_ms, connection_timeout_ms) / 1000
        quickly = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=0.5)
        self._protect = access.protect
        self._client = _Client(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            connection_retry=quickly,
            logger=_quiet_logger(),
            default_acl=_PROTECTED if access.protect else None,
            auth_data=[("digest", access.digest)] if access.digest else None,
            handler=None if access.tls is None else _TlsHandler(access.tls),
        )
        self._client.add_listener(self._state_changed)
        try:
            # kazoo's own start fails at once, as after a time-out, when the first session ends as soon as it has begun.
            if not self._client.start_async().wait(connection_timeout_ms / 1000):
                raise KazooTimeoutError
            self._make_sure_of("")
            if access.protect:
                self._protect_all()
            for path in (documents.TOPICS, documents.REGISTRATIONS, documents.CHANGES, documents.SCRAM_USERS):
                self._make_sure_of(path)
            if request_timeout_ms is not None:
                self._request_timeout_s = request_timeout_ms / 1000
        except StoreError:
            self.close()
            raise
        except KazooTimeoutError as error:
            self.close()
            raise StoreError(
                f"No ZooKeeper answers at {connect} within {connection_timeout_ms / 1000:g} s: start it, or correct the address."
            ) from error
        except (zk.KazooException, ValueError) as error:
            self.close()
            raise StoreError(f"ZooKeeper at {connect} cannot be used: {error!r}.") from error

    def _make_sure_of(self, path: str) -> None:
        # A connection that is lost, or a session that ends, during the first request is no reason to fail the start.
        self._read(lambda: self._client.ensure_path_async(self._node(path), acl=self._acl(path)))

    # Protection

    def _acl(self, path: str) -> Any:
        """Who may read and change the document at `path`."""
        if not self._protect:
            return OPEN_ACL_UNSAFE
        return CREATOR_ALL_ACL if f"{path}/".startswith(documents.PRIVATE) else _PROTECTED

    def _protect_all(self) -> None:
        """Protect what is there already, unless that is done: the first of all documents says so when all are protected."""
        acls, _ = self._read(lambda: self._client.get_acls_async(self._node("")))
        if any(acl.id.scheme == "world" and acl.perms != _READ for acl in acls):
            log.info("The documents in ZooKeeper at %s are being protected.", self._where)
            self._set_acl("", _BEING_PROTECTED)
            for name in self._children("", None):
                self._protect_below(name)
            self._set_acl("", self._acl(""))

    def _protect_below(self, path: str) -> None:
        # First, so that nobody adds a document behind those that are listed.
        self._set_acl(path, self._acl(path))
        for name in self._children(path, None):
            self._protect_below(f"{path}/{name}")

    def _set_acl(self, path: str, acl: Sequence[Any]) -> None:
        # A document that is gone by now.
        with contextlib.suppress(zk.NoNodeError):
            self._read(lambda: self._client.set_acls_async(self._node(path), acl))

    # Sessions

    def session(self) -> int | None:
        identity = self._client.client_id
        return None if identity is None else identity[0]

    def renew(self) -> Session:
        before, sent = self.session(), time.monotonic()
        try:
            self._wait(self._client.exists_async(self._root or "/"))
        except _UNKNOWN as error:
            raise StoreError(f"ZooKeeper at {self._where} does not answer: {error!r}.") from error
        if before is None or self.session() != before:
            raise SessionLost(f"The session with ZooKeeper at {self._where} changed.")
        return Session(before, sent + self._client.granted_s)

    def sync(self) -> None:
        self._read(lambda: self._client.sync_async(self._root or "/"))

    def close(self) -> None:
        self._closing = True
        self._client.stop()
        self._client.close()

    # Reading

    def get(self, path: str) -> Stored | None:
        return self.get_all([path])[0]

    def get_all(self, paths: Sequence[str]) -> list[Stored | None]:
        def ask() -> list[Stored | None]:
            asked = [self._client.get_async(self._node(path)) for path in paths]
            return [self._stored(item) for item in asked]

        found: list[Stored | None] = self._repeated(ask)
        return found

    def paths(self, prefix: str) -> list[str]:
        names = self._children(prefix.rstrip("/"), None)
        return sorted(prefix + name for name in names)

    def watch_children(self, path: str) -> list[str]:
        return sorted(self._children(path.rstrip("/"), self._watcher(path)))

    def watch(self, path: str) -> Stored | None:
        found = self._read(lambda: self._client.exists_async(self._node(path), watch=self._watcher(path)))
        return None if found is None else self.get(path)

    # Writing

    def compare_and_set(self, path: str, data: bytes, revision: int) -> int:
        return self.write_all([Write(path, data, revision)])[0]

    def delete(self, path: str, revision: int) -> None:
        self.write_all([Write(path, None, revision)])

    def write_all(
        self, writes: Sequence[Write], guard: Guard | None = None, notification: bytes | None = None
    ) -> list[int]:
        revisions = [0 if write.data is None else write.revision + 1 for write in writes]
        began = time.monotonic()
        while not self._written(writes, guard, notification):
            # The connection was lost: it is not known whether that happened.
            try:
                if time.monotonic() - began > NOTIFICATIONS_KEPT_S / 2:
                    raise StoreError(f"ZooKeeper at {self._where} was away too long.")
                self.sync()
                if self._left(notification) if notification is not None else self._as_written(writes):
                    return revisions
            except StoreError as error:  # noqa: PERF203
                raise OutcomeUnknown(f"{error} Whether a write happened is not known.") from error
        return revisions

    def put_ephemeral(self, path: str, data: bytes) -> int:
        while True:
            try:
                _, stat = self._wait(
                    self._client.create_async(
                        self._node(path), _pack(path, data), self._acl(path), ephemeral=True, include_data=True
                    )
                )
                return int(stat.czxid)
            except (zk.NodeExistsError, *_UNKNOWN):  # noqa: PERF203
                created = self._own(path)
                if created is not None:
                    return created
                if self.get(path) is not None:
                    raise RevisionConflict(f"{path} belongs to another session.") from None

    def claim(self, path: str, data: bytes, *writes: Write) -> int:
        while True:
            transaction = self._client.transaction()
            transaction.create(self._node(path), _pack(path, data), ephemeral=True)
            for write in writes:
                self._add(transaction, write)
            if not self._committed(transaction, ", ".join((path, *(write.path for write in writes)))):
                # The connection was lost: whether the write happened is found by reading.
                self.sync()
            created = self._own(path)
            if created is not None:
                return created
            if self.get(path) is not None:
                raise RevisionConflict(f"{path} belongs to another session.")

    def release(self, path: str) -> None:
        if self._own(path) is not None:
            # A conflict: it is gone already.
            with contextlib.suppress(RevisionConflict):
                self.delete(path, 1)

    def _written(self, writes: Sequence[Write], guard: Guard | None, notification: bytes | None) -> bool:
        """Try once. Returns False when the connection was lost and the outcome is unknown. Raises `RevisionConflict`."""
        transaction = self._client.transaction()
        if guard is not None:
            transaction.check(self._node(guard.path), guard.revision - 1)
        for write in writes:
            self._add(transaction, write)
        if notification is not None:
            transaction.create(
                self._node(documents.CHANGES) + "/c-", _pack(documents.CHANGES, notification), sequence=True
            )
        return self._committed(transaction, ", ".join(write.path for write in writes[:3]))

    def _add(self, transaction: Any, write: Write) -> None:
        node = self._node(write.path)
        if write.data is None:
            transaction.delete(node, write.revision - 1)
        elif write.revision == 0:
            parent = node.rpartition("/")[0]
            if parent.count("/") > self._root.count("/") + 1:
                self._make_sure_of(write.path.rpartition("/")[0])
            transaction.create(node, _pack(write.path, write.data), self._acl(write.path))
        else:
            transaction.set_data(node, _pack(write.path, write.data), write.revision - 1)

    def _committed(self, transaction: Any, what: str) -> bool:
        try:
            results = self._wait(transaction.commit_async())
        except _UNKNOWN:
            self._check_open()
            return False
        except zk.KazooException as error:
            raise StoreError(f"ZooKeeper at {self._where} refuses to write {what}: {error!r}.") from error
        failed = [result for result in results if isinstance(result, Exception)]
        if not failed:
            return True
        if all(isinstance(failure, _CONFLICTS) for failure in failed):
            raise RevisionConflict(f"{what} changed meanwhile: read again.")
        raise StoreError(f"ZooKeeper at {self._where} refuses to write {what}: {failed!r}.")

    def _left(self, notification: bytes) -> bool:
        """Whether `notification` is stored."""
        return any(
            document is not None and document.data == notification
            for document in self.get_all(self.paths(documents.CHANGES))
        )

    def _as_written(self, writes: Sequence[Write]) -> bool:
        """Whether each document is exactly what was to be written."""
        for write, now in zip(writes, self.get_all([write.path for write in writes]), strict=True):
            wanted = None if write.data is None else (write.data, write.revision + 1)
            if (None if now is None else (now.data, now.revision)) != wanted:
                return False
        return True

    def _own(self, path: str) -> int | None:
        """The `Stored.created` of the node at `path`, if it belongs to this session."""
        stat = self._read(lambda: self._client.exists_async(self._node(path)))
        return int(stat.czxid) if stat is not None and stat.ephemeralOwner == self._client._session_id else None

    # Requests

    def _node(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/") or "/"

    def _children(self, path: str, watcher: Callable[[object], None] | None) -> Any:
        try:
            return self._read(lambda: self._client.get_children_async(self._node(path), watch=watcher))
        except zk.NoNodeError:
            return []

    def _stored(self, asked: Any) -> Stored | None:
        try:
            data, stat = self._wait(asked)
        except zk.NoNodeError:
            return None
        return Stored(_unpack(data), stat.version + 1, stat.czxid)

    def _read(self, ask: Callable[[], Any]) -> Any:
        return self._repeated(lambda: self._wait(ask()))

    def _repeated(self, ask: Callable[[], Any]) -> Any:
        """Repeat a read until the connection is back, for a bounded time."""
        give_up = time.monotonic() + self._request_timeout_s
        while True:
            try:
                return ask()
            except _UNKNOWN as error:  # noqa: PERF203
                self._check_open()
                if time.monotonic() > give_up:
                    raise StoreError(f"ZooKeeper at {self._where} does not answer: {error!r}.") from error
                # kazoo reports an expired session at once, and begins the next one a moment later.
                self._client._live.wait(0.05)
            except zk.NoNodeError:
                raise
            except zk.KazooException as error:
                raise StoreError(f"ZooKeeper at {self._where} refuses to read: {error!r}.") from error

    def _wait(self, asked: Any) -> Any:
        give_up = time.monotonic() + self._request_timeout_s
        while True:
            try:
                return asked.get(timeout=_CLOSING_LOOK_S)
            except KazooTimeoutError:  # noqa: PERF203
                self._check_open()
                if time.monotonic() > give_up:
                    raise zk.OperationTimeoutError from None

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError("The broker is stopping.")

    # What kazoo's threads call

    def _state_changed(self, state: str) -> None:
        words = {KazooState.LOST: "the session is over", KazooState.SUSPENDED: "the connection is lost"}
        if state in words and not self._closing:
            self._context.copy().run(log.warning, "ZooKeeper at %s: %s.", self._where, words[state])
        self._notify(SESSION)

    def _watcher(self, path: str) -> Callable[[object], None]:
        """One function for each path: kazoo keeps a function that is given twice only once."""
        return self._watchers.setdefault(path, lambda _event: self._notify(path))


def _pack(path: str, data: bytes) -> bytes:
    if len(data) < _COMPRESSED_FROM_BYTES:
        return data
    packed = b"z" + zlib.compress(data, 1)
    if len(packed) > _DOCUMENT_BYTES_MAX:
        raise StoreError(f"The document {path} takes {len(packed)} bytes, more than ZooKeeper stores in one node.")
    return packed


def _unpack(data: bytes) -> bytes:
    return zlib.decompress(data[1:]) if data[:1] == b"z" else data


def _quiet_logger() -> logging.Logger:
    """Passes kazoo's log lines on only when they matter: `_state_changed` reports reconnecting."""
    logger = logging.getLogger("pylog.zookeeper.kazoo")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.ERROR)
    return logger
