"""The Java programs of the experiment (`java/`): compiled once, and run with the jars of one system each."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers.jars import classpath
from tests.peers.kept import kept

_HERE = Path(__file__).parent
_POM = _HERE / "jars.xml"
_SOURCES = sorted((_HERE / "java").glob("*.java"))
_DEADLINE_S = 900
_HEAP = "512m"


@dataclass(frozen=True)
class Produced:
    """What a producer printed: seconds until the broker had all, messages in one request on average."""

    seconds: float
    mean_batch: float


def jars_of(system: str) -> str:
    """The class path of a system's clients, and of its broker where that is Java.

    Raises
    ------
    RuntimeError
        Where they are not there, and Maven does not bring them.
    """
    return classpath("kafka") if system in ("kafka", "pylog") else classpath("paper", _POM)


def produce(
    system: str,
    address: str,
    name: str,
    warm_up: int,
    messages: int,
    size: int,
    batch: int,
    *,
    acks: bool,
    discarded: bool,
) -> Produced:
    """Run one producer, which warms itself up on another topic or queue. With `discarded` it deletes its queue at the end."""
    words = [name, *map(str, (warm_up, messages, size, batch)), *(str(word).lower() for word in (acks, discarded))]
    return Produced(*map(float, _run(system, "Produce", [system, address, *words]).split()))


def consume(system: str, address: str, name: str, warm_up: int, messages: int) -> float:
    """Run one consumer over what `produce` sent; seconds it took."""
    return float(_run(system, "Consume", [system, address, name, str(warm_up), str(messages)]))


def java_command(system: str, heap: str = _HEAP) -> list[str]:
    """The words before a class and its arguments."""
    java = shutil.which("java")
    if java is None:
        raise RuntimeError(
            "Java is missing, the clients of the experiment are Java's: install it (apt install openjdk-17-jdk-headless)."
        )
    quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return [java, *quiet, f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-cp", f"{_classes()}:{jars_of(system)}"]


def _run(system: str, main: str, words: list[str]) -> str:
    done = subprocess.run([*java_command(system), main, *words], capture_output=True, text=True, timeout=_DEADLINE_S, check=False)  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{main} {' '.join(words)} failed: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def _classes() -> Path:
    return kept("paper-compiled", b"".join(source.read_bytes() for source in _SOURCES), _compile)


def _compile(folder: Path) -> None:
    command = ["java", "--module", "jdk.compiler/com.sun.tools.javac.Main", "-d", str(folder)]
    jars = f"{jars_of('kafka')}:{jars_of('activemq')}"
    done = subprocess.run([*command, "-cp", jars, *map(str, _SOURCES)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Java could not compile the programs of the experiment: {done.stdout}{done.stderr}")
