"""Which questions are asked again while no broker answers, and for how long."""

from types import SimpleNamespace

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.options import STREAM, read_options
from pylog_spark.results.topics import ListedTopic
from pylog_spark.source.log import Log
from pylog_spark.spark import contact
from pylog_spark.spark.contact import until_reachable

AWAY = PylogError("PYLOG_UNREACHABLE", "No broker answered.")


class Answers:
    """Gives what it was made with, one after the other; errors are raised."""

    def __init__(self, *given: object) -> None:
        self.left = list(given)

    def __call__(self, *_: object) -> object:
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were made; the clock goes on by them."""
    made: list[float] = []
    # Only what this module sees: other threads of the process sleep as ever.
    monkeypatch.setattr(contact, "time", SimpleNamespace(sleep=made.append, monotonic=lambda: sum(made)))
    return made


def test_a_question_is_asked_until_a_broker_answers(pauses: list[float]) -> None:
    assert until_reachable(Answers(AWAY, AWAY, AWAY, "here"), 60) == "here"
    assert pauses == [0.05, 0.1, 0.2]


def test_a_question_fails_with_its_own_error_when_the_time_is_over(pauses: list[float]) -> None:
    with pytest.raises(PylogError) as caught:
        until_reachable(Answers(*[AWAY] * 100), 10)
    assert caught.value is AWAY
    assert 9 <= sum(pauses) <= 10


def test_another_error_is_not_waited_for(pauses: list[float]) -> None:
    with pytest.raises(PylogError, match="PYLOG_UNKNOWN_TOPIC"):
        until_reachable(Answers(PylogError("PYLOG_UNKNOWN_TOPIC", "No topic.")), 60)
    assert pauses == []


@pytest.mark.parametrize(("away", "fails"), [(2, False), (3, True)])
def test_the_driver_asks_as_often_as_fetch_offset_num_retries_says(
    away: int, fails: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    given = {"bootstrap.servers": "b:1", "subscribe": "t", "fetchOffset.retryIntervalMs": "70"}
    log = Log(read_options(given, STREAM), sleep_s=pauses.append)
    client = type(
        "Client", (), {"list_partitions": Answers(*[AWAY] * away, [ListedTopic("t", "id", False, None, [0])])}
    )()
    monkeypatch.setattr(log, "_connected", lambda: client)
    if fails:
        with pytest.raises(PylogError, match="PYLOG_UNREACHABLE"):
            log.assigned()
    else:
        assert len(log.assigned().offsets) == 1
    assert pauses == [0.07, 0.07]
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("given", ["", "60000", "500"])
def test_a_server_of_tokens_that_is_silent_takes_less_than_a_first_contact_may(given: str) -> None:
    names = [f"sasl.login.{name}.ms" for name in ("connect.timeout", "read.timeout", "retry.backoff.max")]
    settings = contact._with_short_timeouts({"default.api.timeout.ms": "60000", **dict.fromkeys(names, given)})
    connect, read, again = (int(settings[name]) for name in names)
    # As `pylog_spark.login.oidc` promises.
    assert max(again, connect + read) < contact.FIRST_CONTACT_MS
    assert given != "500" or (connect, read, again) == (500, 500, 500)
