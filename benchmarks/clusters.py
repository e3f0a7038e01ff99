"""Three brokers of each side behind one face, and what replicated records cost.

Both sides have the same session time-out and the same replication settings; a broker's CPU time is that of all three. ZooKeeper's
is not counted on our side: it idles while records flow. Its process is there in every figure of time.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.bench import Bench, Runs
from benchmarks.load import create_topic, delete_topic, produce, until
from benchmarks.process import cpu_seconds
from pylog_spark._native import Client, NativeError
from pylog_spark.testing import LocalCluster
from tests.peers.kafka_cluster import KafkaCluster
from tests.peers.tools import java

BROKERS = 3
SESSION_S = 3.0
_THOUSAND, _MILLION = 1_000, 1_000_000
_ACKED: Mapping[str, object] = {"acks": "all", "linger.ms": 0}
#: A client that notices a new leader as soon as it can: what is left is the brokers' time. Without asking for metadata all the
#: time librdkafka looks for a leader that went away once a second, and no other setting changes that.
EAGER: Mapping[str, object] = {
    **_ACKED,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 10,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "topic.metadata.refresh.interval.ms": 10,
    "message.timeout.ms": 60_000,
}
_KAFKA = {"broker.session.timeout.ms": str(int(SESSION_S * 1_000)), "broker.heartbeat.interval.ms": "500",
          "min.insync.replicas": "2"}  # fmt: skip


class Member(Protocol):
    """A broker of a cluster."""

    @property
    def pid(self) -> int: ...
    @property
    def data_dir(self) -> str | os.PathLike[str]: ...


class Cluster(Protocol):
    """What a measurement needs of a cluster. Brokers are numbered from 1."""

    @property
    def bootstrap_servers(self) -> str: ...
    def members(self) -> list[Member]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self, broker: int) -> None: ...
    def terminate(self, broker: int) -> None: ...
    def controller(self) -> int:
        """Who controls, -1 for nobody."""
        ...


class Peers:
    """Three Apache Kafka brokers."""

    def __init__(self, folder: Path) -> None:
        self._cluster = KafkaCluster(folder, BROKERS, _KAFKA)
        self.start, self.stop = self._cluster.start, self._cluster.stop
        self.bootstrap_servers = self._cluster.bootstrap_servers

    def members(self) -> list[Member]:
        return list(self._cluster.brokers)

    def kill(self, broker: int) -> None:
        self._cluster.brokers[broker - 1].kill()

    def terminate(self, broker: int) -> None:
        self._cluster.brokers[broker - 1].stop()

    def controller(self) -> int:
        # What a broker answers to clients is any broker: requests to the controller are handed on.
        known = [
            json.loads((broker.data_dir / "__cluster_metadata-0" / "quorum-state").read_text())
            for broker in self._cluster.brokers
        ]
        return int(max(known, key=lambda state: int(state["leaderEpoch"]))["leaderId"])


class Ours:
    """Three brokers of pylog and a ZooKeeper."""

    def __init__(self, folder: Path) -> None:
        # Not quicker than Apache Kafka's defaults where it matters for a figure.
        settings = {"zookeeper_session_timeout_ms": int(SESSION_S * 1_000), "replica_lag_time_max_ms": 30_000}
        self._cluster = LocalCluster(folder, BROKERS, **settings)

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    def members(self) -> list[Member]:
        return list(self._cluster.brokers)

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.close()

    def kill(self, broker: int) -> None:
        self._cluster.broker(broker).kill()

    def terminate(self, broker: int) -> None:
        self._cluster.broker(broker).terminate()

    def controller(self) -> int:
        controller = self._cluster.controller()
        return -1 if controller is None else controller.broker_id


@contextmanager
def running(bench: Bench, side: str) -> Iterator[Cluster]:
    """A new cluster of `side`, stopped at the end."""
    folder = bench.fresh_folder(f"{side}-cluster")
    cluster: Cluster = Peers(folder) if side == "kafka" else Ours(folder)
    cluster.start()
    try:
        until(lambda: _is_whole(cluster))
        yield cluster
    finally:
        cluster.stop()


def _is_whole(cluster: Cluster) -> bool:
    """Whether every broker knows all others, and somebody controls."""
    clients = [Client({"bootstrap.servers": server}) for server in cluster.bootstrap_servers.split(",")]
    try:
        known = [client.describe_cluster()["brokers"] for client in clients]
        return all(len(brokers) == BROKERS for brokers in known) and cluster.controller() > 0
    except (NativeError, OSError):
        return False
    finally:
        for client in clients:
            client.close()


def replicated(bench: Bench, records: int, value_bytes: int, figure: str) -> Runs:
    """Records of `value_bytes` to all three (acks=all): `rate` in M records/s, or `cpu` seconds of all brokers a million."""
    records = bench.records(records)
    runs: Runs = {}
    for side in bench.sides:
        with running(bench, side) as cluster:
            rounds = [
                _produced(cluster, f"bench-{number}", records, value_bytes, figure)
                for number in range(-1, bench.rounds)
            ]
        runs[side] = rounds[1:]
    return runs


def _produced(cluster: Cluster, topic: str, records: int, value_bytes: int, figure: str) -> float:
    servers = cluster.bootstrap_servers
    create_topic(servers, topic, 4, BROKERS)
    before = _cpu(cluster)
    settings: dict[str, object] = {"acks": "all", "linger.ms": 50, "batch.num.messages": 10_000}
    seconds = produce(servers, topic, records, [b"x" * value_bytes], settings)
    cpu = _cpu(cluster) - before
    delete_topic(servers, topic)
    return cpu * _MILLION / records if figure == "cpu" else records / _MILLION / seconds


def _cpu(cluster: Cluster) -> float:
    return sum(cpu_seconds(member.pid) for member in cluster.members())


def back_to_back(bench: Bench, transactions: int) -> Runs:
    """Transactions a second of the Java client, each begun as soon as the one before is committed: a record to each of nine
    partitions of all three brokers.
    """
    transactions = bench.records(transactions)
    runs: Runs = {}
    for side in bench.sides:
        with running(bench, side) as cluster:
            rounds = [
                _committed(cluster.bootstrap_servers, f"bench-{number}", transactions)
                for number in range(-1, bench.rounds)
            ]
        runs[side] = rounds[1:]
    return runs


def _committed(servers: str, topic: str, transactions: int) -> float:
    partitions = 9
    create_topic(servers, topic, partitions, BROKERS)
    return float(java("BackToBack", servers, topic, topic, str(partitions), str(transactions), deadline_s=600))


def acknowledged(bench: Bench, percentile: float) -> Runs:
    """Milliseconds until a record of 200 B is acknowledged by all, one after the other."""
    times = max(100, bench.records(3_000))
    runs: Runs = {}
    for side in bench.sides:
        with running(bench, side) as cluster:
            create_topic(cluster.bootstrap_servers, "trips", 1, BROKERS)
            rounds = [_trips(cluster.bootstrap_servers, "trips", times, percentile) for _ in range(bench.rounds + 1)]
        runs[side] = rounds[1:]
    return runs


def _trips(servers: str, topic: str, times: int, percentile: float) -> float:
    writer = Writer(servers, topic, _ACKED)
    took = sorted(writer.write() for _ in range(times))
    return took[int(len(took) * percentile)] * _THOUSAND


class Writer:
    """Writes one record after the other; each waits for its acknowledgement.

    Attributes
    ----------
    longest : float
        Seconds that one of them took since `warm`.
    """

    def __init__(self, servers: str, topic: str, settings: Mapping[str, object]) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0, **settings})
        self._topic = topic
        self._answer: list[KafkaError | None] = []
        self.longest = 0.0

    def warm(self, times: int) -> None:
        """Write `times`; that is not counted."""
        for _ in range(times):
            self.write()
        self.longest = 0.0

    def write(self) -> float:
        """Seconds until it was acknowledged. Raises RuntimeError when it was refused."""
        self._answer.clear()
        started = time.perf_counter()
        self._producer.produce(self._topic, b"x" * 200, partition=0, on_delivery=self._delivered)
        while not self._answer:
            self._producer.poll(1)
        if self._answer[0] is not None:
            raise RuntimeError(f"a record was refused: {self._answer[0]}")
        took = time.perf_counter() - started
        self.longest = max(self.longest, took)
        return took

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._answer.append(error)


def leaders_of(servers: str, topics: list[str]) -> list[int]:
    """The leaders of all partitions of `topics`, -1 for nobody."""
    client = Client({"bootstrap.servers": servers, "default.api.timeout.ms": "5000"})
    try:
        return [partition["leader"] for topic in client.describe_topics(topics) for partition in topic["partitions"]]
    finally:
        client.close()
