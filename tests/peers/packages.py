"""Python programs that speak to brokers and are no part of the tests' environment: brought by `pip` at first use and kept.

They lie in a folder of `kept` for each program, named by ``NAME.txt``.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.peers.kept import kept


def packages(name: str) -> Path:
    """The folder of a program and of what it needs beside the tests' environment, for ``PYTHONPATH``.

    Raises
    ------
    RuntimeError
        When pip fails; the message is what it printed.
    """
    wanted = Path(__file__).with_name(f"{name}.txt")
    return kept(name, wanted.read_bytes(), partial(_install, name, wanted))


def _install(name: str, wanted: Path, folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(folder),
        "-r",
        str(wanted),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip could not bring {name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
