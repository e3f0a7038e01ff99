"""One attack on one broker for a given time: what becomes of its cases, and what the broker, and an honest client, do meanwhile.

An attack is a function of a `Bout` that returns when the bout is over. It may use threads. What it cannot send because the broker
closed the connection is an outcome; what a broker must never do is a sentence among `Bout.broken`.
"""

import os
import random
import shutil
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.waiting import happens, let_pass, pause
from tests.hostile.floods import MIB, SERVED_WITHIN_S, peak_bytes, peak_of
from tests.hostile.neighbour import Address, NeighbourProcess
from tests.hostile.together import ceiling_bytes
from tests.hostile.victims import Victim
from tests.interop.clients import DEADLINE_S, values_seen
from tests.peers.probe import answers

#: So many different sentences are kept.
_BROKEN_MAX = 5
_LOOK_S = 0.2
#: Of `st_blocks`, whatever the file system's own blocks are.
_BLOCK_BYTES = 512
_LIVES_AFTER_S = 10.0
#: Starts a broker over a folder.
Started = Callable[[Path], AbstractContextManager[Victim]]


class Bout:
    """Whom an attack is made on, until when, and what became of its cases so far. Threads may share it.

    Attributes
    ----------
    broker : Address
        The broker.
    randomness : random.Random
        What is drawn comes from here.
    broken : list of str
        What the broker did that it must not do.
    """

    def __init__(self, broker: Address, seconds: float, seed: int) -> None:
        self.broker = broker
        self.randomness = random.Random(seed)
        self.broken: list[str] = []
        self._until = time.monotonic() + seconds
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()

    @property
    def over(self) -> bool:
        """Whether the attack is to end."""
        return self._ended.is_set() or time.monotonic() >= self._until

    @property
    def outcomes(self) -> Counter[str]:
        """How many cases ended how, so far."""
        with self._lock:
            return Counter(self._outcomes)

    def end(self) -> None:
        """It is over now."""
        self._ended.set()

    def pause(self, seconds: float) -> None:
        """Return after so long, or when it is over."""
        pause(self._ended, max(0.0, min(seconds, self._until - time.monotonic())))

    def count(self, outcome: str, cases: int = 1) -> None:
        """So many cases ended so."""
        with self._lock:
            if cases:
                self._outcomes[outcome] += cases

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """The block may be cut off by the broker, which is an outcome; what it asserts of the broker is noted where it is not so."""
        try:
            yield
        except AssertionError as error:
            self.count("broken")
            # A bare assert says nothing but where it stands.
            sentence = str(error) or f"not so: {traceback.extract_tb(error.__traceback__)[-1].line}"
            with self._lock:
                if len(self.broken) < _BROKEN_MAX and sentence not in self.broken:
                    self.broken.append(sentence)
        except TimeoutError:
            self.count("timed out")
        except OSError:
            self.count("cut off")
            # Where no connection can be made it is tried again, but not as quickly as can be.
            pause(self._ended, 0.001)

    def repeat(self, once: Callable[[], str]) -> None:
        """Make one case after the other; `once` gives its outcome."""
        while not self.over:
            with self.guarded():
                self.count(once())


@dataclass(frozen=True)
class Attack:
    """A function that attacks, what it does in a few words, and how many connections it has at most."""

    run: Callable[[Bout], None]
    what: str
    connections: int = 16
    not_on_kafka: str | None = None


@dataclass
class Result:
    """What one bout showed. `slowest_ms` is by the clock of `tests.hostile.neighbour`; `broken` is empty when all was kept."""

    name: str
    seconds: float = 0.0
    outcomes: dict[str, int] = field(default_factory=dict)
    panics: dict[str, int] = field(default_factory=dict)
    peak_mib: float = 0.0
    grown_mib: float = 0.0
    ceiling_mib: float | None = None
    slowest_ms: float = 0.0
    slowest_wall_ms: float = 0.0
    acknowledged: int = 0
    broken: list[str] = field(default_factory=list)
    tail: str = ""

    @property
    def cases(self) -> int:
        """All of them."""
        return sum(self.outcomes.values())

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {**asdict(self), "cases": self.cases}


def run(
    name: str,
    attack: Attack,
    started: Started,
    seconds: float,
    seed: int,
    show: Callable[[Counter[str]], None],
) -> Result:
    """Make an attack on a fresh broker, beside an honest client, and look what is left.

    Parameters
    ----------
    name : str
        The attack's.
    attack : Attack
        What is done.
    started : callable
        Starts the broker over a folder.
    seconds : float
        For how long. It takes longer where an attack has to wait for an end.
    seed : int
        Of what is drawn.
    show : callable
        Called with the outcomes a few times a second.
    """
    result = Result(name)
    with tempfile.TemporaryDirectory(prefix="pylog-attack-") as folder, started(Path(folder)) as victim:
        before = peak = peak_bytes(victim.address)
        bout = Bout(victim.address, seconds, seed)
        began = time.monotonic()
        honest = NeighbourProcess(victim.address, "honest")
        try:
            with honest:
                peak = max(before, _attack(attack, bout, victim, Path(folder), show))
        except AssertionError as error:
            bout.broken.append(str(error))
        result.seconds = time.monotonic() - began
        result.outcomes, result.broken = dict(bout.outcomes), bout.broken
        result.peak_mib, result.grown_mib = peak / MIB, (peak - before) / MIB
        result.slowest_ms, result.slowest_wall_ms = honest.slowest_s * 1_000, honest.slowest_wall_s * 1_000
        result.acknowledged = honest.count
        result.broken += _left(victim, honest.count)
        result.panics = victim.panics()
        result.tail = victim.tail() if result.broken else ""
    return result


def _attack(attack: Attack, bout: Bout, victim: Victim, folder: Path, show: Callable[[Counter[str]], None]) -> int:
    """Run it in a thread and watch; the most memory that the broker had."""
    peak = 0
    with ThreadPoolExecutor(1, thread_name_prefix="attack") as pool:
        running: Future[None] = pool.submit(attack.run, bout)
        try:
            while not running.done():
                let_pass(_LOOK_S)
                peak = max(peak, peak_of(victim.address.pid))
                show(bout.outcomes)
                if not victim.running:
                    bout.end()
                if not bout.over and (filled := fills_the_disk(folder)):
                    bout.broken.append(f"the attack was ended: {filled}")
                    bout.end()
        except BaseException:
            # The run is to end. Threads that wait for an answer would hold it up, for minutes.
            bout.end()
            victim.kill()
            raise
    # A run of many hours goes on with the next attack.
    if (error := running.exception()) is not None:
        bout.broken.append(f"the attack came to an end by {error!r}")
    return max(peak, peak_of(victim.address.pid))


def fills_the_disk(folder: Path) -> str | None:
    """A sentence when the files below a folder take more of the disk than is left: an attack ends then, long before it harms others."""
    left = shutil.disk_usage(folder).free
    taken = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # A file may go while it is looked at.
            with suppress(OSError):
                taken += os.stat(os.path.join(parent, name)).st_blocks * _BLOCK_BYTES
    if taken <= left:
        return None
    return f"its broker's files take {taken // MIB:,} MiB of the disk, {left // MIB:,} MiB are left"


def _left(victim: Victim, acknowledged: int) -> list[str]:
    """Sentences about what is not as it must be after an attack."""
    host, port = victim.address.host, victim.address.port
    if not victim.running:
        return ["the broker died"]
    if not happens(lambda: answers(host, port, SERVED_WITHIN_S), _LIVES_AFTER_S):
        return [f"the broker gave no answer within {_LIVES_AFTER_S:g} s after the attack"]
    try:
        values = values_seen(f"{host}:{port}", "honest", 0, "read_committed", DEADLINE_S)
    except AssertionError as error:
        return [f"the honest client's records could not be read: {error}"]
    lost = [number for number, value in enumerate(_padded(values, acknowledged)) if value != str(number).encode()]
    return [f"{len(lost):,} acknowledged records are lost, the first is number {lost[0]}"] if lost else []


def _padded(values: list[bytes], count: int) -> Iterable[bytes]:
    """The first `count`, empty where there are fewer. The last record may have come to the log without its answer."""
    return [*values[:count], *[b""] * (count - len(values))]


def judge(result: Result, attack: Attack) -> None:
    """Add to `broken` what figures say of pylog's promises: no panic, an answer within a second, memory below the ceiling."""
    ceiling = ceiling_bytes({}, attack.connections)
    result.ceiling_mib = ceiling / MIB
    for what, count in result.panics.items():
        if count:
            result.broken.append(f"the broker {what} {count:,} times")
    if result.slowest_ms > SERVED_WITHIN_S * 1_000:
        result.broken.append(f"the honest client waited {result.slowest_ms:,.0f} ms")
    if result.grown_mib * MIB > ceiling:
        sentence = f"the broker grew by {result.grown_mib:,.0f} MiB, its settings allow {result.ceiling_mib:,.0f} MiB"
        result.broken.append(sentence)
