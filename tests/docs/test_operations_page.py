"""The commands of ``docs/operations.md`` that need no service manager run as they stand, in one shell, on ports of this machine. Costs 8 s."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pylog_spark.testing.process import free_ports
from tests.docs.test_snippets import ROOT, snippets

pytestmark = pytest.mark.long  # backup and restore: tests/archive, tests/upgrade

PAGE = ROOT / "docs" / "operations.md"
_PORTS = ("9092", "8080")
_DEADLINE_S = 120


def script() -> str:
    """All of them, on free ports; the broker that they leave is stopped at the end."""
    text = snippets(PAGE, "sh")
    for documented, free in zip(_PORTS, free_ports(len(_PORTS)), strict=True):
        text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{free}")
        if documented == "9092":
            text = f"export PYLOG_BOOTSTRAP_SERVERS=127.0.0.1:{free}\n{text}"
    return f"set -m\ntrap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n{text}\necho all ran\n"


def test_the_commands_of_the_page_run_and_what_is_put_back_is_what_was_there(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script()],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=_DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    assert done.stdout.endswith("all ran\n")
    assert (tmp_path / "data.lost").is_dir()


def test_the_first_looks_of_the_page_are_among_the_commands_that_run() -> None:
    ran = set(re.findall(r"^pylog (\w+ \w+|\w+)", snippets(PAGE, "sh"), re.MULTILINE))
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "`pylog " in line]
    named = set(re.findall(r"`pylog (\w+ [a-z-]+|\w+)", "\n".join(table)))
    assert len(table) == 7
    # They need a group, or a checkpoint; the pages that they are from run them.
    assert named - ran - {"inspect", "top"} == {"group describe", "checkpoint lag"}
