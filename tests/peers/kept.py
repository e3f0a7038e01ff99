"""Folders with what tests bring or build once and keep, below ``$PYLOG_PEERS``, by default ``.cache/peers`` of the checkout.

A folder's name ends with the checksum of what names its content, so a newer version is made anew. It appears only when it is complete, so what was
interrupted is simply repeated; of several processes one makes it.
"""

import fcntl
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent


def cache_dir() -> Path:
    """Where the folders are."""
    return Path(os.environ.get("PYLOG_PEERS") or _ROOT / ".cache" / "peers")


def place(name: str, named_by: bytes) -> Path:
    """Where the folder of this content is, or will be."""
    return cache_dir() / f"{name}-{zlib.crc32(named_by):08x}"


def kept(name: str, named_by: bytes, make: Callable[[Path], None]) -> Path:
    """The folder, made when it is not there yet.

    Parameters
    ----------
    name : str
        The beginning of its name.
    named_by : bytes
        What names its content, such as a file with versions.
    make : callable
        Makes the content in a folder that is not there yet, under another name; what it raises is raised here.
    """
    folder = place(name, named_by)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                part = folder.with_name(f"{folder.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                make(part)
                part.rename(folder)
    return folder
