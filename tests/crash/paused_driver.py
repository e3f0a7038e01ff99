"""A driver of one batch as a process that stops where a test can kill it: the data source's own writer and tasks, without Spark's engine.

Gets its work as one JSON argument (`Plan`). It prints one line when it has stopped, and goes on when it is given one; then it prints
how its write has ended.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.crash.sink_driver import ROOT
from tests.harness.children import PipedChild

#: Where it stops: all tasks are prepared and nothing is decided; it is decided and nothing is committed.
_DEADLINE_S = 120.0
UNDECIDED, DECIDED = "undecided", "decided"


@dataclass(frozen=True)
class Plan:
    """What to write: each of `values` in a task of its own."""

    servers: str
    topic: str
    values: list[str]
    stop: str
    options: dict[str, str] = field(default_factory=dict)


class PausedDriver:
    """Such a process, from when it has stopped."""

    def __init__(self, plan: Plan) -> None:
        words = [sys.executable, "-m", __name__, json.dumps(asdict(plan))]
        self._process = PipedChild(words, cwd=ROOT)
        assert self._process.line(_DEADLINE_S) == "stopped"

    def kill(self) -> None:
        """As hard as kill -9."""
        self._process.kill()

    def go_on(self) -> str:
        """Let it go on to its end: "written", or why not."""
        answer = self._process.ask("", _DEADLINE_S)
        self._process.rest()
        return answer


def main(words: str) -> None:
    """Write, with one stop."""
    from pylog_spark.errors import PylogError
    from pylog_spark.sink import commit
    from tests.reading.writing import save, texts

    plan = Plan(**json.loads(words))
    name = "commit" if plan.stop == UNDECIDED else "end"
    real = getattr(commit, name)

    def after_a_stop(*arguments: Any, **named: Any) -> Any:
        setattr(commit, name, real)
        print("stopped", flush=True)
        sys.stdin.readline()
        return real(*arguments, **named)

    setattr(commit, name, after_a_stop)
    place = SimpleNamespace(servers=plan.servers, name=plan.topic)
    try:
        save(place, *map(texts, plan.values), **plan.options)
    except PylogError as error:
        print(error, flush=True)
    else:
        print("written", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
