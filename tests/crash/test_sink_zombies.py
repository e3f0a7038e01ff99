"""Those who come back: drivers that were held up while somebody else did their work, and batches that are written again. Nothing of a
zombie becomes visible, and it holds readers back until the next commit at the latest.

Spark's own speculation cannot be had here: a copy goes to another host only. Two attempts at one task, and a late one, are in
``tests/spark/test_sink_protocol.py`` and ``tests/unit/spark/test_sink_interleavings.py``.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.sink_bench import Bench, Driver, open_transactions, read, wait_for
from tests.crash.steps.sink_steps import STEPS

pytestmark = pytest.mark.cluster

_TIMEOUT_S = 900
_BATCH_ROWS = 1_000


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_a_driver_that_was_stopped_at_any_step_and_goes_on_after_another_took_over_changes_nothing(
    bench: Callable[..., Bench], tmp_path: Path
) -> None:
    last_life = tmp_path / "last-life"
    one = bench(last_life=str(last_life))
    stopped = one.stop_everywhere()
    old = one.driver
    before = len(old.failures())
    old.signal(signal.SIGSTOP)
    last_life.touch()
    try:
        one.control.leave(stopped.values())
        one.driver = Driver(replace(old.plan, last_life=""))
        one.driver.start()
        one.idle()
        one.control.release_files()
        old.signal(signal.SIGCONT)
        wait_for("the old driver has met the new one", lambda: len(old.failures()) == before + len(STEPS))
        one.finish()
    finally:
        old.close()


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_a_named_batch_whose_driver_was_killed_at_any_step_is_there_once_when_it_is_written_again_and_again(
    bench: Callable[..., Bench],
) -> None:
    one = bench(batch_rows=_BATCH_ROWS)
    for step, query in one.queries.items():
        query.key = f"{query.sink}/{query.sink}"
        one.control.arm(step, query.key)
    one.driver.start()
    for step, query in one.queries.items():
        one.control.reached(step, query.key)
    one.driver.kill(workers=True)
    for _ in range(2):
        one.driver.start()
        one.driver.stop()
    expected = sorted(b"%d" % number for number in range(_BATCH_ROWS))
    for query in one.queries.values():
        rows = sorted(value for partition in range(2) for value in read(one.servers, query.sink, partition))
        assert rows == expected, f"{query.sink}: {len(rows)} rows instead of {len(expected)}"
    assert open_transactions(one.servers) == []
