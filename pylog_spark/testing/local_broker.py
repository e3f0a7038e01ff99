"""A real broker as a child process: it can be killed, paused, stopped and started again on the same port and directory.

It is ready when it has printed its readiness line; nothing here sleeps. Signals are sent only to the child's own process id.
"""

import os
import re
import selectors
import sys
import time
from collections.abc import Sequence

from pylog_spark.testing.process import ProcessError, Server

_READY = re.compile(r"pylog broker ready on (\S+):(\d+) ")
START_TIMEOUT_S = 30.0
#: The command of this installation of pylog.
PROGRAM = (sys.executable, "-m", "pylog_spark")

#: The child did not start or stop as it should; the sentence ends with its log.
LocalBrokerError = ProcessError


class LocalBroker(Server):
    """A broker process on 127.0.0.1. Starts with `start` or ``with``.

    Parameters
    ----------
    data_dir : path
        The broker's directory; kept between starts, and never removed here.
    port : int
        0 takes a free port at the first start and keeps it for later ones.
    **settings
        The broker's settings by Kafka's names, with underscores: ``num_partitions=4``.

    Attributes
    ----------
    program : sequence of str
        The command that the next start runs: this installation of pylog. A test sets another one to upgrade a broker.
    """

    def __init__(self, data_dir: str | os.PathLike[str], *, port: int = 0, **settings: object) -> None:
        super().__init__("The broker")
        self.data_dir = os.path.abspath(os.fspath(data_dir))
        self.port = port
        self._settings = settings
        self.program: Sequence[str] = PROGRAM
        self.start_seconds = 0.0

    @property
    def bootstrap_servers(self) -> str:
        """The address that clients connect to, ``HOST:PORT``."""
        return f"{self.host}:{self.port}"

    @property
    def broker_id(self) -> int:
        """Its number, node.id."""
        return int(str(self._settings.get("node_id", 1)))

    def start(self) -> "LocalBroker":
        """Start the process and wait for its readiness line.

        Raises
        ------
        LocalBrokerError
            When it ends, or does not print the line within `START_TIMEOUT_S`.
        """
        started = time.perf_counter()
        self._child.start(self._command(), _environment())
        ready = _READY.match(self._first_line())
        if ready is None:
            self._child.end()
            raise LocalBrokerError(f"The broker did not start. Its log:\n{self.logs()}")
        self.start_seconds = time.perf_counter() - started
        self.port = int(ready[2])
        return self

    def configure(self, **settings: object) -> None:
        """Set more settings, which take effect at the next start."""
        self._settings.update(settings)

    def restart(self) -> "LocalBroker":
        """Stop cleanly if it runs, and start again on the same port."""
        if self.running:
            self.terminate()
        return self.start()

    def _command(self) -> list[str]:
        from pylog_spark.broker.config import keyword_settings

        given = [word for name, text in keyword_settings(self._settings) for word in ("--config", f"{name}={text}")]
        address = f"{self.host}:{self.port}"
        return [*self.program, "broker", "--data-dir", self.data_dir, "--listen", address, *given]

    def _first_line(self) -> str:
        output = self._child.process().stdout
        assert output is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            return output.readline() if selector.select(START_TIMEOUT_S) else ""


def _environment() -> dict[str, str]:
    """An environment in which the child imports the same pylog_spark as this process."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [*filter(None, [os.environ.get("PYTHONPATH")]), here]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
