"""The peers' jars, brought from Maven Central by `mvn` at first use and kept.

They lie in ``$PYLOG_PEERS/{kafka,tools,mirror_maker,spark,flink,...}-SUM/*.jar``, by default under ``.cache/peers`` of the checkout; SUM is the checksum of
what names them, so a newer version is brought anew. A folder appears only when it is complete, so an interrupted download is simply repeated.
"""

import fcntl
import os
import shutil
import subprocess
import zlib
from pathlib import Path

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_WHAT = {
    "kafka": "Apache Kafka",
    "tools": "Apache Kafka's tools",
    "mirror_maker": "Kafka Connect and MirrorMaker 2",
    "flink": "Apache Flink",
    "spark": "Spark's Kafka connector",
    "paper": "ActiveMQ, and RabbitMQ's client",
}


def cache_dir() -> Path:
    """Where the jars are kept."""
    return Path(os.environ.get("PYLOG_PEERS") or _ROOT / ".cache" / "peers")


def jars(peer: str, pom: Path | None = None) -> list[Path]:
    """All jars of `peer` (``kafka``, ``tools``, ``mirror_maker``, ``spark`` or ``avro``, or of a `pom` of its own), downloaded when they are not there yet.

    Raises
    ------
    RuntimeError
        When Maven is missing or fails; the message is what it printed.
    """
    pom = pom or _HERE / f"{peer}.xml"
    folder = _folder(peer, pom)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _download(peer, folder, pom)
    return sorted(folder.glob("*.jar"))


def are_here(peer: str) -> bool:
    """Whether the jars of `peer` need no download."""
    return _folder(peer, _HERE / f"{peer}.xml").is_dir()


def _folder(peer: str, pom: Path) -> Path:
    return cache_dir() / f"{peer}-{zlib.crc32(pom.read_bytes()):08x}"


def _download(peer: str, folder: Path, pom: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    if shutil.which("mvn") is None:
        raise RuntimeError(f"Maven is missing, it brings {_WHAT.get(peer, peer)}: install it (apt install maven).")
    command = ["mvn", "--quiet", "--batch-mode", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run([*command, f"-DoutputDirectory={part}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Maven could not bring {peer}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    part.rename(folder)


def classpath(peer: str, pom: Path | None = None) -> str:
    """The jars of `peer` as a Java class path."""
    return ":".join(map(str, jars(peer, pom)))
