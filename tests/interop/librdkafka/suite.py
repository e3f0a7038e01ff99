"""Runs librdkafka's own test programs against a broker, one process each, and compares the outcome with `expected.txt`.

    python -m tests.interop.librdkafka.suite [--peer] [--group-protocol consumer] [--jobs N] [TEST ...]

A test that is expected to pass and fails, or the other way round, makes the exit code 1. `--peer` runs them against Apache
Kafka instead and only reports. Each broker gets what the tests assume: topics made on demand with 4 partitions.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from tests.interop.librdkafka.build import built
from tests.peers.jars import classpath

_HERE = Path(__file__).parent
_EXPECTED = _HERE / "expected.txt"
_KAFKA_VERSION = "4.4.0.0"
_ONE_TEST_S = 420
# Of `_TEST(name, flags, ...)` in tests/test.c.
_DECLARED = re.compile(r"^\s+_TEST\((\w+),\s*([^,)]+)", re.MULTILINE)
_NOT_FOR_A_BROKER = ("TEST_F_LOCAL", "TEST_F_MANUAL")
_KAFKA_TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
_SETTINGS = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    # As by default: a test whose consumers find their coordinator a second apart wants them in one generation.
    "group.initial.rebalance.delay.ms": "3000",
    "group.min.session.timeout.ms": "100",
}


@dataclass(frozen=True)
class Outcome:
    """What became of one test: ``passed``, ``failed``, ``skipped`` or ``hung``; seconds; the last lines it printed."""

    name: str
    result: str
    seconds: float
    tail: str


def tests_for_a_broker(library: Path) -> list[str]:
    """The names of the tests that need a broker and no person, in librdkafka's order."""
    source = (library / "tests" / "test.c").read_text()
    table = source[source.index("struct test tests[]") :]
    declared = _DECLARED.findall(table)
    return [name for name, flags in declared if not any(flag in flags for flag in _NOT_FOR_A_BROKER)]


def run(library: Path, name: str, servers: str, protocol: str) -> Outcome:
    """Run the test `name` in a process of its own against the broker at `servers`."""
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(library, Path(folder), servers)
        environment |= {"TESTS": name, "TEST_CONSUMER_GROUP_PROTOCOL": protocol}
        output = Path(folder) / "output"
        started = time.monotonic()
        hung = not _ended(library / "tests", environment, output)
        seconds = time.monotonic() - started
        text = re.sub(r"\x1b\[[0-9;]*m", "", output.read_text(errors="replace"))
    for left in (library / "tests").glob(f"stats_{name}_*.json"):
        left.unlink()
    # A name can be the beginning of others, which then run, too: only its own row counts.
    row = re.search(rf"^\|\s*{re.escape(name)}\s*\|\s*(\w+)", text, re.MULTILINE)
    result = "hung" if hung else row[1].lower() if row else "failed"
    return Outcome(name, result, seconds, "\n".join(_why(text)))


def _environment(library: Path, folder: Path, servers: str) -> dict[str, str]:
    """What test-runner wants to know, with Kafka's command line tools that some tests call."""
    (folder / "test.conf").write_text(f"bootstrap.servers={servers}\ntest.topic.random=true\n")
    (folder / "bin").mkdir()
    for script, tool in _KAFKA_TOOLS.items():
        (folder / "bin" / script).write_text(f'#!/bin/sh\nexec java -cp "{classpath("tools")}" {tool} "$@"\n')
        (folder / "bin" / script).chmod(0o755)
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{library}/src:{library}/src-cpp",
        "RDKAFKA_TEST_CONF": str(folder / "test.conf"),
        "TEST_KAFKA_VERSION": _KAFKA_VERSION,
        "KAFKA_PATH": str(folder),
        "BROKERS": servers,
    }


def _ended(tests: Path, environment: dict[str, str], output: Path) -> bool:
    """Run test-runner; whether it came to an end by itself in time."""
    with open(output, "wb") as sink:
        words = ["./test-runner", "-p1", "-L"]
        running = subprocess.Popen(
            words,
            cwd=tests,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            running.wait(_ONE_TEST_S)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    return True


def _why(text: str) -> list[str]:
    """The lines that say what went wrong, else the last ones."""
    lines = text.splitlines()
    telling = [line for line in lines if "TEST FAILURE" in line or "Test failed" in line or "failed:" in line.lower()]
    start = lines.index(telling[0]) if telling else max(0, len(lines) - 12)
    return lines[start : start + 12]


def broker(peer: bool, folder: Path) -> AbstractContextManager:
    """A broker with the settings that the tests assume."""
    if peer:
        from tests.peers.kafka import KafkaBroker

        return KafkaBroker(folder, _SETTINGS)
    from pylog_spark.testing import LocalBroker

    return LocalBroker(folder, **{name.replace(".", "_"): text for name, text in _SETTINGS.items()})


def expected_failures(protocol: str) -> set[str]:
    """The tests that `expected.txt` says fail with the group protocol."""
    lines = [line.split() for line in _EXPECTED.read_text().splitlines() if line and not line.startswith("#")]
    return {words[1] for words in lines if words[0] == protocol}


def judge(outcomes: list[Outcome], known: set[str]) -> list[str]:
    """The sentences about outcomes that are not as expected, when those in `known` are to fail."""
    surprises = []
    for outcome in outcomes:
        bad = outcome.result in ("failed", "hung")
        if bad and outcome.name not in known:
            surprises.append(f"{outcome.name} {outcome.result}:\n{outcome.tail}")
        elif not bad and outcome.name in known:
            surprises.append(
                f"{outcome.name} {outcome.result}, but {_EXPECTED.name} says that it fails: take it off the list."
            )
    return surprises


def main() -> int:
    """Build, run, compare, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="only tests whose name contains one of these")
    parser.add_argument("--peer", action="store_true", help="run against Apache Kafka")
    parser.add_argument("--servers", help="run against the broker at this address")
    parser.add_argument("--group-protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    library = built()
    names = tests_for_a_broker(library)
    names = [name for name in names if not given.tests or any(word in name for word in given.tests)]

    def run_and_print(name: str) -> Outcome:
        outcome = run(library, name, servers, given.group_protocol)
        print(f"{outcome.result:8}{outcome.seconds:7.1f} s  {name}", flush=True)
        return outcome

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        # Tests with the same number subscribe to patterns that match each other's topics: never at the same time.
        groups = [list(group) for _, group in groupby(names, lambda name: name.split("_")[0])]
        with broker(given.peer, Path(folder) / "broker") if not given.servers else nullcontext() as running:
            servers = running.bootstrap_servers if running else given.servers
            outcomes = list(
                chain.from_iterable(pool.map(lambda group: [run_and_print(name) for name in group], groups))
            )
    counts = {
        word: sum(outcome.result == word for outcome in outcomes) for word in ("passed", "skipped", "failed", "hung")
    }
    print(f"{len(outcomes)} tests: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    known = set() if given.peer or given.servers else expected_failures(given.group_protocol)
    surprises = judge(outcomes, known)
    print("\n\n".join(surprises))
    return 0 if given.peer or not surprises else 1


if __name__ == "__main__":
    sys.exit(main())
