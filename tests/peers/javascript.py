"""What tests need of the npm registry, brought by `npm ci` at first use and kept: the JavaScript client, a browser and axe-core.

It lies in ``$PYLOG_PEERS/{js,browser,axe}``, by default under ``.cache/peers`` of the checkout. A folder appears only when it is complete.
"""

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.peers.jars import cache_dir

_HERE = Path(__file__).parent


def modules() -> Path:
    """The folder of the JavaScript client's modules, for ``NODE_PATH``.

    Raises
    ------
    RuntimeError
        When npm is missing or fails; the message is what it printed.
    """
    return brought("js", "the JavaScript client") / "node_modules"


def axe() -> str:
    """The text of axe-core, a script that finds faults of accessibility in a page. Raises RuntimeError as `modules` does."""
    return (brought("axe", "axe-core") / "node_modules/axe-core/axe.min.js").read_text()


def brought(name: str, what: str, then: Callable[[Path], None] = lambda folder: None) -> Path:
    """The folder with what the ``package-lock.json`` of the folder `name` beside this file lists, and what `then` makes of it.

    Raises
    ------
    RuntimeError
        When npm is missing or fails; the message is what it printed.
    """
    folder = cache_dir() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                part = folder.with_suffix(".part")
                _install(part, name, what)
                then(part)
                part.rename(folder)
    return folder


def _install(part: Path, name: str, what: str) -> None:
    if shutil.which("npm") is None:
        raise RuntimeError(f"npm is missing, it brings {what} for the tests: install it (apt install npm).")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name / file, part)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=part, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm could not bring {what}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
