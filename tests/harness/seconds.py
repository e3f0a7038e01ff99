"""What each file of tests takes, the budget that keeps `make test` short, and the parts of `make test-long`.

``seconds.json`` beside this file has two numbers for each file, in seconds of one process of tests, fixtures included:

- ``seconds``: what its tests take in `make test`; 0 for a file whose tests all run in `make test-long` only. `make test-seconds` writes it.
- ``long``: what its tests take in `make test-long`. A long run that `PYLOG_TEST_SECONDS` gives the path of that file writes it.

The numbers are of one machine with two quiet cores. They are compared with budgets, never with a clock: a slow machine fails no test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
RECORDED = Path(__file__).with_name("seconds.json")

#: All of `make test`, in seconds of its processes: three of them on two cores need 8 minutes for some 1,350, with Rust's
#: tests at the same time.
BUDGET_S = 1800
#: What the folders of `tests` may take of it.
FOLDER_BUDGETS_S = {
    "spark": 320,
    "cluster": 300,
    "typed": 150,
    "interop": 150,
    "docs": 120,
    "crash": 120,
    "parity": 100,
    "hostile": 80,
    "mirror": 40,
}
#: The same for each folder that is not named there.
OTHER_FOLDER_BUDGET_S = 60
#: What a file counts for that nothing is recorded of.
UNKNOWN_S = 30.0


def recorded() -> dict[str, dict[str, float]]:
    """``seconds`` and ``long`` by file."""
    found: dict[str, dict[str, float]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return found


def files() -> list[str]:
    """Every file of Python tests, by its path below the project."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def by_folder(seconds: Mapping[str, float]) -> dict[str, float]:
    """The sums of the folders of `tests`; a file that is in none of them counts for itself."""
    sums: dict[str, float] = {}
    for file, each in seconds.items():
        folder = file.split("/")[1]
        sums[folder] = sums.get(folder, 0.0) + each
    return sums


def parse_part(text: str) -> tuple[int, int]:
    """Which part of how many ``3/4`` is.

    Raises
    ------
    pytest.UsageError
        Where it is no such text.
    """
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"PART={text} names no part: PART=3/4 is the third of four.")
    return int(number), int(count)


def parts(seconds: Mapping[str, float], count: int) -> list[list[str]]:
    """Divide files, or folders, so that each part takes about as long: the longest first, each to the part with the least.

    Returns
    -------
    list of list of str
        `count` of them; the same for the same numbers, so that every process divides alike.
    """
    divided: list[list[str]] = [[] for _ in range(count)]
    sums = [0.0] * count
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        least = sums.index(min(sums))
        divided[least].append(name)
        sums[least] += seconds[name]
    return divided


class Stopwatch:
    """Adds up what each test took, its fixtures included, and writes it down at the end of the run.

    Parameters
    ----------
    path : Path
        As `RECORDED`. Of files that do not run, what it says stays, but a file that is gone leaves it.
    column : str
        ``seconds`` or ``long``.
    whole : bool
        Whether every file runs: one of which no test did took no time then.
    """

    def __init__(self, path: Path, column: str, whole: bool) -> None:
        self._path, self._column, self._whole = path, column, whole
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One of a test's three parts is over."""
        file = report.nodeid.partition("::")[0]
        self._seconds[file] = self._seconds.get(file, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write them."""
        before = json.loads(self._path.read_text()) if self._path.exists() else {}
        now = merged(before, self._seconds, self._column, files(), self._whole)
        self._path.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")


def stopwatch() -> Stopwatch | None:
    """What ``PYLOG_TEST_SECONDS`` asks for, which names a file; `PYLOG_TEST_WHOLE=1` says that every file runs."""
    path = os.environ.get("PYLOG_TEST_SECONDS")
    column = "long" if os.environ.get("PYLOG_TEST_LONG", "0") == "1" else "seconds"
    return Stopwatch(Path(path).absolute(), column, os.environ.get("PYLOG_TEST_WHOLE") == "1") if path else None


def merged(
    before: Mapping[str, Mapping[str, float]], took: Mapping[str, float], column: str, there: Iterable[str], whole: bool
) -> dict[str, dict[str, float]]:
    """What is written down after a run: `before`, with what the files of this run took in its column.

    Parameters
    ----------
    before : mapping
        As `recorded` gives it.
    took : mapping
        Seconds by file.
    column : str
        As in `Stopwatch`.
    there : iterable of str
        The files that there are.
    whole : bool
        As in `Stopwatch`.
    """
    after: dict[str, dict[str, float]] = {}
    for file in there:
        entry = dict(before.get(file, {}))
        if whole or file in took:
            entry[column] = round(took.get(file, 0.0), 1)
        if entry:
            after[file] = entry
    return after
