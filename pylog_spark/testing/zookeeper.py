"""A real ZooKeeper server as a child process, from the jars that PySpark brings: it can be killed, paused and started again.

It needs Java and PySpark, nothing else. It is ready when it answers ``ruok``.
"""

import importlib.util
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pylog_spark.testing.process import ProcessError, Server, free_port

START_TIMEOUT_S = 60.0
_PORT_TRIES = 5
_LOOK_S = 0.02
# The jars that the server needs, of PySpark's 250; more jars make it start more slowly.
_JARS = (
    "zookeeper",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2",
    "netty-",
    "metrics-core",
    "snappy-java",
    "commons-io",
)

_SETTINGS = """\
dataDir={data_dir}
clientPortAddress=127.0.0.1
clientPort={port}
tickTime={tick_ms}
minSessionTimeout={tick_ms}
maxSessionTimeout=120000
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,dump
maxClientCnxns=0
autopurge.purgeInterval=1
autopurge.snapRetainCount=3
"""

_LOGGING = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c{1} %m%n
"""


class ZooKeeperError(ProcessError):
    """ZooKeeper cannot be started; the sentence says what is missing or ends with its log."""


class ZooKeeper(Server):
    """A ZooKeeper server on 127.0.0.1. Starts with `start` or ``with``.

    Parameters
    ----------
    data_dir : path
        The directory of its documents; kept between starts, and never removed here.
    port : int
        0 takes a free port at the first start and keeps it for later ones.
    tick_ms : int
        ZooKeeper's tickTime in milliseconds: a session may end that much later than its time-out.
    synced : bool
        False leaves out the sync of each write, for tests: faster, and safe against kills, but not against power loss.
    settings : mapping of str to str, optional
        More settings, by ZooKeeper's names.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        *,
        port: int = 0,
        tick_ms: int = 200,
        synced: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("ZooKeeper")
        self.data_dir = Path(data_dir).absolute()
        self.port = port
        self._port_is_kept = port != 0
        self._tick_ms = tick_ms
        self._synced = synced
        self._settings = dict(settings or {})

    @property
    def address(self) -> str:
        """Its address, ``HOST:PORT``: the beginning of a broker's zookeeper.connect."""
        return f"{self.host}:{self.port}"

    def start(self) -> "ZooKeeper":
        """Start the process and wait until it answers. Raises `ZooKeeperError`."""
        java, jars = _java(), ":".join(_jars())
        for _ in range(_PORT_TRIES):
            if not self._port_is_kept:
                self.port = free_port()
            self._child.start(self._command(java, jars), log_output=True)
            if self._answers():
                self._port_is_kept = True
                return self
            # ZooKeeper does not say which free port it takes, so one is chosen here; another program may have taken it since.
            taken = "Address already in use" in self.logs() and not self._port_is_kept
            self._child.end()
            if not taken:
                break
        raise ZooKeeperError(f"ZooKeeper did not start on {self.address}. Its log:\n{self.logs()}")

    def _command(self, java: str, jars: str) -> list[str]:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        settings, logging = self.data_dir / "zoo.cfg", self.data_dir / "log4j2.properties"
        more = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        settings.write_text(_SETTINGS.format(data_dir=self.data_dir, port=self.port, tick_ms=self._tick_ms) + more)
        logging.write_text(_LOGGING)
        # Few threads and a small heap are enough for some documents.
        quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        sync = f"-Dzookeeper.forceSync={'yes' if self._synced else 'no'}"
        return [
            java, *quick, sync, f"-Dlog4j2.configurationFile={logging}", "-cp", jars,
            "org.apache.zookeeper.server.ZooKeeperServerMain", str(settings),
        ]  # fmt: skip

    def _answers(self) -> bool:
        give_up = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < give_up and self.running:
            if _says_imok(self.host, self.port) and self.running:
                return True
            time.sleep(_LOOK_S)
        return False


def _says_imok(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
    except OSError:
        return False


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise ZooKeeperError("ZooKeeper needs Java: install a Java 17 (Spark needs it, too) or set JAVA_HOME.")
    return found


def _jars() -> Iterator[str]:
    home = os.environ.get("SPARK_HOME")
    spec = importlib.util.find_spec("pyspark")
    folders = [Path(home, "jars")] if home else []
    folders += [Path(place, "jars") for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in folders:
        if any(folder.glob("zookeeper-[0-9]*.jar")):
            yield from (str(jar) for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(_JARS))
            return
    raise ZooKeeperError("ZooKeeper's server comes with PySpark: pip install pyspark, or set SPARK_HOME.")
