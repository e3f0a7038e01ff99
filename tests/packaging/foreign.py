"""A Python of another processor, run by qemu: ``python -m tests.packaging.foreign FOLDER``, on Debian.

FOLDER then has the Python that Debian ships for aarch64 (``root``), qemu's program for it, and ``python``, a script that runs the first
by the second; what it starts as ``sys.executable`` runs in the same way. Nothing is installed, and the lists of packages that it asks apt
for are its own. No root is needed. It takes what apt finds: whoever wants another Python names a script of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

ARCHITECTURE = "arm64"
#: The second is for pyarrow.
PACKAGES = ("python3", "libstdc++6")
#: What pip is to take wheels of, the newest first.
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
EMULATOR = "qemu-user-static"
SOURCES = """\
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
"""
SETTINGS = """\
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
"""
# The name that a process is given is where Python takes itself to be: so that it starts the script, too, and not what qemu runs.
SCRIPT = """\
#!/bin/sh
PYTHONHOME='{root}/usr' exec '{emulator}' -L '{root}' -0 '{script}' '{root}/usr/bin/python{version}' "$@"
"""


def run(*words: object, **variables: str) -> None:
    """Run a command; raises `subprocess.CalledProcessError` when it fails."""
    command = [str(word) for word in words]
    subprocess.run(command, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)


def packages(folder: Path, architecture: str, *names: str) -> list[Path]:
    """Download packages of Debian with all that they need, into a folder of their own."""
    for below in ("lists/partial", "cache/archives/partial"):
        (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(SOURCES)
    settings = folder / "apt.conf"
    settings.write_text(SETTINGS.format(folder=folder, architecture=architecture))
    run("apt-get", "-qq", "update", APT_CONFIG=str(settings))
    words = ("--yes", "-qq", "--download-only", "--no-install-recommends", *names)
    run("apt-get", "install", *words, APT_CONFIG=str(settings))
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def make(folder: Path) -> Path:
    """Make the folder, and give the script."""
    folder = folder.absolute()
    root, script = folder / "root", folder / "python"
    for package in packages(folder / "apt", ARCHITECTURE, *PACKAGES):
        run("dpkg", "--extract", package, root)
    for package in packages(folder / "apt-here", "amd64", EMULATOR):
        if package.name.startswith(EMULATOR):
            run("dpkg", "--extract", package, folder / "emulator")
    version = (root / "usr" / "bin" / "python3").readlink().name.removeprefix("python")
    emulator = folder / "emulator" / "usr" / "bin" / "qemu-aarch64-static"
    script.write_text(SCRIPT.format(root=root, emulator=emulator, script=script, version=version))
    script.chmod(0o755)
    return script


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
