"""The clock by which an honest client is judged counts the work of the processes it is given, and not that of others."""

import os
import subprocess
import sys

import pytest

from tests.hostile.neighbour import Clock

_SPUN_S = 0.3
_SPIN = f"import time\nwhile time.process_time() < {_SPUN_S}: pass\nprint(); input()"


def test_time_that_another_process_had_counts_only_where_its_work_does() -> None:
    with subprocess.Popen([sys.executable, "-c", _SPIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        counted, left_out = Clock({os.getpid(), other.pid}), Clock({os.getpid()})
        began = counted.read(), left_out.read()
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
        passed = counted.read() - began[0], left_out.read() - began[1]
        other.communicate(b"\n")
    # It may have worked a moment before it was first looked at, and the kernel counts in ticks.
    worked_s = (passed[0] - passed[1]) * (os.cpu_count() or 1)
    assert worked_s == pytest.approx(_SPUN_S, abs=0.1)
