"""The broker's machine does what tests of power and time rely on."""

import json
import os
import random
import sys
from pathlib import Path

import pytest

from pylog_spark.testing.local_broker import PROGRAM
from tests.harness.children import PipedChild
from tests.harness.machine import Machine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a preloaded library of Linux")

_WRITES = """
import os, sys
for name, durable, size in (("all", 100, 100), ("half", 50, 100), ("none", 0, 100)):
    with open(os.path.join(sys.argv[1], name), "wb", buffering=0) as file:
        if durable:
            file.write(b"a" * durable)
            os.fsync(file.fileno())
        file.write(b"b" * (size - durable))
"""
_CLOCKS = """
import datetime, json, sys, time
for line in sys.stdin:
    print(json.dumps([time.time(), datetime.datetime.now().timestamp(), time.monotonic()]), flush=True)
"""


def run_on(machine: Machine, code: str, *words: str, cwd: Path | None = None) -> PipedChild:
    return PipedChild([*machine.program[: -len(PROGRAM)], sys.executable, "-c", code, *words], cwd=cwd)


@pytest.mark.parametrize("seed", range(20))
def test_a_loss_of_power_keeps_what_was_synced_and_may_take_the_rest(tmp_path: Path, seed: int) -> None:
    machine, data = Machine(tmp_path / "machine"), tmp_path / "data"
    data.mkdir()
    assert run_on(machine, _WRITES, str(data)).wait() == 0
    lost = machine.lose_unsynced(data, random.Random(seed))
    left = {file.name: file.read_bytes() for file in data.iterdir()}
    assert left["all"] == b"a" * 100
    assert left["half"].rstrip(b"b") == b"a" * 50
    assert set(left["none"]) <= {ord("b")}
    assert lost == 300 - sum(map(len, left.values()))


def test_losses_of_power_take_all_some_or_nothing_of_what_was_not_synced(tmp_path: Path) -> None:
    left = set()
    for seed in range(30):
        machine, data = Machine(tmp_path / f"machine-{seed}"), tmp_path / f"data-{seed}"
        data.mkdir()
        (data / "file").write_bytes(b"x" * 1000)
        machine.lose_unsynced(data, random.Random(seed))
        left.add(os.path.getsize(data / "file"))
    assert {0, 1000} < left


_NAMES = """
import os, sys
os.makedirs("synced/above/below")
for folder in ("synced", "synced/above", "."):
    opened = os.open(folder, os.O_RDONLY)
    open(os.path.join(folder, "before"), "w").close()
    os.fsync(opened)
    open(os.path.join(folder, "behind"), "w").close()
open("synced/above/below/file", "w").close()
os.rename("before", "renamed")
"""


def test_names_that_were_not_synced_are_lost_with_all_below_them(tmp_path: Path) -> None:
    machine, data = Machine(tmp_path / "machine"), tmp_path / "data"
    data.mkdir()
    assert run_on(machine, _NAMES, cwd=data).wait() == 0
    assert machine.lose_unnamed(data) == 5
    left = sorted(str(path.relative_to(data)) for path in data.rglob("*"))
    assert left == ["synced", "synced/above", "synced/above/before", "synced/above/below", "synced/before"]


def test_only_the_wall_clock_jumps_and_at_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    process = run_on(machine, _CLOCKS)

    def clocks() -> list[float]:
        return json.loads(process.ask(""))  # type: ignore[no-any-return]

    with process:
        before = clocks()
        machine.set_clock(3_600)
        ahead = clocks()
        machine.set_clock(-3_600)
        behind = clocks()
    for clock in (0, 1):
        assert 3_600 <= ahead[clock] - before[clock] < 3_660
        assert -3_600 <= behind[clock] - before[clock] < -3_540
    assert before[2] < ahead[2] < behind[2] < before[2] + 60
