"""The function for ``foreachBatch``: what it is given, what it asks of the frame, and what it says of a failed write.

Queries that are really stopped in a batch: ``tests/spark/test_foreach_stop.py``.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from pylog_spark import foreach_batch
from pylog_spark.errors import PylogError
from pylog_spark.spark import foreach
from pylog_spark.spark.foreach import _shown


class Writes:
    """A frame's writer that records its options."""

    def __init__(self) -> None:
        self.write = self
        self.options_seen: dict[str, Any] = {}
        self.saved: list[dict[str, Any]] = []

    def format(self, name: str) -> "Writes":
        self.options_seen = {"format": name}
        return self

    def options(self, **given: Any) -> "Writes":
        self.options_seen.update(given)
        return self

    def option(self, name: str, value: Any) -> "Writes":
        return self.options(**{name: value})

    def mode(self, name: str) -> "Writes":
        return self.option("mode", name)

    def save(self) -> None:
        self.saved.append(self.options_seen)


def test_each_batch_is_written_under_the_name_and_its_number() -> None:
    frame = Writes()
    write = foreach_batch("counts", topic="t", compression=None, **{"kafka.bootstrap.servers": "b:1"})
    write(frame, 7)
    wanted = {"format": "pylog", "topic": "t", "kafka.bootstrap.servers": "b:1", "mode": "append"}
    assert frame.saved == [{**wanted, "txnAppId": "counts", "txnVersion": 7}]


class Away(Writes):
    """A frame's writer that fails so often, as Spark shows an error of ours."""

    def __init__(self, times: int, condition: str = "PYLOG_UNREACHABLE") -> None:
        super().__init__()
        self.left, self.condition = times, condition

    def save(self) -> None:
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError(f"An error occurred while calling o1.save.\n: [{self.condition}] No broker answered.")
        super().save()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were made; the clock goes on by them."""
    made: list[float] = []
    clock = SimpleNamespace(sleep=made.append, monotonic=lambda: sum(made))
    monkeypatch.setattr(foreach, "time", clock)
    return made


def test_brokers_that_were_written_to_are_waited_for(pauses: list[float]) -> None:
    write = foreach_batch("counts")
    write(Writes(), 0)
    frame = Away(100)
    write(frame, 1)
    assert [options["txnVersion"] for options in frame.saved] == [1]
    assert sum(pauses) == 100


def test_the_wait_is_as_long_as_a_delivery_may_take(pauses: list[float]) -> None:
    write = foreach_batch("counts", **{"kafka.delivery.timeout.ms": 7_000})
    write(Writes(), 0)
    with pytest.raises(RuntimeError, match="PYLOG_UNREACHABLE"):
        write(Away(100), 1)
    assert 6 <= sum(pauses) <= 7


def test_brokers_that_were_never_written_to_and_other_errors_are_not_waited_for(pauses: list[float]) -> None:
    write = foreach_batch("counts")
    with pytest.raises(RuntimeError, match="PYLOG_UNREACHABLE"):
        write(Away(1), 57)
    write(Writes(), 57)
    with pytest.raises(RuntimeError, match="PYLOG_DELIVERY"):
        write(Away(1, "PYLOG_DELIVERY"), 58)
    assert pauses == []


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_a_name_that_cannot_be_one_is_refused_when_the_function_is_made(name: str) -> None:
    with pytest.raises(PylogError, match="The app_id of foreach_batch must be 1 to 200 printable characters"):
        foreach_batch(name)


def test_an_option_that_the_function_sets_itself_is_refused() -> None:
    with pytest.raises(PylogError, match="sets the option txnversion itself"):
        foreach_batch("counts", txnversion=1)


STACK = "\n\tat x" * 9_000


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while calling o1.save.\n: java.lang.InterruptedException" + STACK,
        "Job 3 cancelled part of cancelled job group run-1" + STACK,
    ],
)
def test_a_write_that_the_stop_has_ended_leaves_a_short_text_that_spark_knows(text: str) -> None:
    shown = _shown(Exception(text), 3, "run-1")
    assert isinstance(shown, PylogError)
    assert "PYLOG_QUERY_STOPPED" in str(shown)
    assert "micro-batch 3" in str(shown)
    assert "SparkException: job group run-1 was cancelled" in str(shown)
    assert len(str(shown)) < 300


def test_another_failure_while_the_query_is_being_stopped_keeps_its_text_but_not_its_name() -> None:
    class Py4JJavaError(Exception):
        pass

    shown = _shown(Py4JJavaError("An error occurred while calling o1.save.\n: no space"), 3, "run-1")
    assert type(shown) is RuntimeError
    assert "no space" in str(shown)


def test_a_failure_of_a_running_query_is_left_as_it_is() -> None:
    failure = Exception("java.lang.InterruptedException")
    assert _shown(failure, 3, None) is failure
