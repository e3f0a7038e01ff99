"""The figures of a run: one table for people, one JSON document for programs, judged against the targets."""

import json
import os
import platform
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.bench import Runs
from benchmarks.brokers import SIDES
from benchmarks.pages import reference, target
from benchmarks.row import Row
from tests.peers.jars import jars


@dataclass(frozen=True)
class Result:
    """The runs of one row."""

    row: Row
    runs: Runs

    def median(self, side: str) -> float | None:
        """Median run of `side`, None when it did not run."""
        return median(self.runs[side]) if self.runs.get(side) else None

    @property
    def third(self) -> str:
        """The side beside kafka and pylog, if the row has one."""
        return next((side for side in self.runs if side not in SIDES), "")

    def best(self, side: str) -> float | None:
        """Best run: the largest speed, the smallest cost."""
        runs = self.runs.get(side)
        return (max(runs) if self.row.is_speed else min(runs)) if runs else None

    @property
    def ratio(self) -> float | None:
        """pylog's median over that of the side that its target is held against; None where one of them is not above zero."""
        other, pylog = self.median(self.row.target.against), self.median("pylog")
        return pylog / other if other and pylog is not None and min(other, pylog) > 0 else None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without a figure of pylog, or without a target."""
        pylog = self.median("pylog")
        return None if pylog is None else self.row.target.met(self.median(self.row.target.against), pylog)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _pair(result: Result, side: str) -> str:
    middle, best = result.median(side), result.best(side)
    return _number(middle) if middle == best else f"{_number(middle)} ({_number(best)})"


def print_table(results: list[Result]) -> None:
    """Print median (best) of each side, ratio, target and verdict."""
    table = Table(title="median (best) of several runs, the sides taking turns", title_justify="left")
    for name in ("row", "unit", "Kafka", "pylog", "reference", "ratio", "target", ""):
        table.add_column(name, justify="left" if name in ("row", "unit", "target", "") else "right")
    for result in results:
        verdict = {True: "[green]met[/]", False: "[red]MISSED[/]", None: ""}[result.is_met]
        table.add_row(
            result.row.title, result.row.unit, _pair(result, "kafka"), _pair(result, "pylog"), f"{reference(result.row.key, result.third)} {_pair(result, result.third)}".strip(),
            f"{_number(result.ratio)} x" if result.ratio is not None else "-", target(result.row.key, result.row.target.text), verdict,
        )  # fmt: skip
    Console(width=max(120, Console().width)).print(table)


def kafka_version() -> str:
    """The version of Apache Kafka that is measured, such as 4.4: that of its jar."""
    (jar,) = (path for path in jars("kafka") if re.fullmatch(r"kafka_[\d.]+-[\d.]+\.jar", path.name))
    return ".".join(jar.stem.rpartition("-")[2].split(".")[:2])


def document(results: list[Result], rounds: int) -> dict[str, object]:
    """The run as plain data. Each row has the version of Apache Kafka beside which it was measured."""
    return {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "rounds": rounds,
        "rows": [
            {
                "key": result.row.key, "title": result.row.title, "unit": result.row.unit,
                "is_speed": result.row.is_speed, "runs": result.runs, "ratio": result.ratio,
                "target": result.row.target.text, "met": result.is_met,
                "kafka_version": kafka_version() if result.runs.get("kafka") else None,
            }
            for result in results
        ],
    }  # fmt: skip


def write_json(path: Path, results: list[Result], rounds: int) -> None:
    """Write the run to `path`; rows measured earlier and not in this run stay as they are."""
    new = document(results, rounds)
    if path.exists():
        measured = {result.row.key for result in results}
        old = [row for row in json.loads(path.read_text())["rows"] if row["key"] not in measured]
        new["rows"] = [*old, *new["rows"]] if isinstance(new["rows"], list) else old
    path.write_text(json.dumps(new, indent=1) + "\n")
