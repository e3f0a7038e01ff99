"""A bare Debian in a folder, as debootstrap makes it: nothing but git, make, and the Rust of this machine, which it may only read.

Commands run in it by chroot, as root or as a user, in namespaces of their own: what is mounted for one, and each process that it leaves,
goes with it. It reaches the registries of packages as this machine does (`_settle`). Making one needs root and the network.
"""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where the clone of this project is, and the home of the user.
PROJECT, _HOME = "/srv/somebody/pylog", "/srv/somebody"
_USER = 1000
_RUST = "/opt/rust"
_DEADLINE_S = 1800
_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
#: Files that say how registries are reached; `~` is the home.
_CONFIGURATION = (
    "/etc/hosts", "/etc/resolv.conf", "/etc/pip.conf", "/etc/npmrc", "/etc/maven/settings.xml",
    "~/.config/pip/pip.conf", "~/.pip/pip.conf", "~/.npmrc", "~/.cargo/config.toml", "~/.m2/settings.xml",
)  # fmt: skip
_VARIABLES = re.compile(
    r"(?i)(https?|all|no)_proxy|.*CA_?(BUNDLE|CERTS|INFO)|SSL_CERT_\w+|PIP_(CERT|PROXY|\w*INDEX_URL|DEFAULT_TIMEOUT)"
    r"|NPM_CONFIG_(REGISTRY|\w*PROXY|CAFILE)|CARGO_(HTTP|NET|REGISTR|SOURCE)\w*|MAVEN_(OPTS|ARGS)"
)
_APT = re.compile(r"^Acquire::(?:https?|Check|Retries|ForceIP).*", re.MULTILINE | re.IGNORECASE)
# $1 is the folder of the system, $2 the machine's Rust, $3 who runs it, and the rest is the command.
_ENTER = f"""
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --bind "$2" "$1{_RUST}" &&
mount -o remount,bind,ro "$1{_RUST}" && root=$1 user=$3 && shift 3 && exec chroot --userspec="$user" "$root" "$@"
"""


@dataclass(frozen=True)
class Bare:
    """A system in `folder`; `rust` is the folder of the toolchain that it sees."""

    folder: Path
    rust: Path

    @classmethod
    def make(cls, release: str, folder: Path, owner: str) -> "Bare":
        """One of a release of Debian, where ``root`` or ``somebody`` has a clone of this project's last commit. Skips the test where none can be made."""
        if os.geteuid() != 0:
            pytest.skip("NOT TESTED: a bare system is made by debootstrap and entered by chroot, which need root")
        if shutil.which("debootstrap") is None:
            if shutil.which("apt-get") is None:
                pytest.skip("NOT TESTED: a bare system is made by debootstrap, which this machine lacks")
            for words in (["update"], ["install", "--yes", "debootstrap", "debian-archive-keyring"]):
                _run("apt-get", *words, DEBIAN_FRONTEND="noninteractive")
        rust = Path(_run("rustc", "--print", "sysroot").strip())
        assert (rust / "bin" / "cargo").exists(), f"{rust} has no cargo"
        _run("debootstrap", "--variant=minbase", "--include=ca-certificates,git,make", release, folder)
        system = cls(folder, rust)
        system._settle()
        _run("git", "clone", "--quiet", ROOT, system.inside(PROJECT))
        if owner != "root":
            _run("chown", "--recursive", f"{_USER}:{_USER}", system.inside(_HOME))
        return system

    def inside(self, path: str) -> Path:
        """Where a path of the system is on this machine."""
        return self.folder / path.lstrip("/")

    def command(self, *words: str, user: str = "root", **variables: str) -> list[str]:
        """The words that run a command in the project, as ``root`` or ``somebody``, with nothing of this environment but how registries are reached."""
        home = "/root" if user == "root" else _HOME
        path = f"{_RUST}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        reached = {name: text for name, text in os.environ.items() if _VARIABLES.fullmatch(name)}
        settings = {"PATH": path, "HOME": home, "USER": user, "LANG": "C.UTF-8", **reached, **variables}
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER, "sh"]
        place = [str(self.folder), str(self.rust), "0:0" if user == "root" else f"{_USER}:{_USER}"]
        environment = ["env", "-i", *(f"{name}={text}" for name, text in settings.items())]
        return [*enter, *place, *environment, "sh", "-c", f'cd {PROJECT} && exec "$@"', "sh", *words]

    def run(self, *words: str, user: str = "root", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run such a `command`; what it prints, errors too, is its stdout."""
        return subprocess.run(
            self.command(*words, user=user, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )

    def remove(self) -> None:
        """Delete it, and nothing that might be mounted in it still."""
        _run("rm", "--recursive", "--force", "--one-file-system", self.folder)

    def installed(self) -> set[str]:
        """The names of the packages that the system has."""
        return set(self.run("dpkg-query", "--show", "--showformat", "${Package}\n").stdout.split())

    def let_use_sudo(self, *, without_password: bool) -> None:
        """Install sudo where it is missing, and let the user use it."""
        if "sudo" not in self.installed():
            done = self.run("apt-get", "install", "--yes", "--quiet", "sudo", DEBIAN_FRONTEND="noninteractive")
            assert done.returncode == 0, done.stdout
        tag = "NOPASSWD" if without_password else "PASSWD"
        self.inside("/etc/sudoers.d/somebody").write_text(f"somebody ALL=(ALL) {tag}: ALL\n")

    def _settle(self) -> None:
        """Give it a user, and the ways of this machine to the registries: certificates, settings of apt and of clients."""
        for file, line in (
            ("/etc/passwd", f"somebody:x:{_USER}:{_USER}::{_HOME}:/bin/bash\n"),
            ("/etc/group", f"somebody:x:{_USER}:\n"),
            ("/etc/shadow", "somebody:*:20000:0:99999:7:::\n"),
        ):
            with self.inside(file).open("a") as opened:
                opened.write(line)
        for home in (_HOME, "/root"):
            for name in _CONFIGURATION:
                source, target = Path(name).expanduser(), self.inside(name.replace("~", home))
                if source.is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
        self.inside("/etc/apt/apt.conf.d/machine").write_text(
            "\n".join(_APT.findall(_run("apt-config", "dump"))) + "\n"
        )
        self.inside(_RUST).mkdir()
        self.inside(_HOME).mkdir(exist_ok=True)
        own, machine = self.inside(_BUNDLE).read_text(), Path("/", _BUNDLE)
        blocks = re.findall(
            r"-----BEGIN.*?-----END[^\n]*\n", machine.read_text() if machine.exists() else "", re.DOTALL
        )
        for number, certificate in enumerate(each for each in blocks if each not in own):
            self.inside(f"/usr/local/share/ca-certificates/machine-{number}.crt").write_text(certificate)
        # The clone's folder is not there yet.
        done = subprocess.run(
            ["chroot", self.folder, "update-ca-certificates"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def _run(*words: object, **variables: str) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
    )
    assert done.returncode == 0, f"{shlex.join(command)}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
