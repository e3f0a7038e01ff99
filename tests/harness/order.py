"""In which order files run, and on which process: by the servers that they need, the long ones first.

Files stand in one queue: at the front those that need Apache Kafka, then Kafka and Spark, then Spark; at the back those that run
clusters and kill brokers; in the middle those that need neither. The first process takes from the front, the second from the
back, the third from the middle outwards, so that each server is started by one process as long as there is other work for the
others, and they end among short files. A file's tests stay in one process: they share brokers.

``seconds.json`` beside this file has what each test took when `make test-seconds` recorded it; tests shorter than `SHORTEST_S` are
counted in their file's sum only. A new file that it does not know counts as long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHORTEST_S = 0.1
_RECORDED = Path(__file__).with_name("seconds.json")
_UNKNOWN_S = 30.0
#: Where the folders' files stand in the queue; what is not named needs no server of its own and stands in the middle.
_FRONT = ("tests/oracle", "tests/reading", "tests/client", "tests/interop", "tests/parity", "tests/docs", "tests/spark")
_BACK = ("tests/cli", "tests/broker", "tests/examples", "tests/hostile", "tests/crash", "tests/cluster")


def recorded() -> dict[str, dict[str, Any]]:
    """By file: ``seconds``, the sum, and ``tests``, the seconds of each test that took long enough to be named."""
    found: dict[str, dict[str, Any]] = json.loads(_RECORDED.read_text()) if _RECORDED.exists() else {}
    return found


def rank(file: str, seconds: Mapping[str, float]) -> tuple[int, float]:
    """Where a file stands in the queue.

    Parameters
    ----------
    file : str
        Its path below the project, with slashes.
    seconds : mapping
        What is recorded, by file.
    """
    folder = next((one for one in (*_FRONT, *_BACK) if file.startswith(f"{one}/")), None)
    long = seconds.get(file, _UNKNOWN_S)
    if folder in _FRONT:
        return _FRONT.index(folder), -long
    if folder is None:
        return len(_FRONT), -long
    return len(_FRONT) + 1 + _BACK.index(folder), long


def sort(items: list[pytest.Item]) -> None:
    """Bring collected tests into the queue's order; a file's own tests keep theirs."""
    seconds = {file: float(known["seconds"]) for file, known in recorded().items()}
    items.sort(key=lambda item: rank(item.nodeid.partition("::")[0], seconds))


def next_file(files: Sequence[str], process: int) -> str:
    """Which of the queue's files a process runs next.

    Parameters
    ----------
    files : sequence of str
        What is left of the queue, in its order; not empty.
    process : int
        Its number, from 0 on.
    """
    if process % 3 == 0:
        return files[0]
    if process % 3 == 1:
        return files[-1]
    before = [file for file in files if _section(file) < 0]
    between = [file for file in files if _section(file) == 0]
    if between:
        return between[0]
    # From the middle outwards, on the side where more is left.
    return before[-1] if 2 * len(before) > len(files) else files[len(before)]


def _section(file: str) -> int:
    """-1 at the front of the queue, 1 at its back, 0 in the middle."""
    place, _ = rank(file, {})
    return (place > len(_FRONT)) - (place < len(_FRONT))


class ByServers(LoadFileScheduling):
    """Hands out whole files, as `next_file` says."""

    def _assign_work_unit(self, node: Any) -> None:
        process = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(next_file(list(self.workqueue), process), last=False)
        super()._assign_work_unit(node)


class Stopwatch:
    """Adds up what each test took, its fixtures included, and writes it down at the end of the run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One of a test's three parts is over."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write them."""
        self._path.write_text(json.dumps(by_file(self._seconds.items()), indent=1, sort_keys=True) + "\n")


def by_file(seconds: Iterable[tuple[str, float]]) -> dict[str, dict[str, Any]]:
    """What `recorded` gives, of the seconds by a test's name (``file::test``)."""
    files: dict[str, dict[str, Any]] = {}
    for name, each in seconds:
        file, _, test = name.partition("::")
        entry = files.setdefault(file, {"seconds": 0.0, "tests": {}})
        entry["seconds"] += each
        if each >= SHORTEST_S:
            entry["tests"][test] = round(each, 1)
    return {file: {**entry, "seconds": round(entry["seconds"], 1)} for file, entry in files.items()}
