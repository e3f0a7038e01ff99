"""The runner of long attacks: its figures are whole, and a broker that does not survive an attack is reported."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness.children import PipedChild
from tests.harness.small_disk import small_disk
from tests.harness.waiting import until
from tests.hostile.bout import MIB

pytestmark = pytest.mark.long  # the runner of `make attack`

_ENDS_S = 280
_SOME = ("random-bytes", "batches", "connections")


def _attack(*words: str, folder: Path | None = None) -> PipedChild:
    """Start the runner; the broker's files are below `folder`."""
    command = [sys.executable, "-m", "tests.hostile.attack", *words]
    environment = os.environ if folder is None else {**os.environ, "TMPDIR": str(folder)}
    return PipedChild(command, stdin=subprocess.DEVNULL, errors=True, env=environment)


def _broker_of(runner: int) -> int | None:
    """The process id of the broker that the runner has started, if it has."""
    # Of all its threads.
    for children in Path(f"/proc/{runner}/task").glob("*/children"):
        for child in map(int, _read(children).split()):
            if "broker" in _read(Path(f"/proc/{child}/cmdline")).split("\0"):
                return child
    return None


def test_some_attacks_of_a_second_give_a_table_and_figures_and_no_promise_is_broken(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    with _attack("--seconds", "1", "--seed", "7", "--json", str(file), *_SOME) as running:
        assert running.wait(_ENDS_S) == 0, running.output + running.errors
    # Nothing is drawn where there is no terminal.
    assert running.errors == ""
    figures = json.loads(file.read_text())
    assert (figures["side"], figures["seed"]) == ("pylog", 7)
    assert [attack["name"] for attack in figures["attacks"]] == list(_SOME)
    for attack in figures["attacks"]:
        assert attack["cases"] == sum(attack["outcomes"].values()) > 0
        assert attack["acknowledged"] > 0
        assert attack["slowest_wall_ms"] > 0
        assert attack["peak_mib"] > 0
        assert 0 <= attack["grown_mib"] < attack["ceiling_mib"]
        assert attack["panics"] == {"panicked": 0}
        assert attack["broken"] == []
    rows = [line for line in running.output.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(_SOME)
    assert len({row.count("|") for row in rows}) == 1


def test_a_broker_that_is_killed_during_an_attack_ends_it_with_a_sentence_and_exit_code_1() -> None:
    with _attack("--seconds", "60", "half-frames") as running:
        broker = until(lambda: _broker_of(running.pid), "the attack has a broker")
        until(lambda: _has_a_neighbour(running.pid), "the attack goes on")
        os.kill(broker, signal.SIGKILL)
        assert running.wait(_ENDS_S) == 1
    assert "the broker died" in running.output


@pytest.mark.root
@pytest.mark.parametrize(
    ("disk_mib", "seconds", "kept"), [(512, 1, True), pytest.param(4, 60, False, marks=pytest.mark.long)]
)
def test_an_attack_ends_with_a_sentence_only_where_it_takes_more_of_the_disk_than_is_left(
    tmp_path: Path, disk_mib: int, seconds: int, kept: bool
) -> None:
    words = ("--seconds", str(seconds), "--seed", "7", "batches")
    with small_disk(tmp_path / "disk", disk_mib * MIB) as disk, _attack(*words, folder=disk) as running:
        assert running.wait(_ENDS_S) == (0 if kept else 1), running.output + running.errors
    assert ("the attack was ended: its broker's files take" in running.output) is not kept


def _has_a_neighbour(runner: int) -> bool:
    """Whether the honest client beside the attack was started."""
    pids = [pid for file in Path(f"/proc/{runner}/task").glob("*/children") for pid in _read(file).split()]
    return any("tests.hostile.neighbour" in _read(Path(f"/proc/{pid}/cmdline")) for pid in pids)


def _read(file: Path) -> str:
    """What a file of /proc says; nothing when its thread or process has ended meanwhile."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return file.read_text()
    return ""
