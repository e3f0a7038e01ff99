"""The function for ``foreachBatch``: what it is given, and what it asks of the frame."""

import traceback
from typing import Any
from unittest.mock import MagicMock

import pytest

from pylog_spark import foreach_batch
from pylog_spark.errors import PylogError


class Writes:
    """A frame's writer that notes what it is told."""

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


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_a_name_that_cannot_be_one_is_refused_when_the_function_is_made(name: str) -> None:
    with pytest.raises(PylogError, match="The app_id of foreach_batch must be 1 to 200 printable characters"):
        foreach_batch(name)


def test_an_option_that_the_function_sets_itself_is_refused() -> None:
    with pytest.raises(PylogError, match="sets the option txnversion itself"):
        foreach_batch("counts", txnversion=1)


def micro_batch(active: list[bool], failure: Exception | None = None) -> tuple[Any, Any]:
    """A frame of classic PySpark: its query is `active` or is being stopped each time that is asked; its write may fail. Frame and writer."""
    frame = MagicMock()
    session = frame._jdf.sparkSession()
    properties = {"sql.streaming.queryId": "7f0c", "spark.jobGroup.id": "run-1"}
    session.sparkContext().getLocalProperty.side_effect = properties.get
    session.sharedState().activeStreamingQueries().get().isActive.side_effect = active
    writer = frame.write.format().options().option().option().mode()
    writer.save.side_effect = failure
    return frame, writer


def test_nothing_is_written_in_a_query_that_is_being_stopped() -> None:
    frame, writer = micro_batch([False])
    with pytest.raises(
        PylogError, match=r"PYLOG_QUERY_STOPPED.*micro-batch 3.*SparkException: job group run-1 was cancelled"
    ):
        foreach_batch("counts")(frame, 3)
    writer.save.assert_not_called()


@pytest.mark.parametrize(
    "text",
    [
        "An error occurred while calling o1.save.\n: java.lang.InterruptedException" + "\n\tat x" * 9_000,
        "Job 3 cancelled part of cancelled job group run-1" + "\n\tat x" * 9_000,
    ],
)
def test_a_write_that_the_stop_has_ended_leaves_a_short_text(text: str) -> None:
    frame, _ = micro_batch([True, False], Exception(text))
    with pytest.raises(PylogError) as caught:
        foreach_batch("counts")(frame, 3)
    shown = "".join(traceback.format_exception(caught.value))
    assert "PYLOG_QUERY_STOPPED" in shown
    assert "\tat x" not in shown


def test_another_failure_while_the_query_is_being_stopped_keeps_its_text_but_not_its_name() -> None:
    class Py4JJavaError(Exception):
        pass

    frame, _ = micro_batch([True, False], Py4JJavaError("An error occurred while calling o1.save.\n: no space"))
    with pytest.raises(RuntimeError, match="no space") as caught:
        foreach_batch("counts")(frame, 3)
    assert "Py4JJavaError" not in "".join(traceback.format_exception(caught.value))


def test_a_failure_of_a_running_query_is_left_as_it_is() -> None:
    failure = Exception("java.lang.InterruptedException")
    frame, _ = micro_batch([True, True], failure)
    with pytest.raises(Exception, match="InterruptedException") as caught:
        foreach_batch("counts")(frame, 3)
    assert caught.value is failure
