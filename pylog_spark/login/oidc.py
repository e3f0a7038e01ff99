"""A server of tokens: asked for client credentials (RFC 6749, 4.4) by HTTPS, with the standard library.

Redirections are not followed, so that the client's secret goes nowhere else. What fails for a while (no connection, 408, 429, 5xx) is
tried again for ``sasl.login.retry.backoff.max.ms``.

Every attempt has a deadline, however slowly bytes come: ``sasl.login.connect.timeout.ms`` for the connection with its TLS, then
``sasl.login.read.timeout.ms`` for the request and all of the answer. All attempts together take no longer than the larger of these two
together and ``sasl.login.retry.backoff.max.ms``. Only the look-up of the server's name is the operating system's, with its own time-outs.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, unquote_plus, urlencode

from pylog_spark.login.endpoint import SETTING, Endpoint, endpoint
from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import TOKEN_BYTES_MAX, Token, checked, end_of, seconds

_PREFIX = "sasl.oauthbearer."
#: Statuses of an answer with a token; some servers make one, as Kafka's clients know.
_GIVEN = frozenset({200, 201})
_MAY_PASS = frozenset({408, 429})
_SERVER_ERRORS = 500
_REDIRECTIONS = range(300, 400)
#: Most characters of what a server says of an error that are shown.
_SAID_MAX = 200
#: What OpenSSL says of a certificate for another host or address.
_OF_ANOTHER = frozenset({62, 64})
#: How long all may take where there is a token that is still good.
HURRIED_S = 5.0

log = logging.getLogger("pylog_spark.login")


def of_server(
    settings: Mapping[str, str], *, hurried: bool = False, pause_s: Callable[[float], None] = time.sleep
) -> Token:
    """Ask for a token, again and again while that may help.

    Parameters
    ----------
    settings : mapping of str to str
        By Kafka's names.
    hurried : bool
        Whether there is a token that is still good: it is asked for once then, for `HURRIED_S` at most.
    pause_s : callable
        Waits for some seconds between two attempts.

    Raises
    ------
    TokenError
        When the server refuses, or does not answer in time.
    """
    server = endpoint(settings[SETTING])
    context = _context(settings) if server.scheme == "https" else None
    began = time.monotonic()
    again_s = 0.0 if hurried else _seconds(settings, "retry.backoff.max.ms")
    attempt_s = _seconds(settings, "connect.timeout.ms") + _seconds(settings, "read.timeout.ms")
    until = began + (HURRIED_S if hurried else max(again_s, attempt_s))
    backoff_s = _seconds(settings, "retry.backoff.ms")
    while True:
        try:
            return _ask(server, context, settings, until)
        except TokenError as error:
            if not error.retriable or time.monotonic() + backoff_s >= began + again_s:
                raise
            log.info("%s; asking again.", error.sentence)
        pause_s(backoff_s)
        backoff_s *= 2


def _seconds(settings: Mapping[str, str], name: str) -> float:
    return int(settings[f"sasl.login.{name}"]) / 1000


def _ask(server: Endpoint, context: ssl.SSLContext | None, settings: Mapping[str, str], until: float) -> Token:
    asked_s = time.time()
    try:
        connect_until = min(until, time.monotonic() + _seconds(settings, "connect.timeout.ms"))
        with _connected(server, context, connect_until) as sock:
            read_until = min(until, time.monotonic() + _seconds(settings, "read.timeout.ms"))
            status, content = _answer(server, _Timely(sock, read_until), _body(settings), _headers(settings))
    except ssl.SSLCertVerificationError as error:
        raise TokenError(_distrust(server, error)) from None
    except OSError as error:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise TokenError(f"The server of tokens {server} cannot be asked: {why}", retriable=True) from None
    except http.client.HTTPException:
        # Its text is what the server sent, which may be what it was sent.
        raise TokenError(
            f"The server of tokens {server} cannot be asked: its answer is no HTTP, or not whole", retriable=True
        ) from None
    return _token(server, status, content, asked_s, settings)


def _context(settings: Mapping[str, str]) -> ssl.SSLContext:
    path = settings.get("https.ca.location")
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise TokenError(f"The file {path} of https.ca.location has no certificates as PEM text") from None
    except OSError as error:
        raise TokenError(f"The file {path} of https.ca.location cannot be read: {error.strerror}") from None


def _distrust(server: Endpoint, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _OF_ANOTHER:
        return f"The server of tokens {server} shows a certificate for another name; correct the host in {SETTING}"
    return (
        f"The certificate of the server of tokens {server} is not trusted ({error.verify_message}); give the certificate of who "
        "signed it in https.ca.location"
    )


def _connected(server: Endpoint, context: ssl.SSLContext | None, until: float) -> socket.socket:
    """A socket to the first address that answers, under TLS where there is a `context`."""
    failed = OSError("its name has no address")
    found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        sock = socket.socket(family, kind, protocol)
        try:
            # One that is silent leaves time for those after it.
            sock.settimeout(_left(until) / (len(found) - tried))
            sock.connect(address)
            sock.settimeout(_left(until))
            return sock if context is None else context.wrap_socket(sock, server_hostname=server.host)
        except ssl.SSLCertVerificationError:
            sock.close()
            raise
        except OSError as error:
            sock.close()
            failed = error
    raise failed


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Timely:
    """What ``http.client`` uses of a socket, with one deadline for all of it: a socket's own time-out begins anew with each byte."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            self._sock.settimeout(_left(self._until))
            rest = rest[self._sock.send(rest) :]

    def receive(self, buffer: Any) -> int:
        """Fill some of `buffer`."""
        self._sock.settimeout(_left(self._until))
        return self._sock.recv_into(buffer)

    def makefile(self, *_: object) -> io.BufferedReader:
        """What is read from it."""
        return io.BufferedReader(_Received(self))

    def close(self) -> None:
        """Nothing: the answer may not be read yet; who made the socket closes it."""


class _Received(io.RawIOBase):
    def __init__(self, timely: _Timely) -> None:
        self._timely = timely

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._timely.receive(buffer)


def _answer(server: Endpoint, timely: _Timely, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body of the answer, as much of it as is looked at."""
    kind = http.client.HTTPSConnection if server.scheme == "https" else http.client.HTTPConnection
    connection = kind(server.host, server.port)
    socket_like: Any = timely
    connection.sock = socket_like
    connection.request("POST", server.target, body, dict(headers))
    with connection.getresponse() as answer:
        return answer.status, answer.read(TOKEN_BYTES_MAX + 1)


def _body(settings: Mapping[str, str]) -> bytes:
    fields = {"grant_type": "client_credentials"}
    if scope := settings.get(f"{_PREFIX}scope"):
        fields["scope"] = scope
    return urlencode(fields).encode()


def _credentials(settings: Mapping[str, str]) -> tuple[str, str]:
    client_id, secret = (settings[f"{_PREFIX}client.credentials.client.{name}"] for name in ("id", "secret"))
    return client_id, secret


def _basic(settings: Mapping[str, str]) -> str:
    said = _credentials(settings)
    if settings.get(f"{_PREFIX}header.urlencode") == "true":
        said = (quote_plus(said[0]), quote_plus(said[1]))
    return base64.b64encode(":".join(said).encode()).decode()


def _headers(settings: Mapping[str, str]) -> dict[str, str]:
    return {
        "Authorization": f"Basic {_basic(settings)}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Cache-Control": "no-cache",
        "Connection": "close",
    }


def _token(server: Endpoint, status: int, content: bytes, asked_s: float, settings: Mapping[str, str]) -> Token:
    is_whole = len(content) <= TOKEN_BYTES_MAX
    try:
        document = json.loads(content) if is_whole else None
    except (ValueError, RecursionError):
        document = None
    found = document if isinstance(document, dict) else {}
    if status not in _GIVEN:
        raise _refusal(server, status, found, settings)
    if not is_whole:
        raise TokenError(
            f"The answer of the server of tokens {server} is no token: it has more than {TOKEN_BYTES_MAX} bytes"
        )
    value = checked(found.get("access_token"), f"the server of tokens {server}")
    lasts_s = seconds(found.get("expires_in"))
    return Token(value, end_of(value) if lasts_s is None else asked_s + lasts_s)


def _refusal(server: Endpoint, status: int, found: Mapping[str, object], settings: Mapping[str, str]) -> TokenError:
    client_id, secret = _credentials(settings)
    if status in _REDIRECTIONS:
        return TokenError(
            f"The server of tokens {server} answered with status {status}, a redirection, which is not followed: the client's secret "
            f"would go elsewhere; give the URL that answers in {SETTING}"
        )
    texts = (found.get(name) for name in ("error", "error_description"))
    said = " ".join(text for text in texts if isinstance(text, str) and text)
    # A server may say again what it was sent.
    is_telling = secret in said or secret in unquote_plus(said) or _basic(settings) in said
    shown = f": {said[:_SAID_MAX]!a}" if said and not is_telling else ""
    return TokenError(
        f"The server of tokens {server} refused the client {client_id!r} with status {status}{shown}",
        retriable=status in _MAY_PASS or status >= _SERVER_ERRORS,
    )
