"""What a process costs, read from /proc. Linux only."""

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12  # fields behind the command name in /proc/PID/stat


def cpu_seconds(pid: int) -> float:
    """User and system time that the process has used, all threads, in steps of 10 ms."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_S


def rss_mib(pid: int) -> float:
    """Resident memory in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has no resident memory: it has ended")


def peak_rss_mib(pid: int) -> float:
    """Most memory that the process ever had in RAM, MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return peak / 1024
