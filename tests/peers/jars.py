"""The peers' jars, brought from Maven Central by `mvn` at first use and kept.

They lie in a folder of `kept` for each peer: ``kafka``, ``tools``, ``mirror_maker``, ``spark``, ``flink``...
"""

import shutil
import subprocess
from functools import partial
from pathlib import Path

from tests.peers.kept import kept, place

_HERE = Path(__file__).parent
_WHAT = {
    "kafka": "Apache Kafka",
    "tools": "Apache Kafka's tools",
    "mirror_maker": "Kafka Connect and MirrorMaker 2",
    "flink": "Apache Flink",
    "spark": "Spark's Kafka connector",
    "yarn": "YARN",
    "paper": "ActiveMQ, and RabbitMQ's client",
}


def jars(peer: str, pom: Path | None = None) -> list[Path]:
    """All jars of `peer` (``kafka``, ``tools``, ``mirror_maker``, ``spark`` or ``avro``, or of a `pom` of its own), downloaded when they are not there yet.

    Raises
    ------
    RuntimeError
        When Maven is missing or fails; the message is what it printed.
    """
    pom = pom or _HERE / f"{peer}.xml"
    return sorted(kept(peer, pom.read_bytes(), partial(_download, peer, pom)).glob("*.jar"))


def are_here(peer: str) -> bool:
    """Whether the jars of `peer` need no download."""
    return place(peer, (_HERE / f"{peer}.xml").read_bytes()).is_dir()


def _download(peer: str, pom: Path, folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise RuntimeError(f"Maven is missing, it brings {_WHAT.get(peer, peer)}: install it (apt install maven).")
    command = ["mvn", "--quiet", "--batch-mode", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run([*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Maven could not bring {peer}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def classpath(peer: str, pom: Path | None = None) -> str:
    """The jars of `peer` as a Java class path."""
    return ":".join(map(str, jars(peer, pom)))
