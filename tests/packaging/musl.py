"""A Python whose C library is musl, as Alpine's: ``python -m tests.packaging.musl FOLDER [MACHINE]``, on Debian for x86_64.

FOLDER then has the Python that zig makes of Debian's source for musl and MACHINE (``x86_64``, or ``aarch64``), and ``python``, a script
that starts it with musl's loader, or by qemu. Of what Python can do without it has zlib. Nothing is installed, and no root is needed: where
Debian's package of musl is installed, Spark takes the machine for one of musl's and finds no snappy. zig comes with
requirements-release.txt. It takes some minutes.
"""

import os
import sys
from pathlib import Path

from tests.packaging.foreign import SUITE, apt, emulator, packages, run, write_script

#: Debian's name of a processor, by Linux's.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
VERSION = "3.11"
#: The first release of Debian with a musl that loads what pyarrow's wheels have with them (relocations of the kind RELR).
SUITE_OF_MUSL = "trixie"
#: One of zig's tools as one word. Asked by Python's setup.py where it looks for headers it would name the machine's own.
TOOL = """\
#!/bin/sh
[ "$*" != "-E -v -" ] || exit 0
exec '{python}' -m ziglang {words} "$@"
"""
#: What `configure` would find out by programs that run.
FOUND = ("ac_cv_buggy_getaddrinfo=no", "ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no")
# As there, a process is started as the script, so that Python starts the script, too.
SCRIPT = """\
#!/bin/sh
PYTHONHOME='{home}' exec {start} '{home}/bin/python{version}' "$@"
"""


def tools(folder: Path, machine: str) -> dict[str, str]:
    """zig's compiler and archiver for musl, as variables of `configure`."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {"CC": f"cc -target {machine}-linux-musl -dynamic", "AR": "ar", "RANLIB": "ranlib"}
    for name, said in words.items():
        write_script(folder / name, TOOL.format(python=sys.executable, words=said))
    # configure wants one that is not named as the machine's own; that one reads files of each processor.
    write_script(folder / "READELF", '#!/bin/sh\nexec readelf "$@"\n')
    return {name: str(folder / name) for name in (*words, "READELF")}


def compiled(folder: Path, machine: str) -> Path:
    """Python of Debian's source, for musl."""
    apt_config = apt(folder / "apt-sources", ARCHITECTURES["x86_64"], SUITE)
    run("apt-get", "source", "-qq", "--download-only", f"python{VERSION}", "zlib", cwd=folder, APT_CONFIG=apt_config)
    for source in folder.glob("*.orig.tar.*"):
        if source.suffix != ".asc":
            run("tar", "--extract", "--file", source, "--directory", folder)
    (zlib,), (python,) = folder.glob("zlib-*/"), folder.glob("Python-*/")
    # Python says when it was built, which zig would have as an error.
    flags = {"CFLAGS": "-fPIC -O1 -g0 -w -Wno-error=date-time", **tools(folder / "tools", machine)}
    run("./configure", "--static", f"--prefix={folder}/zlib", cwd=zlib, **flags)
    run("make", "install", cwd=zlib)
    words = (
        f"--host={machine}-linux-musl",
        # Python takes the C library from what it is built on; another name than the host's says that nothing is to be run.
        "--build=x86_64-unknown-linux-musl",
        f"--with-build-python={sys.executable}",
        f"--prefix={folder}/installed",
        "--without-ensurepip",
        "--disable-test-modules",
    )
    found = (*FOUND, f"CPPFLAGS=-I{folder}/zlib/include", f"LDFLAGS=-L{folder}/zlib/lib")
    run("./configure", "--quiet", *words, *found, cwd=python, **flags, PKG_CONFIG="false")
    run("make", "--silent", f"--jobs={os.cpu_count()}", "install", cwd=python)
    return folder / "installed"


def make(folder: Path, machine: str) -> Path:
    """Make the folder, and give the script."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.absolute()
    root, script = folder / "root", folder / "python"
    for package in packages(folder / "apt", ARCHITECTURES[machine], "musl", suite=SUITE_OF_MUSL):
        run("dpkg", "--extract", package, root)
    # As in an installed Debian; programs name their loader so.
    (root / "lib").symlink_to("usr/lib")
    if machine == os.uname().machine:
        start = f"'{root}/lib/ld-musl-{machine}.so.1' --argv0 '{script}'"
    else:
        start = f"'{emulator(folder)}' -L '{root}' -0 '{script}'"
    write_script(script, SCRIPT.format(home=compiled(folder, machine), start=start, version=VERSION))
    return script


if __name__ == "__main__":
    if f"{sys.version_info.major}.{sys.version_info.minor}" != VERSION:
        raise SystemExit(f"Python {VERSION} compiles itself for another system; this is {sys.version.split()[0]}.")
    print(make(Path(sys.argv[1]), *(sys.argv[2:] or ["x86_64"])))
