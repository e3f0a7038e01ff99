"""A home of Spark whose Python workers start sooner.

Spark puts ``pyspark.zip`` before all else on the path of its Python workers, and Python compiles what it imports from there anew
in each process: more than a second of the processor's time for each of the processes that a test starts, which are many. Without
that file they take the same modules from where pyspark is installed, compiled once.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path


def prepare() -> None:
    """Let the sessions of this process and of its children have such a home, unless the environment names one."""
    found = importlib.util.find_spec("pyspark")
    if "SPARK_HOME" in os.environ or found is None or found.origin is None:
        return
    installed, home = Path(found.origin).parent, Path(tempfile.mkdtemp(prefix="pylog-spark-home-"))
    atexit.register(_remove, home, os.getpid())
    for entry in installed.iterdir():
        if entry.is_dir() and entry.name != "python":
            (home / entry.name).symlink_to(entry)
    libraries = home / "python" / "lib"
    libraries.mkdir(parents=True)
    for entry in (installed / "python" / "lib").glob("py4j-*.zip"):
        (libraries / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)


def _remove(home: Path, owner: int) -> None:
    """At the end of the process that made it; a child may have its parent's exit handlers."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)
