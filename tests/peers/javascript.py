"""What tests need of the npm registry, brought by `npm ci` at first use and kept: the JavaScript client, a browser and axe-core.

It lies in folders of `kept`: ``js``, ``browser`` and ``axe``.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.peers.kept import kept

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

    def make(folder: Path) -> None:
        _install(folder, name, what)
        then(folder)

    return kept(name, (_HERE / name / "package-lock.json").read_bytes(), make)


def _install(folder: Path, name: str, what: str) -> None:
    if shutil.which("npm") is None:
        raise RuntimeError(f"npm is missing, it brings {what} for the tests: install it (apt install npm).")
    folder.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name / file, folder)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm could not bring {what}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
