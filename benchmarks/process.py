"""What a process costs, read from /proc. Linux only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Fields behind the command name in /proc/PID/stat.
_UTIME, _STIME, _CHILDREN_UTIME, _CHILDREN_STIME = 11, 12, 13, 14


@dataclass(frozen=True)
class CpuSeconds:
    """User and system time, in steps of 10 ms."""

    user: float
    system: float

    @property
    def whole(self) -> float:
        """Both."""
        return self.user + self.system

    def __sub__(self, other: CpuSeconds) -> CpuSeconds:
        return CpuSeconds(self.user - other.user, self.system - other.system)

    def __mul__(self, factor: float) -> CpuSeconds:
        return CpuSeconds(self.user * factor, self.system * factor)


def cpu_parts(pid: int) -> CpuSeconds:
    """What the process has used, all threads."""
    fields = _stat(pid)
    return CpuSeconds(int(fields[_UTIME]) / _TICKS_PER_S, int(fields[_STIME]) / _TICKS_PER_S)


def cpu_seconds(pid: int) -> float:
    """User and system time that the process has used, all threads, in steps of 10 ms."""
    return cpu_parts(pid).whole


def cpu_seconds_with_ended(pid: int) -> float:
    """As `cpu_seconds`, and that of its children that have ended, with theirs."""
    fields = _stat(pid)
    return sum(int(fields[at]) for at in (_UTIME, _STIME, _CHILDREN_UTIME, _CHILDREN_STIME)) / _TICKS_PER_S


def program(pid: int) -> str:
    """The name of the file that the process runs."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _stat(pid: int) -> list[str]:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat[stat.rindex(")") + 2 :].split()


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
