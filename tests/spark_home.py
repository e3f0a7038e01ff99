"""A home of Spark whose processes start sooner, for tests.

- Spark puts ``pyspark.zip`` before all else on the path of its Python workers, and Python compiles what it imports from there anew
  in each process: more than a second of the processor's time for each of the processes that a test starts, which are many. Without
  that file they take the same modules from where pyspark is installed, compiled once.
- ``python -m tests.spark_home`` (by ``make test-python``) keeps the home in the virtual environment, with an archive of the classes
  that Spark's Java loads at its start (JDK's class data sharing): 10 s of the processor's time become 6 s.

Without the kept home each process of tests makes one of its own, which has no archive.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: Tests ask what Spark does, not how fast: its second compiler costs more than it brings in a few minutes on few cores.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: Spark waits for the Python process of a stream's source at any free port of this machine, and takes who comes first for it. Tests
#: have clients that look for a broker which was killed, at a port that is free since; so Spark is to wait at a socket with a name.
OUT_OF_THE_WAY = {"spark.python.unix.domain.socket.enabled": "true"}
_KEPT = Path(sys.prefix) / ".spark-home"
_ARCHIVE = "classes.jsa"
_PEERS = ("spark", "avro")
#: What most tests do first.
_PROGRAM = """
from pylog_spark.testing import spark_session
spark = spark_session()
spark.range(1000).selectExpr("CAST(id AS STRING) AS value", "id % 7 AS key").groupBy("key").count().collect()
writer = spark.readStream.format("rate").load().writeStream.foreachBatch(lambda frame, number: frame.collect())
writer.option("checkpointLocation", {checkpoint!r}).trigger(once=True).start().awaitTermination()
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()
java.wait()
"""


def prepare() -> None:
    """Let the sessions of this process and of its children have such a home, unless the environment names one."""
    installed = _installed()
    if "SPARK_HOME" in os.environ or installed is None:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)
        return
    java = JAVA
    if (archive := _KEPT / _ARCHIVE).exists():
        home = _KEPT
        # Another Java, or other jars, are no error: they start as they would without it.
        java += f" -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
    else:
        home = Path(tempfile.mkdtemp(prefix="pylog-spark-home-"))
        atexit.register(_remove, home, os.getpid())
        _link(installed, home)
    os.environ["SPARK_HOME"] = str(home)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", java)


def connector() -> dict[str, str]:
    """The setting that gives a session the jars of Spark's Kafka connector and Avro functions; nothing on a machine that has none and cannot get them.

    A session cannot be given them later, so every session of the tests has them: one Java process serves all files.
    """
    from tests.peers.jars import are_here, jars

    peers = [peer for peer in _PEERS if shutil.which("mvn") is not None or are_here(peer)]
    return {"spark.jars": ",".join(str(jar) for peer in peers for jar in jars(peer))} if peers else {}


def keep() -> None:
    """Make the home that is kept, anew."""
    installed = _installed()
    assert installed is not None, "pyspark is not installed here: run make develop"
    shutil.rmtree(_KEPT, ignore_errors=True)
    _link(installed, _KEPT)
    archive = _KEPT / _ARCHIVE
    with tempfile.TemporaryDirectory() as checkpoint:
        environment = {
            **os.environ,
            "SPARK_HOME": str(_KEPT),
            "SPARK_SUBMIT_OPTS": f"{JAVA} -XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=error:stderr",
            "PYSPARK_PYTHON": sys.executable,
        }
        program = _PROGRAM.format(checkpoint=checkpoint)
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, stderr=subprocess.DEVNULL)


def _installed() -> Path | None:
    found = importlib.util.find_spec("pyspark")
    return None if found is None or found.origin is None else Path(found.origin).parent


def _link(installed: Path, home: Path) -> None:
    """All of Spark but ``pyspark.zip``."""
    home.mkdir(exist_ok=True)
    for entry in installed.iterdir():
        if entry.is_dir() and entry.name != "python":
            (home / entry.name).symlink_to(entry)
    libraries = home / "python" / "lib"
    libraries.mkdir(parents=True)
    for entry in (installed / "python" / "lib").glob("py4j-*.zip"):
        (libraries / entry.name).symlink_to(entry)


def _remove(home: Path, owner: int) -> None:
    """At the end of the process that made it; a child may have its parent's exit handlers."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    keep()
