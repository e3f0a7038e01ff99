"""A batch with a name, written again after its driver was killed, and again: by then it is there, and it stays once.

Drivers that are held up while somebody else does their work: `test_sink`. Spark's own speculation cannot be had here: a copy goes to
another host only. Two attempts at one task, and a late one, are in ``tests/spark/test_sink_protocol.py`` and
``tests/unit/spark/test_sink_interleavings.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.crash.sink_bench import Bench, open_transactions, read

pytestmark = pytest.mark.cluster

_TIMEOUT_S = 900
_BATCH_ROWS = 1_000


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
    one.driver.plan = replace(one.driver.plan, batch_times=2)
    one.driver.start()
    one.driver.stop()
    expected = sorted(b"%d" % number for number in range(_BATCH_ROWS))
    for query in one.queries.values():
        rows = sorted(value for partition in range(2) for value in read(one.servers, query.sink, partition))
        assert rows == expected, f"{query.sink}: {len(rows)} rows instead of {len(expected)}"
    assert open_transactions(one.servers) == []
