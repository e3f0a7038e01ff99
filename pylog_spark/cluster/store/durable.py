"""Small files that survive a kill and a loss of power: either the old or the new content is there, complete.

Not thread-safe for two files of one directory: they share the name of the temporary file, which is ignored when it is left over.
Every function raises OSError.
"""

import os
from pathlib import Path

_TEMPORARY = "document.tmp"
_COMMON, _PRIVATE = 0o644, 0o600


def replace_file(file: Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` so that after a crash `file` has either its old or its new content, complete.

    A `private` file can be read by the owner alone, from its first byte on.
    """
    temporary = file.parent / _TEMPORARY
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE if private else _COMMON)
    try:
        if private:
            # One that is left over from a crash may have been another file's.
            os.fchmod(descriptor, _PRIVATE)
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, file)
    sync_directory(file.parent)


def make_directory(directory: Path) -> None:
    """Create `directory` and its parents, each one synced into its parent."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Sync a directory, so that files created, renamed or removed in it survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
