"""In which order files run, and on which process: by the servers that they need, the long ones first.

Files are in stacks (`STACKS`): those that need Spark, those that run clusters, those that need Kafka and its clients, and the rest,
which starts what it needs for itself. Each process has a stack of its own, so that each server is started by one process as long
as it has work; then it takes from the rest, then from the stack that is the longest. Clusters mostly wait, for sessions that end and
leaders that are elected, and so leave the processor to Spark. A file's tests stay in one process: they share brokers; so do those of
the folders in `TOGETHER`.

How long files take is recorded (`seconds`). A new file that is not recorded counts as long.

In a long run ``PYLOG_TEST_PART=3/4`` keeps the units of one part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.harness import runs
from tests.harness.seconds import UNKNOWN_S, files, parse_part, parts, recorded

#: What a file counts for at least: also one that took no time is work that is left.
_SHORTEST_S = 0.1
_MARKS_OF_ALL = re.compile(r"^pytestmark = (.*)$", re.MULTILINE)
#: The folders of each stack; the files of all others are the rest.
STACKS = (
    ("tests/parity", "tests/spark", "tests/docs", "tests/lakehouse"),
    ("tests/cluster", "tests/crash"),
    ("tests/interop", "tests/oracle", "tests/client", "tests/reading", "tests/directories"),
)
#: Folders whose files share what takes long to make: each is handed out as a whole.
TOGETHER = ("tests/directories",)


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
    return stack(file), -seconds.get(file, UNKNOWN_S)


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
        left[stack(file)] += seconds.get(file, UNKNOWN_S)
    own, rest = process % len(left), len(STACKS)
    wanted = own if left[own] else rest if left[rest] else left.index(max(left))
    return next(file for file in files if stack(file) == wanted)


def is_left_out(file: Path, marks: str) -> bool:
    """Whether a run need not even import a file, since it takes none of its tests.

    Parameters
    ----------
    file : Path
        A file of tests. A ``pytestmark`` in one line is the mark of all of them.
    marks : str
        What ``-m`` says, like ``not long and not alone``.
    """
    unwanted = re.findall(r"\bnot (\w+)", marks)
    if not unwanted or not file.name.startswith("test_"):
        return False
    found = _MARKS_OF_ALL.search(file.read_text())
    return found is not None and any(re.search(rf"\bpytest\.mark\.{mark}\b", found.group(1)) for mark in unwanted)


def keep_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of one part, where ``PYLOG_TEST_PART`` names one."""
    if not (text := os.environ.get("PYLOG_TEST_PART")):
        return
    number, count = parse_part(text)
    mine = set(parts(_seconds(), count)[number - 1])
    kept = [item for item in items if unit(item.nodeid.partition("::")[0]) in mine]
    config.hook.pytest_deselected(items=[item for item in items if unit(item.nodeid.partition("::")[0]) not in mine])
    items[:] = kept


@cache
def _seconds() -> dict[str, float]:
    """What each unit takes in a run of this kind; a file of which a long run has recorded nothing counts as in a short one."""
    known = recorded()
    units: dict[str, float] = {}
    for file in files():
        entry = known.get(file, {})
        took = entry.get("long" if runs.LONG else "seconds", entry.get("seconds") or UNKNOWN_S)
        units[unit(file)] = units.get(unit(file), 0.0) + max(took, _SHORTEST_S)
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
