"""The JavaScript client and how it is run: modules brought from the npm registry by `npm ci` at first use and kept.

They lie in ``$PYLOG_PEERS/js/node_modules``, by default under ``.cache/peers`` of the checkout. The folder appears only when it is
complete.
"""

import fcntl
import shutil
import subprocess
from pathlib import Path

from tests.peers.jars import cache_dir

_HERE = Path(__file__).parent / "js"


def modules() -> Path:
    """The folder of the modules, for ``NODE_PATH``.

    Raises
    ------
    RuntimeError
        When npm is missing or fails; the message is what it printed.
    """
    folder = cache_dir() / "js"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _install(folder)
    return folder / "node_modules"


def _install(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise RuntimeError(
            "npm is missing, it brings the JavaScript client for the tests: install it (apt install npm)."
        )
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name, part)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=part, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm could not bring the JavaScript client: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    part.rename(folder)
