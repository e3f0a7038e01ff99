"""The function for ``foreachBatch``: what it is given, and what it asks of the frame."""

from typing import Any

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
