"""What a change by the page's API needs besides what every change does (`web.guard`), and the headers that keep this page to itself. Pure."""

from __future__ import annotations

from email.message import Message

from pylog_spark.web import guard
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


def check_change(headers: Message) -> None:
    """Raises `Refusal` unless a change comes from this server's own page, or from a program."""
    guard.check_change(headers, (_JSON,))
    if headers.get(REQUESTED_WITH) != OWN:
        raise ConsoleRefusal(403, "FORBIDDEN", f"A change needs the header {REQUESTED_WITH}: {OWN}.")
