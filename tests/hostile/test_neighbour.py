"""The clocks by which an honest client is judged count the work of the processes they are given, and not that of others."""

import os
import sys
import time

import pytest

from tests.harness.children import PipedChild
from tests.hostile.neighbour import Clock, ProcessorClock

_SPUN_S = 0.3
#: It says when it has started, and works when it gets a line.
_SPIN = (
    "import time\nprint(flush=True); input(); end = time.process_time() + "
    f"{_SPUN_S}\nwhile time.process_time() < end: pass\nprint(flush=True); input()"
)


def _spinning(program: str) -> PipedChild:
    """Such a process, when it has started."""
    started = PipedChild([sys.executable, "-c", program])
    assert started.line() == ""
    return started


def test_time_that_another_process_had_counts_only_where_its_work_does() -> None:
    with _spinning(_SPIN) as other:
        counted, left_out = Clock({os.getpid(), other.pid}), Clock({os.getpid()})
        began = counted.read(), left_out.read()
        assert other.ask("") == ""
        passed = counted.read() - began[0], left_out.read() - began[1]
        other.rest()
    # The kernel counts in ticks.
    worked_s = (passed[0] - passed[1]) * (os.cpu_count() or 1)
    assert worked_s == pytest.approx(_SPUN_S, abs=0.1)


def test_of_one_processor_the_time_of_the_own_processes_counts_and_not_what_another_has_of_it() -> None:
    processor = max(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{processor}}})\n{_SPIN}"
    with _spinning(spin) as own, _spinning(spin) as other:
        clock, began = ProcessorClock({own.pid}, processor), time.perf_counter()
        counted = clock.read()
        for each in (own, other):
            each.say("")
        for each in (own, other):
            assert each.line() == ""
        counted, passed = clock.read() - counted, time.perf_counter() - began
        for each in (own, other):
            each.rest()
    # Neither had it for itself.
    assert passed > 2 * _SPUN_S - 0.1
    assert counted == pytest.approx(_SPUN_S, abs=0.15)
