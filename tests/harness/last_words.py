"""What is left of a process that died under the tests, for the end of their output: none goes without a line. A plugin of pytest.

| who | what is left |
|---|---|
| a process of pytest-xdist | how it ended, where each of its threads was (by `faulthandler`, in a file of its own), what it ran; at the run's end |
| a child that ended by a signal | its log's end; in the report of the test that failed meanwhile |

Where the kernel ends processes for want of memory it is said, too. Cores are left out: one of a Java process has gigabytes.
"""

import faulthandler
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.testing import process

_KEY = "last_words"
_WAIT_S = 30
_LOG_CHARACTERS = 2_000


def how_it_ended(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "has closed its connection and still runs"
    if code >= 0:
        return f"ended with exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was ended by {known.get(-code, f'signal {-code}')}"


class OfWorkers:
    """The plugin of the process that hands out the tests."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pylog-last-words-"))
        self._killed = killed_for_memory()
        self._lines: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a process where its file is."""
        node.workerinput[_KEY] = str(self._folder / f"{node.gateway.id}.txt")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """A process is gone; with an error it was not told to go."""
        if error is not None:
            ended = how_it_ended(_exit_code(node.gateway))
            left = Path(node.workerinput[_KEY])
            text = left.read_text(errors="replace").strip() if left.exists() else ""
            self._lines += [f"{node.gateway.id} {ended} ({error})", text or "It has left no word of where it was."]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say it at the end."""
        killed = killed_for_memory() - self._killed
        if killed:
            self._lines.append(f"The kernel has ended {killed} processes of this machine for want of memory.")
        if self._lines:
            terminalreporter.section("processes that died", sep="=", red=True)
            for line in self._lines:
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Leave no files behind."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _exit_code(gateway: Any) -> int | None:
    popen = getattr(getattr(gateway, "_io", None), "popen", None)
    try:
        return None if popen is None else int(popen.wait(_WAIT_S))
    except subprocess.TimeoutExpired:
        return None


def killed_for_memory() -> int:
    """How many processes the kernel has ended for want of memory since the machine started; 0 where it does not say."""
    try:
        words = Path("/proc/vmstat").read_text().split()
        return int(words[words.index("oom_kill") + 1])
    except (OSError, ValueError):
        return 0


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let this process leave its last words, or collect those of others, when all plugins are configured."""
    # Every Python process that tests start says where it was when it is ended by a fault.
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    given = getattr(config, "workerinput", None)
    if given is None:
        config.pluginmanager.register(OfWorkers())
    elif _KEY in given:
        file = open(given[_KEY], "w")  # noqa: SIM115 - open to the end of the process
        config.add_cleanup(file.close)
        # Pytest's own plugin has enabled it for the standard error, which it closes at its end.
        faulthandler.enable(file)
        config.add_cleanup(faulthandler.disable)


def pytest_runtest_logstart() -> None:
    """What died before is no matter of the test that begins."""
    process.deaths()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a test that fails name each child that ended by a signal that was not sent to it through `pylog_spark.testing`."""
    report = yield
    if report.failed and (died := process.deaths()):
        said = (
            f"{each.what} (process {each.pid}) {how_it_ended(-each.signal)}. Its log ends:\n{each.log[-_LOG_CHARACTERS:]}"
            for each in died
        )
        report.sections.append(("children that died", "\n".join(said)))
    return report
