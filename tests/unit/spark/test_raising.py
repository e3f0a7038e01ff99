"""What Spark's Python processes print of an error of ours: written by pyspark's own code."""

import io
import pickle
from typing import Any

import pytest
from pyspark.util import handle_worker_exception

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.harness.ports import nowhere
from tests.reading.support import schema

_LINE = "pylog_spark.errors.PylogError: "
NO_BROKER = {"kafka.bootstrap.servers": nowhere(), "subscribe": "t", "topic": "t"}


def printed(action: Any) -> list[str]:
    """The lines that Spark's Java half is given when `action` fails."""
    out = io.BytesIO()
    try:
        action()
    except PylogError as error:
        handle_worker_exception(error, out, hide_traceback=False)
    raw = out.getvalue()
    return raw[8:].decode().rstrip().split("\n")


def stream(**options: str) -> Any:
    return PylogDataSource({**NO_BROKER, **options}).streamReader(schema("value"))


ACTIONS = {
    "an option": lambda: PylogDataSource({"subscrieb": "t"}),
    "load": lambda: PylogDataSource(NO_BROKER).schema(),
    "the plan of a batch": lambda: PylogDataSource(NO_BROKER).reader(schema("value")).partitions(),
    "the options of a stream": lambda: stream(endingOffsets="latest").initialOffset(),
    "a stream's first look": lambda: stream(**{"fetchOffset.numRetries": "1"}).initialOffset(),
    "a write": lambda: PylogDataSource(NO_BROKER).writer(schema("value"), False),
    "overwrite": lambda: PylogDataSource(NO_BROKER).writer(schema("value"), True),
    "a column": lambda: PylogDataSource(NO_BROKER).streamWriter(schema("offset"), False),
}


@pytest.mark.parametrize("where", ACTIONS)
def test_the_sentence_is_first_and_last_and_of_our_frames_there_is_the_one_that_raises(where: str) -> None:
    lines = printed(ACTIONS[where])
    assert lines[0].startswith(f"{_LINE}[PYLOG_")
    assert lines[-1] == lines[0]
    frames = [line for line in lines if "/pylog_spark/" in line]
    assert len(frames) == 1
    assert "raising.py" in frames[0]


def test_an_error_of_a_task_reads_the_same_after_it_was_carried() -> None:
    with pytest.raises(PylogError) as caught:
        PylogDataSource(NO_BROKER).schema()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.condition) == (str(caught.value), caught.value.condition)
