"""Every fuzz target of the Rust tests for a given time, with new seeds until it is over.

    python -m tests.hostile.fuzz [--seconds 3600] [--jobs 1] [--json FILE] [--list] [NAME ...]

A target is a proptest test whose path has one of `PATTERNS` in it; one that a macro makes for every API is one target. It runs in
rounds, each a process of the compiled tests with a seed of its own and as many cases as take some seconds. One line for each
target as it ends, and at the end a table in Markdown. A round that fails ends its target: its seed and what it printed are kept
below the build products, in ``fuzz/``, and proptest adds the case to ``proptest-regressions`` for the next `make test`. The exit code
is then 1.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from tests.harness.report import bars, markdown
from tests.harness.waiting import during, pause
from tests.hostile.floods import MIB, peak_of
from tests.test_tidy import block_end, code_of

PATTERNS = ("fuzz", "random", "mutated", "any_damage")
_ROOT = Path(__file__).parent.parent.parent
_WORKSPACE = _ROOT / "broker_native"
_BUILD = ("cargo", "test", "--manifest-path", str(_WORKSPACE / "Cargo.toml"), "--locked", "--release", "--no-run")
_PROPTEST = re.compile(r"\bproptest!\s*(?=\{)")
_TEST = re.compile(r"\bfn (\w+)\s*\(")
_FIXED = re.compile(r"\bwith_cases\((\d+)\)")
_FIRST_CASES = 64
#: How long a round is to take, and after how long it hangs.
_ROUND_S = 20.0
_HANGS_S = 900.0
_LOOK_S = 0.05
_HEADINGS = ("target", "tests", "seconds", "cases", "rounds", "peak MiB", "failures")


@dataclass
class Target:
    """One function of the Rust tests: the tests that it is in `program`, and what was seen of it.

    Attributes
    ----------
    fixed : int or None
        How many cases a test has, where its source says so; else PROPTEST_CASES decides.
    failure : str
        What failed and where it is kept; empty when nothing did.
    """

    name: str
    program: Path
    fixed: int | None
    tests: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cases: int = 0
    rounds: int = 0
    peak_mib: float = 0.0
    failure: str = ""

    def line(self) -> str:
        """What is said of it when it ends."""
        return (
            f"{self.name}: {self.seconds:,.0f} s, {self.cases:,} cases in {self.rounds:,} rounds, "
            f"peak {self.peak_mib:,.0f} MiB, {self.failure or 'no panic, no failure'}"
        )

    def row(self) -> tuple[str, ...]:
        """The same for the table."""
        figures = (len(self.tests), self.seconds, self.cases, self.rounds, self.peak_mib)
        return (self.name, *(f"{figure:,.0f}" for figure in figures), self.failure or "0")


def properties() -> dict[str, int | None]:
    """Every function in a ``proptest!`` of the Rust sources, and its fixed number of cases if it has one."""
    found: dict[str, int | None] = {}
    for file in (file for folder in ("src", "tests") for file in _WORKSPACE.glob(f"*/{folder}/**/*.rs")):
        code = code_of(file.read_text())
        for block in _PROPTEST.finditer(code):
            text = code[block.end() : block_end(code, block.end())]
            fixed = _FIXED.search(text)
            found.update(dict.fromkeys(_TEST.findall(text), int(fixed[1]) if fixed else None))
    return found


def programs() -> Iterator[Path]:
    """The compiled tests, compiled first where they are not."""
    built = subprocess.run([*_BUILD, "--message-format", "json"], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise click.ClickException("The Rust tests do not compile: see above.")
    for line in built.stdout.splitlines():
        message: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message["profile"]["test"]:
            yield Path(message["executable"])


def targets() -> dict[str, Target]:
    """All targets by their names."""
    known, found = properties(), {}
    for program in programs():
        listed = subprocess.run([program, "--list", "--format", "terse"], stdout=subprocess.PIPE, text=True, check=True)
        for test in re.findall(r"^(.+): test$", listed.stdout, re.MULTILINE):
            name = test.rpartition("::")[2]
            if name in known and any(pattern in test for pattern in PATTERNS):
                found.setdefault(name, Target(name, program, known[name])).tests.append(test)
    return found


@dataclass
class Run:
    """How long each target runs, with how many threads, where failures are kept, what is shown; and whether all is to end now."""

    seconds: float
    threads: int
    kept: Path
    progress: Progress
    ended: threading.Event = field(default_factory=threading.Event)


def fuzz(target: Target, run: Run) -> None:
    """Run rounds of a target until its time is over or one fails."""
    began, seconds = time.monotonic(), run.seconds
    task = run.progress.add_task(target.name, total=seconds)
    cases = target.fixed or _FIRST_CASES
    # At least one round, however short the time.
    for _ in during(seconds):
        if target.failure:
            break
        round_began = time.monotonic()
        if not _round(target, cases, random.SystemRandom().randrange(2**63), run):
            return
        now = time.monotonic()
        target.rounds += 1
        target.cases += cases * len(target.tests)
        target.seconds = now - began
        if target.fixed is None:
            # Not many times more than before: the first cases are not like all.
            wanted = min(_ROUND_S, max(1.0, seconds - target.seconds)) / max(now - round_began, 0.01)
            cases = max(1, int(cases * min(wanted, 8.0)))
        run.progress.update(task, completed=target.seconds, description=f"{target.name}: {target.cases:,} cases")
    run.progress.remove_task(task)


def _round(target: Target, cases: int, seed: int, run: Run) -> bool:
    """One process; its peak and its failure are noted in the target. False when it was ended because all is to end."""
    environment = {**os.environ, "PROPTEST_CASES": str(cases), "PROPTEST_RNG_SEED": str(seed)}
    command = [str(target.program), "--exact", f"--test-threads={run.threads}", *target.tests]
    printed = run.kept / f"{target.name}-{seed}.txt"
    # Where proptest looks for the sources, as under cargo.
    with (
        open(printed, "wb") as output,
        subprocess.Popen(
            command, cwd=_WORKSPACE, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ) as running,
    ):
        try:
            for _ in during(_HANGS_S):
                if running.poll() is not None or pause(run.ended, _LOOK_S):
                    break
                target.peak_mib = max(target.peak_mib, peak_of(running.pid) / MIB)
            hangs = running.poll() is None
        finally:
            running.kill()
    if run.ended.is_set() or (not hangs and running.returncode == 0):
        printed.unlink()
        return not run.ended.is_set()
    what = f"hangs for {_HANGS_S:g} s" if hangs else f"fails with exit code {running.returncode}"
    again = f"PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases}"
    target.failure = f"{what} with {again}, see {_shown(printed)}"
    return True


def _shown(path: Path) -> str:
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else str(path)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--seconds", default=3_600.0, show_default=True, help="How long each target runs.")
@click.option("--jobs", default=1, show_default=True, help="How many targets run at once.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures here, too, after each target.")
@click.option("--list", "only_list", is_flag=True, help="Only say which targets there are.")
def main(names: tuple[str, ...], seconds: float, jobs: int, file: Path | None, only_list: bool) -> None:
    """Fuzz. NAMES are parts of targets' names; without them all run."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that rounds end too
    wanted = [target for target in targets().values() if not names or any(name in target.name for name in names)]
    if not wanted:
        raise click.BadParameter(f"No target has {' or '.join(names)} in its name: --list shows all.")
    if only_list:
        print("\n".join(f"{target.name} ({len(target.tests)} tests)" for target in wanted))
        return
    kept = Path(os.environ.get("CARGO_TARGET_DIR") or _WORKSPACE / "target") / "fuzz"
    kept.mkdir(parents=True, exist_ok=True)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with bars() as progress, ThreadPoolExecutor(jobs) as pool:
        run = Run(seconds, threads, kept, progress)

        def one_after_the_other(target: Target) -> None:
            fuzz(target, run)
            print(target.line(), flush=True)
            if file is not None:
                done = [{**asdict(target), "program": target.program.name} for target in wanted if target.rounds]
                file.write_text(json.dumps({"seconds": seconds, "targets": done}, indent=1) + "\n")

        try:
            list(pool.map(one_after_the_other, wanted))
        except BaseException:
            run.ended.set()
            pool.shutdown(cancel_futures=True)
            raise
    print(f"\n{markdown(_HEADINGS, (target.row() for target in wanted))}")
    sys.exit(1 if any(target.failure for target in wanted) else 0)


if __name__ == "__main__":
    main(prog_name="python -m tests.hostile.fuzz")
