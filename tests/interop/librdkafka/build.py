"""Brings librdkafka's source by cargo and builds its test programs. Kept in `.cache/librdkafka` of the checkout.

A folder appears only when it is complete, so an interrupted build is simply repeated.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent.parent
_CRATE = "rdkafka-sys"
_CONFIGURE = ["./configure", "--disable-gssapi", "--disable-syslog", "--disable-curl"]


def cache_dir() -> Path:
    """Where the built source is kept; ``PYLOG_LIBRDKAFKA`` names another place."""
    return Path(os.environ.get("PYLOG_LIBRDKAFKA") or _ROOT / ".cache" / "librdkafka")


def built() -> Path:
    """The folder with librdkafka, built with its ``tests/test-runner``.

    Raises
    ------
    RuntimeError
        When cargo, the C compiler or make fails; the message is the end of what it printed.
    """
    folder = cache_dir()
    if not (folder / "tests" / "test-runner").exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(_source(), part)
        for script in (*part.glob("configure*"), *part.glob("*.py"), *part.glob("tests/*.sh")):
            script.chmod(0o755)
        _run(_CONFIGURE, part)
        _run(["make", "libs"], part)
        _run(["make", "-C", "tests", "build"], part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return folder


def _source() -> Path:
    manifest = ["--manifest-path", str(_HERE / "Cargo.toml")]
    _run(["cargo", "fetch", *manifest], _HERE)
    words = ["cargo", "metadata", "--format-version", "1", "--offline", *manifest]
    packages = json.loads(_run(words, _HERE))["packages"]
    crate = next(package for package in packages if package["name"] == _CRATE)
    return Path(crate["manifest_path"]).parent / "librdkafka"


def _run(words: list[str], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
