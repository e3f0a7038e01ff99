"""Several real brokers with a ZooKeeper of their own or a shared one, as child processes on this machine, for tests and first steps.

Examples
--------
>>> from pylog_spark.testing import LocalCluster
>>> with LocalCluster("/tmp/cluster", brokers=3) as cluster:  # doctest: +SKIP
...     cluster.brokers[0].kill()
...     cluster.wait_for_leader("events", 0)
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pylog_spark.results.decoding import all_decoded, decoded
from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown
from pylog_spark.results.topics import ClusterDescription, PartitionDescription, TopicDescription
from pylog_spark.testing.certificates import Certificates
from pylog_spark.testing.local_broker import LocalBroker
from pylog_spark.testing.login import kept_login, write_private
from pylog_spark.testing.process import ProcessError
from pylog_spark.testing.zookeeper import ZooKeeper

WAIT_TIMEOUT_S = 60.0
_LOOK_S = 0.02
#: Settings for tests: faults are detected soon, and internal topics are small. The settings given to `LocalCluster` win.
_QUICK: dict[str, object] = {
    "zookeeper_session_timeout_ms": 2_000,
    "zookeeper_connection_timeout_ms": 15_000,
    "default_replication_factor": 3,
    "min_insync_replicas": 2,
    "offsets_topic_num_partitions": 4,
    "offsets_topic_replication_factor": 3,
    "transaction_state_log_num_partitions": 4,
    "transaction_state_log_replication_factor": 3,
    "transaction_state_log_min_isr": 2,
    "share_coordinator_state_topic_num_partitions": 4,
    "share_coordinator_state_topic_replication_factor": 3,
    "share_coordinator_state_topic_min_isr": 2,
    "replica_lag_time_max_ms": 3_000,
    "replica_fetch_backoff_ms": 100,
    "group_initial_rebalance_delay_ms": 0,
}
_FACTORS = (
    "default_replication_factor",
    "offsets_topic_replication_factor",
    "transaction_state_log_replication_factor",
    "share_coordinator_state_topic_replication_factor",
)
_IN_SYNC = ("min_insync_replicas", "transaction_state_log_min_isr", "share_coordinator_state_topic_min_isr")

Found = TypeVar("Found")


class LocalCluster(Display):
    """Brokers 1, 2, 3... and a ZooKeeper on 127.0.0.1. Starts with `start` or ``with``.

    Parameters
    ----------
    dir : path
        The directory of the cluster's data. A later start with it continues the same cluster. Never removed here.
    brokers : int
        The number of brokers.
    racks : sequence of str, optional
        The rack of each broker.
    tls : bool
        Have throw-away certificates that all brokers trust, in the directory ``tls``, and one listener each, which is SSL, where
        `listeners` does not say otherwise; brokers show each other their certificates.
    sasl : str, optional
        Ask for a login by this mechanism, as `LocalBroker` does; brokers log in at each other, too.
    listeners : mapping of str to str, optional
        Names of each broker's listeners and their protocols, as `LocalBroker` has them.
    schema_registry : bool
        Each broker serves a schema registry on a free port, as `LocalBroker` does.
    http : bool
        Each broker serves metrics and probes in the same way.
    synced : bool
        The parameter `synced` of the cluster's own `ZooKeeper`.
    zookeeper : ZooKeeper, optional
        A running ZooKeeper, for several clusters or starts: it is neither started nor stopped here. Without it the cluster has its own.
    chroot : str
        The path in ZooKeeper under which the cluster keeps its documents. Clusters that share a ZooKeeper need different ones.
    **settings
        Settings of every broker by Kafka's names, with underscores. By default topics have a replica on each of (up to) three
        brokers and ``min.insync.replicas`` is 2, sessions last 2 s, and internal topics are small.

    Attributes
    ----------
    brokers : list of LocalBroker
        Broker N has the index N - 1; each can be killed, terminated, paused, resumed and started again.
    zookeeper : ZooKeeper
        The cluster's own ZooKeeper, or the given one; it can be killed and paused, too.
    zookeeper_connect : str
        The setting ``zookeeper.connect`` of a further broker, or the argument of a `pylog_spark.consumer_group.ConsumerGroup`.

    Examples
    --------
    >>> with ZooKeeper("/tmp/zookeeper") as shared:  # doctest: +SKIP
    ...     first = LocalCluster("/tmp/first", zookeeper=shared, chroot="/first")
    ...     second = LocalCluster("/tmp/second", zookeeper=shared, chroot="/second")
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002
        brokers: int = 3,
        *,
        racks: Iterable[str] | None = None,
        tls: bool = False,
        sasl: str | None = None,
        listeners: Mapping[str, str] | None = None,
        schema_registry: bool = False,
        http: bool = False,
        synced: bool = False,
        zookeeper: ZooKeeper | None = None,
        chroot: str = "/pylog",
        **settings: object,
    ) -> None:
        self.dir = Path(dir).absolute()
        self._shares = zookeeper is not None
        self._chroot = chroot
        self.zookeeper = zookeeper or ZooKeeper(self.dir / "zookeeper", port=_kept_port(self.dir, 0), synced=synced)
        quick = {**_QUICK, **dict.fromkeys(_FACTORS, min(3, brokers)), **dict.fromkeys(_IN_SYNC, min(2, brokers))}
        placed = list(racks or [])
        certificates = Certificates(self.dir / "tls").made() if tls else None
        login = kept_login(self.dir / "login", sasl) if sasl is not None else None
        # Without a login, a certificate says who somebody is.
        secure: dict[str, object] = {"ssl_client_auth": "required"} if tls and login is None else {}

        def of_broker(number: int) -> dict[str, object]:
            rack = {"broker_rack": placed[number - 1]} if placed else {}
            return {"node_id": number, **rack, **quick, **secure, **settings}

        self.brokers = [
            LocalBroker(
                self.dir / f"broker-{number}",
                port=_kept_port(self.dir, number),
                listeners=listeners,
                tls=certificates or False,
                sasl=login,
                schema_registry=schema_registry,
                http=http,
                **of_broker(number),
            )
            for number in range(1, brokers + 1)
        ]

    def __repr__(self) -> str:
        return f"<pylog cluster {self.bootstrap_servers}>"

    def _shown(self) -> Shown:
        rows = [(each.broker_id, each.bootstrap_servers, each.running, each.data_dir) for each in self.brokers]
        return Shown(f"Cluster of {len(rows)} brokers", ("broker", "address", "running", "data"), rows)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients connect to: all brokers, separated by commas."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def client_properties(self) -> Path:
        """Write what a client needs beside the addresses into a file, as Kafka's tools take it (``--command-config``); give its path."""
        path = self.dir / "client.properties"
        secure = self.brokers[0].security_settings
        write_private(path, "".join(f"{name}={value}\n" for name, value in secure.items()))
        return path

    @property
    def zookeeper_connect(self) -> str:
        """What the brokers' setting ``zookeeper.connect`` is."""
        return self.zookeeper.address + self._chroot

    def broker(self, broker_id: int) -> LocalBroker:
        """The broker with this number.

        Parameters
        ----------
        broker_id : int
            From 1 on.
        """
        return self.brokers[broker_id - 1]

    def start(self) -> "LocalCluster":
        """Start ZooKeeper if it is the cluster's own, then all brokers at once, and wait until all know each other and a controller.

        Raises `ProcessError`; nothing runs then.
        """
        try:
            if not self._shares:
                self.zookeeper.start()
            for broker in self.brokers:
                broker.configure(zookeeper_connect=self.zookeeper_connect)
            self._start_brokers()
        except BaseException:
            self._end()
            raise
        _keep_ports(self.dir, [self.zookeeper.port, *(broker.port for broker in self.brokers)])
        return self

    def _start_brokers(self) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(LocalBroker.start, [broker for broker in self.brokers if not broker.running]))
        self.wait_for(self._know_each_other, "every broker knows all others and the controller")

    def heal(self) -> None:
        """Resume paused processes and start those that are down, of ZooKeeper and the brokers.

        Waits until all know each other and a controller, and every replica of every topic is in sync. Topics and settings
        stay as they are. Raises `ProcessError`.
        """
        self.zookeeper.heal()
        for broker in self.brokers:
            if broker.running:
                broker.resume()
        self._start_brokers()
        self.wait_in_sync()

    def stop(self) -> None:
        """Stop the brokers cleanly, one after the other, then ZooKeeper if it is the cluster's own. `start` starts them again."""
        for broker in self.brokers:
            if broker.running:
                broker.terminate()
        if self.zookeeper.running and not self._shares:
            self.zookeeper.terminate()

    def close(self) -> None:
        """`stop`, and delete the logs of the processes. When ZooKeeper is down, brokers that do not stop are killed."""
        try:
            self.stop()
        finally:
            self._end()
            for broker in self.brokers:
                broker.close()
            if not self._shares:
                self.zookeeper.close()

    def logs(self) -> str:
        """The logs of all processes, one after the other."""
        return "\n".join(f"--- {broker.data_dir}\n{broker.logs()}" for broker in self.brokers) + self.zookeeper.logs()

    def __enter__(self) -> "LocalCluster":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Looking at it

    def describe_topic(self, topic: str) -> list[PartitionDescription]:
        """Give a topic's partitions, as a running broker describes them.

        Parameters
        ----------
        topic : str
            The topic.
        """
        return list(self._partitions([topic], ",".join(self._asked())).values())

    def _partitions(
        self, topics: list[str] | None, bootstrap_servers: str
    ) -> dict[tuple[str, int], PartitionDescription]:
        """The partitions of some topics, or of all, by topic and number, as one of these brokers describes them."""
        from pylog_spark._native import Client

        client = Client(self._reached(bootstrap_servers))
        try:
            described = all_decoded(TopicDescription, client.describe_topics(topics))
            return {
                (topic.name, partition.partition): partition for topic in described for partition in topic.partitions
            }
        finally:
            client.close()

    def leader(self, topic: str, partition: int) -> LocalBroker | None:
        """Give the broker that leads the partition now; None while there is no leader.

        Parameters
        ----------
        topic, partition : str, int
            The topic and the number of the partition.
        """
        leader = next(described.leader for described in self.describe_topic(topic) if described.partition == partition)
        return None if leader == -1 else self.broker(leader)

    def controller(self) -> LocalBroker | None:
        """Give the broker that is the controller now; None while there is none."""
        from pylog_spark._native import Client

        client = Client(self._reached(",".join(self._asked())))
        try:
            number = decoded(ClusterDescription, client.describe_cluster()).controller_id
        finally:
            client.close()
        return None if number == -1 else self.broker(number)

    def wait_for(self, condition: Callable[[], Found], what: str, timeout_s: float = WAIT_TIMEOUT_S) -> Found:
        """Wait until `condition` gives something true, and return it; while it raises errors of the client, wait on.

        Parameters
        ----------
        condition : callable
            Asked again and again.
        what : str
            What is waited for, as the error says it.
        timeout_s : float
            Seconds.

        Raises
        ------
        ProcessError
            After `timeout_s`, with the brokers' logs.
        """
        from pylog_spark._native import NativeError

        give_up, last = time.monotonic() + timeout_s, None
        while time.monotonic() < give_up:
            try:
                found = condition()
            except (NativeError, StopIteration) as error:
                found, last = None, error
            if found:
                return found
            time.sleep(_LOOK_S)
        raise ProcessError(f"After {timeout_s:g} s still not: {what} (last error: {last}).\n{self.logs()}")

    def wait_in_sync(self, topic: str | None = None, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until every replica is in sync, and every broker that runs says so: one may know of new partitions before another.

        Parameters
        ----------
        topic : str, optional
            The topic whose partitions are looked at; those of all topics that there are when not given.
        timeout_s : float
            Seconds, after which `ProcessError` is raised.
        """
        topics = None if topic is None else [topic]

        def in_sync() -> bool:
            views = [self._partitions(topics, servers) for servers in self._asked()]
            every = [partition for view in views for partition in view.values()]
            whole = all(set(partition.isr) == set(partition.replicas) and partition.leader != -1 for partition in every)
            # A broker that does not know the topic yet shows no partition of it.
            return whole and all(view.keys() == views[0].keys() for view in views) and (bool(every) or topic is None)

        self.wait_for(in_sync, f"all replicas of {topic or 'all topics'} in sync", timeout_s)

    def wait_for_leader(
        self, topic: str, partition: int, *, other_than: LocalBroker | None = None, timeout_s: float = WAIT_TIMEOUT_S
    ) -> LocalBroker:
        """Wait until a broker leads the partition, and return that broker.

        Parameters
        ----------
        topic, partition : str, int
            The topic and the number of the partition.
        other_than : LocalBroker, optional
            A broker that does not count.
        timeout_s : float
            Seconds, after which `ProcessError` is raised.
        """

        def led() -> LocalBroker | None:
            leader = self.leader(topic, partition)
            return leader if leader is not None and leader is not other_than else None

        leader = self.wait_for(led, f"a leader of {topic}-{partition}", timeout_s)
        assert leader is not None
        return leader

    def _know_each_other(self) -> bool:
        """Whether each running broker knows all other running ones, and a controller: librdkafka's admin client may wait for half a
        minute after a broker that knew no controller."""
        from pylog_spark._native import Client

        running = [broker for broker in self.brokers if broker.running]
        for broker in running:
            client = Client(self._reached(broker.bootstrap_servers))
            try:
                known = decoded(ClusterDescription, client.describe_cluster())
            finally:
                client.close()
            if len(known.brokers) < len(running) or known.controller_id == -1:
                return False
        return True

    def _reached(self, bootstrap_servers: str) -> dict[str, str]:
        """The settings of a client of these brokers."""
        secure = self.brokers[0].security_settings
        return {"default.api.timeout.ms": "5000", **secure, "bootstrap.servers": bootstrap_servers}

    def _asked(self) -> list[str]:
        """The addresses of the brokers that answer."""
        running = [broker for broker in self.brokers if broker.running]
        if not running:
            raise ProcessError("No broker runs.")
        # A client would wait for a paused broker.
        return [broker.bootstrap_servers for broker in running if not broker.paused] or [
            broker.bootstrap_servers for broker in running
        ]

    def _end(self) -> None:
        """Make sure that nothing runs."""
        for broker in self.brokers:
            if broker.running:
                broker.kill()
        if self.zookeeper.running and not self._shares:
            self.zookeeper.kill()


def _ports_file(folder: Path) -> Path:
    return folder / "ports"


def _kept_port(folder: Path, index: int) -> int:
    """The port of an earlier start of the same cluster, 0 when there was none."""
    try:
        ports = _ports_file(folder).read_text().split()
    except FileNotFoundError:
        return 0
    return int(ports[index]) if index < len(ports) else 0


def _keep_ports(folder: Path, ports: list[int]) -> None:
    _ports_file(folder).write_text(" ".join(map(str, ports)) + "\n")
