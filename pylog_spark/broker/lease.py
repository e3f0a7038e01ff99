"""The thread that extends the native server's lease to lead. It is not the control loop, which may be busy.

The lease lasts until the moment at which an answered request was SENT, plus the session's time-out, less a margin: until
then ZooKeeper surely keeps the session, so nobody else was elected. It is passed on as a moment of the lease's own clock, never as a
duration: a broker that is paused in between would lead for longer than its session lives. Requests count only in the
session under which this broker is registered.
"""

import contextvars
import logging
import threading
import time
from typing import Protocol

from pylog_spark.cluster.store import Session, StoreError

log = logging.getLogger("pylog.broker.cluster")

# Requests in one time-out of the session, and what is left of it for clocks that do not run alike.
_RENEWALS = 6
_MARGIN = 0.05


class NativeLease(Protocol):
    """What the lease needs of `NativeBroker`."""

    def lease_clock_ms(self) -> int: ...
    def lease_until(self, clock_ms: int) -> None: ...


class Renewing(Protocol):
    """What the lease needs of the store."""

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
        """Lead from now on while `session` lives. Returns when the first renewal is through, or failed."""
        self._session = session
        self.renew_once()
        self._look.set()

    def revoke(self) -> None:
        """Stop leading at once."""
        self._session = None
        self._native.lease_until(0)

    def stop(self) -> None:
        """End the thread; the lease runs out by itself."""
        self._session = None
        self._stopped = True
        self._look.set()

    def renew_once(self) -> None:
        """Ask the store whether the session lives, and extend the lease by what it answers."""
        granted = self._session
        try:
            session = self._store.renew()
        except StoreError:
            return
        # In this order: a pause between the two readings makes the lease shorter.
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
                    # Without renewals the lease runs out: safe, but the reason should be known.
                    log.exception("The lease to lead was not renewed.")
