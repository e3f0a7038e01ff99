"""Several Apache Kafka brokers (KRaft, each broker and controller in one process) as one cluster."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from pylog_spark.testing.process import free_ports
from tests.peers.kafka import KafkaBroker


class KafkaCluster:
    """Brokers 1, 2, 3... over folders of their own in `folder`. Use as a context manager, or `start` and `stop`.

    Parameters
    ----------
    settings : mapping
        Of every broker, beside those that make them a cluster.
    """

    def __init__(
        self, folder: Path, brokers: int = 3, settings: Mapping[str, str] | None = None, heap: str = "512m"
    ) -> None:
        free = free_ports(2 * brokers)
        ports, controllers = free[:brokers], free[brokers:]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        replicas = str(min(brokers, 3))
        shared = {
            "controller.quorum.voters": voters,
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            **(settings or {}),
        }
        self.brokers = [
            KafkaBroker(folder / f"broker-{number}", _of(number, port, controller, shared), heap, port)
            for number, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to: all brokers."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def start(self) -> None:
        """Start all at once; a broker answers only when most controllers are there."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(KafkaBroker.start, self.brokers))

    def stop(self) -> None:
        """Stop them, cleanly where they can. The last ones have no quorum any more and are killed when it takes long."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(KafkaBroker.stop, self.brokers))

    def __enter__(self) -> "KafkaCluster":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _of(number: int, port: int, controller: int, shared: Mapping[str, str]) -> dict[str, str]:
    return {
        **shared,
        "node.id": str(number),
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
    }
