"""Which source of tokens a client's settings name. Thread-safe.

A token is kept in the process while it is good, for all clients with the same settings: Spark's tasks make many. It is replaced by the
first login after ``sasl.login.refresh.window.factor`` of its life, or ``sasl.login.refresh.buffer.seconds`` before its end if that is
earlier; when there is no new one, it is used until it ends.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import Token, of_file, of_function, unsecured
from pylog_spark.login.oidc import of_server

#: Sources whose tokens are kept; the one that was used longest ago is forgotten.
SOURCES_MAX = 16

log = logging.getLogger("pylog.login")

_sources: OrderedDict[tuple[tuple[str, str], ...], Source] = OrderedDict()
_lock = threading.Lock()


class Source:
    """Gives the tokens of one client's settings.

    Parameters
    ----------
    settings : mapping of str to str
        By Kafka's names, as the native client gives them.
    get : callable
        Gets a new token.
    now_s : callable
        Seconds since 1970.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        get: Callable[[], Token] | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._get = get or (lambda: _new(settings))
        self._factor = float(settings.get("sasl.login.refresh.window.factor", "0.8"))
        self._buffer_s = float(settings.get("sasl.login.refresh.buffer.seconds", "300"))
        self._now_s = now_s
        self._lock = threading.Lock()
        self._kept: Token | None = None
        self._due_s = 0.0

    def token(self) -> Token:
        """Give a token that is good now. Raises `TokenError`."""
        with self._lock:
            now = self._now_s()
            if self._kept is not None and now < self._due_s:
                return self._kept
            try:
                token = self._get()
            except TokenError as error:
                if self._kept is not None and now < (self._kept.ends_s or 0):
                    log.warning("%s; the token before it is used.", error.sentence)
                    return self._kept
                raise
            self._keep(token, now)
            return token

    def _keep(self, token: Token, now: float) -> None:
        if token.ends_s is None:
            self._kept = None
            return
        life = token.ends_s - now
        if life <= 0:
            raise TokenError("The token that was got has ended already; are the clocks right?", retriable=True)
        early = token.ends_s - self._buffer_s
        due = now + life * self._factor
        self._kept, self._due_s = token, min(due, early) if early > now else due


def token(settings: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """Give a token and what is sent with it, for the native client. Raises `TokenError`."""
    key = tuple(sorted(settings.items()))
    with _lock:
        source = _sources.get(key)
        if source is None:
            source = _sources[key] = Source(dict(settings))
        _sources.move_to_end(key)
        while len(_sources) > SOURCES_MAX:
            _sources.popitem(last=False)
    found = source.token()
    return found.value, list(found.extensions.items())


def _new(settings: Mapping[str, str]) -> Token:
    provider = settings.get("sasl.oauthbearer.token.provider")
    if provider:
        return of_function(provider, settings.get("sasl.oauthbearer.token.provider.config", ""))
    url = settings.get("sasl.oauthbearer.token.endpoint.url", "")
    if url.startswith("file:"):
        return of_file(url)
    return of_server(settings) if url else unsecured(settings)


def _forget() -> None:
    """In a forked child: another thread of the parent may have held a lock."""
    global _lock
    _lock = threading.Lock()
    _sources.clear()


os.register_at_fork(after_in_child=_forget)
