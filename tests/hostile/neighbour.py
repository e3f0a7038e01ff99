"""An honest client beside a flood: it produces a small batch again and again, and knows how long the slowest one took.

`Neighbour` is a thread. `NeighbourProcess` is a process of its own (this module, run as a program), for a test whose own threads
send so much that a thread beside them would wait for Python and not for the broker.

What an answer takes is counted without the time for which other processes had the processors: of a second in which half of them was
somebody else's, half a second counts. On a machine that does nothing else it is the time on the wall.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pylog_spark.testing import LocalBroker
from tests.hostile.batches import error_code, good_batch, produce_request
from tests.peers.probe import read_exactly

_DEADLINE_S = 120.0


_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
#: Of the fields of ``cpu`` in /proc/stat, which begin with user, nice, system, idle, iowait, irq, softirq, steal.
_USED = (0, 1, 2, 5, 6, 7)


@dataclass(frozen=True)
class Address:
    """Where a broker is, and which process it is."""

    host: str
    port: int
    pid: int


class Clock:
    """The time on the wall less the processors' time that others than some processes had.

    Parameters
    ----------
    pids : iterable of int
        Those whose work counts.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._own = [Path(f"/proc/{pid}/stat") for pid in pids]
        self._processors = os.cpu_count() or 1

    def read(self) -> float:
        """Seconds from some moment on; as exact as the kernel's ticks, of 0.01 s."""
        fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
        used = sum(int(fields[one]) for one in _USED)
        # After the name, which ends with the last bracket: utime and stime are its 12th and 13th fields.
        own = (one.read_text().rpartition(")")[2].split() for one in self._own)
        used -= sum(int(one[11]) + int(one[12]) for one in own)
        return time.perf_counter() - used * _TICK_S / self._processors


class Neighbour:
    """Produces to partition 0 of `topic` for as long as the block lasts.

    Attributes
    ----------
    slowest_s : float
        The longest time from a request to its answer, by a `Clock` of the broker, this process and `attacker`.
    count : int
        Answers so far.
    """

    def __init__(
        self, broker: LocalBroker | Address, topic: str, batch: bytes | None = None, attacker: int | None = None
    ) -> None:
        self.slowest_s = 0.0
        self.count = 0
        self._clock = Clock({broker.pid, os.getpid(), attacker or os.getpid()})
        self._address = (broker.host, broker.port)
        self._topic = topic
        self._request = produce_request(topic, batch or good_batch())
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="neighbour")
        self._work: Future[None] | None = None

    def __enter__(self) -> "Neighbour":
        self._work = self._pool.submit(self._produce)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.shutdown()
        if self._work is not None and error is None:
            self._work.result()

    def _produce(self) -> None:
        with socket.create_connection(self._address, timeout=_DEADLINE_S) as sock:
            while not self._over.is_set() or self.count == 0:
                self._once(sock)

    def _once(self, sock: socket.socket) -> None:
        begun = self._clock.read()
        sock.sendall(self._request)
        (size,) = struct.unpack(">i", read_exactly(sock, 4))
        code = error_code(read_exactly(sock, size), self._topic)
        self.slowest_s = max(self.slowest_s, self._clock.read() - begun)
        if code != 0:
            raise AssertionError(f"the honest client was refused with error {code}")
        self.count += 1


class NeighbourProcess:
    """As `Neighbour`, in a process of its own.

    Attributes
    ----------
    slowest_s : float
        Known after the block.
    """

    def __init__(self, broker: LocalBroker, topic: str) -> None:
        self.slowest_s = 0.0
        pids = map(str, (broker.pid, os.getpid()))
        command = [sys.executable, "-m", "tests.hostile.neighbour", broker.host, str(broker.port), topic, *pids]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "NeighbourProcess":
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "begun\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        result, _ = self._process.communicate("", timeout=_DEADLINE_S)
        if error is None:
            assert self._process.returncode == 0, "the honest client was refused"
            self.slowest_s = json.loads(result)["slowest_s"]


def main(host: str, port: str, topic: str, pid: str, attacker: str) -> None:
    """Produce until the standard input ends, and say how long the slowest one took."""
    with Neighbour(Address(host, int(port), int(pid)), topic, attacker=int(attacker)) as neighbour:
        print("begun", flush=True)
        sys.stdin.read()
    print(json.dumps({"slowest_s": neighbour.slowest_s, "count": neighbour.count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
