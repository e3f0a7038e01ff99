"""The machine that a broker believes to be on: its power can be cut, and its wall clock jumps. Linux only.

A broker starts with `machine.c` loaded before all else. A loss of power is kill -9, and then every file loses some or all of
the bytes behind its last fsync; names of files survive, and so do bytes that were written over (the log only appends). `lose_unnamed`
takes the names, too, of files and folders that were not synced; what was deleted stays so.
"""

import functools
import random
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pylog_spark.broker.clustered import BOOT
from pylog_spark.testing.local_broker import PROGRAM

_SOURCE = Path(__file__).with_suffix(".c")
_NS = 1_000_000_000


@functools.cache
def _compiled() -> bytes:
    """The library that is loaded before all else, compiled once for all machines of this process."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "machine.so"
        command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library, _SOURCE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return library.read_bytes()


class Machine:
    """The machine of one broker.

    Parameters
    ----------
    folder : Path
        For what it remembers, and the library; made here.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._library = folder / "machine.so"
        self._library.write_bytes(_compiled())
        self.set_clock(0)

    @property
    def program(self) -> Sequence[str]:
        """What runs a broker on it, in place of `PROGRAM`."""
        return ("env", f"LD_PRELOAD={self._library}", f"PYLOG_TEST_MACHINE={self._folder}", *PROGRAM)

    def set_clock(self, ahead_s: int) -> None:
        """The wall clock goes so many seconds before (or, less than 0, behind) that of this machine, from now on."""
        with open(self._folder / "clock", "r+b" if (self._folder / "clock").exists() else "wb") as file:
            file.write((ahead_s * _NS).to_bytes(8, "little", signed=True))

    def lose_unsynced(self, data_dir: Path, randomness: random.Random | None) -> int:
        """Cut the files of a broker that does not run back to what is durable, or to something between; the bytes lost.

        Without `randomness` all that may be lost is.
        """
        durable = self._durable()
        lost = 0
        for file in sorted(path for path in data_dir.rglob("*") if path.is_file()):
            found = file.stat()
            safe = min(durable.get(found.st_ino, 0), found.st_size)
            kept = safe
            if randomness is not None:
                # Writeback had its own idea of what was urgent.
                kept = randomness.choice((safe, safe, randomness.randint(safe, found.st_size), found.st_size))
            if kept < found.st_size:
                lost += found.st_size - kept
                with open(file, "r+b") as cut:
                    cut.truncate(kept)
        # The machine comes back with another boot id than the broker noted.
        noted = data_dir / BOOT
        if noted.exists() and noted.stat().st_size:
            noted.write_text("of a start before")
        return lost

    def lose_unnamed(self, top: Path) -> int:
        """Remove what stands in a folder, or below, under a name that was not made durable, with all below it; how many names those were."""
        journal = self._folder / "named"
        named = set(journal.read_text().splitlines()) if journal.exists() else set()
        lost = [path for path in top.iterdir() if f"{top.stat().st_ino} {path.name}" not in named]
        for path in lost:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        return len(lost) + sum(self.lose_unnamed(path) for path in top.iterdir() if path.is_dir())

    def forget_names(self) -> None:
        """From here on no name is known to be durable: as after a kill that came before the folders were synced."""
        (self._folder / "named").unlink()

    def _durable(self) -> dict[int, int]:
        """Bytes that are durable, by inode."""
        journal = self._folder / "synced"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return {int(inode): int(size) for inode, size in (line.split() for line in lines)}
