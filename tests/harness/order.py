"""In which order files run, and on which process: by the servers that they need, the long ones first.

Files are in stacks (`STACKS`): those that need Spark, those that run clusters, those that need Kafka and its clients, and the rest,
which starts what it needs for itself. Each process has a stack of its own, the fourth the rest, so that each server is started by one process as long
as it has work; then it takes from the rest, then from the stack that is the longest. Clusters mostly wait, for sessions that end and
leaders that are elected, and so leave the processor to Spark. A file's tests stay in one process: they share brokers; so do those of
the folders in `TOGETHER`.

``seconds.json`` beside this file has what each test took when `make test-seconds` recorded it; tests shorter than `SHORTEST_S` are
counted in their file's sum only. A new file that it does not know counts as long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHORTEST_S = 0.1
_RECORDED = Path(__file__).with_name("seconds.json")
_UNKNOWN_S = 30.0
#: The folders of each stack; the files of all others are the rest.
STACKS = (
    ("tests/parity", "tests/spark", "tests/docs"),
    ("tests/cluster",),
    ("tests/interop", "tests/oracle", "tests/client", "tests/reading", "tests/directories"),
)
#: Folders whose files share what takes long to make: each is handed out as a whole.
TOGETHER = ("tests/directories",)


def recorded() -> dict[str, dict[str, Any]]:
    """By file: ``seconds``, the sum, and ``tests``, the seconds of each test that took long enough to be named."""
    found: dict[str, dict[str, Any]] = json.loads(_RECORDED.read_text()) if _RECORDED.exists() else {}
    return found


def unit(file: str) -> str:
    """With what a file is handed out: its folder when that is in `TOGETHER`, else itself alone."""
    folder = file.rpartition("/")[0]
    return folder if folder in TOGETHER else file


def stack(file: str) -> int:
    """Which of `STACKS` a file, or a folder, is in; their number for the rest."""
    return next(
        (
            number
            for number, folders in enumerate(STACKS)
            if f"{file}/".startswith(tuple(f"{each}/" for each in folders))
        ),
        len(STACKS),
    )


def rank(file: str, seconds: Mapping[str, float]) -> tuple[int, float]:
    """Where a `unit` stands: by its stack, and there the long ones first.

    Parameters
    ----------
    file : str
        Its path below the project, with slashes.
    seconds : mapping
        What is recorded, by unit.
    """
    return stack(file), -seconds.get(file, _UNKNOWN_S)


def sort(items: list[pytest.Item]) -> None:
    """Bring collected tests into this order; a file's own tests keep theirs."""
    seconds = _seconds()

    def place(item: pytest.Item) -> tuple[tuple[int, float], str]:
        one = unit(item.nodeid.partition("::")[0])
        # The name keeps a folder's files together where two units take as long.
        return rank(one, seconds), one

    items.sort(key=place)


def next_file(files: Sequence[str], process: int, seconds: Mapping[str, float]) -> str:
    """Which `unit` a process runs next.

    Parameters
    ----------
    files : sequence of str
        What is left, in the order of `rank`; not empty.
    process : int
        Its number, from 0 on.
    seconds : mapping
        What is recorded, by unit.
    """
    left = [0.0] * (len(STACKS) + 1)
    for file in files:
        left[stack(file)] += seconds.get(file, _UNKNOWN_S)
    own, rest = process % len(left), len(STACKS)
    wanted = own if left[own] else rest if left[rest] else left.index(max(left))
    return next(file for file in files if stack(file) == wanted)


@cache
def _seconds() -> dict[str, float]:
    units: dict[str, float] = {}
    for file, known in recorded().items():
        # A file that took no time is work that is left all the same.
        units[unit(file)] = units.get(unit(file), 0.0) + max(float(known["seconds"]), SHORTEST_S)
    return units


class ByServers(LoadFileScheduling):
    """Hands out whole units, as `next_file` says."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        process = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(next_file(list(self.workqueue), process, _seconds()), last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: Any) -> Any:
        """Of a process that died, what it had not run goes to others. What it had run is forgotten here: handed out again it would be no work, and
        a process that is given none waits for ever (seen once, with nothing left to run but that)."""
        files = self.assigned_work[node]
        for file in [file for file, tests in files.items() if all(tests.values())]:
            del files[file]
        return super().remove_node(node)


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
