"""What is sent and received, in which order, and the document that is kept of it."""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.load import create_topic, delete_topic
from benchmarks.paper.programs import consume, jars_of, produce
from benchmarks.paper.systems import System, make_system, rabbitmq_server
from tests.peers.jars import jars

MESSAGE_BYTES = 200
_ROOT = Path(__file__).parents[2]
_WITH_TOPICS = ("pylog", "kafka")
_WARM_UP_PART = 5


@dataclass(frozen=True)
class Load:
    """One producer, and after it perhaps one consumer of what it sent. `part` is of the records of a run."""

    batch: int
    acknowledged: bool
    part: float
    is_consumed: bool


# Of messages that travel alone there are fewer: they take longer, and their rate does not depend on their number.
_SINGLE = 0.12
# As in the paper, only Kafka's clients make batches.
_LOADS = {
    True: (
        Load(1, False, _SINGLE, False),
        Load(50, False, 1.0, True),
        Load(1, True, _SINGLE, False),
        Load(50, True, 1.0, False),
    ),
    False: (Load(1, False, _SINGLE, True), Load(1, True, _SINGLE, False)),
}


@dataclass
class Line:
    """One line of a figure: messages a second of each round."""

    role: str
    system: str
    batch: int
    acknowledged: bool
    messages: int
    runs: list[float] = field(default_factory=list)
    mean_batches: list[float] = field(default_factory=list)


class Experiment:
    """Brokers that run together and are measured in turns. Use as a context manager."""

    def __init__(self, systems: Sequence[str], rounds: int, records: int, say: Callable[[str], None]) -> None:
        self._rounds, self._records, self._say = rounds, records, say
        base = Path(os.environ.get("BENCH_DIR") or _ROOT / ".cache" / "bench")
        base.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(dir=base, prefix="paper-"))
        self._names = tuple(systems)
        self._systems: dict[str, System] = {}
        self._lines: dict[tuple[object, ...], Line] = {}

    def __enter__(self) -> "Experiment":
        try:
            for name in self._names:
                system = self._systems[name] = make_system(name, self._folder / name)
                system.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the brokers and delete what they wrote."""
        for system in self._systems.values():
            system.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self) -> list[Line]:
        """All rounds, in each round one system after the other."""
        for turn in range(self._rounds):
            for name, system in self._systems.items():
                for number, load in enumerate(_LOADS[name in _WITH_TOPICS]):
                    self._measure(name, system.bootstrap_servers, f"paper-{turn}-{number}", load)
        return list(self._lines.values())

    def _measure(self, system: str, address: str, name: str, load: Load) -> None:
        messages = max(10, int(self._records * load.part))
        warm_up = max(10, messages // _WARM_UP_PART)
        made = [name, f"{name}-warm"] if system in _WITH_TOPICS else []
        for topic in made:
            create_topic(address, topic, partitions=1)
        discarded = not load.is_consumed
        done = produce(
            system,
            address,
            name,
            warm_up,
            messages,
            MESSAGE_BYTES,
            load.batch,
            acks=load.acknowledged,
            discarded=discarded,
        )
        line = self._line("producer", system, load, messages)
        line.runs.append(messages / done.seconds)
        line.mean_batches.append(done.mean_batch)
        self._say(_said(line))
        if load.is_consumed:
            seconds = consume(system, address, name, warm_up, messages)
            line = self._line("consumer", system, load, messages)
            line.runs.append(messages / seconds)
            self._say(_said(line))
        for topic in made:
            delete_topic(address, topic)

    def _line(self, role: str, system: str, load: Load, messages: int) -> Line:
        key = (role, system, load.batch, load.acknowledged)
        return self._lines.setdefault(key, Line(role, system, load.batch, load.acknowledged, messages))


def _said(line: Line) -> str:
    acknowledged = "acknowledged" if line.acknowledged else "as in the paper"
    return f"{line.system} {line.role}, batch {line.batch}, {acknowledged}: {line.runs[-1]:,.0f} messages/s"


def document(lines: Sequence[Line], rounds: int) -> dict[str, Any]:
    """The run as plain data."""
    return {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "rounds": rounds,
        "message_bytes": MESSAGE_BYTES,
        "versions": versions({line.system for line in lines}),
        "lines": [{**asdict(line), "min": min(line.runs), "median": median(line.runs)} for line in lines],
    }


def versions(systems: set[str]) -> dict[str, str]:
    """Which release of each system is measured; pylog's is that of this checkout."""
    found = {}
    if "kafka" in systems:
        (jar,) = (path.stem for path in jars("kafka") if path.stem.startswith("kafka_"))
        found["kafka"] = jar.rpartition("-")[2]
    if "activemq" in systems:
        (found["activemq"],) = (
            Path(jar).stem.rpartition("-")[2] for jar in jars_of("activemq").split(":") if "activemq-broker" in jar
        )
    if "rabbitmq" in systems:
        found["rabbitmq"] = _rabbitmq_version()
    return found


def _rabbitmq_version() -> str:
    """The release is in the name of a folder beside the script that starts it; Debian's package says it where that is elsewhere."""
    for folder in Path(rabbitmq_server()).resolve().parent.parent.glob("lib/rabbitmq_server-*"):
        return folder.name.rpartition("-")[2]
    asked = ["dpkg-query", "--showformat=${Version}", "--show", "rabbitmq-server"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.partition("-")[0] or "unknown"
