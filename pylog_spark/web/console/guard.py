"""What keeps other sites' pages from using a user's browser against the broker, and the headers that keep this page to itself. Pure.

A browser sends a user's login, or reaches a broker that asks for none, for any page that the user looks at. So a change needs a header and a
media type that a foreign page cannot send without being asked first, and where no login and no certificate stand in between, the name under which
the server is addressed must be one of its own: else a foreign name that is pointed to this address would make both the same site.
"""

from __future__ import annotations

import ipaddress
from email.message import Message
from urllib.parse import urlsplit

from pylog_spark.web.console.refusals import ConsoleRefusal

#: On every answer.
HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)
#: On answers with data.
DATA_HEADERS = (*HEADERS, ("Cache-Control", "no-store"))
#: The header that a change needs, and its value.
REQUESTED_WITH, OWN = "X-Requested-With", "pylog"
_JSON = "application/json"
_DEFAULT_PORTS = (":80", ":443")


def check_host(headers: Message, known: frozenset[str]) -> None:
    """Raises `ConsoleRefusal` unless the request names the server by an IP address or a name that is known to be its own."""
    host = _host(headers.get("Host", ""))
    if host.lower() not in known and not _is_address(host):
        raise ConsoleRefusal(
            421,
            "MISDIRECTED_REQUEST",
            "This broker does not know that name as its own: open the page by its IP address, by the name given to --http or by an advertised one.",
        )


def check_change(headers: Message) -> None:
    """Raises `ConsoleRefusal` unless a change comes from this server's own page, or from a program."""
    media = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media != _JSON:
        raise ConsoleRefusal(415, "UNSUPPORTED_MEDIA_TYPE", f"A change is sent as JSON: Content-Type: {_JSON}.")
    if headers.get(REQUESTED_WITH) != OWN:
        raise ConsoleRefusal(403, "FORBIDDEN", f"A change needs the header {REQUESTED_WITH}: {OWN}.")
    origin = headers.get("Origin")
    if origin is not None and _bare(origin.partition("://")[2]) != _bare(headers.get("Host", "")):
        raise ConsoleRefusal(403, "FORBIDDEN", "A change is taken from this server's own page only.")
    if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise ConsoleRefusal(403, "FORBIDDEN", "A change is taken from this server's own page only.")


def _host(place: str) -> str:
    """The host of HOST:PORT; empty where there is none."""
    try:
        return urlsplit(f"//{place}").hostname or ""
    except ValueError:
        return ""


def _bare(place: str) -> str:
    """Host and port, without one that stands for itself."""
    place = place.lower()
    return next((place.removesuffix(port) for port in _DEFAULT_PORTS if place.endswith(port)), place)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
