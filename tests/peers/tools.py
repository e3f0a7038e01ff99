"""Apache Kafka's own tools, and our own programs for its clients (`java/`).

All tools run in one Java process, all else in another; each starts with the first that it runs and ends with the tests
(`java/Tools.java`). The tools are of another release than the server and the clients.
"""

import atexit
import os
import struct
import subprocess
import threading
from pathlib import Path
from typing import IO

from tests.peers.jars import classpath
from tests.peers.kept import kept

#: For programs that end soon: the second compiler and G1's threads would cost more than they bring.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
_DEADLINE_S = 120


def java_command(main: str) -> list[str]:
    """The words that run a class of Apache Kafka's in a process of its own."""
    return ["java", "-Dorg.slf4j.simpleLogger.logFile=System.out", *QUICK, "-cp", classpath(_peer(main)), main]


def _peer(main: str) -> str:
    """Whose jars have a class."""
    if main.startswith("org.apache.kafka.connect."):
        return "mirror_maker"
    return "tools" if main.startswith("org.apache.kafka.tools.") else "kafka"


def java(main: str, *arguments: str, stdin: bytes = b"", deadline_s: float = _DEADLINE_S) -> str:
    """What one of Kafka's tools prints. Raises RuntimeError when it fails, with what it printed."""
    status, printed, errors = _processes[_peer(main)].run([main, *arguments], stdin, deadline_s)
    if status != 0:
        shown = f"{printed.decode(errors='replace')[-3000:]}{errors.decode(errors='replace')[-3000:]}"
        raise RuntimeError(f"{main} failed with {status}: {shown}")
    return printed.decode()


class _Process:
    """The Java process of one peer; a tool that hangs takes it along, and the next tool gets another."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._lock = threading.Lock()
        self._java: subprocess.Popen[bytes] | None = None

    def run(self, words: list[str], stdin: bytes, deadline_s: float) -> tuple[int, bytes, bytes]:
        """Exit code and both outputs of a tool."""
        with self._lock:
            running = self._started()
            assert running.stdin is not None
            assert running.stdout is not None
            late = threading.Timer(deadline_s, running.kill)
            late.start()
            try:
                running.stdin.write(struct.pack(">i", len(words)) + b"".join(map(_framed, words)) + _framed(stdin))
                running.stdin.flush()
                (status,) = struct.unpack(">i", _exactly(running.stdout, 4))
                return status, _text(running.stdout), _text(running.stdout)
            except OSError as error:
                self._stop()
                raise RuntimeError(f"{words[0]} ended the Java process, or did nothing for {deadline_s} s") from error
            finally:
                late.cancel()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._java is None:
            # What Kafka logs is no part of what a tool prints.
            options = [*QUICK, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
            command = ["java", *options, "-cp", f"{own_classes()}:{classpath(self._peer)}", "Tools"]
            environment = {**os.environ, "LC_ALL": "C.UTF-8"}
            self._java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            atexit.register(self._stop)
        return self._java

    def _stop(self) -> None:
        running, self._java = self._java, None
        atexit.unregister(self._stop)
        if running is None:
            return
        running.kill()
        running.wait()
        for pipe in (running.stdin, running.stdout):
            if pipe is not None:
                pipe.close()


_processes = {peer: _Process(peer) for peer in ("kafka", "tools")}


def _framed(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack(">i", len(raw)) + raw


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    raw = pipe.read(count)
    if len(raw) < count:
        raise ConnectionError("the Java process is gone")
    return raw


def _text(pipe: IO[bytes]) -> bytes:
    (size,) = struct.unpack(">i", _exactly(pipe, 4))
    return _exactly(pipe, size)


def own_classes() -> Path:
    """The folder of our own classes, compiled when they are not there yet as they are now."""
    return kept("compiled", b"".join(source.read_bytes() for source in _SOURCES), _compile)


def _compile(folder: Path) -> None:
    compiler = ["java", *QUICK, "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    command = [*compiler, "-d", str(folder), "-cp", classpath("kafka"), *map(str, _SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Java could not compile {_SOURCES}: {done.stdout}{done.stderr}")
