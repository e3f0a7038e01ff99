""".ci/preflight brings the packages that are missing, or names the line that does, and make asks it before it builds anything."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "broker_native" / "Cargo.toml"
_TOOLS = ("bash", "cat", "cp", "cut", "dirname", "env", "head", "mktemp", "rm", "sed", "sh", "true")
_GOOD: dict[str, str | None] = {
    "python3": "exit 0",
    "java": "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2",
    "cargo": "exit 0",
    "rustc": "echo 'rustc 1.95.0 (59807616e 2026-04-14)'",
    "cc": "exit 0",
    "kcat": "exit 0",
    "mvn": "exit 0",
    "npm": "exit 0",
    "openssl": "exit 0",
    "prometheus": "exit 0",
    "promtool": "exit 0",
    "id": "echo 1000",
    # What it is asked for is noted; it brings a kcat and a Java, whatever that is.
    "apt-get": """cd "${0%/*}" && echo "$*" >>asked && case "$*" in *install*) cp packages/* . ;; esac""",
}
_BROUGHT = ("java", "kcat")
_OLD = "exit 10"
_WITHOUT_VENV = "exit 11"
_ROOT = "echo 0"


def asked_rust() -> str:
    """The oldest Rust that Cargo.toml asks for, which the script reads there."""
    (version,) = re.findall(r'^rust-version = "(.+)"$', MANIFEST.read_text(), re.MULTILINE)
    return str(version)


def preflight(folder: Path, what: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has _GOOD, but for what is changed: another script, or None for missing."""
    for tool in _TOOLS:
        (folder / tool).symlink_to(str(shutil.which(tool)))
    python = changed.pop("PYTHON", None)
    (folder / "packages").mkdir()
    machine = {**_GOOD, **{name.replace("_", "-"): script for name, script in changed.items()}}
    for name, script in [*machine.items(), *((f"packages/{name}", _GOOD[name]) for name in _BROUGHT)]:
        if script is not None:
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
    environment = {"PATH": str(folder), **({"PYTHON": python} if python else {})}
    command = [str(ROOT / ".ci" / "preflight"), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def asked(folder: Path) -> str:
    """What apt-get was asked for."""
    return (folder / "asked").read_text() if (folder / "asked").exists() else ""


@pytest.mark.parametrize("what", ["build", "test", "all"])
def test_a_machine_that_has_all_passes_in_silence(tmp_path: Path, what: str) -> None:
    done = preflight(tmp_path, what, id=_ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert asked(tmp_path) == ""


@pytest.mark.parametrize(
    ("tool", "script", "name", "packages"),
    [
        ("python3", None, "Python 3.10 or newer", "python3 python3-venv"),
        ("python3", _WITHOUT_VENV, "the venv module of python3", "python3-venv"),
        ("java", None, "Java 17 or newer", "default-jre-headless"),
        ("java", "echo 'java version \"1.8.0_292\"' >&2", "Java 17 or newer", "default-jre-headless"),
        ("cc", None, "a C compiler", "gcc libc6-dev"),
        ("cc", "exit 1", "a C compiler", "gcc libc6-dev"),
        ("kcat", None, "kcat", "kcat"),
        ("mvn", None, "Maven", "maven"),
        ("npm", None, "npm", "npm"),
        ("openssl", None, "openssl", "openssl"),
    ],
)
def test_packages_that_are_missing_are_named_in_one_line_to_paste(
    tmp_path: Path, tool: str, script: str | None, name: str, packages: str
) -> None:
    done = preflight(tmp_path, "test", sudo="exit 1", **{tool: script})
    assert (done.returncode, done.stdout, asked(tmp_path)) == (1, "", "")
    said, line = done.stderr.splitlines()
    assert said.startswith(f"Missing: {name}. ")
    assert line == f"sudo apt-get update && sudo apt-get install --yes --no-install-recommends {packages}"


@pytest.mark.parametrize(
    ("tool", "script", "words"),
    [
        ("python3", _OLD, "python3 is older than Python 3.10"),
        ("python3", "exit 127", "python3 does not start"),
        ("cargo", None, "Rust {rust} or newer is missing"),
        ("rustc", "exit 1", "Rust {rust} or newer is missing"),
        ("rustc", "echo 'rustc 1.84.1 (e71f9a9a9 2025-01-27)'", "Rust 1.84.1 is too old"),
    ],
)
def test_what_no_package_brings_is_named_in_one_sentence_and_nothing_is_installed(
    tmp_path: Path, tool: str, script: str | None, words: str
) -> None:
    done = preflight(tmp_path, "test", id=_ROOT, kcat=None, **{tool: script})
    assert (done.returncode, done.stdout, asked(tmp_path)) == (1, "", "")
    sentence, said, line = done.stderr.splitlines()
    assert words.format(rust=asked_rust()) in sentence
    assert sentence.endswith(".")
    assert said.startswith("Missing: kcat. ")
    assert line.startswith("apt-get update && apt-get install ")


def test_an_interpreter_that_the_user_names_is_looked_at_and_its_own_package_named(tmp_path: Path) -> None:
    done = preflight(
        tmp_path, "build", sudo="exit 1", PYTHON="python3.12", **{"python3.12": _WITHOUT_VENV}, python3=_OLD
    )
    assert done.stderr.endswith(" python3.12-venv\n")
    (tmp_path / "other").mkdir()
    done = preflight(tmp_path / "other", "build", PYTHON="python3.13")
    assert done.stderr == "python3.13 is missing: set PYTHON to an interpreter of Python 3.10 or newer.\n"


def test_building_needs_neither_kcat_nor_maven_nor_npm(tmp_path: Path) -> None:
    assert preflight(tmp_path, "build", kcat=None, mvn=None, npm=None).returncode == 0


def test_ubuntu_22_04_is_given_a_java_that_is_new_enough(tmp_path: Path) -> None:
    done = preflight(tmp_path, "build", sudo="exit 1", java=None, grep="exit 0")
    assert done.stderr.endswith(" openjdk-17-jre-headless\n")


@pytest.mark.parametrize("right", [{"id": _ROOT}, {"sudo": 'shift && exec "$@"'}], ids=["root", "sudo"])
def test_where_it_takes_no_question_what_is_missing_is_installed_and_make_goes_on(
    tmp_path: Path, right: dict[str, str]
) -> None:
    done = preflight(tmp_path, "test", kcat=None, java=None, **right)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Missing: Java 17 or newer, kcat.\nInstalling default-jre-headless kcat ...\n"
    update, install = asked(tmp_path).splitlines()
    assert update == "update"
    assert install.endswith(" install --yes --no-install-recommends default-jre-headless kcat")


def test_an_installation_that_fails_shows_its_error_and_then_the_line_to_paste(tmp_path: Path) -> None:
    done = preflight(tmp_path, "test", id=_ROOT, kcat=None, apt_get="echo E: no network >&2; exit 100")
    assert done.returncode == 1
    assert "E: no network" in done.stderr
    assert done.stderr.endswith("\napt-get update && apt-get install --yes --no-install-recommends kcat\n")


def test_an_installation_after_which_something_is_still_missing_is_no_success(tmp_path: Path) -> None:
    done = preflight(tmp_path, "test", id=_ROOT, kcat=None, mvn=None)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.endswith(": Maven.\n")


def test_without_sudo_the_line_asks_for_the_password_of_root(tmp_path: Path) -> None:
    done = preflight(tmp_path, "test", kcat=None)
    assert done.stderr.endswith("\nsu - -c 'apt-get update && apt-get install --yes --no-install-recommends kcat'\n")


def test_without_apt_each_thing_has_a_sentence_and_one_line_names_all(tmp_path: Path) -> None:
    done = preflight(tmp_path, "test", id=_ROOT, apt_get=None, kcat=None, mvn=None, cargo=None)
    assert done.returncode == 1
    rust, kcat, maven, line = done.stderr.splitlines()
    assert rust.startswith("Rust ")
    assert kcat.startswith("kcat is missing, ")
    assert maven.startswith("Maven is missing, ")
    assert line.endswith(": kcat maven")


def test_a_tool_whose_tests_are_skipped_without_it_is_installed_for_ci_and_demanded_of_nobody(tmp_path: Path) -> None:
    broken = {"id": _ROOT, "apt_get": 'cd "${0%/*}" && echo "$*" >>asked && exit 100'}
    for name, what, is_asked_for, changed in (
        ("ci", "all", True, {"id": _ROOT}),
        ("ci without network", "all", True, broken),
        ("ci as a user", "all", False, {}),
        ("not ci", "test", False, {"id": _ROOT}),
    ):
        (tmp_path / name).mkdir()
        done = preflight(tmp_path / name, what, promtool=None, **changed)
        assert ("prometheus" in asked(tmp_path / name), done.returncode) == (is_asked_for, 0), (name, done.stderr)


def test_make_develop_builds_nothing_when_something_is_missing(tmp_path: Path) -> None:
    project, tools = tmp_path / "project", tmp_path / "tools"
    for folder in (project / ".ci", project / "broker_native", tools):
        folder.mkdir(parents=True)
    for name in ("Makefile", ".ci/preflight", "broker_native/Cargo.toml"):
        shutil.copy(ROOT / name, project / name)
    (tools / "python3").write_text(f"#!/bin/sh\n{_OLD}\n")
    (tools / "python3").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "develop"], cwd=project, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "python3 is older than Python 3.10" in done.stderr
    assert not (project / ".venv").exists()


def test_the_rust_that_is_asked_for_is_the_oldest_that_the_locked_crates_allow() -> None:
    host = re.findall(r"^host: (.+)$", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)[0]
    # Of this platform, since crates of others need not be here; those that are not here yet are fetched, as a build would.
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    printed = subprocess.check_output([*command, "--manifest-path", str(MANIFEST)], text=True)
    needed = {f"{each['name']} {each['version']}": each["rust_version"] for each in json.loads(printed)["packages"]}
    parts = {name: tuple(map(int, version.split(".")[:2])) for name, version in needed.items() if version}
    newest = max((name for name in parts if not name.startswith("pylog-")), key=parts.__getitem__)
    assert asked_rust() == ".".join(map(str, parts[newest])), newest


def test_every_page_names_the_rust_that_is_asked_for() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    named = {str(page.relative_to(ROOT)): re.findall(r"\bRust (\d+\.\d+)", page.read_text()) for page in pages}
    assert [name for name, versions in named.items() if set(versions) - {asked_rust()}] == []
    assert named["CONTRIBUTING.md"]
