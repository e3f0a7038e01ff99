"""The least that a log costs: a program that only writes a load's bytes into files, in turns, as a broker writes batches.

What the kernel needs to make and fill the pages of files is in it, and nothing else: no socket, no check, no index.
"""

import os
import resource
from pathlib import Path

from benchmarks.process import CpuSeconds

_WRITE_BYTES = 65_536


def write_files(folder: Path, files: int, size: int) -> CpuSeconds:
    """Write `size` bytes into each of `files` new files in `folder`, and keep them: user and system time of it."""
    folder.mkdir(parents=True)
    opened = [os.open(folder / str(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL) for number in range(files)]
    piece = os.urandom(_WRITE_BYTES)
    try:
        before = resource.getrusage(resource.RUSAGE_THREAD)
        for position in range(0, size, _WRITE_BYTES):
            for file in opened:
                os.pwrite(file, piece, position)
        after = resource.getrusage(resource.RUSAGE_THREAD)
    finally:
        for file in opened:
            os.close(file)
    return CpuSeconds(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)
