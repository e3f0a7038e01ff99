"""Brokers for tests that promise the same of pylog and of Apache Kafka (the marker `peers`), of one broker of pylog and of several.

With ``PYLOG_TEST_CLUSTER=1`` pylog's is a cluster of three in which every topic, the internal ones too, has a replica on each
broker; `make test-cluster` runs so all tests with the marker `cluster`. What such a test starts it starts with this file.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from pylog_spark.testing import LocalBroker, LocalCluster

#: Whether pylog has several brokers in this run.
SEVERAL = os.environ.get("PYLOG_TEST_CLUSTER", "0") == "1"
#: How many replicas each of its topics has.
REPLICAS = 3 if SEVERAL else 1
_KAFKA = () if SEVERAL else (pytest.param("kafka", marks=[pytest.mark.peers, pytest.mark.long]),)
#: For the ``params`` of a fixture. Apache Kafka, which shows that a test asks for what Kafka does, is asked in a long run; in `make test`
#: those of `tests/parity` marked `canary`, `tests/oracle` and the tests of a secured cluster reach it.
BOTH = ("pylog", *_KAFKA)


class Brokers:
    """One broker, or a cluster of three, which a test harms as one: all are killed, all are started again.

    Parameters
    ----------
    folder : Path
        For the data.
    count : int
        How many, 1 or 3; without it as the run wants it.
    **settings
        Kafka's settings of every broker, with underscores.
    """

    def __init__(self, folder: Path, count: int = REPLICAS, **settings: object) -> None:
        self.cluster = LocalCluster(folder, count, **settings) if count > 1 else None
        self.all = [LocalBroker(folder, **settings)] if self.cluster is None else self.cluster.brokers

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return ",".join(broker.bootstrap_servers for broker in self.all)

    @property
    def data_dir(self) -> Path:
        """Where the broker that stops last keeps its data: a replica of everything, to the end."""
        return Path(self.all[-1].data_dir)

    def start(self) -> "Brokers":
        """Start all that do not run, and wait until they serve."""
        if self.cluster is not None and not self.cluster.zookeeper.running:
            self.cluster.start()
            return self
        with ThreadPoolExecutor(len(self.all)) as pool:
            list(pool.map(LocalBroker.start, [broker for broker in self.all if not broker.running]))
        return self

    def kill(self) -> None:
        """kill -9 of all at once."""
        with ThreadPoolExecutor(len(self.all)) as pool:
            list(pool.map(LocalBroker.kill, self.all))

    def terminate(self) -> None:
        """Stop all cleanly, one after the other."""
        for broker in self.all:
            if broker.running:
                broker.terminate()

    def restart(self) -> None:
        """A clean stop, and a start."""
        self.terminate()
        self.start()

    def close(self) -> None:
        """Leave nothing behind."""
        if self.cluster is not None:
            self.cluster.close()
        else:
            self.all[0].close()

    def check_replicas(self) -> None:
        """Every topic has as many replicas as it should, however it was made."""
        from pylog_spark._native import Client

        client = Client({"bootstrap.servers": self.bootstrap_servers})
        try:
            topics: list[dict[str, Any]] = client.describe_topics(None)
        finally:
            client.close()
        counts = {topic["name"]: {len(each["replicas"]) for each in topic["partitions"]} for topic in topics}
        # A topic that was deleted a moment ago may still be listed without partitions.
        assert {name: found for name, found in counts.items() if found - {len(self.all)}} == {}

    def __enter__(self) -> "Brokers":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and all(broker.running for broker in self.all):
                self.check_replicas()
        finally:
            self.close()


@contextmanager
def pylog(folder: Path, **settings: str) -> Iterator[str]:
    """Address of pylog's broker, or of all brokers of a cluster, inside the block."""
    with Brokers(folder, **settings) as brokers:
        yield brokers.bootstrap_servers
