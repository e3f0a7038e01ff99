"""Requests that the page's API refuses, by Kafka's name or that of the HTTP status. Pure."""

from __future__ import annotations

from http import HTTPStatus

from pylog_spark.client.errors import LogError
from pylog_spark.web.refusal import Refusal

_MISSING = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "GROUP_ID_NOT_FOUND",
        "TRANSACTIONAL_ID_NOT_FOUND",
    }
)
_AWAY = frozenset(
    {"UNREACHABLE", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "LEADER_NOT_AVAILABLE", "CLOSED"}
)
_LATE = frozenset({"TIMED_OUT", "REQUEST_TIMED_OUT"})


class ConsoleRefusal(Refusal):
    """A refusal with a name.

    Attributes
    ----------
    name : str
        Kafka's name of the error, or ours in the same style.
    """

    def __init__(self, status: int, name: str, sentence: str) -> None:
        super().__init__(status, status, sentence)
        self.name = name


def bad_request(sentence: str) -> ConsoleRefusal:
    """What is asked is not as the API has it."""
    return ConsoleRefusal(400, "INVALID_REQUEST", sentence)


def of_error(error: LogError) -> ConsoleRefusal:
    """What a broker refused, or why none could be asked."""
    said = error.sentence
    return ConsoleRefusal(
        _status(error.kind), error.kind, said if said.endswith(".") else f"{said[:1].upper()}{said[1:]}."
    )


def name_of(refusal: Refusal) -> str:
    """The name of any refusal."""
    return refusal.name if isinstance(refusal, ConsoleRefusal) else HTTPStatus(refusal.status).name


def _status(kind: str) -> int:
    if kind.endswith("AUTHORIZATION_FAILED"):
        return 403
    if "AUTHENTICATION" in kind:
        return 401
    if kind in _MISSING:
        return 404
    if kind == "TOPIC_ALREADY_EXISTS":
        return 409
    if kind in _AWAY:
        return 503
    return 504 if kind in _LATE else 400
