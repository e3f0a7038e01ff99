"""Logs that get shorter, seen from outside: a follower that gives up what its leader does not have.

Sizes are looked at many times a second, so a log that grows again at once may be missed: the count is a lower bound.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.harness.waiting import pause

_LOOK_S = 0.02


class Disks:
    """Counts shrinking partitions in some brokers' directories, from `start` on. Nothing in those tests is deleted by retention."""

    def __init__(self, directories: list[Path]) -> None:
        self._directories = directories
        self._sizes: dict[str, int] = {}
        self.truncations = 0
        self._looking = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disks", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextmanager
    def unseen(self, directory: Path) -> Iterator[None]:
        """What gets shorter in here was not cut by a broker."""
        with self._looking:
            yield
            self._sizes = {path: size for path, size in self._sizes.items() if Path(path).parent != directory}

    def _run(self) -> None:
        while not pause(self._stopped, _LOOK_S):
            for directory in self._directories:
                # A broker may not have made it yet, and a file may go while it is looked at.
                with self._looking, suppress(OSError), os.scandir(directory) as found:
                    for partition in found:
                        if partition.name[-1].isdecimal() and "-" in partition.name:
                            self._look(partition.path)

    def _look(self, partition: str) -> None:
        with suppress(OSError), os.scandir(partition) as found:
            size = sum(file.stat().st_size for file in found if file.name.endswith(".log"))
            self.truncations += size < self._sizes.get(partition, 0)
            self._sizes[partition] = size
