"""Quarkus in its dev mode, with the user interface of Kafka that it has in the browser (Dev UI): a Maven and a Java process.

Its dev mode wants a newer Maven than Debian has, which comes from Maven Central, too, as all else: some 200 MB, which Maven keeps in its own
repository.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.harness.waiting import until
from tests.peers.kept import kept

_MAVEN = "org.apache.maven:apache-maven:3.9.11:zip:bin"
_POM = Path(__file__).with_name("pom.xml")
_STOP_S = 60.0
_START_S = 400.0
#: What it should not do: containers of its own, reports to its makers, reading keys from a terminal.
_QUIET = {"devservices.enabled": "false", "analytics.disabled": "true", "console.enabled": "false"}


@contextmanager
def quarkus(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Run it in `folder` with settings of an application; gives the address of its pages. Its log is ``folder / "log"``.

    Raises
    ------
    RuntimeError
        When Maven is missing or fails, with what it printed.
    """
    resources = folder / "src" / "main" / "resources"
    resources.mkdir(parents=True)
    shutil.copy(_POM, folder)
    own = {f"quarkus.{name}": value for name, value in _QUIET.items()}
    own |= {"quarkus.http.host": "127.0.0.1", "quarkus.http.port": "0"}
    lines = [f"{name}={value}\n" for name, value in {**own, **settings}.items()]
    (resources / "application.properties").write_text("".join(lines))
    command = [
        str(_maven()),
        "--batch-mode",
        "--no-transfer-progress",
        "process-classes",
        "quarkus:dev",
        "-Ddebug=false",
    ]
    log = folder / "log"
    with (
        log.open("wb") as printed,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            cwd=folder,
            start_new_session=True,
        ) as running,
    ):
        try:
            until(lambda: running.poll() is not None or _address(log), log.read_text, deadline_s=_START_S)
            if running.poll() is not None:
                raise RuntimeError(f"Quarkus does not start: {log.read_text()[-3000:]}")
            yield _address(log)
        finally:
            # Maven and the Java that it starts are a group of their own.
            os.killpg(running.pid, signal.SIGTERM)
            try:
                running.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)


def _address(log: Path) -> str:
    """Where it serves; empty as long as it does not."""
    found = re.search(r"Listening on: (http://\S+)", log.read_text())
    return found[1] if found else ""


def _maven() -> Path:
    """The program of a Maven that is new enough."""
    (program,) = kept("maven", _MAVEN.encode(), _bring_maven).glob("*/bin/mvn")
    return program


def _bring_maven(folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise RuntimeError("Maven is missing, it brings Quarkus: install it (apt install maven).")
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy", f"-Dartifact={_MAVEN}"]
    done = subprocess.run([*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Maven could not bring {_MAVEN}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    (packed,) = folder.glob("*.zip")
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    packed.unlink()
    for program in folder.glob("*/bin/mvn"):
        program.chmod(0o755)
