"""What a row is: its name, its unit, its target and how it is measured."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.bench import Bench, Runs


@dataclass(frozen=True)
class Target:
    """`text` says it in the table; `met` judges the medians of `against` (which may be missing) and of pylog, or says None."""

    text: str
    met: Callable[[float | None, float], bool | None]
    against: str = "kafka"


def ratio_at_least(factor: float, against: str = "kafka") -> Target:
    """pylog's figure is at least `factor` times that of `against` (of speeds)."""
    text = f">= {factor:g} x" + _of(against)
    return Target(text, lambda other, pylog: other is not None and pylog >= factor * other, against)


def ratio_at_most(factor: float, against: str = "kafka") -> Target:
    """pylog's figure is at most `factor` times that of `against` (of costs)."""
    text = f"<= {factor:g} x" + _of(against)
    return Target(text, lambda other, pylog: other is not None and pylog <= factor * other, against)


def _of(against: str) -> str:
    return f" {against}" if against != "kafka" else ""


def at_most(limit: float, unit: str) -> Target:
    """pylog's own figure is at most `limit`."""
    return Target(f"<= {limit:g} {unit}", lambda _, pylog: pylog <= limit)


def part() -> Target:
    """A part of another row, which has the target."""
    return Target("", lambda other, pylog: None)


@dataclass(frozen=True)
class Row:
    """One row: `key` names it on the command line; of a speed more is better, of a cost less."""

    key: str
    title: str
    unit: str
    is_speed: bool
    target: Target
    measure: Callable[[Bench], Runs]
