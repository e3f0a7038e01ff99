"""Waiting for SIGTERM or Ctrl-C in the main thread."""

import contextlib
import os
import select
import signal
from types import FrameType, TracebackType


class StopSignal:
    """Catches SIGTERM and SIGINT from its creation on; `wait` returns when one has arrived.

    The interpreter's own handler writes a byte into a pipe. Waiting for a `threading.Event` instead could last for
    ever: a signal that is delivered just before the wait begins, or to another thread, does not interrupt it.
    """

    def __init__(self) -> None:
        self._came, come = os.pipe()
        os.set_blocking(come, False)
        self._before = {number: signal.signal(number, _nothing) for number in (signal.SIGTERM, signal.SIGINT)}
        self._descriptor_before = signal.set_wakeup_fd(come, warn_on_full_buffer=False)
        self._come = come

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait up to `timeout_s` seconds, or without a limit. Returns whether a signal has arrived."""
        return bool(select.select([self._came], [], [], timeout_s)[0])

    def come(self) -> None:
        """Behave as if a signal had arrived. May be called from any thread."""
        # A full pipe wakes the waiting thread already.
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
    """Do nothing: the byte in the pipe wakes the waiting thread."""
