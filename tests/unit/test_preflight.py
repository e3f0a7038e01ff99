""".ci/preflight names each missing prerequisite in one sentence, and make asks it before it builds anything."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TOOLS = ("sh", "sed", "head", "cut")
_GOOD = {
    "python3": "exit 0",
    "java": "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2",
    "cargo": "exit 0",
    "rustc": "echo 'rustc 1.85.0 (4d91de4e4 2025-02-17)'",
    "cc": "exit 0",
    "kcat": "exit 0",
    "mvn": "exit 0",
    "npm": "exit 0",
    "openssl": "exit 0",
    "prometheus": "exit 0",
    "promtool": "exit 0",
}


def preflight(folder: Path, what: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has _GOOD, but for what is changed: another script, or None for missing."""
    for tool in _TOOLS:
        (folder / tool).symlink_to(str(shutil.which(tool)))
    for name, script in {**_GOOD, **changed}.items():
        if script is not None:
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
    environment = {"PATH": str(folder)}
    command = [str(ROOT / ".ci" / "preflight"), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", ["build", "test", "packages"])
def test_a_machine_that_has_all_passes_in_silence(tmp_path: Path, what: str) -> None:
    done = preflight(tmp_path, what)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("tool", "script", "words"),
    [
        ("python3", None, "Python 3.10 or newer is missing"),
        ("python3", 'case "$2" in *version_info*) exit 1;; esac', "older than Python 3.10"),
        ("python3", 'case "$2" in *venv*) exit 1;; esac', "The venv module of python3 is missing"),
        ("java", None, "Java 17 or newer is missing"),
        ("java", "echo 'java version \"1.8.0_292\"' >&2", "Java 1 is too old"),
        ("java", "echo 'openjdk version \"11.0.2\"' >&2", "Java 11 is too old"),
        ("cargo", None, "Rust 1.85 or newer is missing"),
        ("rustc", "echo 'rustc 1.84.1 (e71f9a9a9 2025-01-27)'", "Rust 1.84.1 is too old"),
        ("cc", None, "A C compiler is missing"),
        ("kcat", None, "kcat is missing"),
        ("mvn", None, "Maven is missing"),
        ("npm", None, "npm is missing"),
        ("openssl", None, "openssl is missing"),
    ],
)
def test_what_is_missing_or_too_old_is_named_in_one_sentence(
    tmp_path: Path, tool: str, script: str | None, words: str
) -> None:
    done = preflight(tmp_path, "test", **{tool: script})
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert words in sentence
    assert sentence.endswith(".")


def test_building_needs_neither_kcat_nor_maven_nor_npm(tmp_path: Path) -> None:
    assert preflight(tmp_path, "build", kcat=None, mvn=None, npm=None).returncode == 0


def test_missing_things_are_listed_as_debian_packages_for_ci(tmp_path: Path) -> None:
    done = preflight(tmp_path, "packages", java=None, kcat=None, mvn=None, cc=None)
    assert done.returncode == 1
    assert done.stdout.split() == ["default-jre-headless", "gcc", "kcat", "maven"]


def test_a_tool_whose_tests_are_skipped_without_it_is_listed_for_ci_and_demanded_of_nobody(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    listed = preflight(tmp_path / "packages", "packages", promtool=None)
    assert (listed.returncode, listed.stdout.split()) == (1, ["prometheus"])
    (tmp_path / "test").mkdir()
    assert preflight(tmp_path / "test", "test", prometheus=None, promtool=None).returncode == 0


def test_make_develop_builds_nothing_when_something_is_missing(tmp_path: Path) -> None:
    project, tools = tmp_path / "project", tmp_path / "tools"
    for folder in (project / ".ci", tools):
        folder.mkdir(parents=True)
    for name in ("Makefile", ".ci/preflight"):
        shutil.copy(ROOT / name, project / name)
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "develop"], cwd=project, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "python3 is older than Python 3.10" in done.stderr
    assert not (project / ".venv").exists()
