"""A core of its own for each executor of a `local-cluster`, as if it had a machine of one core. Linux only.

An executor is a JVM, Python workers and pylog's threads, of which three work at once for one task: on a machine of two cores a single executor of "one core" has
both, and a second one nothing to gain. Driver and brokers stay where the kernel puts them.
"""

import os
from contextlib import suppress
from pathlib import Path

from tests.harness.processes import descendants

_BACKEND = b"CoarseGrainedExecutorBackend"


def give_a_core_each(session: int, executors: int) -> None:
    """Bind each executor below the process `session`, with all its threads and children, to one core: those that it starts later inherit that.

    Raises RuntimeError when there are not as many executors, or not as many cores.
    """
    found = sorted(pid for pid in descendants(session) if _BACKEND in _command(pid))
    cores = sorted(os.sched_getaffinity(0))
    if len(found) != executors or len(cores) < executors:
        raise RuntimeError(f"{len(found)} executors on {len(cores)} cores, instead of {executors} with a core each")
    for pid, core in zip(found, cores, strict=False):
        for each in (pid, *descendants(pid)):
            _bind(each, core)


def _bind(pid: int, core: int) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), {core})


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
