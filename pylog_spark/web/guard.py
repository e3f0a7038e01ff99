"""What keeps other sites' pages from using a user's browser against a server here. Pure.

A browser sends a user's login, or reaches a server that asks for none, for any page that the user looks at. So a change needs a media type that a
foreign page cannot send without being asked first, and comes from no other site; and where no login and no certificate stand in between, the name
under which the server is addressed must be one of its own: else a foreign name that is pointed to this address would make both the same site.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from email.message import Message
from urllib.parse import urlsplit

from pylog_spark.web.refusal import Refusal

_DEFAULT_PORTS = (":80", ":443")


def check_host(headers: Message, known: frozenset[str] | None) -> None:
    """Raises `Refusal` unless the request names the server by an IP address or a name that is known to be its own; None: any name will do. A
    request without the header comes from no browser."""
    named = headers.get("Host")
    if named is None or known is None:
        return
    host = _host(named)
    if host.lower() not in known and not _is_address(host):
        raise Refusal(
            421,
            421,
            "This broker does not know that name as its own: use its IP address, the name given to --http or --schema-registry, or an advertised one.",
        )


def check_change(headers: Message, media: Collection[str]) -> None:
    """Raises `Refusal` unless a change with a body of one of these media types comes from this server's own page, or from a program."""
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() not in media:
        shown = " or ".join(media)
        raise Refusal(415, 415, f"A change is sent as JSON: Content-Type: {shown}.")
    check_origin(headers)


def check_origin(headers: Message) -> None:
    """Raises `Refusal` unless a change comes from this server's own page, or from a program."""
    origin = headers.get("Origin")
    is_foreign = origin is not None and _bare(origin.partition("://")[2]) != _bare(headers.get("Host", ""))
    if is_foreign or headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, 403, "A change is taken from this server's own page only.")


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
