"""Who may ask the registry, and change it: as the broker says of the topic `_schemas`.

A user and password of HTTP's basic login are tried at the broker itself, by the mechanism of the registry's own login; what the broker
lets that user do with the topic is what the registry lets it do: ask with READ, change with WRITE. So users, passwords and ACLs are those of
the brokers, and what changes there counts here after `KEPT_S` seconds. Thread-safe.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from pylog_spark.registry.refusals import Refusal
from pylog_spark.registry.stored import TOPIC

#: How long an answer of the broker is believed, for how many users.
KEPT_S = 10.0
KEPT_MAX = 1_000
#: How many logins are tried at the same time.
LOGINS_MAX = 4
#: Mechanisms that take a user and a password.
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
_READ, _WRITE = 1 << 3, 1 << 4
_METADATA_VERSION = 12
_TIMEOUT_MS = 10_000


class Access:
    """Asks the broker about users.

    Parameters
    ----------
    client : mapping of str to str
        Settings of the registry's own client, with the login that those of a user take the place of.
    make_topic : callable
        Creates the topic if it is not there: the broker says nothing of rights to one that does not exist.
    """

    def __init__(self, client: Mapping[str, str], make_topic: Callable[[], None]) -> None:
        self._client = {name: text for name, text in client.items() if name != "sasl.jaas.config"}
        self._host, _, port = client["bootstrap.servers"].split(",")[0].rpartition(":")
        self._port = int(port)
        self._make_topic = make_topic
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._logins = threading.BoundedSemaphore(LOGINS_MAX)

    def check(self, authorization: str | None, *, changes: bool) -> None:
        """Raises `Refusal` unless this header's user may do it."""
        user, password = _credentials(authorization)
        rights = self._rights(user, password)
        if not rights & (_WRITE if changes else _READ):
            right = "WRITE" if changes else "READ"
            raise Refusal(403, 40301, f"User {user!r} needs the right {right} on the topic {TOPIC} of the brokers.")

    def _rights(self, user: str, password: str) -> int:
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

        wanted = {"topics": [{"name": TOPIC}], "include_topic_authorized_operations": True}
        try:
            self._make_topic()
            config = {**self._client, "sasl.username": user, "sasl.password": password}
            connection = RawConnection(self._host.strip("[]"), self._port, _TIMEOUT_MS, config)
            try:
                answer = json.loads(
                    connection.call("Metadata", _METADATA_VERSION, json.dumps(wanted), "pylog-registry")
                )
            finally:
                connection.close()
        except NativeError as error:
            if "AUTHENTICATION" in error.args[0]:
                raise _unauthorized("The broker does not know this user, or the password is another one.") from None
            raise Refusal(500, 50001, f"The broker cannot be asked about the user now: {error.args[-1]}") from None
        except LogError as error:
            raise Refusal(500, 50001, f"The broker cannot be asked about the user now: {error}") from None
        operations: int = answer["topics"][0]["topic_authorized_operations"]
        return max(0, operations)


def _credentials(authorization: str | None) -> tuple[str, str]:
    scheme, _, given = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        raise _unauthorized(
            "The registry takes the login of a user of the brokers: user and password by HTTP's basic login."
        )
    try:
        user, colon, password = base64.b64decode(given, validate=True).decode().partition(":")
    except ValueError:
        raise _unauthorized("The login is not as HTTP's basic login has it.") from None
    if not colon or not user:
        raise _unauthorized("The login is not as HTTP's basic login has it.")
    return user, password


def _unauthorized(sentence: str) -> Refusal:
    return Refusal(401, 40101, sentence)
