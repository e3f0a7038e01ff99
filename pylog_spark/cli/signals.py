"""Waiting for SIGTERM or Ctrl-C in the main thread."""

import contextlib
import os
import select
import signal
from types import FrameType, TracebackType


class StopSignal:
    """From here on SIGTERM and SIGINT are only remembered; `wait` returns when one came.

    A byte in a pipe, written by the interpreter's own handler, says so. Waiting for a `threading.Event` instead can last for
    ever: a signal that is delivered just before the wait begins, or to another thread, does not interrupt it.
    """

    def __init__(self) -> None:
        self._came, come = os.pipe()
        os.set_blocking(come, False)
        self._before = {number: signal.signal(number, _nothing) for number in (signal.SIGTERM, signal.SIGINT)}
        self._descriptor_before = signal.set_wakeup_fd(come, warn_on_full_buffer=False)
        self._come = come

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether one came, within `timeout_s`."""
        return bool(select.select([self._came], [], [], timeout_s)[0])

    def come(self) -> None:
        """As if a signal had come; from any thread."""
        # A pipe that is full says it already.
        with contextlib.suppress(BlockingIOError):
            os.write(self._come, b"\0")

    def __enter__(self) -> "StopSignal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._descriptor_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._came)
        os.close(self._come)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """The byte in the pipe is what counts."""
