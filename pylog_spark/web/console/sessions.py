"""The clients of the brokers by which the page's requests are carried out: one for each user who has a login, or one for all.

What a user may see and change is decided by the brokers, since it is the user's own login that they are asked with. A session ends
`IDLE_S` seconds after its last request, and `AGE_S` after its login was tried; there are `SESSIONS_MAX` at most, of which the one ends that
was not used for longest. Its password is in the client that needs it to log in again, and nowhere else. Thread-safe.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.results.topics import ListedTopic, TopicDescription
from pylog_spark.web.access import LOGINS_MAX, credentials, unauthorized
from pylog_spark.web.console.refusals import ConsoleRefusal, of_error

SESSIONS_MAX = 64
IDLE_S = 300.0
AGE_S = 900.0
#: An answer about all topics that took so long to get is given again for so many times as long, and for so many seconds at most.
TOPICS_SLOW_S, TOPICS_REST, TOPICS_KEPT_S = 0.05, 10.0, 5.0
_NUMBERS = re.compile(r"0*(\d+)")
# A request of the page waits for the brokers for so long.
_TIMEOUT_MS = "10000"
_BOUNDS = {
    "client.id": "pylog-console",
    "default.api.timeout.ms": _TIMEOUT_MS,
    "request.timeout.ms": _TIMEOUT_MS,
    "socket.connection.setup.timeout.ms": "5000",
}
# What tells brokers who somebody is; nobody else comes in with the server's own.
_OWN_CERTIFICATE = ("ssl.keystore.", "ssl.key.", "ssl.certificate.")


_Topics = TypeVar("_Topics")


class _Kept(Generic[_Topics]):
    """What is asked about all topics; an answer that took long is given again for a while. Thread-safe: who comes together asks once."""

    def __init__(self, ask: Callable[[], list[_Topics]]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._answer: list[_Topics] = []
        self._until = 0.0

    def now(self) -> list[_Topics]:
        """The answer."""
        with self._lock:
            began = time.monotonic()
            if began >= self._until:
                self._answer = self._ask()
                now = time.monotonic()
                took = now - began
                self._until = now + min(took * TOPICS_REST, TOPICS_KEPT_S) if took > TOPICS_SLOW_S else 0.0
            return self._answer

    def forget(self) -> None:
        """The next answer is a new one."""
        with self._lock:
            self._until = 0.0


class Session:
    """A user's client. Thread-safe.

    Attributes
    ----------
    user : str or None
        Who it is; None where brokers ask for no login.
    settings : dict of str to str
        What a reader or a writer of this user needs; with the password.
    admin : Admin
        For everything else.
    """

    def __init__(self, user: str | None, settings: Mapping[str, str]) -> None:
        self.user, self.settings = user, {**settings, **_BOUNDS}
        self.admin = Admin(settings["bootstrap.servers"], self.settings)
        self.born = self.used = time.monotonic()
        self.holders, self.is_over = 0, False
        self._topics, self._described = _Kept(self._list), _Kept(self._describe)

    def topics(self) -> list[ListedTopic]:
        """All topics that the user may see, by name, numbers in names by their values; of a large cluster as they were up to
        `TOPICS_KEPT_S` ago. Raises `LogError`."""
        return self._topics.now()

    def described(self) -> list[TopicDescription]:
        """As `topics`, in no order, with all of their partitions, which takes several times as long. Raises `LogError`."""
        return self._described.now()

    def forget(self) -> None:
        """A change was made: what was asked before does not count."""
        self._topics.forget()
        self._described.forget()

    def _list(self) -> list[ListedTopic]:
        listed = (each for each in self.admin.list_topics() if not each.error)
        return sorted(listed, key=lambda topic: (_natural(topic.name), topic.name))

    def _describe(self) -> list[TopicDescription]:
        return [each for each in self.admin.topics() if not each.error]

    def end(self) -> None:
        """Close the connections, and forget the password."""
        self.admin.close()
        self.settings = {}


class Sessions:
    """All sessions of a page.

    Parameters
    ----------
    client : mapping of str to str
        Settings of a client of the brokers; with `asks` a user's login takes the place of the one there.
    asks : bool
        Whether users log in.
    """

    def __init__(self, client: Mapping[str, str], asks: bool) -> None:
        left_out = ("sasl.jaas.config", "sasl.username", "sasl.password") if asks else _OWN_CERTIFICATE
        self._client = {name: text for name, text in client.items() if not name.startswith(left_out)}
        self._asks = asks
        self._secret = os.urandom(32)
        self._open: OrderedDict[bytes, Session] = OrderedDict()
        self._lock = threading.Lock()
        self._logins = threading.BoundedSemaphore(LOGINS_MAX)

    @contextmanager
    def of(self, authorization: str | None) -> Iterator[Session]:
        """Give the session of a header's user, who logs in unless there is one. Raises `Refusal`."""
        session = self._held(authorization)
        try:
            yield session
        finally:
            with self._lock:
                session.holders -= 1
                session.used = time.monotonic()
                is_last = session.is_over and not session.holders
            if is_last:
                session.end()

    def sweep(self) -> None:
        """End sessions whose time is over."""
        now = time.monotonic()
        with self._lock:
            old = [key for key, each in self._open.items() if now - each.used > IDLE_S or now - each.born > AGE_S]
            ended = [self._take(key) for key in old]
        _end(ended)

    def close(self) -> None:
        """End all of them, those that are in use when they no longer are."""
        with self._lock:
            ended = [self._take(key) for key in list(self._open)]
        _end(ended)

    def _held(self, authorization: str | None) -> Session:
        self.sweep()
        user, password = credentials(authorization) if self._asks else (None, "")
        # The password itself is no key: it would be kept here.
        key = hmac.digest(self._secret, json.dumps([user, password]).encode(), hashlib.sha256)
        found = self._known(key)
        if found is not None:
            return found
        with self._logins:
            # Of requests that came together the first one has logged in for all.
            return self._known(key) or self._begun(key, user, password)

    def _known(self, key: bytes) -> Session | None:
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
                found.holders += 1
                found.used = time.monotonic()
            return found

    def _begun(self, key: bytes, user: str | None, password: str) -> Session:
        login = {} if user is None else {"sasl.username": user, "sasl.password": password}
        ended: list[Session] = []
        try:
            session = Session(user, {**self._client, **login})
        except LogError as error:
            raise of_error(error) from error
        try:
            session.admin.cluster()
        except LogError as error:
            session.end()
            if "AUTHENTICATION" in error.kind:
                raise unauthorized("The broker does not know this user, or the password is another one.") from None
            raise ConsoleRefusal(503, error.kind, f"The broker cannot be asked now: {error}") from error
        session.holders = 1
        with self._lock:
            if key in self._open:
                ended.append(self._take(key))
            self._open[key] = session
            while len(self._open) > SESSIONS_MAX:
                ended.append(self._take(next(iter(self._open))))
        _end(ended)
        return session

    def _take(self, key: bytes) -> Session:
        session = self._open.pop(key)
        session.is_over = True
        return session


def _natural(name: str) -> str:
    """By what names are ordered: a-9 before a-10, as in the page's other lists."""
    # A number is compared by its length first, so that it is never made one; its mark is lower than what names consist of.
    return _NUMBERS.sub(_marked, name.lower())


def _marked(number: re.Match[str]) -> str:
    digits = number[1]
    return f"\0{chr(len(digits))}{digits}"


def _end(sessions: list[Session]) -> None:
    for each in sessions:
        if not each.holders:
            each.end()
