"""A Chromium without a screen: the machine's own, or one from the npm registry, with the libraries and fonts that it needs.

Of the npm package only its compressed files are used, not its code: Node unpacks them.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

from tests.peers.javascript import brought

_OWN = ("chromium", "chromium-browser", "google-chrome")
_PACKED = Path("node_modules/@sparticuz/chromium/bin")
_UNPACK = """
const {createReadStream, createWriteStream} = require('node:fs');
const {createBrotliDecompress} = require('node:zlib');
const {pipeline} = require('node:stream/promises');
const [from, to] = process.argv.slice(1);
pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to))
  .catch((error) => { console.error(error); process.exit(1); });
"""
# The package's font, for machines without any, and the system's.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
</fontconfig>
"""


class Chromium(NamedTuple):
    """The program, and the environment that it needs."""

    program: str
    environment: dict[str, str]


def chromium() -> Chromium:
    """The browser.

    Raises
    ------
    RuntimeError
        When the machine has none and npm cannot bring one; the message says why.
    """
    for name in _OWN:
        if (found := shutil.which(name)) is not None:
            return Chromium(found, dict(os.environ))
    folder = brought("browser", "Chromium", _unpack)
    libraries = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH", ""), str(folder / "lib")]))
    return Chromium(
        str(folder / "chromium"),
        {**os.environ, "LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(folder / "fonts.conf")},
    )


def _unpack(folder: Path) -> None:
    for name in ("al2023.tar", "fonts.tar", "chromium"):
        command = ["node", "-e", _UNPACK, str(folder / _PACKED / f"{name}.br"), str(folder / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"Chromium could not be unpacked: {done.stderr[-2000:]}")
        if name.endswith(".tar"):
            with tarfile.open(folder / name) as packed:
                # Python 3.10 and 3.11 have filters only in their later releases; what is unpacked is pinned by its hash.
                packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            (folder / name).unlink()
    (folder / "chromium").chmod(0o755)
    (folder / "fonts.conf").write_text(_FONTS)
    shutil.rmtree(folder / "node_modules")
