"""An honest client beside a flood: it produces a small batch again and again, and knows how long the slowest one took.

`Neighbour` is a thread. `NeighbourProcess` is a process of its own (this module, run as a program), for a test whose own threads
send so much that a thread beside them would wait for Python and not for the broker.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from pylog_spark.testing import LocalBroker
from tests.hostile.batches import error_code, good_batch, produce_request
from tests.peers.probe import read_exactly

_DEADLINE_S = 120.0


@dataclass(frozen=True)
class Address:
    """Where a broker is."""

    host: str
    port: int


class Neighbour:
    """Produces to partition 0 of `topic` for as long as the block lasts.

    Attributes
    ----------
    slowest_s : float
        The longest time from a request to its answer.
    count : int
        Answers so far.
    """

    def __init__(self, broker: LocalBroker | Address, topic: str, batch: bytes | None = None) -> None:
        self.slowest_s = 0.0
        self.count = 0
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
        begun = time.perf_counter()
        sock.sendall(self._request)
        (size,) = struct.unpack(">i", read_exactly(sock, 4))
        code = error_code(read_exactly(sock, size), self._topic)
        self.slowest_s = max(self.slowest_s, time.perf_counter() - begun)
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
        command = [sys.executable, "-m", "tests.hostile.neighbour", broker.host, str(broker.port), topic]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "NeighbourProcess":
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "begun\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        told, _ = self._process.communicate("", timeout=_DEADLINE_S)
        if error is None:
            assert self._process.returncode == 0, "the honest client was refused"
            self.slowest_s = json.loads(told)["slowest_s"]


def main(host: str, port: str, topic: str) -> None:
    """Produce until the standard input ends, and say how long the slowest one took."""
    with Neighbour(Address(host, int(port)), topic) as neighbour:
        print("begun", flush=True)
        sys.stdin.read()
    print(json.dumps({"slowest_s": neighbour.slowest_s, "count": neighbour.count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
