"""One run's ground: folder, brokers, Spark sessions and loaded topics, each made at first use and put away at the end."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks.brokers import SIDES, Broker, make_broker
from benchmarks.load import create_topic, fill
from benchmarks.memory import touch_free_memory
from benchmarks.spark_session import LOCAL, SparkSide

_ROOT = Path(__file__).parent.parent
PARTITIONS = 4
Runs = dict[str, list[float]]
_T = TypeVar("_T")


@dataclass
class Bench:
    """The shared state of a run.

    Attributes
    ----------
    rounds : int
        Measured repetitions of each row, the sides taking turns; one more round before them warms up and is not counted.
    scale : float
        Factor on the number of records, below 1 only to try the harness itself.
    """

    rounds: int = 5
    scale: float = 1.0
    sides: tuple[str, ...] = SIDES
    folder: Path = field(default_factory=lambda: _new_folder())
    _brokers: dict[str, Broker] = field(default_factory=dict)
    _sessions: dict[str, SparkSide] = field(default_factory=dict)
    _topics: set[str] = field(default_factory=set)
    _at_the_end: list[Callable[[], None]] = field(default_factory=list)
    _serial: int = 0

    # One run has one; what is kept for it is found by it.
    __hash__ = object.__hash__

    def records(self, number: int) -> int:
        """`number` of records, scaled."""
        return max(PARTITIONS, int(number * self.scale))

    def new_name(self) -> str:
        """A name that no topic has."""
        self._serial += 1
        return f"bench-{self._serial}"

    def when_closed(self, close: Callable[[], None]) -> None:
        """Call `close` when the run is over."""
        self._at_the_end.append(close)

    def fresh_folder(self, side: str) -> Path:
        """An empty folder for a broker of its own."""
        self._serial += 1
        return self.folder / f"{side}-{self._serial}"

    def broker(self, side: str) -> Broker:
        """The running broker of `side` that all loads share."""
        if side not in self._brokers:
            broker = make_broker(side, self.fresh_folder(side))
            broker.start()
            self._brokers[side] = broker
        return self._brokers[side]

    def spark(self, side: str, master: str = LOCAL) -> SparkSide:
        """The Spark session of `side` (kafka, pylog, ceiling) on a master."""
        name = side if master == LOCAL else f"{side}-{master}"
        if name not in self._sessions:
            self._sessions[name] = SparkSide(side, self.folder / f"spark-{name}.log", master)
            self._sessions[name].run(do="warm")
        return self._sessions[name]

    def new_topic(self, side: str, partitions: int = PARTITIONS) -> str:
        """Create an empty topic."""
        topic = self.new_name()
        create_topic(self.broker(side).bootstrap_servers, topic, partitions)
        return topic

    def loaded_topic(self, side: str, records: int, value_bytes: int, partitions: int = PARTITIONS) -> str:
        """A topic that holds `records` records of `value_bytes` bytes in full batches."""
        topic = f"loaded-{value_bytes}-{records}-{partitions}"
        if f"{side}/{topic}" not in self._topics:
            servers = self.broker(side).bootstrap_servers
            create_topic(servers, topic, partitions)
            fill(servers, topic, records, b"x" * value_bytes, partitions)
            self._topics.add(f"{side}/{topic}")
        return topic

    def take_turns(
        self,
        measures: Mapping[str, Callable[[], _T]],
        warm_up: int = 1,
        rounds_max: int | None = None,
        fills_memory: bool = False,
        turns_around: bool = False,
    ) -> dict[str, list[_T]]:
        """Call the sides' measures in turn, `rounds` times (at most `rounds_max`) after `warm_up` uncounted rounds. When they fill
        memory with what they write, the machine gets it from its host before each round (see `memory`). Where the sides are nearly
        the same, each round has the other order (`turns_around`): what a side leaves to the next one is no part of their ratio."""
        runs: dict[str, list[_T]] = {side: [] for side in measures}
        rounds = self.rounds if rounds_max is None else min(self.rounds, rounds_max)
        for round_number in range(-warm_up, rounds):
            if fills_memory:
                touch_free_memory()
            order = list(measures.items())
            for side, measure in reversed(order) if turns_around and round_number % 2 else order:
                result = measure()
                if round_number >= 0:
                    runs[side].append(result)
        return runs

    def close(self) -> None:
        """Stop everything and delete the folder."""
        for session in self._sessions.values():
            session.close()
        for broker in self._brokers.values():
            broker.stop()
        for close in self._at_the_end:
            close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _new_folder() -> Path:
    base = Path(os.environ.get("BENCH_DIR") or _ROOT / ".cache" / "bench")
    base.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=base))
