"""What the page's API has: each request with what answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pylog_spark.web.console import changes, groups, records, topics, transactions
from pylog_spark.web.console.call import Call
from pylog_spark.web.console.refusals import ConsoleRefusal

Act = Callable[[Call], dict[str, Any]]


class Route(NamedTuple):
    """A request.

    Attributes
    ----------
    method : str
        GET, POST or DELETE.
    path : tuple of str or None
        The parts of its path behind ``/api/``; None: a name.
    act : callable
        What answers it.
    is_scan : bool
        Whether it may look at many records.
    is_of_broker : bool
        Whether it shows the broker's own numbers, for which a user needs the right DESCRIBE on the cluster, as for ``/metrics``.
    """

    method: str
    path: tuple[str | None, ...]
    act: Act
    is_scan: bool = False
    is_of_broker: bool = False


def _rates(call: Call) -> dict[str, Any]:
    return call.beside.history.rates()


ROUTES = (
    Route("GET", ("user",), topics.user),
    Route("GET", ("cluster",), topics.cluster),
    Route("GET", ("topics",), topics.topics),
    Route("POST", ("topics",), changes.create_topic),
    Route("GET", ("topics", None), topics.topic),
    Route("DELETE", ("topics", None), changes.delete_topic),
    Route("POST", ("topics", None, "configs"), changes.alter_topic),
    Route("POST", ("topics", None, "partitions"), changes.grow_topic),
    Route("GET", ("topics", None, "records"), records.records, is_scan=True),
    Route("POST", ("topics", None, "records"), changes.produce),
    Route("GET", ("groups",), groups.groups),
    Route("GET", ("groups", None), groups.group),
    Route("GET", ("groups", None, "history"), groups.group_history),
    Route("GET", ("transactions",), transactions.transactions),
    Route("GET", ("rates",), _rates, is_of_broker=True),
)


def route_of(method: str, parts: tuple[str, ...]) -> tuple[Route, tuple[str, ...]]:
    """The route of a path behind ``/api/``, and what it names. Raises `ConsoleRefusal`."""
    fitting = [each for each in ROUTES if _fits(each.path, parts)]
    for route in fitting:
        if route.method == method:
            return route, tuple(part for part, own in zip(parts, route.path, strict=True) if own is None)
    if fitting:
        methods = " and ".join(each.method for each in fitting)
        raise ConsoleRefusal(405, "METHOD_NOT_ALLOWED", f"This is asked for with {methods}.")
    raise ConsoleRefusal(404, "NOT_FOUND", "The page's API has no such path; docs/console.md lists them.")


def _fits(path: tuple[str | None, ...], parts: tuple[str, ...]) -> bool:
    return len(path) == len(parts) and all(own in (None, part) for own, part in zip(path, parts, strict=True))
