"""The URL of a server of tokens: what may stand in it, and what of it may be shown. Pure.

A client sends its secret there, so it must be HTTPS: Kafka's own clients take ``http://`` as well, which is refused here but for this
machine. A sentence never has the URL in it as it was given, since there may be a password in it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from pylog_spark.login.errors import TokenError

SETTING = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client.id and sasl.oauthbearer.client.credentials.client.secret"
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class Endpoint:
    """A server of tokens.

    Attributes
    ----------
    scheme, host : str
        ``https`` or ``http``, and the host without brackets.
    port : int
        Where it listens.
    path, query : str
        What is asked for there; a query may be a secret.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def target(self) -> str:
        """What stands in the first line of a request."""
        return (self.path or "/") + (f"?{self.query}" if self.query else "")


def endpoint(url: str) -> Endpoint:
    """Read `url`. Raises `TokenError` for one that cannot be asked."""
    parts = _checked(url)
    if isinstance(parts, str):
        raise TokenError(f"{SETTING} {parts}")
    port = parts.port or _PORTS[parts.scheme]
    return Endpoint(parts.scheme, parts.hostname or "", port, parts.path, parts.query)


def refused(url: str) -> str | None:
    """Say why a client would not ask `url`: what stands behind the name of the setting in a sentence. None for one that it would ask
    and for one of a file."""
    if url.strip().startswith("file:"):
        return None
    parts = _checked(url.strip())
    return parts if isinstance(parts, str) else None


def _checked(url: str) -> SplitResult | str:
    if not url.isascii() or any(ord(sign) <= ord(" ") or ord(sign) == 127 for sign in url):
        return "has characters that no URL has; write them with % and two digits"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "has no host that can be read; an address of IPv6 stands in brackets"
    if parts.scheme not in _PORTS:
        return "must begin with https:// or file:"
    if "@" in parts.netloc:
        return f"has a user or a password before the host, which are not used and would be shown; give them in {_CREDENTIALS}"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        return "has a port that is no number from 1 to 65535"
    try:
        # As it is looked up.
        host.encode("idna")
    except UnicodeError:
        host = ""
    if not host:
        return "has no host that can be looked up"
    if parts.scheme == "http" and not _is_here(host):
        return (
            "is http://, by which the client's secret could be read on its way; give https:// (http is for servers of tests on this "
            "machine: localhost, 127.0.0.1 or [::1])"
        )
    return parts


def _is_here(host: str) -> bool:
    """Whether what is sent to `host` does not leave this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
