"""One Apache Kafka broker (KRaft, broker and controller in one process) and its DumpLogSegments tool."""

import os
import signal
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from pylog_spark.testing.process import free_ports
from tests.peers.jars import classpath
from tests.peers.probe import wait_until_it_accepts, wait_until_it_answers
from tests.peers.tools import QUICK, java

_START_DEADLINE_S = 180
_STOP_DEADLINE_S = 30
_JAVA = ["java", "-Dorg.slf4j.simpleLogger.logFile=System.out"]


class KafkaBroker:
    """A broker over `folder` (kept between starts). Use as a context manager, or `start` and `stop`.

    Parameters
    ----------
    folder : Path
        Log directory, properties and the process's output go here.
    settings : mapping
        Broker properties beside the ones below.
    heap : str
        Java heap, fixed (``-Xms`` = ``-Xmx``), as an operator would set it.
    port : int, optional
        Where clients find it; a free one when left out.
    quick : bool
        For tests of behaviour: Java starts faster and never gets fast.
    format_options : sequence of str
        Further words of ``kafka-storage format``, such as users.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        heap: str = "1g",
        port: int | None = None,
        *,
        quick: bool = False,
        format_options: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self._format_options = format_options
        self.data_dir = folder / "data"
        free = free_ports(2)
        self.port = port or free[0]
        self._java = [*_JAVA, f"-Xms{heap}", f"-Xmx{heap}", *(QUICK if quick else ("-XX:+UseG1GC",))]
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = folder / "server.properties"
        controller = free[1]
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **(settings or {}),
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._ports = [int(address.rpartition(":")[2]) for address in properties["listeners"].split(",")]

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> float:
        """Start and wait until it answers and all its listeners accept connections.

        Returns the seconds until the answer, without formatting the folder.
        """
        if not (self.data_dir / "meta.properties").exists():
            # An id of its own, by which a mirror tells clusters apart; an option of this command must not begin with "-".
            words = (
                "format",
                "-t",
                urlsafe_b64encode(b"k" + uuid.uuid4().bytes[1:]).decode().rstrip("="),
                "-c",
                str(self._properties),
                *self._format_options,
            )
            java("kafka.tools.StorageTool", *words)
        command = [*self._java, "-cp", classpath("kafka")]
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen([*command, "kafka.Kafka", str(self._properties)], stdout=log, stderr=log)
        try:
            seconds = wait_until_it_answers("127.0.0.1", self.port, _START_DEADLINE_S)
            # Kafka opens one listener after the other: the first may answer while the last still refuses connections.
            for port in self._ports:
                wait_until_it_accepts("127.0.0.1", port, _START_DEADLINE_S)
            return seconds
        except TimeoutError:
            self.stop()
            raise

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Stop it, cleanly if it can; nothing when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> "KafkaBroker":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def dump_log(files: Iterable[Path], *options: str) -> str:
    """What Kafka's DumpLogSegments prints of segment or index `files`.

    Raises
    ------
    RuntimeError
        When the tool fails, with what it printed.
    """
    return java("org.apache.kafka.tools.DumpLogSegments", *options, "--files", ",".join(map(str, files)))
