"""Python programs that speak to brokers and are no part of the tests' environment: brought by `pip` at first use and kept.

They lie in ``$PYLOG_PEERS/NAME-SUM``, by default under ``.cache/peers`` of the checkout; SUM is the checksum of what names them (``NAME.txt``). The
folder appears only when it is complete.
"""

import fcntl
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from tests.peers.jars import cache_dir


def packages(name: str) -> Path:
    """The folder of a program and of what it needs beside the tests' environment, for ``PYTHONPATH``.

    Raises
    ------
    RuntimeError
        When pip fails; the message is what it printed.
    """
    wanted = Path(__file__).with_name(f"{name}.txt")
    folder = cache_dir() / f"{name}-{zlib.crc32(wanted.read_bytes()):08x}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _install(name, wanted, folder)
    return folder


def _install(name: str, wanted: Path, folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(part), "-r", str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip could not bring {name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    part.rename(folder)
