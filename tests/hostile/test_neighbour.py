"""The clocks by which an honest client is judged count the work of the processes they are given, and not that of others."""

import os
import subprocess
import sys
import time

import pytest

from tests.hostile.neighbour import Clock, ProcessorClock

_SPUN_S = 0.3
_SPIN = f"import time\nwhile time.process_time() < {_SPUN_S}: pass\nprint(); input()"


def _spinning(program: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_time_that_another_process_had_counts_only_where_its_work_does() -> None:
    with _spinning(_SPIN) as other:
        counted, left_out = Clock({os.getpid(), other.pid}), Clock({os.getpid()})
        began = counted.read(), left_out.read()
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
        passed = counted.read() - began[0], left_out.read() - began[1]
        other.communicate(b"\n")
    # It may have worked a moment before it was first looked at, and the kernel counts in ticks.
    worked_s = (passed[0] - passed[1]) * (os.cpu_count() or 1)
    assert worked_s == pytest.approx(_SPUN_S, abs=0.1)


def test_of_one_processor_the_time_of_the_own_processes_counts_and_not_what_another_has_of_it() -> None:
    processor = max(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{processor}}})\n{_SPIN}"
    with _spinning(spin) as own, _spinning(spin) as other:
        clock, began = ProcessorClock({own.pid}, processor), time.perf_counter()
        counted = clock.read()
        for each in (own, other):
            assert each.stdout is not None
            assert each.stdout.readline() == b"\n"
        counted, passed = clock.read() - counted, time.perf_counter() - began
        for each in (own, other):
            each.communicate(b"\n")
    # Neither had it for itself.
    assert passed > 2 * _SPUN_S - 0.1
    assert counted == pytest.approx(_SPUN_S, abs=0.15)
