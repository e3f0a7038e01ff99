"""The thread that extends the native server's lease to lead. It is not the control loop, which may be busy.

The lease lasts until the time at which an answered request was SENT, plus the session's time-out, less a margin: until
then ZooKeeper surely keeps the session, so no other broker was elected. It is passed on as a time of the lease's own clock, never as a
duration, because a broker that is paused in between would lead for longer than its session lives. Requests count only in the
session in which this broker is registered.
"""

import contextvars
import logging
import threading
import time
from typing import Protocol

from pylog_spark.cluster.store import Session, StoreError

log = logging.getLogger("pylog.broker.cluster")

# Requests in one time-out of the session, and the fraction of it that is kept as a margin for clocks that run at different speeds.
_RENEWALS = 6
_MARGIN = 0.05


class NativeLease(Protocol):
    """The methods of `NativeBroker` that the lease calls."""

    def lease_clock_ms(self) -> int: ...
    def lease_until(self, clock_ms: int) -> None: ...


class Renewing(Protocol):
    """The method of the store that the lease calls."""

    def renew(self) -> Session: ...


class Lease:
    """The right to lead while the session lives. `grant` it after registering; `revoke` it when the session is gone."""

    def __init__(self, store: Renewing, native: NativeLease, session_timeout_s: float) -> None:
        self._store = store
        self._native = native
        self._timeout_s = session_timeout_s
        self._session: int | None = None
        self._look = threading.Event()
        self._stopped = False
        work = contextvars.copy_context().run
        self._thread = threading.Thread(target=work, args=(self._run,), name="pylog-lease", daemon=True)
        self._thread.start()

    def grant(self, session: int) -> None:
        """Let this broker lead from now on while `session` lives. Returns when the first renewal has succeeded or failed."""
        self._session = session
        self.renew_once()
        self._look.set()

    def revoke(self) -> None:
        """Stop leading at once."""
        self._session = None
        self._native.lease_until(0)

    def stop(self) -> None:
        """End the thread; the lease ends by itself."""
        self._session = None
        self._stopped = True
        self._look.set()

    def renew_once(self) -> None:
        """Ask the store whether the session lives, and extend the lease accordingly."""
        granted = self._session
        try:
            session = self._store.renew()
        except StoreError:
            return
        # Read the clocks in this order: a pause between the two readings makes the lease shorter, not longer.
        clock_ms, now = self._native.lease_clock_ms(), time.monotonic()
        left_s = session.until - self._timeout_s * _MARGIN - now
        if session.number == granted == self._session and left_s > 0:
            self._native.lease_until(clock_ms + int(left_s * 1000))

    def _run(self) -> None:
        while not self._stopped:
            self._look.wait(self._timeout_s / _RENEWALS)
            self._look.clear()
            if self._session is not None:
                try:
                    self.renew_once()
                except Exception:
                    # Without renewals the lease ends: safe, but the reason should be logged.
                    log.exception("The lease to lead was not renewed.")
