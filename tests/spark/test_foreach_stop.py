"""A query that is stopped while `foreach_batch` writes ends as any stopped query does, and its restart writes each row once."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from pylog_spark import foreach_batch
from tests.harness.waiting import until
from tests.spark.support import Topic, committed

pytestmark = pytest.mark.long  # updates through foreach_batch: test_sink_once.py

Topics = Callable[..., Topic]

#: Batch 1 is the one that is held.
HELD = 1


class Held:
    """A micro-batch that waits where the test wants it, until it is released or its task is killed."""

    def __init__(self, folder: Path) -> None:
        self.reached, self.released = folder / "reached", folder / "released"

    def wait(self) -> None:
        _wait(str(self.reached), str(self.released))

    def in_a_task(self, rows: Any) -> Any:
        """The same rows, whose task waits."""
        wait, reached, released = _wait, str(self.reached), str(self.released)

        def held(batches: Any) -> Any:
            for batch in batches:
                wait(reached, released)
                yield batch

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return rows.mapInArrow(held, rows.schema)


def _wait(reached: str, released: str) -> None:
    Path(reached).touch()
    while not Path(released).exists():
        time.sleep(0.02)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    held = Held(tmp_path)
    yield held
    held.released.touch()


def start(source: Topic, checkpoint: str, function: Any) -> Any:
    """A query of one row a batch, to the end of what is there."""
    writer = source.read_stream(maxOffsetsPerTrigger=1).writeStream.foreachBatch(function)
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


@pytest.mark.parametrize("where", [pytest.param("before the write", marks=pytest.mark.long), "in a task of the write"])
def test_a_query_that_is_stopped_in_a_batch_ends_as_stopped_and_its_restart_writes_each_row_once(
    where: str, make_topic: Topics, checkpoint: str, held: Held
) -> None:
    source, target = make_topic(), make_topic()
    source.put(["a", "b", "c"])
    append = foreach_batch(f"stopped {target.name}", topic=target.name, **{"kafka.bootstrap.servers": target.servers})
    in_a_task = where == "in a task of the write"

    def function(frame: Any, batch_id: int) -> None:
        rows = frame.select("value")
        if batch_id == HELD and not in_a_task:
            held.wait()
        append(held.in_a_task(rows) if batch_id == HELD and in_a_task else rows, batch_id)

    query = start(source, checkpoint, function)
    until(held.reached.exists, "the batch is held", 90)
    stop = threading.Thread(target=query.stop)
    stop.start()
    until(lambda: not query.isActive, "the stop begins")
    if not in_a_task:  # Spark kills the task
        held.released.touch()
    stop.join(90)
    assert not stop.is_alive()
    # What Spark says of a query that was stopped. An overflow of its thread's stack would have left the words for the running batch.
    assert query.status["message"] == "Stopped"
    assert query.exception() is None
    assert committed(checkpoint) == [0]
    assert target.values() == ["a"]

    assert start(source, checkpoint, append).awaitTermination(90)
    assert target.values() == ["a", "b", "c"]


def test_a_write_that_fails_in_a_running_query_fails_it_with_its_own_sentence(
    make_topic: Topics, checkpoint: str, new_topic: str
) -> None:
    source = make_topic()
    source.put(["a"])
    append = foreach_batch("bad", topic="no/topic", **{"kafka.bootstrap.servers": source.servers})
    query = start(source, checkpoint, append)
    with pytest.raises(Exception, match="PYLOG_UNKNOWN_TOPIC"):
        query.awaitTermination(90)
