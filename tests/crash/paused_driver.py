"""A driver of one batch as a process that stops where a test can kill it: the data source's own writer and tasks, without Spark's engine.

Gets its work as one JSON argument (`Plan`). It prints one line when it has stopped, and goes on when it is given one; then it prints
how its write has ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.crash.sink_driver import ROOT

#: Where it stops: all tasks are prepared and nothing is decided; it is decided and nothing is committed.
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
        self._process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "stopped"

    def kill(self) -> None:
        """As hard as kill -9."""
        self._process.kill()
        self._process.communicate()

    def go_on(self) -> str:
        """Let it go on to its end: "written", or why not."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._line()
        self._process.communicate()
        return answer

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def main(words: str) -> None:
    """Write, with one stop."""
    from pylog_spark.errors import PylogError
    from pylog_spark.sink import commit
    from tests.reading.writing import save, texts

    plan = Plan(**json.loads(words))
    name = "commit" if plan.stop == UNDECIDED else "end"
    real = getattr(commit, name)

    def after_a_stop(*arguments: Any) -> Any:
        setattr(commit, name, real)
        print("stopped", flush=True)
        sys.stdin.readline()
        return real(*arguments)

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
