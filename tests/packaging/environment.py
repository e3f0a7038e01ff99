"""Virtual environments that have the wheel alone: made by pip from a folder of wheels, so that no network is in what is timed.

The wheel is the one that ``PYLOG_TEST_WHEEL`` names, or is built from this tree with the profile dev, which `make test` has compiled.
"""

import os
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Of requirements-dev.txt, which packages an environment may need: exact versions, which pip has in its cache.
PINS = ROOT / "requirements-dev.txt"


def run(*words: object, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command without this Python's paths, and give what it prints. Raises `AssertionError` with what it says when it fails."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME")
    environment = {name: text for name, text in os.environ.items() if name not in hidden}
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=cwd, env={**environment, **variables}, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def pip(python: Path | str, *words: object) -> None:
    """Run pip of a Python."""
    run(python, "-m", "pip", "--disable-pip-version-check", *words, "--quiet")


def built(folder: Path) -> Path:
    """The wheel of this tree."""
    if given := os.environ.get("PYLOG_TEST_WHEEL"):
        return Path(given).absolute()
    maturin = Path(sys.executable).with_name("maturin")
    # The variable as make sets it: where it differs, pyo3 and all that needs it are compiled anew.
    run(maturin, "build", "--locked", "--quiet", "--profile", "dev", "--out", folder, VIRTUAL_ENV=sys.prefix)
    (wheel,) = folder.glob("pylog_spark-*.whl")
    return wheel


@dataclass(frozen=True)
class Wheels:
    """A wheel of pylog, and a folder with wheels of all that it needs with the extra ``spark``."""

    wheel: Path
    folder: Path

    @classmethod
    def gather(cls, wheel: Path, folder: Path) -> "Wheels":
        """Fetch what a wheel needs (pip's cache has it on a machine that made this environment)."""
        pip(sys.executable, "wheel", "--constraint", PINS, "--wheel-dir", folder, f"{wheel}[spark]")
        return cls(wheel, folder)

    def environment(self, place: Path, extras: str = "") -> tuple[Path, float]:
        """Make an empty environment and install the wheel; gives its Python, and the seconds that pip took."""
        venv.create(place, with_pip=True)
        python = place / "bin" / "python"
        began = time.monotonic()
        pip(python, "install", "--no-index", "--find-links", self.folder, f"{self.wheel}{extras}")
        return python, time.monotonic() - began
