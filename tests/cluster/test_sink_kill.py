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
def bench(tmp_path: Path) -> Iterator[SinkBench]:
    """Three brokers, and a sink for each of the steps at which the coordinator dies."""
    made = SinkBench(tmp_path, (FLUSHED, DECIDED, BETWEEN_ENDS), brokers=3)
    yield made
    made.close()


@pytest.mark.timeout(400)
def test_each_row_of_a_batch_is_there_once_though_the_coordinator_dies_after_writing_deciding_and_between_two_ends(
    bench: SinkBench,
) -> None:
    with batch_driver.stopped_at_steps(bench) as drivers:
        bench.kill("coordinator")
        bench.control.release()
        assert [driver.wait(DEADLINE_S) for driver in drivers] == [0, 0, 0]
    bench.broker.start()
    batch_driver.check(bench)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_each_row_is_seen_once_though_the_coordinator_dies_after_writing_deciding_and_between_two_ends(
    bench: SinkBench,
) -> None:
    bench.stop_everywhere()
    bench.kill("coordinator")
    bench.control.release()
    bench.idle()
    bench.broker.start()
    bench.finish()
    assert bench.driver.failures() == []
