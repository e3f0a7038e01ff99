"""A request of the page's API, and what it can ask of the broker beside it. The parameters are read here, each with its bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, unquote

from pylog_spark.web.console.refusals import bad_request

if TYPE_CHECKING:
    from pylog_spark.broker.process import Broker
    from pylog_spark.web.console.history import History
    from pylog_spark.web.console.sessions import Session

PARAMETERS_MAX = 20
#: Whole numbers that every program that reads JSON keeps as they are.
_EXACT_MAX = 2**53


class Schemas(Protocol):
    """A schema registry beside the broker, as far as records are shown by it."""

    def shown(self, schema_id: int, payload: bytes, authorization: str | None) -> str | None:
        """Give what was written with this schema as JSON, empty where it is not Avro or does not fit; None for a schema that is not there
        or not to be seen by this user."""


@dataclass(frozen=True)
class Beside:
    """The broker that the page belongs to.

    Attributes
    ----------
    broker : Broker
        For the numbers of this broker alone.
    history : History
        What was recorded of them.
    schemas : Schemas or None
        The registry beside it, if there is one.
    """

    broker: Broker
    history: History
    schemas: Schemas | None


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes
    ----------
    session : Session
        The client of the user who asks.
    beside : Beside
        The broker.
    named : tuple of str
        What the path names, such as a topic.
    query : mapping of str to str
        The parameters.
    body : mapping of str to object
        Of a change: what it says.
    authorization : str or None
        The header with the user's login.
    """

    session: Session
    beside: Beside
    named: tuple[str, ...]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    authorization: str | None

    def whole(self, name: str, default: int | None, low: int, high: int) -> int | None:
        """The parameter `name` as a whole number from `low` to `high`. Raises `ConsoleRefusal`."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise bad_request(f"{name}={text[:40]} is no whole number from {low} to {high}.")
        return int(text)

    def has(self, name: str) -> bool:
        """Whether the parameter `name` is 1 or true."""
        return self.query.get(name, "") in ("1", "true")

    def given(self, name: str, *kinds: type) -> Any:
        """What the body says of `name`, of one of these types. Raises `ConsoleRefusal`."""
        found = self.body.get(name)
        if type(found) not in (*kinds, *((type(None),) if None in kinds else ())):
            words = " or ".join(_WORDS[kind] for kind in kinds)
            raise bad_request(f"The body says of {name!r} {words}, and this one does not.")
        return found


_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    dict: "an object",
    list: "a list",
    type(None): "null",
}


def number(value: int) -> int | str:
    """A number as every reader of JSON keeps it."""
    return value if abs(value) <= _EXACT_MAX else str(value)


def path_parts(path: str) -> tuple[str, ...]:
    """The parts of a path, decoded after they are parted, so that a name may have a slash. Raises `ConsoleRefusal`."""
    try:
        return tuple(unquote(part, errors="strict") for part in path.strip("/").split("/"))
    except ValueError:
        raise bad_request("The path is not encoded as URLs are, in UTF-8.") from None


def parameters(query: str) -> dict[str, str]:
    """The parameters behind a path. Raises `ConsoleRefusal`."""
    try:
        return dict(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX))
    except ValueError:
        raise bad_request(f"The parameters are not encoded as URLs are, or more than {PARAMETERS_MAX}.") from None


def document(body: bytes) -> dict[str, Any]:
    """The object that a body is. Raises `ConsoleRefusal`."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise bad_request("The body of a change is a JSON object.")
    return found
