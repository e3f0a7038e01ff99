"""Logs that get shorter, seen from outside: a follower that gives up what its leader does not have.

Sizes are looked at many times a second, so a log that grows again at once may be missed: the count is a lower bound.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_S = 0.02


class Disks:
    """Counts shrinking partitions in some brokers' directories. Nothing in those tests is deleted by retention."""

    def __init__(self, directories: list[Path]) -> None:
        self._directories = directories
        self._sizes: dict[Path, int] = {}
        self.truncations = 0
        self._looking = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._thread.join()

    @contextmanager
    def unseen(self, directory: Path) -> Iterator[None]:
        """What gets shorter in here was not cut by a broker."""
        with self._looking:
            yield
            self._sizes = {one: size for one, size in self._sizes.items() if one.parent != directory}

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            for directory in self._directories:
                with self._looking:
                    for partition in directory.glob("*-[0-9]*"):
                        self._look(partition)

    def _look(self, partition: Path) -> None:
        # A file may go while it is looked at.
        with suppress(OSError):
            size = sum(file.stat().st_size for file in partition.glob("*.log"))
            self.truncations += size < self._sizes.get(partition, 0)
            self._sizes[partition] = size
