"""A real HDFS in a Java process of its own: a name node and a data node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.children import ChildEnded, PipedChild
from tests.harness.waiting import DEADLINE_S, happens
from tests.peers.jars import classpath
from tests.peers.tools import QUICK

_START_S = 120
_MAIN = Path(__file__).parent / "Hdfs.java"


@contextmanager
def hdfs(folder: Path) -> Iterator[int]:
    """Run it in `folder`; gives the port of WebHDFS on 127.0.0.1. Raises RuntimeError when it does not start."""
    command = ["java", *QUICK, "-Xmx400m", "-cp", classpath("hdfs"), str(_MAIN), str(folder)]
    with (
        (folder / "errors").open("wb") as errors,
        PipedChild(command, errors=errors, cwd=folder) as running,
    ):
        try:
            while not (line := running.line(_START_S)).startswith("port "):
                pass
        except (AssertionError, ChildEnded) as error:
            raise RuntimeError(f"HDFS does not start: {(folder / 'errors').read_text()[-3000:]}") from error
        yield int(line.split()[1])
        # At the end of its input it ends; where it does not, it is killed.
        running.hang_up()
        happens(lambda: not running.running, DEADLINE_S)
