"""A real broker as a child process: it can be killed, stopped and started again on the same port and directory.

It is ready when its readiness line came; nothing here sleeps or guesses. Only the child's own process id is ever signalled.
"""

import atexit
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from types import TracebackType

_READY = re.compile(r"pylog broker ready on (\S+):(\d+) ")
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0


class LocalBrokerError(Exception):
    """The child did not start or stop as it should; the sentence ends with its log."""


class LocalBroker:
    """A broker process on 127.0.0.1. Starts with `start` or ``with``.

    Parameters
    ----------
    data_dir : path
        Kept between starts, and never removed here.
    port : int
        0 takes a free port at the first start and keeps it for later ones.
    **settings
        Kafka's settings with underscores: ``num_partitions=4``.
    """

    def __init__(self, data_dir: str | os.PathLike[str], *, port: int = 0, **settings: object) -> None:
        self.data_dir = os.path.abspath(os.fspath(data_dir))
        self.host = "127.0.0.1"
        self.port = port
        self._settings = settings
        self._child: subprocess.Popen[str] | None = None
        # Open as long as this object lives, so no context manager.
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", prefix="pylog-broker-")  # noqa: SIM115
        self.start_seconds = 0.0

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running broker. Raises `LocalBrokerError` when it is not running."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> "LocalBroker":
        """Start the process and wait for its readiness line.

        Raises
        ------
        LocalBrokerError
            When it ends or stays silent instead.
        """
        if self.running:
            raise LocalBrokerError(f"The broker on {self.bootstrap_servers} is running already.")
        started = time.perf_counter()
        self._child = subprocess.Popen(
            self._command(),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        atexit.register(self._end)
        line = self._first_line(self._child)
        ready = _READY.match(line)
        if ready is None:
            self._end()
            raise LocalBrokerError(f"The broker did not start. Its log:\n{self.logs()}")
        self.start_seconds = time.perf_counter() - started
        self.port = int(ready[2])
        return self

    def terminate(self) -> int:
        """SIGTERM, as a clean stop; waits and returns the exit code."""
        return self._signalled(signal.SIGTERM)

    def kill(self) -> int:
        """SIGKILL, as a crash; waits and returns the exit code."""
        return self._signalled(signal.SIGKILL)

    def restart(self) -> "LocalBroker":
        """Stop cleanly when it runs, and start again on the same port."""
        if self.running:
            self.terminate()
        return self.start()

    def logs(self) -> str:
        """All that its processes wrote to standard error so far."""
        # The children write at the shared position of this file, so it is read without moving it.
        raw = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return raw.decode(errors="replace")

    def __enter__(self) -> "LocalBroker":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop cleanly when it runs, and let go of its log."""
        if self.running:
            self.terminate()
        self._end()
        self._log.close()

    def _command(self) -> list[str]:
        from pylog_spark.broker.config import keyword_settings

        given = [word for name, text in keyword_settings(self._settings) for word in ("--config", f"{name}={text}")]
        address = f"{self.host}:{self.port}"
        return [sys.executable, "-m", "pylog_spark", "broker", "--data-dir", self.data_dir, "--listen", address, *given]

    def _first_line(self, child: "subprocess.Popen[str]") -> str:
        assert child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            return child.stdout.readline() if selector.select(START_TIMEOUT_S) else ""

    def _running(self) -> "subprocess.Popen[str]":
        if self._child is None or self._child.poll() is not None:
            raise LocalBrokerError("The broker is not running: call start().")
        return self._child

    def _signalled(self, number: int) -> int:
        child = self._running()
        child.send_signal(number)
        try:
            code = child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._end()
            raise LocalBrokerError(f"The broker did not stop in {STOP_TIMEOUT_S} s. Its log:\n{self.logs()}") from None
        self._end()
        return code

    def _end(self) -> None:
        """Make sure that the child is gone and its pipe closed."""
        child, self._child = self._child, None
        atexit.unregister(self._end)
        if child is not None:
            if child.poll() is None:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()


def _environment() -> dict[str, str]:
    """The child imports the same pylog_spark as this process, wherever that came from."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [*filter(None, [os.environ.get("PYTHONPATH")]), here]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
