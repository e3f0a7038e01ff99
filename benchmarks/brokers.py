"""The two brokers under measurement behind one face, each a process of its own with page-cache durability."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pylog_spark.testing.process import free_port, free_ports
from tests.peers.kafka import KafkaBroker
from tests.peers.probe import wait_until_it_answers

_START_DEADLINE_S = 60
_STOP_DEADLINE_S = 60

SIDES = ("kafka", "pylog")

# What the peer's broker is started with beside its defaults.
_AS_THE_PEER = {"group.initial.rebalance.delay.ms": "0"}


class Broker(Protocol):
    """What a measurement needs of a broker."""

    data_dir: Path

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> float:
        """Start; seconds until the first request was answered."""

    def stop(self) -> None: ...


class PylogBroker:
    """`pylog broker` as a user starts it, over `folder`; with `http` it has its page and metrics."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        listen: str | None = None,
        http: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.data_dir = folder / "data"
        words = {**_AS_THE_PEER, **(settings or {})}
        self._settings = [word for pair in words.items() for word in ("--config", "=".join(pair))]
        self._port = int(listen.split(",")[0].rpartition(":")[2]) if listen else free_port()
        self._listen = listen or self.bootstrap_servers
        self._http = f"127.0.0.1:{free_port()}" if http else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def http_url(self) -> str:
        """Where its page is."""
        if self._http is None:
            raise RuntimeError("this broker has no page")
        return f"http://{self._http}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.pid

    def start(self) -> float:
        command = [str(Path(sys.executable).parent / "pylog"), "broker", "--data-dir", str(self.data_dir)]
        http = ["--http", self._http] if self._http else []
        with open(self._folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, "--listen", self._listen, *http, *self._settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        return wait_until_it_answers("127.0.0.1", self._port, _START_DEADLINE_S)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_DEADLINE_S)


def make_broker(side: str, folder: Path, settings: Mapping[str, str] | None = None) -> Broker:
    """A stopped broker of `side` with its own folder and settings beside the defaults."""
    return KafkaBroker(folder, settings) if side == "kafka" else PylogBroker(folder, settings)


def make_tls_broker(side: str, folder: Path, key_and_certificate: str, http: bool = False) -> tuple[Broker, str, str]:
    """A stopped broker of `side` with a plain listener and one with TLS, and the addresses of both; pylog's with its page, if `http`."""
    plain, tls, controller = (f"127.0.0.1:{port}" for port in free_ports(3))
    listen = f"PLAINTEXT://{plain},SSL://{tls}"
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": key_and_certificate}
    if side == "pylog":
        return PylogBroker(folder, settings, listen, http), plain, tls
    settings |= {
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"{listen},CONTROLLER://{controller}",
        "advertised.listeners": listen,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
    }
    return KafkaBroker(folder, settings, port=int(plain.rpartition(":")[2])), plain, tls
