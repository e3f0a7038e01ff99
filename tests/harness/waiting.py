"""The one way in which tests wait, a helper for each kind: ask until it is so, and say what did not happen.

| waits for | helper |
|---|---|
| what becomes so | `until`, and `turns` for what a loop works on; `seconds_until` where the time counts; `happens` where it is tried again when it does not |
| what stays so | `stays`, for so many seconds |
| a line of a log | `said` |
| the end of a process | `ended`; a child that is read while it writes, and its next line: `tests/harness/children.py` |
| a topic that Apache Kafka serves | `tests/harness/kafka.py`, `is_served` |
| nothing: time is part of what is tried | `during`, a load that goes on for so many seconds; `let_pass`, a fault that comes or lasts so long; `pause`, between two steps of a thread that can be ended; `brief`, a look at a socket that may see nothing |

Nothing here sleeps for a guess; the pause between two questions is only for the processor's sake. A deadline is `tests.harness.steadiness.DEADLINE_MIN_S`
or more: `tests/test_steady.py` refuses less, and waits by hand.
"""

import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

DEADLINE_S = 60.0
_PAUSE_S = 0.02

Found = TypeVar("Found")


class Logged(Protocol):
    """A server, or its process."""

    def logs(self) -> str:
        """All that it has written to its log so far."""
        ...


@runtime_checkable
class Captured(Protocol):
    """What pytest's ``caplog`` is."""

    @property
    def text(self) -> str:
        """All that was logged in this process."""
        ...


class Endable(Protocol):
    """An event, or what waits as one does."""

    def wait(self, timeout: float) -> bool:
        """Whether it has come in time."""
        ...


class Ending(Protocol):
    """A process, as `subprocess.Popen` and those who hold one have it."""

    def wait(self, timeout: float) -> int:
        """Its exit code."""
        ...


def until(
    question: Callable[[], Found],
    what: str | Callable[[], str],
    deadline_s: float = DEADLINE_S,
    pause_s: float = _PAUSE_S,
) -> Found:
    """Ask until the answer is true, and give it.

    Parameters
    ----------
    question : callable
        Asked at least once, and once more after the deadline: a process that stood still for long has had no chance to ask.
    what : str or callable
        What was to happen, for the message.
    deadline_s, pause_s : float
        Seconds.

    Raises
    ------
    AssertionError
        When the answer was not true within the deadline.
    """
    give_up = time.monotonic() + deadline_s
    while True:
        late = time.monotonic() > give_up
        if found := question():
            return found
        if late:
            raise AssertionError(f"not within {deadline_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(pause_s)


def turns(
    question: Callable[[], object], what: str | Callable[[], str], deadline_s: float = DEADLINE_S, pause_s: float = 0.0
) -> Iterator[None]:
    """`until` for what the body of a loop works on: give it turn after turn until the answer is true, which is asked before each."""
    give_up = time.monotonic() + deadline_s
    while True:
        late = time.monotonic() > give_up
        if question():
            return
        if late:
            raise AssertionError(f"not within {deadline_s:g} s: {what if isinstance(what, str) else what()}")
        yield
        time.sleep(pause_s)


def happens(question: Callable[[], object], within_s: float) -> bool:
    """Whether it becomes so in time; for what is tried again when it does not."""
    give_up = time.monotonic() + within_s
    while not question():
        if time.monotonic() > give_up:
            return False
        time.sleep(_PAUSE_S)
    return True


def seconds_until(
    question: Callable[[], object], what: str | Callable[[], str], deadline_s: float = DEADLINE_S
) -> float:
    """As `until`, but gives the seconds it took."""
    began = time.monotonic()
    until(question, what, deadline_s)
    return time.monotonic() - began


def stays(
    question: Callable[[], object], what: str | Callable[[], str], for_s: float, pause_s: float = _PAUSE_S
) -> None:
    """Ask again and again for so many seconds, and once more, and raise AssertionError as soon as the answer is not true."""

    def ask() -> None:
        assert question(), f"it did not stay so: {what if isinstance(what, str) else what()}"

    for _ in during(for_s, pause_s):
        ask()
    ask()


def during(seconds: float, pause_s: float = 0.0) -> Iterator[float]:
    """Give the seconds that have passed, again and again, until so many have; at least once."""
    began, passed = time.monotonic(), 0.0
    while True:
        yield passed
        time.sleep(pause_s)
        passed = time.monotonic() - began
        if passed >= seconds:
            return


def let_pass(seconds: float) -> None:
    """Let time pass that is part of what is tried: when a fault comes, how long it lasts, how slow a server is. Nothing is waited for."""
    time.sleep(seconds)


def pause(ended: Endable, seconds: float) -> bool:
    """Let a thread pause between two of its steps, unless it is told to end; whether it is."""
    return ended.wait(seconds)


@contextmanager
def brief(wire: socket.socket, seconds: float) -> Iterator[None]:
    """Let a socket wait no longer than this inside the block, for a look that may well see nothing: that is an answer, too."""
    before = wire.gettimeout()
    wire.settimeout(seconds)
    try:
        yield
    finally:
        # It may be closed.
        if wire.fileno() != -1:
            wire.settimeout(before)


def said(
    log: Logged | Captured | Path,
    line: str | re.Pattern[str],
    times: int = 1,
    *,
    after: int = 0,
    deadline_s: float = DEADLINE_S,
) -> str:
    """Wait until a log has a line, and give what it has: the line may be written after the answer that it is about.

    Parameters
    ----------
    log : Logged, Captured or Path
        A server, ``caplog``, or a file.
    line : str or Pattern
        What stands there.
    times : int
        How often, at least.
    after : int
        Characters at the log's beginning that do not count: what it had before.
    deadline_s : float
        Seconds.
    """

    def text() -> str:
        if isinstance(log, Path):
            return log.read_text(errors="replace")[after:]
        return (log.text if isinstance(log, Captured) else log.logs())[after:]

    def with_line() -> str:
        found = text()
        return found if (found.count(line) if isinstance(line, str) else len(line.findall(found))) >= times else ""

    shown = line if isinstance(line, str) else line.pattern
    return until(with_line, lambda: f"{shown!r} is in the log, {times} times:\n{text()}", deadline_s)


def ended(process: Ending, deadline_s: float = DEADLINE_S) -> int:
    """Wait until a process has ended, and give its exit code."""
    try:
        return process.wait(deadline_s)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"not within {deadline_s:g} s: the end of {error.cmd}") from None
