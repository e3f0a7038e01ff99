"""A broker in this process: opens the store, starts the native server, and answers its requests for decisions.

The native server's threads do everything that touches a record. One Python thread, the control loop, waits for requests
that need a decision (create a topic, describe configs...), and is the only one that touches the store and the topic registry.

Start: read the cluster's documents, lock and open the data directory, apply all topics, listen. Stop (`Broker.close`):
answer what is in flight, sync, write the clean-stop marker, unlock. A kill at any moment is safe: see `registry`. A
broker that shares a ZooKeeper with others does more: see `clustered`.
"""

import atexit
import contextlib
import contextvars
import json
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, cast

from pylog_spark.broker import config, native_log
from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.errors import BrokerError, MembershipError
from pylog_spark.broker.foreign import belongs_to_kafka, sentence_for_kafka
from pylog_spark.broker.jwks import JwksError, JwksReader, source_of
from pylog_spark.broker.listeners import Listeners, address, inter_broker_client, native_listeners, read_listeners
from pylog_spark.broker.loggers import serving_as
from pylog_spark.broker.registry import TopicRegistry, message_of, stored_cluster_id, stored_config
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cluster import documents
from pylog_spark.cluster.documents import DocumentError
from pylog_spark.cluster.model import new_topic_id
from pylog_spark.cluster.store import SharedStore, Store, StoreError
from pylog_spark.cluster.store.file import FileStore

if TYPE_CHECKING:
    from pylog_spark._native import NativeBroker
    from pylog_spark.archive.tiered.beside import ArchiveService, ArchiveSettings
    from pylog_spark.archive.tiered.counting import ArchiveCounts, ArchivedTopic
    from pylog_spark.broker.clustered import ChangeQueue, Clustered

log = logging.getLogger("pylog.broker")

# The longest wait of the control loop when nothing happens; closing wakes it at once.
_EVENT_WAIT_MS = 60_000
CLOSE_TIMEOUT_MS = 30_000
#: The native server's request when it cannot write a log that it leads, and others could lead it.
STORAGE_FAILED = "storage_failed"
#: Its request when a token names a key that it does not know.
READ_KEYS = "read_keys"
# Seconds before topics are opened again that could not be opened, mostly because no file descriptor was left.
_OPEN_AGAIN_S = 5.0
# Pause of the control loop after an error, which may repeat.
_ERROR_PAUSE_S = 0.2


class Broker:
    """A running broker. Made by `start_broker`; close it, or use it as a context manager.

    Attributes
    ----------
    data_dir, cluster_id : str
        Its directory, absolute; the id of the cluster that it belongs to, alone or with others.
    start_seconds : float
        How long it took to start.
    listeners : Listeners
        All of its listeners, with the ports on which they listen.
    node_id : int
        Its number, by which its lines in the log are known.
    config : BrokerConfig
        The settings that it was started with.
    failure : str or None
        Why it has handed its leadership to the other brokers of its cluster and is to be closed; see `when_failed`.
    """

    def __init__(self, data_dir: str, listeners: Listeners, given: BrokerConfig) -> None:
        from pylog_spark._native import NativeBroker, NativeError

        started = time.perf_counter()
        self.data_dir = os.path.abspath(data_dir)
        self.node_id, self.config = given.number("node.id"), given
        self._native_error, self._open_again_at = NativeError, 0.0
        self._closing, self._pid = threading.Event(), os.getpid()
        self._cluster: Clustered | None = None
        self.failure: str | None = None
        self._on_failure: Callable[[], None] = lambda: None
        keys = source_of(given)
        archive = _archive_settings(given)
        store, known_id, changes = _open_store(self.data_dir, given)
        try:
            self.cluster_id = known_id or new_topic_id()
            broker = stored_config(store, given)
            self._native = NativeBroker(self.data_dir, _native_settings(broker, self.cluster_id, listeners))
        except NativeError as error:
            store.close()
            raise BrokerError(_start_sentence(error, self.data_dir)) from error
        except (StoreError, DocumentError) as error:
            store.close()
            raise BrokerError(str(error)) from error
        self._jwks = JwksReader(keys, self._native.apply_jwks, NativeError, self.node_id)
        try:
            self._registry = TopicRegistry(store, self._native, broker, NativeError, shared=changes is not None)
            if changes is not None:
                from pylog_spark.broker import clustered

                self._cluster = clustered.Clustered(
                    cast(SharedStore, store),
                    changes,
                    self._native,
                    self._registry,
                    broker,
                    self.data_dir,
                    self.cluster_id,
                )
                self._cluster.prepare()
            else:
                if known_id is None:
                    store.compare_and_set(documents.CLUSTER, documents.encode_cluster(self.cluster_id), 0)
                self._registry.start()
            self._jwks.start()
            self.listeners = listeners.bound(self._native.listen(native_listeners(broker, listeners)))
            if self._cluster is not None:
                self._cluster.join(self.listeners)
        except (NativeError, StoreError, DocumentError, ConfigError, JwksError, MembershipError) as error:
            self._jwks.close()
            # What kept it from starting, such as a full disk, may well keep it from closing: the first error is the cause.
            with contextlib.suppress(NativeError):
                self._native.close(CLOSE_TIMEOUT_MS)
            store.close()
            raise BrokerError(_listen_sentence(error)) from error
        self._registry.broker = _shown(broker, self.data_dir, self.listeners)
        self._archive = self._begin_archive(archive)
        self._thread = _control_thread(self._control_loop)
        self.start_seconds = time.perf_counter() - started
        if self._cluster is None:
            self._registry.warn_of_stray_logs(self.data_dir)
        atexit.register(self.close)

    def _begin_archive(self, settings: "ArchiveSettings | None") -> "ArchiveService | None":
        if settings is None:
            self._registry.warn_of_archived_topics()
            return None
        from pylog_spark.archive.tiered.beside import archive_of

        archive = archive_of(settings, self._native, self._registry, self.cluster_id, lambda: self.is_controller)
        archive.start()
        return archive

    @property
    def bootstrap_servers(self) -> str:
        """The address that clients connect to, ``HOST:PORT``: that of its first listener."""
        return self.address_of(self.listeners.first.name)

    @property
    def host(self) -> str:
        """The host of its first listener."""
        return self.listeners.first.host

    @property
    def port(self) -> int:
        """The port of its first listener."""
        return self.listeners.first.port

    def address_of(self, listener: str) -> str:
        """The address, ``HOST:PORT``, of the listener with this name.

        Parameters
        ----------
        listener : str
            The name of the listener, in upper or lower case.
        """
        (found,) = (each for each in self.listeners.all if each.name == listener.upper())
        return address(found.host, found.port)

    @property
    def topic_count(self) -> int:
        """Number of topics that are served, including internal ones."""
        return len(self._registry.topics)

    @property
    def partition_count(self) -> int:
        """Number of partitions that are served."""
        return sum(len(topic.partitions) for topic in self._registry.topics.values())

    def stats(self) -> dict[str, int]:
        """Counters since the start and gauges of the native server."""
        return self._native.stats()

    def archive_counts(self) -> "ArchiveCounts | None":
        """What its archive has done since the start; None when it has none."""
        return None if self._archive is None else self._archive.counts

    def archived_topics(self) -> "dict[str, ArchivedTopic]":
        """What its archive has of the partitions led here, by topic; empty when it has none."""
        return {} if self._archive is None else self._archive.topics()

    def partition_numbers(self) -> str:
        """Offsets and sizes of the replicas on this broker, as JSON (`NativeBroker.partition_numbers`)."""
        return self._native.partition_numbers()

    def group_numbers(self) -> str:
        """What the groups that this broker coordinates have committed, as JSON (`NativeBroker.group_numbers`)."""
        return self._native.group_numbers()

    def request_times(self) -> str:
        """How long requests took since the start, by API, as JSON (`NativeBroker.request_times`)."""
        return self._native.request_times()

    @property
    def is_controller(self) -> bool:
        """Whether it decides who leads; a broker alone does."""
        return self._cluster is None or self._cluster.controller.elected

    @property
    def why_not_healthy(self) -> str | None:
        """Why it should be started anew, in a sentence; None when it should not."""
        if self.failure is not None:
            return self.failure
        return None if self._thread.is_alive() else "The broker decides nothing any more; its log says why."

    @property
    def why_not_ready(self) -> str | None:
        """Why clients should not be sent to it now, in a sentence; None when they may be."""
        if self._closing.is_set():
            return "The broker is stopping."
        # The broker's numbers say it too, and count all topics for it.
        if not self._native.may_lead():
            return "The broker has lost ZooKeeper and leads nothing until it is back."
        if self._registry.has_unopened:
            return "Logs of the broker cannot be opened; its log says which."
        return self.why_not_healthy

    @property
    def schema_ids(self) -> "NativeBroker":
        """What a schema registry beside this broker tells it: which schemas records may name."""
        return self._native

    def when_failed(self, notify: Callable[[], None]) -> None:
        """Call `notify` when there is a `failure`, at once if there is one already. It may be called by any thread, once or twice, and
        should close the broker."""
        self._on_failure = notify
        if self.failure is not None:
            notify()

    def close(self) -> None:
        """Stop: answer what is in flight, sync, mark the stop as clean, unlock. Safe to call twice.

        Raises
        ------
        BrokerError
            When not everything could be written. The broker has stopped all the same, and nothing acknowledged is lost.
        """
        if self._closing.is_set() or os.getpid() != self._pid:
            return
        self._closing.set()
        atexit.unregister(self.close)
        try:
            with serving_as(self.node_id):
                self._stop()
        finally:
            native_log.flush()

    def _stop(self) -> None:
        if self._cluster is not None:
            # Only the control loop may leave the cluster.
            self._native.wake()
            self._thread.join(CLOSE_TIMEOUT_MS / 1000)
        self._jwks.close()
        if self._archive is not None:
            self._archive.close()
        failure: Exception | None = None
        try:
            self._native.close(CLOSE_TIMEOUT_MS)
        except self._native_error as error:
            failure = error
        self._thread.join(CLOSE_TIMEOUT_MS / 1000)
        if self._cluster is not None:
            self._cluster.close()
        if failure is not None:
            raise BrokerError(
                f"Stopped, but not cleanly ({message_of(failure)}): the next start checks the logs."
            ) from failure

    def __enter__(self) -> "Broker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closing.is_set() else "running"
        return f"<pylog broker {self.bootstrap_servers} {state}, data in {self.data_dir}>"

    def _repr_html_(self) -> str:
        # In a notebook; a broker without one does not load it.
        from pylog_spark.results.markup import Shown, as_html

        state = "closed" if self._closing.is_set() else "running"
        counts = () if state == "closed" else (("topics", self.topic_count), ("partitions", self.partition_count))
        rows = [("address", self.bootstrap_servers), ("data", self.data_dir), *counts]
        return as_html(Shown(f"Broker: {state}", ("", ""), rows))

    def _control_loop(self) -> None:
        # Not at the top, so that a broker answers its first clients sooner; and not when the first of them asks for a decision, because
        # the package may be another one by then, installed over this one.
        import pylog_spark.broker.requests  # noqa: F401

        while not self._closing.is_set():
            self._serve_one()
        if self._cluster is not None:
            self._cluster.leave()

    def _serve_one(self) -> None:
        try:
            wait_ms = _EVENT_WAIT_MS
            if self._cluster is not None:
                self._cluster.turn()
                wait_ms = math.ceil(self._cluster.wait_s(_EVENT_WAIT_MS / 1000) * 1000)
            if self._registry.has_unopened:
                wait_ms = min(wait_ms, math.ceil(_OPEN_AGAIN_S * 1000))
            event = self._native.next_event(wait_ms)
            if event is not None:
                self._decide(*event)
            if self._registry.has_unopened and time.monotonic() >= self._open_again_at:
                self._registry.open_again()
                self._open_again_at = time.monotonic() + _OPEN_AGAIN_S
        except self._native_error as error:
            if not self._closing.is_set():
                log.error("The control loop goes on after an error of the native server: %s", message_of(error))
                self._closing.wait(_ERROR_PAUSE_S)
        except Exception:
            # Without this loop the broker would not learn of the cluster's decisions, while it keeps its lease to lead.
            log.exception("The control loop goes on after an error of its own.")
            self._closing.wait(_ERROR_PAUSE_S)

    def _decide(self, event_id: int, kind: str, request_json: str) -> None:
        request = json.loads(request_json)
        if self._cluster is not None and self._cluster.answer(event_id, kind, request):
            return
        if kind == READ_KEYS:
            self._jwks.hurry()
            self._native.complete(event_id, "{}")
            return
        if self._cluster is not None and kind == STORAGE_FAILED:
            self._hand_over(self._cluster, request["reason"])
            self._native.complete(event_id, "{}")
            return
        from pylog_spark.broker import requests  # loaded by the control loop

        try:
            answer = requests.HANDLERS[kind](self._registry, request)
        except StoreError as error:
            log.error("A %s request failed: %s", kind, error)
            answer = requests.failed(kind, request, str(error))
        except Exception:
            log.exception("A %s request failed.", kind)
            answer = requests.failed(kind, request)
        self._native.complete(event_id, json.dumps(answer))

    def _hand_over(self, cluster: "Clustered", reason: str) -> None:
        """Let other brokers lead all partitions that they can lead."""
        self.failure = (
            f"Stopped, so that other brokers lead what this one could not write ({reason}): give it room or another disk, "
            "and start it again."
        )
        log.error("This broker stops, since it cannot write what it leads: %s", reason)
        cluster.leave()
        self._on_failure()


def _open_store(data_dir: str, given: BrokerConfig) -> "tuple[Store, str | None, ChangeQueue | None]":
    """The store of the topics; the id of the cluster, None before the first start of a broker alone; in a cluster what takes the changes
    that other brokers make. Raises `BrokerError`."""
    try:
        if belongs_to_kafka(data_dir):
            raise BrokerError(sentence_for_kafka(data_dir))
        os.makedirs(data_dir, exist_ok=True)
        if given.text("zookeeper.connect") is None:
            alone = FileStore(data_dir)
            return alone, stored_cluster_id(alone), None
        # Not at the top: a broker alone starts sooner and is smaller without it.
        from pylog_spark.broker import clustered

        changes = clustered.ChangeQueue()
        shared = clustered.connect(given, changes)
        try:
            return shared, clustered.agreed_cluster_id(shared), changes
        except BaseException:
            shared.close()
            raise
    except (StoreError, DocumentError, MembershipError) as error:
        raise BrokerError(str(error)) from error
    except OSError as error:
        sentence = f"The data directory {data_dir} cannot be used: {error.strerror}: {error.filename}"
        raise BrokerError(sentence) from error


def start_broker(
    data_dir: str | os.PathLike[str],
    host: str | None = None,
    port: int | None = None,
    *,
    allow_plaintext: bool = False,
    **settings: object,
) -> Broker:
    """Start a broker in this process.

    Parameters
    ----------
    data_dir : path
        The directory of the log; created when missing. Only one broker can use it at a time.
    host, port : str, int
        The address to listen on without encryption; 127.0.0.1 and a free port when neither they nor ``listeners`` are given. Port 0
        takes a free port, see `Broker.bootstrap_servers`.
    allow_plaintext : bool
        Needed to listen without encryption on an address that other machines can reach: all of them can read and write then.
    **settings
        Settings by Kafka's names, with underscores: ``num_partitions=4, log_retention_hours=24``. ``listeners`` names several addresses,
        as Kafka's setting does. A name that Python cannot have as a keyword is given in a mapping: ``**{"listener.name.x.ssl.client.auth": "required"}``.

    Returns
    -------
    Broker
        The running broker; close it or use it in a ``with`` statement.

    Raises
    ------
    ConfigError
        When a setting is unknown or refused.
    BrokerError
        When the broker cannot start, such as when the directory is in use or the port is taken.

    Examples
    --------
    >>> with start_broker("./data", num_partitions=4) as broker:  # doctest: +SKIP
    ...     print(broker.bootstrap_servers)
    """
    given = config.keyword_settings(settings)
    if host is not None or port is not None:
        if "listeners" in dict(given):
            raise ConfigError("host or port, and listeners, are given: give the addresses in listeners alone.")
        given.append(("listeners", address("127.0.0.1" if host is None else host, port or 0)))
    elif "listeners" not in dict(given):
        given.append(("listeners", "127.0.0.1:0"))
    return open_broker(data_dir, given, allow_plaintext)


def open_broker(data_dir: str | os.PathLike[str], settings: Iterable[tuple[str, str]], allow_plaintext: bool) -> Broker:
    """Start a broker as `start_broker` does, with settings as (Kafka's name, text), its addresses among them."""
    given = config.broker_config([*settings, *([("allow.plaintext.listeners", "true")] if allow_plaintext else [])])
    listeners = read_listeners(given)
    if given.text("zookeeper.connect") is not None:
        listeners.check_cluster()
        inter_broker_client(given, listeners)
    native_log.open_log()
    try:
        with serving_as(given.number("node.id")):
            return Broker(os.fspath(data_dir), listeners, given)
    finally:
        # What the start brought to light is in the log when the broker serves, or does not start.
        native_log.flush()


def _archive_settings(broker: BrokerConfig) -> "ArchiveSettings | None":
    """The settings of the broker's archive; None when it has none. Raises `ConfigError`."""
    if broker.text("archive.url") is None:
        return None
    # A broker without an archive loads neither the client nor anything of it.
    from pylog_spark.archive.tiered.beside import archive_settings

    return archive_settings(broker)


def _native_settings(broker: BrokerConfig, cluster_id: str, listeners: Listeners) -> str:
    client = inter_broker_client(broker, listeners)
    return config.native_settings(broker, cluster_id, listeners.inter_broker, client)


def _control_thread(work: Callable[[], None]) -> threading.Thread:
    """A thread that does `work`, started; what it logs is of the same broker as what the caller does."""
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="pylog-control", daemon=True)
    thread.start()
    return thread


def _shown(broker: BrokerConfig, data_dir: str, listeners: Listeners) -> BrokerConfig:
    """The settings as DescribeConfigs shows them, with the directory and the addresses that are in use.

    Of a listener whose clients are each given the address that they connected to, no advertised address is shown.
    """
    used = {"log.dirs": data_dir, "listeners": ",".join(map(str, listeners.all))}
    advertised = [f"{name}://{address(*endpoint)}" for name, endpoint in listeners.endpoints().items()]
    if advertised:
        used["advertised.listeners"] = ",".join(advertised)
    return BrokerConfig({**broker.given, **used}, broker.dynamic)


def _start_sentence(error: Exception, data_dir: str) -> str:
    if error.args[0] == "LOCKED":
        return f"The data directory {data_dir} is in use by another broker: stop that one, or use another directory."
    return f"The data directory {data_dir} cannot be opened: {message_of(error)}"


def _listen_sentence(error: Exception) -> str:
    """The sentence for an error of the start; the native one of a port that is taken begins with "cannot listen on HOST:PORT: "."""
    sentence = message_of(error)
    taken = re.search(r"cannot listen on (\S+): .*in use", sentence, re.IGNORECASE)
    if taken:
        return f"{taken[1]} is already in use: stop the program that listens there, or use another port."
    return sentence
