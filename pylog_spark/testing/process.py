"""Child processes that a test starts, kills, pauses and ends. Signals are sent only to the child's own process id."""

import atexit
import contextlib
import os
import random
import signal
import socket
import subprocess
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

STOP_TIMEOUT_S = 60.0
#: How many are kept of those that nobody has asked for.
_DEATHS_MAX = 16
#: Below the ports that Linux (32768 to 60999) and others give by themselves, and above most services'.
_NEVER_GIVEN = range(15_000, 32_000)
# Not that of the program, whose seed several processes may share.
_RANDOM = random.SystemRandom()

AnyServer = TypeVar("AnyServer", bound="Server")


class ProcessError(Exception):
    """The child did not start or stop as it should; the sentence ends with its log."""


@dataclass(frozen=True)
class Death:
    """How a child ended by a signal that nobody sent through here.

    Attributes
    ----------
    what : str
        What it was.
    pid, signal : int
        Its process id, and the number of the signal.
    log : str
        What it had written.
    """

    what: str
    pid: int
    signal: int
    log: str


class Child:
    """One child process at a time; its standard error goes to a log that outlives it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._child: subprocess.Popen[str] | None = None
        self._is_told = False
        _used.add(self)
        # Open as long as this object lives, so no context manager.
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", prefix="pylog-child-")  # noqa: SIM115

    @property
    def running(self) -> bool:
        """Whether the process lives (a paused one does)."""
        return self._child is not None and self._child.poll() is None

    def process(self) -> "subprocess.Popen[str]":
        """The running child. Raises `ProcessError` when there is none."""
        if self._child is None or self._child.poll() is not None:
            raise ProcessError(f"{self._what} is not running: call start().")
        return self._child

    def start(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, *, log_output: bool = False
    ) -> None:
        """Start it. Its standard output is a pipe, or with `log_output` goes to the log."""
        if self.running:
            raise ProcessError(f"{self._what} is running already.")
        self.end()
        self._is_told = False
        self._child = subprocess.Popen(
            list(command),
            env=dict(environment) if environment is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=self._log if log_output else subprocess.PIPE,
            stderr=self._log,
            text=True,
            # Ctrl-C is for the program that started it, which then stops its children in the right order.
            start_new_session=True,
        )
        atexit.register(self.end)

    def signal(self, number: int) -> None:
        """Send the running child a signal."""
        self.process().send_signal(number)

    def await_stop(self) -> None:
        """Wait until the running child has stopped after a SIGSTOP, or has ended."""
        # macOS has no waitid; sending the signal has to be enough there.
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.process().pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self, number: int) -> int:
        """Send a signal that ends it (a paused child is resumed), wait, and return the exit code."""
        child = self.process()
        self._is_told = True
        child.send_signal(number)
        if number != signal.SIGKILL:
            child.send_signal(signal.SIGCONT)
        return self.wait(STOP_TIMEOUT_S)

    def wait(self, timeout_s: float) -> int:
        """Wait until it ends, and return the exit code. After `timeout_s` seconds it is killed and `ProcessError` is raised."""
        if self._child is None:
            raise ProcessError(f"{self._what} is not running: call start().")
        try:
            code = self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise ProcessError(f"{self._what} did not stop in {timeout_s} s. Its log:\n{self.logs()}") from None
        self.end()
        return code

    def logs(self) -> str:
        """All that was written to the log so far."""
        # The children write at the shared position of this file, so it is read without moving it.
        raw = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return raw.decode(errors="replace")

    def death(self) -> Death | None:
        """How it ended, when a signal ended it that `stop` did not send."""
        child = self._child
        if child is None or self._is_told or (child.poll() or 0) >= 0:
            return None
        return Death(self._what, child.pid, -child.returncode, self.logs())

    def end(self) -> None:
        """Make sure that the child is gone and its pipe closed."""
        if (death := self.death()) is not None:
            _deaths.append(death)
        child, self._child = self._child, None
        atexit.unregister(self.end)
        if child is not None:
            if child.poll() is None:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()

    def close(self) -> None:
        """`end`, and delete the log."""
        self.end()
        self._log.close()


_used: "weakref.WeakSet[Child]" = weakref.WeakSet()
_deaths: "deque[Death]" = deque(maxlen=_DEATHS_MAX)


def deaths() -> list[Death]:
    """The children of this process that a signal ended which was not sent through here; of those that are ended and put away once only."""
    found = [*_deaths, *filter(None, map(Child.death, list(_used)))]
    _deaths.clear()
    return found


class Server(ABC):
    """A server as a child process: it can be killed, paused, stopped and started again. Starts with `start` or ``with``."""

    def __init__(self, what: str) -> None:
        self.host = "127.0.0.1"
        self._child = Child(what)
        self._paused = False

    @abstractmethod
    def start(self: AnyServer) -> AnyServer:
        """Start the process and wait until it serves. Raises `ProcessError`."""

    @property
    def pid(self) -> int:
        """Process id of the running server. Raises `ProcessError` when it is not running."""
        return self._child.process().pid

    @property
    def running(self) -> bool:
        """Whether the process lives (a paused one does)."""
        return self._child.running

    @property
    def paused(self) -> bool:
        """Whether it was paused with `pause`, and not resumed or ended since."""
        return self._paused and self.running

    def terminate(self) -> int:
        """Stop it cleanly with SIGTERM, wait, and return the exit code."""
        self._paused = False
        return self._child.stop(signal.SIGTERM)

    def kill(self) -> int:
        """Kill it with SIGKILL, as in a crash, wait, and return the exit code."""
        self._paused = False
        return self._child.stop(signal.SIGKILL)

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait until it ends by itself, and return the exit code. After `timeout_s` seconds it is killed and `ProcessError` is raised."""
        return self._child.wait(timeout_s)

    def pause(self) -> None:
        """Pause it with SIGSTOP. When this returns it has stopped; its connections stay open."""
        self._child.signal(signal.SIGSTOP)
        self._child.await_stop()
        self._paused = True

    def resume(self) -> None:
        """Resume it with SIGCONT."""
        self._child.signal(signal.SIGCONT)
        self._paused = False

    def heal(self) -> None:
        """Resume it if it is paused, and start it if it is down. Raises `ProcessError`."""
        if self.running:
            self.resume()
        else:
            self.start()

    def logs(self) -> str:
        """All that its processes wrote to the log so far."""
        return self._child.logs()

    def close(self) -> None:
        """Stop cleanly if it runs, and delete its log."""
        if self.running:
            self.terminate()
        self._child.close()

    def __enter__(self: AnyServer) -> AnyServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def free_port() -> int:
    """A TCP port of the loopback interface that is free now."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different TCP ports of the loopback interface that are free now. One after the other may give the same one twice.

    They are none that the system gives by itself, to who connects or asks for port 0: a process that was killed finds its port free when
    it is started again, and its clients find nobody else there meanwhile.
    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            listener = held.enter_context(socket.socket())
            port = _RANDOM.choice(_NEVER_GIVEN)
            with contextlib.suppress(OSError):
                listener.bind(("127.0.0.1", port))
                found.append(port)
    return found
