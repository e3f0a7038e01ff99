"""Who may ask by HTTP, and change something: as the broker says of a topic or of the cluster.

A user and password of HTTP's basic login are tried at the broker itself, by the mechanism of the server's own login; what the broker
lets that user do there is what the server lets it do. So users, passwords and ACLs are those of the brokers, and what changes there counts
here after `KEPT_S` seconds. Thread-safe.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.web.refusal import Refusal

if TYPE_CHECKING:
    from pylog_spark._native import RawConnection

#: How long an answer of the broker is believed, for how many users.
KEPT_S = 10.0
KEPT_MAX = 1_000
#: How many logins are tried at the same time.
LOGINS_MAX = 4
#: Mechanisms that take a user and a password.
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
_TIMEOUT_MS = 10_000
#: The bits of Kafka's operations, by their names in ACLs.
OPERATIONS = {"READ": 1 << 3, "WRITE": 1 << 4, "DESCRIBE": 1 << 8}


@dataclass(frozen=True, slots=True)
class Rights:
    """What the broker is asked about a user.

    Attributes
    ----------
    on : str
        Of what the rights are, for sentences.
    of : callable
        Asks over the user's connection; the bits of the operations that the user has.
    """

    on: str
    of: Callable[[RawConnection], int]


class Access:
    """Asks the broker about users.

    Parameters
    ----------
    client : mapping of str to str
        Settings of the server's own client, with the login that those of a user take the place of.
    rights : Rights
        What it asks.
    """

    def __init__(self, client: Mapping[str, str], rights: Rights) -> None:
        self._client = {name: text for name, text in client.items() if name != "sasl.jaas.config"}
        self._host, _, port = client["bootstrap.servers"].split(",")[0].rpartition(":")
        self._port = int(port)
        self._needed = rights
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._logins = threading.BoundedSemaphore(LOGINS_MAX)

    def check(self, authorization: str | None, operation: str) -> None:
        """Raises `Refusal` unless this header's user has the right to the operation, one of `OPERATIONS`."""
        user, password = credentials(authorization)
        rights = self._rights(user, password)
        if not rights & OPERATIONS[operation]:
            raise Refusal(403, 40301, f"User {user!r} needs the right {operation} on {self._needed.on}.")

    def _rights(self, user: str, password: str) -> int:
        # OpenSSL is loaded where somebody logs in.
        import hashlib
        import hmac

        # The password itself is kept nowhere.
        key = hmac.digest(self._secret, json.dumps([user, password]).encode(), hashlib.sha256)
        with self._lock:
            until, rights = self._known.get(key, (0.0, 0))
            if time.monotonic() < until:
                return rights
        with self._logins:
            rights = self._asked(user, password)
        with self._lock:
            self._known[key] = (time.monotonic() + KEPT_S, rights)
            self._known.move_to_end(key)
            while len(self._known) > KEPT_MAX:
                self._known.popitem(last=False)
        return rights

    def _asked(self, user: str, password: str) -> int:
        from pylog_spark._native import NativeError, RawConnection
        from pylog_spark.client.errors import LogError

        try:
            config = {**self._client, "sasl.username": user, "sasl.password": password}
            connection = RawConnection(self._host.strip("[]"), self._port, _TIMEOUT_MS, config)
            try:
                # Below zero: the broker says nothing of rights.
                return max(0, self._needed.of(connection))
            finally:
                connection.close()
        except NativeError as error:
            if "AUTHENTICATION" in error.args[0]:
                raise unauthorized("The broker does not know this user, or the password is another one.") from None
            raise Refusal(500, 50001, f"The broker cannot be asked about the user now: {error.args[-1]}") from None
        except LogError as error:
            raise Refusal(500, 50001, f"The broker cannot be asked about the user now: {error}") from None


def credentials(authorization: str | None) -> tuple[str, str]:
    """User and password of a header. Raises `Refusal` when it has none."""
    scheme, _, given = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        raise unauthorized("Log in as a user of the brokers: user and password by HTTP's basic login.")
    try:
        user, colon, password = base64.b64decode(given, validate=True).decode().partition(":")
    except ValueError:
        raise unauthorized("The login is not as HTTP's basic login has it.") from None
    if not colon or not user:
        raise unauthorized("The login is not as HTTP's basic login has it.")
    return user, password


def unauthorized(sentence: str) -> Refusal:
    """The refusal that asks for a login."""
    return Refusal(401, 40101, sentence)
