"""What the story shows: a line for each step, with its progress while it runs, and what Spark says when something goes wrong."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

_WIDTH = 56
_STARTED, _FAILED = b"\0started\n", b"\0failed\n"


class Step:
    """A step that runs. What it has found out goes into `outcome`."""

    def __init__(self, progress: Progress | None, text: str) -> None:
        self.outcome = ""
        self._progress = progress
        self._task = None if progress is None else progress.add_task(text, total=None)

    def reached(self, done: int, of: int) -> None:
        """Show how far it is; nothing where the output is no terminal."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=of)


@contextmanager
def step(text: str) -> Iterator[Step]:
    """Show a step: on a terminal its progress, and in the end one line: what was done, in how many seconds, and what came out."""
    console = Console()
    started = time.perf_counter()
    if console.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            running = Step(progress, text)
            yield running
        print(f"{text:<{_WIDTH}}", end="")
    else:
        print(f"{text:<{_WIDTH}}", end="", flush=True)
        running = Step(None, text)
        yield running
    print(f"{time.perf_counter() - started:6.1f} s  {running.outcome}".rstrip(), flush=True)


@contextmanager
def quiet_start() -> Iterator[None]:
    """Keep back what Spark prints while it starts, which is about a dozen lines on every machine; show it when the start fails.

    Spark's Java process, and all that it starts, keep the standard error that they find. So they get a pipe, and a thread that passes
    on what comes through it: whatever is printed after the start is shown as it comes.
    """
    read_end, write_end = os.pipe()
    terminal = os.dup(2)
    ended = threading.Event()
    threading.Thread(target=_pass_on, args=(read_end, ended), daemon=True).start()
    os.dup2(write_end, 2)
    result = _FAILED
    try:
        yield
        result = _STARTED
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.write(write_end, result)
        os.close(write_end)
        ended.wait()


def _pass_on(read_end: int, ended: threading.Event) -> None:
    kept: list[bytes] = []
    with open(read_end, "rb") as lines:
        for line in lines:
            if line in (_STARTED, _FAILED):
                _show(b"".join(kept) if line == _FAILED else b"")
                ended.set()
            elif ended.is_set():
                _show(line)
            else:
                kept.append(line)


def _show(text: bytes) -> None:
    # By Python's own stream, which a progress display on the terminal moves out of its way.
    sys.stderr.write(text.decode(errors="replace"))
    sys.stderr.flush()


def show_what_next() -> None:
    """Say where a newcomer goes from here."""
    commands, here = Path(sys.executable).parent, Path.cwd()
    commands = commands.relative_to(here) if commands.is_relative_to(here) else commands
    print(
        "\nWhat to try next:\n"
        f"  the ten lines of Spark in README.md      run them with {commands / 'python'}\n"
        f"  a broker of its own, for any client      {commands / 'pylog'} broker --data-dir ./data\n"
        "  docs/spark.md, docs/migration.md         reading, writing and streaming; coming from Spark's Kafka connector\n"
        "  examples/flights/story.py                the program that has just run; --keep DIR leaves its data to look at"
    )
