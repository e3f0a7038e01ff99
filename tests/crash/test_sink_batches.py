"""A batch with a name, written again after its driver was killed, and again: by then it is there, and it stays once.

In `make test` the drivers are the data source's own writer and tasks, without Spark's engine; a long run has Spark's, too.

Drivers that are held up while another driver does their work: `test_sink`. Spark's own speculation cannot be had here: a copy goes to
another host only. Two attempts at one task, and a late one, are in ``tests/spark/test_sink_protocol.py`` and
``tests/unit/spark/test_sink_interleavings.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.crash import batch_driver
from tests.crash.sink_bench import DEADLINE_S, SinkBench

# on three brokers: tests/cluster/test_sink_kill.py
pytestmark = [pytest.mark.long, pytest.mark.cluster]

_TIMEOUT_S = 900


@pytest.mark.timeout(_TIMEOUT_S)
def test_a_named_batch_whose_writer_was_killed_at_any_step_is_there_once_when_it_is_written_again_and_again(
    make_bench: Callable[..., SinkBench],
) -> None:
    bench = make_bench()
    with batch_driver.stopped_at_steps(bench):
        pass  # and killed
    assert batch_driver.start(bench, bench.sinks, times=2).wait(DEADLINE_S) == 0
    batch_driver.check(bench)


@pytest.mark.long
@pytest.mark.timeout(_TIMEOUT_S)
def test_a_named_batch_whose_spark_driver_was_killed_at_any_step_is_there_once_when_it_is_written_again_and_again(
    make_bench: Callable[..., SinkBench],
) -> None:
    bench = make_bench(batch_rows=batch_driver.ROWS)
    batch_driver.arm(bench)
    bench.driver.start()
    for step, query in bench.queries.items():
        bench.control.reached(step, query.key)
    bench.driver.kill(workers=True)
    bench.driver.plan = replace(bench.driver.plan, batch_times=2)
    bench.driver.start()
    bench.driver.stop()
    batch_driver.check(bench)
