"""A cluster that tests may harm: a `LocalCluster` of three brokers over a ZooKeeper that runs, all reached through a `Network`, and what
is known about it.

Sessions and lags are short, so that a fault of a few seconds has consequences.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker, LocalCluster, ZooKeeper
from pylog_spark.testing.process import free_port
from tests.harness.disks import Disks
from tests.harness.history import History, Place, Replica
from tests.harness.load import QUICK
from tests.harness.machine import Machine
from tests.harness.proxy import Network
from tests.harness.security import ADMIN, OPEN, Security, Way
from tests.harness.waiting import seconds_until, until
from tests.harness.watch import Watcher
from tests.harness.zookeeper import new_chroot

ZOOKEEPER = "zookeeper"
SESSION_S = 1.5
LAG_S = 1.5
WHOLE_WITHIN_S = 60.0
_LOG_LINES = 200

SETTINGS: dict[str, Any] = {
    "zookeeper_session_timeout_ms": int(SESSION_S * 1000),
    "zookeeper_connection_timeout_ms": 45_000,
    "replica_lag_time_max_ms": int(LAG_S * 1000),
    "replica_fetch_wait_max_ms": 100,
    "replica_fetch_backoff_ms": 50,
    "replica_socket_timeout_ms": 2_000,
    # What a test wants of its topics it says itself.
    "default_replication_factor": 1,
    "min_insync_replicas": 1,
    "offsets_topic_num_partitions": 2,
    "offsets_topic_replication_factor": 3,
    "transaction_state_log_num_partitions": 2,
    "transaction_state_log_replication_factor": 3,
    "transaction_state_log_min_isr": 2,
    "share_coordinator_state_topic_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 1_000,
    "log_segment_bytes": 200_000,
    "log_index_interval_bytes": 1_000,
}


def end_name(broker: int) -> str:
    """The name of a broker in the network, and of its folder in the cluster's."""
    return f"broker-{broker}"


def _logging(program: Sequence[str], level: str) -> Sequence[str]:
    """A broker's command, with what is logged at the end of its options."""
    return ("sh", "-c", f'exec "$@" --log-level {level}', "sh", *program)


class _Dialled(LocalCluster):
    """One whose brokers connect to ZooKeeper and each other through a network."""

    def __init__(
        self,
        network: Network,
        directory: Path,
        brokers: int,
        zookeeper: ZooKeeper,
        chroot: str,
        protocol: str,
        **more: Any,
    ) -> None:
        super().__init__(directory, brokers, zookeeper=zookeeper, chroot=chroot, **more)
        self._dialled = f"127.0.0.1:{network.listen(ZOOKEEPER, zookeeper.port)}{chroot}"
        for broker in self.brokers:
            broker.port = broker.port or free_port()
            advertised = network.listen(end_name(broker.broker_id), broker.port)
            broker.configure(advertised_listeners=f"{protocol}://127.0.0.1:{advertised}")

    @property
    def zookeeper_connect(self) -> str:
        return self._dialled


class Bench:
    """Use it as a context manager: all brokers are started, and gone at the end.

    Parameters
    ----------
    directory : Path
        For the brokers' data.
    zookeeper : ZooKeeper
        One that runs. It may be harmed, and is healed at the end.
    brokers : int
        How many.
    security : Security
        What guards it. Its super user is there; others have yet to be made.
    **settings
        Kafka's settings of every broker, with underscores.
    """

    def __init__(
        self,
        directory: Path,
        zookeeper: ZooKeeper,
        brokers: int = 3,
        *,
        security: Security = OPEN,
        **settings: Any,
    ) -> None:
        self.ids = tuple(range(1, brokers + 1))
        self.network = Network()
        self.zookeeper = zookeeper
        self._chroot = new_chroot()
        self.machines = {broker: Machine(directory / f"machine-{broker}") for broker in self.ids}
        self._dark: set[int] = set()
        self.history = History()
        self.paused: set[int] = set()
        self._zookeeper_paused = False
        self._directory = directory
        self._disks = Disks([directory / end_name(broker) for broker in self.ids])
        self.security = security
        self._settings = {**SETTINGS, **security.cluster, **settings}
        self._cluster: _Dialled
        self.watcher: Watcher

    def __enter__(self) -> "Bench":
        self.network.__enter__()
        try:
            place = (len(self.ids), self.zookeeper, self._chroot, self.security.protocol)
            self._cluster = _Dialled(self.network, self._directory, *place, **self._settings)
            self.watcher = Watcher(self.documents, self.history)
            for broker, process in self.brokers.items():
                process.program = _logging(self.machines[broker].program, self.security.log_level)
            self._cluster.start()
            for broker in self.ids:
                self._name(broker)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def brokers(self) -> dict[int, LocalBroker]:
        """By their numbers."""
        return {broker.broker_id: broker for broker in self._cluster.brokers}

    @property
    def servers(self) -> str:
        """Bootstrap servers for clients."""
        return self._cluster.bootstrap_servers

    @property
    def way(self) -> Way:
        """The same, with what clients must say to be let in."""
        return Way(self.servers, self.security)

    def admin(self, broker: int) -> Admin:
        """The super user, by way of one broker that no fault of the network befalls."""
        return Admin(f"127.0.0.1:{self.brokers[broker].port}", self.security.client(ADMIN))

    @property
    def documents(self) -> str:
        """Where ZooKeeper keeps the cluster's documents; not through the network."""
        return self.zookeeper.address + self._chroot

    # What is done to it

    def start(self, broker: int) -> None:
        """Start a broker that is down; returns when it serves."""
        self.brokers[broker].start()
        self._name(broker)

    def _name(self, broker: int) -> None:
        self.network.name(self.brokers[broker].pid, end_name(broker))

    def kill(self, broker: int) -> None:
        """kill -9."""
        self.brokers[broker].kill()

    def cut_power(self, broker: int, randomness: random.Random) -> None:
        """Cut the power of a broker's machine: what was not made durable may be gone.

        One at a time: the next one before the heal is only killed, since acks=all promises no more with page caches.
        """
        self.kill(broker)
        if not self._dark:
            self._dark.add(broker)
            self._lose_unsynced(broker, randomness)

    def black_out(self) -> None:
        """Cut the power of all machines at once: what was not made durable is gone."""
        for broker in self.ids:
            self.kill(broker)
        for broker in self.ids:
            self._lose_unsynced(broker, None)

    def _lose_unsynced(self, broker: int, randomness: random.Random | None) -> None:
        directory = self._directory / end_name(broker)
        with self._disks.unseen(directory):
            self.machines[broker].lose_unsynced(directory, randomness)

    def stop(self, broker: int) -> None:
        """A clean stop."""
        assert self.brokers[broker].terminate() == 0, self.brokers[broker].logs()

    def pause(self, broker: int) -> None:
        """SIGSTOP."""
        self.brokers[broker].pause()
        self.paused.add(broker)

    def pause_zookeeper(self) -> None:
        """SIGSTOP of ZooKeeper."""
        self.zookeeper.pause()
        self._zookeeper_paused = True

    @property
    def zookeeper_answers(self) -> bool:
        """Whether nothing was done to ZooKeeper itself."""
        return self.zookeeper.running and not self._zookeeper_paused

    def isolate(self, broker: int) -> None:
        """Cut a broker off from the other brokers, both ways; clients and ZooKeeper still reach it."""
        for other in self.ids:
            if other != broker:
                self.network.cut(end_name(broker), end_name(other))
                self.network.cut(end_name(other), end_name(broker))

    def cut_off_zookeeper(self, broker: int) -> None:
        """Cut a broker off from ZooKeeper, both ways."""
        self.network.cut(end_name(broker), ZOOKEEPER)
        self.network.cut(ZOOKEEPER, end_name(broker))

    def heal(self) -> None:
        """Undo everything, and note when."""
        self.network.heal()
        self._dark.clear()
        for machine in self.machines.values():
            machine.set_clock(0)
        self.zookeeper.heal()
        self._zookeeper_paused = False
        for broker, process in self.brokers.items():
            if not process.running:
                self.start(broker)
            elif broker in self.paused:
                process.resume()
        self.paused.clear()
        self.history.healed.append(time.monotonic())

    # What is asked of it

    def make_topic(self, name: str, partitions: int, replicas: int = 3, **configs: Any) -> None:
        """A topic, once every broker knows who leads it."""
        texts = {key.replace("_", "."): str(value) for key, value in configs.items()}
        admin = AdminClient({**self.way.client(ADMIN), **QUICK})
        until(lambda: admin.list_topics(timeout=WHOLE_WITHIN_S).controller_id in self.ids, "a controller")
        wanted = NewTopic(name, partitions, replicas, config=texts)

        def is_made() -> bool:
            try:
                admin.create_topics([wanted], request_timeout=WHOLE_WITHIN_S)[name].result(2 * WHOLE_WITHIN_S)
            except KafkaException as error:
                code = error.args[0].code()
                # On a slow machine the controller may lose ZooKeeper for a moment; librdkafka does not ask the next one.
                if code == KafkaError.NOT_CONTROLLER:
                    admin.list_topics(timeout=WHOLE_WITHIN_S)
                    return False
                # It asks again when a connection breaks, and then meets what it has made itself.
                if code != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            return True

        until(is_made, f"{name} is made")
        until(lambda: self.watcher.is_whole([name]), f"{name} has leaders and full ISRs")
        for broker in self.ids:
            with self.admin(broker) as asked:
                until(lambda asked=asked: asked.topics([name])[0].error is None, f"broker {broker} knows {name}")

    def leader(self, place: Place) -> int:
        """The leader in the newest document that was seen; -1 for none."""
        return self.watcher.state(place).leader

    def followers(self, place: Place) -> list[int]:
        """The other replicas."""
        state = self.watcher.state(place)
        return [replica for replica in state.replicas if replica != state.leader]

    def await_whole(self, topics: Iterable[str]) -> float:
        """Wait until all replicas of some topics are in their ISRs; the seconds it took."""
        return seconds_until(
            lambda: self.watcher.is_whole(topics), lambda: f"full ISRs: {self.watcher.lacking(topics)}", WHOLE_WITHIN_S
        )

    def count_truncations(self) -> None:
        """Begin to look at the brokers' disks."""
        self._disks.start()

    @property
    def truncations(self) -> int:
        """How often a replica was seen to cut its log back since `count_truncations`."""
        return self._disks.truncations

    def logs(self) -> str:
        """The end of each broker's log."""
        logs = {broker: process.logs().splitlines()[-_LOG_LINES:] for broker, process in self.brokers.items()}
        return "\n".join(f"broker {broker}: {line}" for broker, lines in logs.items() for line in lines)

    def collect_replicas(
        self,
        history: History,
        ends: Mapping[Place, int],
        before: Callable[[Place, int], bytes] = lambda _place, _offset: b"",
    ) -> None:
        """Note what the files of every replica hold; `ends` are the high watermarks, and no producer writes now.

        `before` gives the batches of a place before an offset at which a replica begins, where that has them no more.
        """
        for place, end in ends.items():
            for broker in self.watcher.state(place).replicas:
                folder = self._directory / end_name(broker) / f"{place[0]}-{place[1]}"
                files = sorted(folder.glob("*.log"))
                data = b"".join(file.read_bytes() for file in files)
                start = int(files[0].stem)
                data = (before(place, start) if start else b"") + data
                history.replicas.append(Replica(broker, place, data, end))

    def close(self) -> None:
        """End all that was started, whatever of it fails to."""
        with ExitStack() as to_do:
            to_do.callback(self.zookeeper.heal)
            to_do.callback(self.network.__exit__, None, None, None)
            if hasattr(self, "watcher"):
                to_do.callback(self.watcher.close)
            to_do.callback(self._disks.close)
            if hasattr(self, "_cluster"):
                to_do.callback(self._cluster.close)
                to_do.callback(self._kill_brokers)
            to_do.callback(self.network.heal)

    def _kill_brokers(self) -> None:
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
