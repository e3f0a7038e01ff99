"""An honest client beside a flood: it produces a small batch and fetches it, again and again, and knows how long the slowest
answer took.

`Neighbour` is a thread. `NeighbourProcess` is a process of its own (this module, run as a program), for a test whose own threads
send so much that a thread beside them would wait for Python and not for the broker.

What an answer takes is counted without the time for which other processes had the processors: of a second in which half of them was
another one's, half a second counts. On a machine that does nothing else it is the time on the wall, which is noted as well.

`SteadyNeighbour` and `SteadyNeighbourProcess` come over TLS, log in by SCRAM-SHA-512, and count: `lap` gives the answers since the last one, and
the time. They and the broker have one processor for themselves, and a `ProcessorClock`: what another process takes of it is not counted, and what the
broker does for others is. It is read at each lap only; reading it takes longer than an answer.

Its records are numbered, from 0 on, and no other producer writes to its topic meanwhile: its first record has the number 0, the next one the
number 1 and so on, and all below `Neighbour.count` were acknowledged.
"""

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from pylog_spark.testing import LocalBroker
from tests.harness.children import PipedChild
from tests.hostile.batches import (
    CHECKED_FROM,
    error_code,
    fetch_from,
    numbered_batch,
    produce_request,
    produced_offset,
)
from tests.hostile.logins import Client, Login, context, encrypted
from tests.peers.probe import read_exactly

_DEADLINE_S = 120.0
_CPUCLOCK_SCHED = 2
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
#: Of the fields of ``cpu`` in /proc/stat, which begin with user, nice, system, idle, iowait, irq, softirq, steal.
_USED, _IDLE = (0, 1, 2, 5, 6, 7), (3, 4)


@dataclass(frozen=True)
class Address:
    """Where a broker is, and which process it is."""

    host: str
    port: int
    pid: int


@dataclass(frozen=True)
class Lap:
    """What a client did in some time, which is counted by its clock, and on the wall."""

    answers: int
    counted_s: float
    wall_s: float

    @property
    def rate(self) -> float:
        """Answers in a second that is counted."""
        return self.answers / self.counted_s


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
        used = sum(int(fields[field]) for field in _USED)
        # After the name, which ends with the last bracket: utime and stime are its 12th and 13th fields.
        own = (stat.read_text().rpartition(")")[2].split() for stat in self._own)
        used -= sum(int(fields[11]) + int(fields[12]) for fields in own)
        return time.perf_counter() - used * _TICK_S / self._processors


class ProcessorClock:
    """The time that some processes work, which have one processor for themselves, and the time in which it has nothing to do. When they
    leave it nothing to do the ticks do not matter.

    Parameters
    ----------
    pids : iterable of int
        Those whose work counts. All run on that processor.
    processor : int
        Its number.
    """

    def __init__(self, pids: Iterable[int], processor: int) -> None:
        # The numbers by which Linux knows the clocks of other processes.
        self._own = [~pid << 3 | _CPUCLOCK_SCHED for pid in pids]
        self._processor = f"cpu{processor}"

    def read(self) -> float:
        """Seconds from some moment on."""
        lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
        fields = next(line for line in lines if line[0] == self._processor)[1:]
        idle = sum(int(fields[field]) for field in _IDLE) * _TICK_S
        return idle + sum(map(time.clock_gettime, self._own))


class Neighbour:
    """Produces to partition 0 of `topic`, and fetches what it produced, for as long as the block lasts.

    Attributes
    ----------
    slowest_s : float
        The longest time from a request to its answer, by a `Clock` of the broker, this process and `attacker`.
    slowest_wall_s : float
        The same by the clock on the wall.
    count : int
        How many of its records were acknowledged.
    """

    def __init__(
        self, broker: LocalBroker | Address, topic: str, batch: bytes | None = None, attacker: int | None = None
    ) -> None:
        self.slowest_s = self.slowest_wall_s = 0.0
        self.count = 0
        self._clock = Clock({broker.pid, os.getpid(), attacker or os.getpid()})
        self._address = (broker.host, broker.port)
        self._topic = topic
        self._batch = batch
        self._first: int | None = None
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="neighbour")
        self._work: Future[None] | None = None

    def __enter__(self) -> "Neighbour":
        self._work = self._pool.submit(self._serve_itself)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.shutdown()
        if self._work is not None and error is None:
            self._work.result()

    def _opened(self) -> socket.socket:
        return socket.create_connection(self._address, timeout=_DEADLINE_S)

    def _serve_itself(self) -> None:
        with self._opened() as sock:
            while not self._over.is_set() or self.count == 0:
                self._once(sock)

    def _once(self, sock: socket.socket) -> None:
        batch = self._batch or numbered_batch(self.count)
        produced = self._ask(sock, produce_request(self._topic, batch))
        code, offset = error_code(produced, self._topic), produced_offset(produced, self._topic)
        if code != 0:
            raise AssertionError(f"the honest client was refused with error {code}")
        self._first = offset if self._first is None else self._first
        if offset != self._first + self.count:
            raise AssertionError(f"the honest client's record {self.count} was given the offset {offset}")
        self.count += 1
        fetched = self._ask(sock, fetch_from(self._topic, offset, len(batch)))
        # The broker writes the offset and the epoch in front of what the checksum covers.
        if not fetched.endswith(batch[CHECKED_FROM:]):
            raise AssertionError(f"the honest client did not get its record at offset {offset} back")

    def _ask(self, sock: socket.socket, request: bytes) -> bytes:
        begun, begun_wall = self._clock.read(), time.perf_counter()
        try:
            sock.sendall(request)
            (size,) = struct.unpack(">i", read_exactly(sock, 4))
            return read_exactly(sock, size)
        finally:
            # A request without an answer counts for the time of the wait.
            self.slowest_s = max(self.slowest_s, self._clock.read() - begun)
            self.slowest_wall_s = max(self.slowest_wall_s, time.perf_counter() - begun_wall)


class SteadyNeighbour(Neighbour):
    """As `Neighbour`, over TLS and behind a login, on one processor together with the broker; of answers only the wall's time is known.

    Attributes
    ----------
    answers : int
        How many answers it has had.
    """

    def __init__(self, broker: Address, topic: str, login: Login, processor: int) -> None:
        super().__init__(broker, topic)
        self.answers = 0
        self._login = login
        self._processor_clock = ProcessorClock({broker.pid, os.getpid()}, processor)
        self._last = (0, self._processor_clock.read(), time.perf_counter())

    def lap(self) -> Lap:
        """What there was since the last lap, or since it began. Raises what has ended it."""
        if self._work is not None and self._work.done():
            self._work.result()
        now = (self.answers, self._processor_clock.read(), time.perf_counter())
        lap = Lap(*(new - old for new, old in zip(now, self._last, strict=True)))
        self._last = now
        return lap

    def _opened(self) -> socket.socket:
        client = Client(encrypted(f"{self._address[0]}:{self._address[1]}", context(self._login.ca)))
        code, sentence = client.log_in(self._login.user, self._login.password)
        if code != 0:
            raise AssertionError(f"the honest client could not log in: error {code}, {sentence}")
        client.socket.settimeout(_DEADLINE_S)
        return client.socket

    def _ask(self, sock: socket.socket, request: bytes) -> bytes:
        begun = time.perf_counter()
        sock.sendall(request)
        (size,) = struct.unpack(">i", read_exactly(sock, 4))
        answer = read_exactly(sock, size)
        self.answers += 1
        self.slowest_wall_s = max(self.slowest_wall_s, time.perf_counter() - begun)
        return answer


class NeighbourProcess:
    """As `Neighbour`, in a process of its own.

    Attributes
    ----------
    slowest_s, slowest_wall_s, count
        As of `Neighbour`; known after the block.
    """

    def __init__(self, broker: LocalBroker | Address, topic: str) -> None:
        self.slowest_s = self.slowest_wall_s = 0.0
        self.count = 0
        pids = map(str, (broker.pid, os.getpid()))
        command = [sys.executable, "-m", "tests.hostile.neighbour", broker.host, str(broker.port), topic, *pids]
        self._process = PipedChild(command)

    def __enter__(self) -> "NeighbourProcess":
        assert self._process.line() == "begun"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        result = self._process.rest(2 * _DEADLINE_S)
        assert self._process.wait() == 0, "the honest client came to an end"
        seen = json.loads(result)
        self.slowest_s, self.slowest_wall_s, self.count = seen["slowest_s"], seen["slowest_wall_s"], seen["count"]
        if error is None:
            assert seen["error"] is None, seen["error"]


class SteadyNeighbourProcess:
    """As `SteadyNeighbour`, in a process of its own, which runs on that processor."""

    def __init__(self, broker: Address, topic: str, login: Login, processor: int) -> None:
        self.slowest_wall_s = 0.0
        command = [sys.executable, "-m", "tests.hostile.neighbour", "--steady"]
        self._process = PipedChild(command)
        # Not as an argument, which every user of the machine can read: there is a password among it.
        self._say({"broker": asdict(broker), "topic": topic, "login": asdict(login), "processor": processor})

    @property
    def pid(self) -> int:
        """Which process it is."""
        return self._process.pid

    def lap(self) -> Lap:
        """As `SteadyNeighbour.lap`."""
        answered = self._say("lap")
        assert "error" not in answered, answered["error"]
        return Lap(**answered)

    def _say(self, said: object) -> dict[str, Any]:
        answered: dict[str, Any] = json.loads(self._process.ask(json.dumps(said), 2 * _DEADLINE_S))
        return answered

    def __enter__(self) -> "SteadyNeighbourProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        result = self._process.rest(2 * _DEADLINE_S)
        assert self._process.wait() == 0, "the honest client came to an end"
        self.slowest_wall_s = json.loads(result)["slowest_wall_s"]


def steady() -> None:
    """Serve a `SteadyNeighbourProcess`: one line of the standard input, one answer, until it ends."""
    told = json.loads(sys.stdin.readline())
    os.sched_setaffinity(0, {told["processor"]})
    neighbour = SteadyNeighbour(Address(**told["broker"]), told["topic"], Login(**told["login"]), told["processor"])
    try:
        with neighbour:
            print(json.dumps({}), flush=True)
            for _ in sys.stdin:
                print(json.dumps(asdict(neighbour.lap())), flush=True)
    except (AssertionError, OSError) as error:
        print(json.dumps({"error": f"the honest client came to an end: {error!r}"}), flush=True)
    print(json.dumps({"slowest_wall_s": neighbour.slowest_wall_s}))


def main(host: str, port: str, topic: str, pid: str, attacker: str) -> None:
    """Produce and fetch until the standard input ends; say how long the slowest one took, and what went wrong."""
    neighbour, wrong = Neighbour(Address(host, int(port), int(pid)), topic, attacker=int(attacker)), None
    try:
        with neighbour:
            print("begun", flush=True)
            sys.stdin.read()
    except (AssertionError, OSError) as error:
        wrong = f"{error}" if isinstance(error, AssertionError) else f"the honest client was cut off: {error!r}"
    seen = {name: getattr(neighbour, name) for name in ("slowest_s", "slowest_wall_s", "count")}
    print(json.dumps({**seen, "error": wrong}))


if __name__ == "__main__":
    steady() if sys.argv[1:] == ["--steady"] else main(*sys.argv[1:])
