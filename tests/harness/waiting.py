"""The one way in which tests wait: ask until it is so, and say what did not happen.

Nothing here sleeps for a guess; the pause between two questions is only for the processor's sake.
"""

import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE_S = 60.0
_PAUSE_S = 0.02

Found = TypeVar("Found")


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
