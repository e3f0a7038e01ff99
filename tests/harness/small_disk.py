"""A small file system of its own for a test, so that it can be filled. Mounting one needs root; without it the test is skipped."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A tmpfs of `size_bytes` in a new folder, while the context is open."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a full disk needs a small file system, and mounting one needs root")
    folder.mkdir()
    mount(folder, size_bytes, "rw")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mount(folder: Path, size_bytes: int, how: str) -> None:
    """Mount a tmpfs; `how` is a mount option: "rw", or "remount" for another size."""
    command = ["mount", "-t", "tmpfs", "-o", f"{how},size={size_bytes}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"NOT TESTED: a full disk needs a small file system, and this machine mounts none: {done.stderr}")
