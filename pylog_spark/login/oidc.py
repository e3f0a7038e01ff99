"""A server of tokens: asked for client credentials (RFC 6749, 4.4) by HTTPS, with the standard library.

Redirections are not followed, so that the client's secret goes nowhere else. What fails for a while (no connection, 408, 429, 5xx) is
tried again for ``sasl.login.retry.backoff.max.ms``.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote_plus, urlencode, urlsplit

from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import TOKEN_BYTES_MAX, Token, checked, end_of

_PREFIX = "sasl.oauthbearer."
_MAY_PASS = frozenset({408, 429})
_SERVER_ERRORS = 500
#: Most characters of what a server says of an error that are shown.
_SAID_MAX = 200

log = logging.getLogger("pylog.login")


def of_server(settings: Mapping[str, str], pause_s: Callable[[float], None] = time.sleep) -> Token:
    """Ask for a token, again and again while that may help.

    Raises
    ------
    TokenError
        When the server refuses, or does not answer in time.
    """
    backoff_s = int(settings["sasl.login.retry.backoff.ms"]) / 1000
    until = time.monotonic() + int(settings["sasl.login.retry.backoff.max.ms"]) / 1000
    while True:
        try:
            return _ask(settings)
        except TokenError as error:
            if not error.retriable or time.monotonic() + backoff_s >= until:
                raise
            log.info("%s; asking again.", error.sentence)
        pause_s(backoff_s)
        backoff_s *= 2


def _ask(settings: Mapping[str, str]) -> Token:
    url = settings[f"{_PREFIX}token.endpoint.url"]
    parts = urlsplit(url)
    # A URL may have a user and a password.
    server = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    asked_s = time.time()
    connection = _connection(settings, server)
    try:
        connection.connect()
        if connection.sock is not None:
            connection.sock.settimeout(int(settings["sasl.login.read.timeout.ms"]) / 1000)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, _body(settings), _headers(settings))
        answer = connection.getresponse()
        content = answer.read(TOKEN_BYTES_MAX + 1)
    except ssl.SSLCertVerificationError as error:
        raise TokenError(
            f"The certificate of the server of tokens {server} is not trusted ({error.verify_message}); give the certificate of who "
            "signed it in https.ca.location"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        why = "it did not answer in time" if isinstance(error, (TimeoutError, socket.timeout)) else str(error)
        raise TokenError(f"The server of tokens {server} cannot be asked: {why}", retriable=True) from None
    finally:
        connection.close()
    return _token(server, answer.status, content, asked_s, settings)


def _connection(settings: Mapping[str, str], server: str) -> http.client.HTTPConnection:
    parts = urlsplit(settings[f"{_PREFIX}token.endpoint.url"])
    timeout_s = int(settings["sasl.login.connect.timeout.ms"]) / 1000
    if not parts.hostname:
        raise TokenError(f"The URL of the server of tokens has no host: {server}")
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    try:
        context = ssl.create_default_context(cafile=settings.get("https.ca.location"))
    except (OSError, ssl.SSLError) as error:
        raise TokenError(f"The certificates in https.ca.location cannot be read: {error}") from None
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)


def _body(settings: Mapping[str, str]) -> bytes:
    fields = {"grant_type": "client_credentials"}
    if scope := settings.get(f"{_PREFIX}scope"):
        fields["scope"] = scope
    return urlencode(fields).encode()


def _headers(settings: Mapping[str, str]) -> dict[str, str]:
    names = ("client.id", "client.secret")
    said = [settings[f"{_PREFIX}client.credentials.{name}"] for name in names]
    if settings.get(f"{_PREFIX}header.urlencode") == "true":
        said = [quote_plus(text) for text in said]
    basic = base64.b64encode(":".join(said).encode()).decode()
    return {
        "Authorization": f"Basic {basic}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Cache-Control": "no-cache",
    }


def _token(server: str, status: int, content: bytes, asked_s: float, settings: Mapping[str, str]) -> Token:
    try:
        document = json.loads(content) if len(content) <= TOKEN_BYTES_MAX else None
    except ValueError:
        document = None
    found = document if isinstance(document, dict) else {}
    if status != http.client.OK:
        said = " ".join(str(found[name]) for name in ("error", "error_description") if found.get(name))
        secret = settings[f"{_PREFIX}client.credentials.client.secret"]
        shown = f": {said[:_SAID_MAX]!a}" if said and secret not in said else ""
        raise TokenError(
            f"The server of tokens {server} refused the client {settings[f'{_PREFIX}client.credentials.client.id']!r} with status "
            f"{status}{shown}",
            retriable=status in _MAY_PASS or status >= _SERVER_ERRORS,
        )
    value = checked(found.get("access_token"), f"the server of tokens {server}")
    lasts_s = found.get("expires_in")
    try:
        ends_s = asked_s + float(lasts_s) if lasts_s is not None else end_of(value)
    except (TypeError, ValueError):
        ends_s = end_of(value)
    return Token(value, ends_s)
