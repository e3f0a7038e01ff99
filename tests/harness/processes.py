"""What the operating system says of processes."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """All living processes below `pid`."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        more = children.get(queue.pop(), [])
        found += more
        queue += more
    return found
