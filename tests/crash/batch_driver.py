"""A driver of named batches as a process that is killed: the data source's own writer and tasks, without Spark's engine.

Gets its work as one JSON argument (`Plan`): a batch into each sink, one sink after the other, each under the name of its sink,
`times` times. It stops at steps as `steps/sink_steps.py` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import SimpleNamespace

from tests.crash.sink_bench import SINK_PARTITIONS, SinkBench, open_transactions, read
from tests.crash.sink_driver import ROOT

ROWS = 1_000


@dataclass(frozen=True)
class Plan:
    """What to write: `ROWS` numbers in two tasks into each of `sinks`."""

    servers: str
    sinks: list[str]
    times: int

    def json(self) -> str:
        """For `main`."""
        return json.dumps(asdict(self))


def arm(bench: SinkBench) -> None:
    """Let who writes the batch of a sink stop at the step that the sink is named after."""
    for step, query in bench.queries.items():
        query.key = f"{query.sink}/{query.sink}"
        bench.control.arm(step, query.key)


def start(bench: SinkBench, sinks: Sequence[str], times: int = 1) -> subprocess.Popen[bytes]:
    """A driver for `sinks`."""
    words = Plan(bench.servers, list(sinks), times).json()
    environment = {**os.environ, **bench.driver.plan.environment()}
    return subprocess.Popen([sys.executable, "-m", __name__, words], cwd=ROOT, env=environment)


@contextmanager
def stopped_at_steps(bench: SinkBench) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A driver for each sink, all of them waiting at the steps that their sinks are named after; at the end they are killed."""
    arm(bench)
    drivers = [start(bench, [sink]) for sink in bench.sinks]
    try:
        waiting = [bench.control.reached(step, query.key) for step, query in bench.queries.items()]
        assert sorted(waiting) == sorted(driver.pid for driver in drivers)
        yield drivers
    finally:
        for driver in drivers:
            driver.kill()
            driver.wait()


def check(bench: SinkBench) -> None:
    """Every sink has every row once, and nothing is left open."""
    expected = sorted(b"%d" % number for number in range(ROWS))
    for query in bench.queries.values():
        rows = sorted(
            value for partition in range(SINK_PARTITIONS) for value in read(bench.servers, query.sink, partition)
        )
        assert rows == expected, f"{query.sink}: {len(rows)} rows instead of {len(expected)}"
    assert open_transactions(bench.servers) == []


def main(words: str) -> None:
    """Write them."""
    from tests.reading.writing import save, texts

    plan = Plan(**json.loads(words))
    numbers = [str(number) for number in range(ROWS)]
    tasks = [texts(*numbers[::2]), texts(*numbers[1::2])]
    for _ in range(plan.times):
        for sink in plan.sinks:
            save(SimpleNamespace(servers=plan.servers, name=sink), *tasks, txnAppId=sink, txnVersion=7)


if __name__ == "__main__":
    main(sys.argv[1])
