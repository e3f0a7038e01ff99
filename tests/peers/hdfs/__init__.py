"""A real HDFS in a Java process of its own: a name node and a data node."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers.jars import classpath
from tests.peers.tools import QUICK

_MAIN = Path(__file__).parent / "Hdfs.java"


@contextmanager
def hdfs(folder: Path) -> Iterator[int]:
    """Run it in `folder`; gives the port of WebHDFS on 127.0.0.1. Raises RuntimeError when it does not start."""
    command = ["java", *QUICK, "-Xmx400m", "-cp", classpath("hdfs"), str(_MAIN), str(folder)]
    with (
        (folder / "errors").open("wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as running,
    ):
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            for line in running.stdout:
                if line.startswith("port "):
                    break
            else:
                raise RuntimeError(f"HDFS does not start: {(folder / 'errors').read_text()[-3000:]}")
            yield int(line.split()[1])
        finally:
            running.stdin.close()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()
