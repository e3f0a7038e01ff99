"""A Spark session in a process of its own, so that each side has its own JVM, jars and warm-up."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.peers.jars import jars

_ROOT = Path(__file__).parent.parent
_END_DEADLINE_S = 60
#: Where sessions run when no master is named.
LOCAL = "local[2]"


class SparkSide:
    """The session of `side` on `master`; its output goes to `log`."""

    def __init__(self, side: str, log: Path, master: str = LOCAL) -> None:
        environment = dict(os.environ)
        if side == "kafka":
            environment["BENCH_CONNECTOR_JARS"] = ",".join(str(jar) for peer in ("spark", "avro") for jar in jars(peer))
        self._log = log
        with open(log, "ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.spark_job", side, master],
                cwd=_ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The Python process of the session's driver, which has started all others."""
        return self._process.pid

    def run(self, **job: Any) -> float:
        """Run one job; its seconds. Raises what `figures` raises."""
        return self.figures(**job)["seconds"]

    def figures(self, **job: Any) -> dict[str, float]:
        """Run one job; its seconds and what else it measured. Raises RuntimeError with the end of the log when it fails."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the session has no pipes")
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the Spark session failed at {job}: {self._log.read_text()[-3000:]}")
        return {name: float(value) for name, value in json.loads(answer).items()}

    def close(self) -> None:
        """End the session."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
