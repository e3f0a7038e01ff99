"""Memory that the machine really has, before something is measured that fills it.

A virtual machine gets a page from its host when it touches it for the first time (and again, when it has left it unused for long), which
costs ten times what it costs to write into a page that it has. A load that fills the page cache would measure that, more or less by
chance, on both sides. So all free memory is touched before each round: `touch_free_memory`.
"""

import mmap
import subprocess
import sys
from pathlib import Path

#: Left alone, so that nothing has to give way.
_SPARE_BYTES = 1 << 30


def touch_free_memory() -> None:
    """Touch nearly all free memory, in a process that ends: seconds, some more the first time."""
    subprocess.run([sys.executable, "-m", __name__], cwd=Path(__file__).parent.parent, check=False)


def _main() -> None:
    # Where less may be used than is free, the kernel is to end this process and no other.
    Path("/proc/self/oom_score_adj").write_text("1000")
    size = _free_bytes() - _SPARE_BYTES
    if size > 0:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def _free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    (free,) = (int(line.split()[1]) for line in lines if line.startswith("MemFree:"))
    return free * 1024


if __name__ == "__main__":
    _main()
