"""Exactly-once into three brokers while one dies: the short part of the kill matrix of `tests/crash/test_sink.py`.

In `make test` the drivers are the data source's own writer and tasks, without Spark's engine; a long run has Spark's, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import batch_driver
from tests.crash.sink_bench import DEADLINE_S, SinkBench
from tests.crash.steps.sink_steps import BETWEEN_ENDS, DECIDED, FLUSHED


@pytest.fixture
def one(tmp_path: Path) -> Iterator[SinkBench]:
    """Three brokers, and a sink for each of the steps at which the coordinator dies."""
    made = SinkBench(tmp_path, (FLUSHED, DECIDED, BETWEEN_ENDS), brokers=3)
    yield made
    made.close()


@pytest.mark.timeout(400)
def test_each_row_of_a_batch_is_there_once_though_the_coordinator_dies_after_writing_deciding_and_between_two_ends(
    one: SinkBench,
) -> None:
    with batch_driver.stopped_at_steps(one) as drivers:
        one.kill("coordinator")
        one.control.release()
        assert [driver.wait(DEADLINE_S) for driver in drivers] == [0, 0, 0]
    one.broker.start()
    batch_driver.check(one)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_each_row_is_seen_once_though_the_coordinator_dies_after_writing_deciding_and_between_two_ends(
    one: SinkBench,
) -> None:
    one.stop_everywhere()
    one.kill("coordinator")
    one.control.release()
    one.idle()
    one.broker.start()
    one.finish()
    assert one.driver.failures() == []
