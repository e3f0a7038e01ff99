"""Virtual environments with other versions of Spark, made once by pip and kept beside the peers' jars.

Everything but Spark is what requirements-dev.txt pins; a change of the pins makes a new environment.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.peers.kept import kept

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
    named_by = "\n".join([sys.version, *wanted]).encode()
    return kept(f"pyspark-{version}", named_by, partial(_install, wanted)) / "bin" / "python"


def _install(wanted: list[str], folder: Path) -> None:
    _run([sys.executable, "-m", "venv", "--copies", str(folder)])
    # The scripts of an environment name its first place, so pip is called as a module, and later only the interpreter.
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", *wanted])
    # Python workers start sooner without it (`tests/spark_home.py`).
    for archive in folder.glob("lib/python*/site-packages/pyspark/python/lib/pyspark.zip"):
        archive.unlink()


def _run(command: list[str]) -> None:
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:5])} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
