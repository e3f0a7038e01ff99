"""Which source of tokens a client's settings name. Thread-safe.

A token is kept in the process while it is good, for all clients with the same settings, their time-outs aside: Spark's tasks make many.
It is replaced by the first login after ``sasl.login.refresh.window.factor`` of its life, or ``sasl.login.refresh.buffer.seconds`` before
its end if that is earlier; when there is no new one, it is used until it ends.

One thread of a process asks a source at a time. The others use the token before while that is good, and else wait and share the outcome,
also when it is a failure; who comes soon after a failure is told the same at once. A file is read at each login all the same.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from pylog_spark.login.endpoint import SETTING
from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import Token, of_file, of_function, unsecured
from pylog_spark.login.oidc import HURRIED_S, of_server

#: Sources whose tokens are kept; the one that was used longest ago is forgotten.
SOURCES_MAX = 16
#: How long a token is kept at most, whatever end it names.
KEPT_MAX_S = 86_400.0
#: How long a failure is told to whoever asks next, before the source is asked again.
FAILURE_KEPT_S = 5.0
#: The same while the token before it is still good.
REFRESH_AGAIN_S = 30.0

#: Settings that say how long somebody waits, and not for which token.
_PATIENCE = frozenset(
    f"sasl.login.{name}.ms" for name in ("connect.timeout", "read.timeout", "retry.backoff", "retry.backoff.max")
)

log = logging.getLogger("pylog_spark.login")

#: Gets a new token; it is told whether there is one that is still good, so that nobody should wait for long.
Get = Callable[[bool], Token]

_sources: OrderedDict[tuple[tuple[str, str], ...], Source] = OrderedDict()
_lock = threading.Lock()


class _Asking:
    """A token that is being got, for the threads that wait for it. What came of it is read when it is over; neither a token nor an
    error when whoever asked was interrupted."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.token: Token | None = None
        self.error: TokenError | None = None


class Source:
    """Gives the tokens of one client's settings.

    Parameters
    ----------
    settings : mapping of str to str
        By Kafka's names, as the native client gives them.
    now_s : callable
        Seconds since 1970.
    """

    def __init__(self, settings: Mapping[str, str], now_s: Callable[[], float] = time.time) -> None:
        self._factor = float(settings.get("sasl.login.refresh.window.factor", "0.8"))
        self._buffer_s = float(settings.get("sasl.login.refresh.buffer.seconds", "300"))
        self._failure_kept_s = 0.0 if settings.get(SETTING, "").startswith("file:") else FAILURE_KEPT_S
        self._now_s = now_s
        self._lock = threading.Lock()
        self._asking: _Asking | None = None
        self._kept: Token | None = None
        self._ends_s = self._due_s = 0.0
        self._failure: TokenError | None = None
        self._failed_s = 0.0

    def token(self, get: Get) -> Token:
        """Give a token that is good now, with `get` if it must be a new one. Raises `TokenError`."""
        while True:
            with self._lock:
                now = self._now_s()
                good = self._kept if now < self._ends_s else None
                if good is not None and now < self._due_s:
                    return good
                others = self._asking
                if others is None:
                    self._raise_if_failed_lately(good, now)
                    mine = self._asking = _Asking()
            if others is None:
                return self._ask(mine, get, good, good is not None and now + HURRIED_S < self._ends_s)
            if good is not None:
                return good
            others.over.wait()
            if others.token is not None:
                return others.token
            if others.error is not None:
                raise _again(others.error)

    def _raise_if_failed_lately(self, good: Token | None, now: float) -> None:
        # The clock may have been set back.
        if good is None and self._failure is not None and 0 <= now - self._failed_s < self._failure_kept_s:
            raise _again(self._failure)

    def _ask(self, asking: _Asking, get: Get, good: Token | None, hurried: bool) -> Token:
        try:
            token = get(hurried)
            with self._lock:
                self._keep(token, self._now_s())
            asking.token = token
            return token
        except TokenError as error:
            with self._lock:
                now = self._now_s()
                self._failure, self._failed_s, self._due_s = error, now, now + REFRESH_AGAIN_S
                ended = now >= self._ends_s
            if good is None or ended:
                asking.error = error
                raise
            log.warning("%s; the token before it is used.", error.sentence)
            asking.token = good
            return good
        finally:
            with self._lock:
                self._asking = None
            asking.over.set()

    def _keep(self, token: Token, now: float) -> None:
        if token.ends_s is None:
            self._kept = None
            return
        ends = min(token.ends_s, now + KEPT_MAX_S)
        life = ends - now
        if life <= 0:
            raise TokenError("The token that was got has ended already; are the clocks right?", retriable=True)
        early = ends - self._buffer_s
        due = now + life * self._factor
        self._kept, self._ends_s, self._due_s = token, ends, min(due, early) if early > now else due


def _again(error: TokenError) -> TokenError:
    """The same error for another thread."""
    return TokenError(error.sentence, retriable=error.retriable)


def token(settings: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """Give a token and what is sent with it, for the native client. Raises `TokenError`."""
    key = tuple(sorted((name, text) for name, text in settings.items() if name not in _PATIENCE))
    with _lock:
        source = _sources.get(key)
        if source is None:
            source = _sources[key] = Source(settings)
        _sources.move_to_end(key)
        while len(_sources) > SOURCES_MAX:
            _sources.popitem(last=False)
    found = source.token(lambda hurried: _new(settings, hurried))
    return found.value, list(found.extensions.items())


def _new(settings: Mapping[str, str], hurried: bool) -> Token:
    provider = settings.get("sasl.oauthbearer.token.provider")
    if provider:
        return of_function(provider, settings.get("sasl.oauthbearer.token.provider.config", ""))
    url = settings.get(SETTING, "")
    if url.startswith("file:"):
        return of_file(url)
    return of_server(settings, hurried=hurried) if url else unsecured(settings)


def _forget() -> None:
    """In a forked child: another thread of the parent may have held a lock."""
    global _lock
    _lock = threading.Lock()
    _sources.clear()


os.register_at_fork(after_in_child=_forget)
