"""A Python of another processor, run by qemu: ``python -m tests.packaging.foreign FOLDER``, on Debian.

FOLDER then has the Python that Debian ships for aarch64 (``root``), qemu's program for it, and ``python``, a script that runs the first
by the second; what it starts as ``sys.executable`` runs in the same way. Nothing is installed, and the lists of packages that it asks apt
for are its own. No root is needed. It takes what apt finds: whoever wants another Python names a script of their own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ARCHITECTURE = "arm64"
#: The release of Debian whose Python it is.
SUITE = "bookworm"
#: The second is for pyarrow.
PACKAGES = ("python3", "libstdc++6")
#: What pip is to take wheels of, by the C library that a wheel's platform names; the newest first.
PLATFORMS = {
    "manylinux": ("manylinux_2_28_{}", "manylinux_2_17_{}", "manylinux2014_{}"),
    "musllinux": ("musllinux_1_2_{}", "musllinux_1_1_{}"),
}
EMULATOR = "qemu-user-static"
SOURCES = """\
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {suite} main
deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {suite} main
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


def platforms(wheel: Path) -> tuple[str, list[str]]:
    """The processor that a wheel is for, and the platforms whose wheels run beside it."""
    # pylog_spark-0.1.0-cp310-abi3-musllinux_1_2_x86_64.whl
    matched = re.search(r"-(manylinux|musllinux)(?:2014|_\d+_\d+)_(x86_64|aarch64)(?:\.|$)", wheel.stem)
    if matched is None:
        raise ValueError(f"{wheel.name} names no platform of Linux.")
    library, machine = matched.groups()
    return machine, [platform.format(machine) for platform in PLATFORMS[library]]


def run(*words: object, cwd: Path | None = None, **variables: str) -> None:
    """Run a command; raises `subprocess.CalledProcessError` when it fails."""
    command = [str(word) for word in words]
    subprocess.run(command, cwd=cwd, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)


def apt(folder: Path, architecture: str, suite: str) -> str:
    """The settings, as a file, of an apt that has lists of its own in a folder: of the packages and the sources of a release of Debian."""
    for below in ("lists/partial", "cache/archives/partial"):
        (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(SOURCES.format(suite=suite))
    settings = folder / "apt.conf"
    settings.write_text(SETTINGS.format(folder=folder, architecture=architecture))
    run("apt-get", "-qq", "update", APT_CONFIG=str(settings))
    return str(settings)


def packages(folder: Path, architecture: str, *names: str, suite: str = SUITE) -> list[Path]:
    """Download packages of a release of Debian with all that they need, into a folder of their own."""
    words = ("--yes", "-qq", "--download-only", "--no-install-recommends", *names)
    run("apt-get", "install", *words, APT_CONFIG=apt(folder, architecture, suite))
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def write_script(path: Path, text: str) -> None:
    """Write a program of text."""
    path.write_text(text)
    path.chmod(0o755)


def emulator(folder: Path) -> Path:
    """qemu's program for aarch64, in a folder."""
    for package in packages(folder / "apt-here", "amd64", EMULATOR):
        if package.name.startswith(EMULATOR):
            run("dpkg", "--extract", package, folder / "emulator")
    return folder / "emulator" / "usr" / "bin" / "qemu-aarch64-static"


def make(folder: Path) -> Path:
    """Make the folder, and give the script."""
    folder = folder.absolute()
    root, script = folder / "root", folder / "python"
    for package in packages(folder / "apt", ARCHITECTURE, *PACKAGES):
        run("dpkg", "--extract", package, root)
    version = (root / "usr" / "bin" / "python3").readlink().name.removeprefix("python")
    write_script(script, SCRIPT.format(root=root, emulator=emulator(folder), script=script, version=version))
    return script


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
