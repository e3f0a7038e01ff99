"""The four brokers of the experiment behind one face, each a process of its own with its own folder and ports.

All keep messages in files and leave it to the kernel when those reach the device, as the paper has it. What a broker starts is stopped with it.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Protocol

from benchmarks.brokers import PylogBroker
from benchmarks.paper.programs import java_command
from pylog_spark.testing.process import free_port, free_ports
from tests.peers.kafka import KafkaBroker
from tests.peers.probe import wait_until_it_accepts

SYSTEMS = ("pylog", "kafka", "activemq", "rabbitmq")
NAMES = {"pylog": "pylog", "kafka": "Apache Kafka", "activemq": "ActiveMQ", "rabbitmq": "RabbitMQ"}
_BROKER_HEAP = "1g"
_START_DEADLINE_S = 90
_STOP_DEADLINE_S = 60
# Where Debian keeps the script that does not change the user before it starts the server.
_RABBITMQ_PATH = "/usr/lib/rabbitmq/bin:/opt/rabbitmq/sbin"


class System(Protocol):
    """What the experiment needs of a broker."""

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> float: ...
    def stop(self) -> None: ...


class ActiveMq:
    """ActiveMQ Classic over KahaDB, in a Java process with a heap as Apache Kafka's."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("ActiveMQ is not running")
        return self._process.pid

    def start(self) -> float:
        command = [*java_command("activemq", _BROKER_HEAP), "ActiveBroker", str(self._folder / "data"), str(self._port)]
        with open(self._folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return wait_until_it_accepts("127.0.0.1", self._port, _START_DEADLINE_S)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _end(process, process.pid)


class RabbitMq:
    """RabbitMQ as Debian has it, without its service: a node of its own name, over `folder`, with an epmd of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._server = rabbitmq_server()
        self._port, self._distribution, self._epmd_port = free_ports(3)
        self._epmd: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        return int((self._folder / "pid").read_text())

    def start(self) -> float:
        environment = {**os.environ, **self._settings()}
        (self._folder / "plugins").write_text("[].\n")
        (self._folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self._port}\n")
        with open(self._folder / "broker.log", "ab") as log:
            epmd = ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            self._epmd = subprocess.Popen(epmd, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            wait_until_it_accepts("127.0.0.1", self._epmd_port, _START_DEADLINE_S)
            self._process = subprocess.Popen(
                [self._server], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
            )
        return wait_until_it_accepts("127.0.0.1", self._port, _START_DEADLINE_S)

    def _settings(self) -> dict[str, str]:
        return {
            "HOME": str(self._folder),  # where Erlang keeps its cookie
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"paper{self._port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
        }

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            # The node itself: the script around it would start another Erlang to stop it.
            node = self.pid if (self._folder / "pid").exists() else process.pid
            _end(process, node)
        epmd, self._epmd = self._epmd, None
        if epmd is not None:
            _end(epmd, epmd.pid)


def rabbitmq_server() -> str:
    """The script that starts RabbitMQ.

    Raises
    ------
    RuntimeError
        Where it is not installed.
    """
    found = shutil.which("rabbitmq-server", path=_RABBITMQ_PATH) or shutil.which("rabbitmq-server")
    if found is None:
        raise RuntimeError(
            "RabbitMQ is missing: install it (apt install rabbitmq-server), or name the other systems with --system."
        )
    return found


def make_system(system: str, folder: Path) -> System:
    """A stopped broker of `system` over a new folder."""
    if system == "kafka":
        return KafkaBroker(folder, heap=_BROKER_HEAP)
    if system == "pylog":
        return PylogBroker(folder)
    return ActiveMq(folder) if system == "activemq" else RabbitMq(folder)


def _end(process: "subprocess.Popen[bytes]", pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
        process.wait(_STOP_DEADLINE_S)
    except ProcessLookupError:
        process.wait(_STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGKILL)
        process.wait(_STOP_DEADLINE_S)
