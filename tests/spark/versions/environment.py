"""Virtual environments with other versions of Spark, made once by pip and kept beside the peers' jars.

Everything but Spark is what requirements-dev.txt pins. An environment appears only when it is complete, so an interrupted
installation is simply repeated; a change of the pins makes a new one.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.peers.jars import cache_dir

_ROOT = Path(__file__).parents[3]
#: What pylog's data source and listeners, Spark Connect and its pipelines import, with all that these need.
_PACKAGES = (
    "py4j", "pyarrow", "grpcio", "grpcio-status", "googleapis-common-protos", "protobuf", "typing_extensions",
    "zstandard", "pandas", "numpy", "python-dateutil", "six", "pytz", "tzdata", "PyYAML",
    "opentelemetry-api", "opentelemetry-sdk", "opentelemetry-semantic-conventions",
)  # fmt: skip


def pins() -> list[str]:
    """The lines of requirements-dev.txt that every version of Spark shares."""
    lines = (_ROOT / "requirements-dev.txt").read_text().splitlines()
    return [line for line in lines if line.partition("==")[0] in _PACKAGES]


def python_with_spark(version: str) -> Path:
    """The interpreter of an environment with pyspark `version`; pylog itself is found by PYTHONPATH.

    Raises
    ------
    RuntimeError
        When pip fails; the message is what it printed.
    """
    wanted = [f"pyspark=={version}", *pins()]
    name = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:8]
    folder = cache_dir() / f"pyspark-{version}-{name}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _install(folder, wanted)
    return folder / "bin" / "python"


def _install(folder: Path, wanted: list[str]) -> None:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--copies", str(part)])
    # The scripts of an environment name its first place, so pip is called as a module, and later only the interpreter.
    _run([str(part / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", *wanted])
    # Python workers start sooner without it (`tests/spark_home.py`).
    for archive in part.glob("lib/python*/site-packages/pyspark/python/lib/pyspark.zip"):
        archive.unlink()
    part.rename(folder)


def _run(command: list[str]) -> None:
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:5])} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
