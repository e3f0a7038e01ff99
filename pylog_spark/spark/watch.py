"""A display of a running streaming query: in Jupyter, in a terminal, or a line for each batch. pyspark is not imported here.

It looks at what Spark says of the query (`lastProgress`) and nothing else, so it works in Spark classic and over Spark Connect, for queries of any
source; lag is known of pylog's and of Spark's Kafka connector's. One thread.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pylog_spark.listener.progress import BatchProgress
from pylog_spark.spark.query_view import RATES_MAX, QueryView

#: Most characters of the reason why a query failed.
_REASON_MAX = 500
_SENTENCE = re.compile(r"\[PYLOG_[A-Z_]+\] [^\n]+")


class RunningQuery(Protocol):
    """What is asked of a query, as pyspark's `StreamingQuery` has it."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        """What Spark says of the last batch."""

    def exception(self) -> Any:
        """Why it failed."""


def watch(query: RunningQuery, *, every_s: float = 1.0, timeout_s: float | None = None) -> None:
    """Show a running query until it ends: rows a second, lag by topic, where the time of a batch goes.

    In Jupyter the output of the cell is replaced at each look, in a terminal the lines; elsewhere each batch is a line. Ctrl-C, or Jupyter's
    interrupt, ends the display, not the query and not its jobs. A query that fails is shown so; nothing is raised.

    Parameters
    ----------
    query : pyspark.sql.streaming.StreamingQuery
        What ``start()`` has returned, or one of ``spark.streams.active``.
    every_s : float
        Seconds between two looks.
    timeout_s : float, optional
        The display ends after so many seconds; when not given, with the query.

    Examples
    --------
    >>> query = spark.readStream.format("pylog").load().writeStream.start()  # doctest: +SKIP
    >>> pylog_spark.watch(query)  # doctest: +SKIP
    """
    until = None if timeout_s is None else time.monotonic() + timeout_s
    rates: deque[float] = deque(maxlen=RATES_MAX)
    pause, last_id = threading.Event(), -1
    with _interruptible(), _display() as show:
        try:
            while True:
                view = _look(query)
                if view.batch is not None and view.batch.batch_id != last_id:
                    last_id = view.batch.batch_id
                    rates.append(view.batch.processed_rate or 0.0)
                show(QueryView(view.name, view.state, view.is_active, view.batch, tuple(rates)))
                left = every_s if until is None else min(every_s, until - time.monotonic())
                if not view.is_active or left <= 0:
                    return
                pause.wait(left)
        except KeyboardInterrupt:
            return


def _look(query: RunningQuery) -> QueryView:
    # First, so that the last batch of a query that ends meanwhile is seen.
    is_active = query.isActive
    progress = query.lastProgress
    text = None if progress is None else getattr(progress, "json", None) or json.dumps(progress)
    batch = None if text is None else BatchProgress.of_json(text)
    state = "running"
    if not is_active:
        failure = query.exception()
        state = "stopped" if failure is None else f"failed: {_reason(str(failure))}"
    return QueryView(str(query.name or query.id), state, is_active, batch)


def _reason(text: str) -> str:
    """Pylog's own sentence in what Spark says of a failure, else the first line of that."""
    ours = _SENTENCE.search(text)
    reason = text.strip() if ours is None else ours[0]
    return reason.partition("\n")[0][:_REASON_MAX]


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt this thread alone: Spark's own handler would cancel the query's jobs, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _display() -> Iterator[Callable[[QueryView], None]]:
    """What shows views, one in the place of the other where that can be."""
    if _is_notebook():
        yield _in_notebook()
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(), auto_refresh=False, vertical_overflow="visible") as live:
            yield lambda view: live.update(view, refresh=True)
    else:
        yield _in_lines()


def _is_notebook() -> bool:
    """Whether the shell around shows HTML: Jupyter's, Colab's and so on do, IPython's in a terminal does not."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and type(shell).__name__ != "TerminalInteractiveShell"


def _in_notebook() -> Callable[[QueryView], None]:
    from IPython.display import display

    handle: Any = None

    def show(view: QueryView) -> None:
        nonlocal handle
        if handle is None:
            handle = display(view, display_id=True)
        else:
            handle.update(view)

    return show


def _in_lines() -> Callable[[QueryView], None]:
    before = ""

    def show(view: QueryView) -> None:
        nonlocal before
        if (line := str(view)) != before:
            before = line
            print(line, flush=True)

    return show
