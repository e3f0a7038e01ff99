"""The ten commands of ``docs/security.md``, run in one shell as they stand on the page but for its ports, make the cluster that it promises.

It takes half a minute: they run once, with real certificates, ZooKeeper and three brokers, and every test looks at that cluster.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pylog_spark.testing.process import free_ports
from tests.docs.test_snippets import ROOT
from tests.harness.waiting import until

pytestmark = pytest.mark.long  # what its commands set up: tests/cluster/test_start_verb.py, tests/cli/test_rights.py

PAGE = ROOT / "docs" / "security.md"
_PORTS = ("2181", "9091", "9092", "9093")
_DEADLINE_S = 120
_ZOOKEEPER_STEP = 4
#: Who types the commands reads the next one meanwhile; a script would ask a ZooKeeper that a busy machine has not started yet.
_ZOOKEEPER_ANSWERS = "until (: > /dev/tcp/localhost/2181) 2> /dev/null; do sleep 0.1; done\n"
_PIDS = "pids"


def steps() -> list[str]:
    """The commands of the page, one text for each of its numbered steps."""
    return re.findall(r"^\*\*\d+\. .*?^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Secured:
    """The cluster of the page, and the folder in which its commands ran."""

    folder: Path
    servers: str
    printed: list[str]

    def pylog(self, *words: str, as_: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of pylog with the settings of a user whom the page makes."""
        command = [sys.executable, "-m", "pylog_spark", *words, "--command-config", f"{as_}.properties"]
        return subprocess.run(
            command, cwd=self.folder, input=text, capture_output=True, text=True, timeout=120, check=False
        )

    def pid_of(self, broker: int) -> int:
        """The process of a broker: ZooKeeper was started first, then they were."""
        return int((self.folder / _PIDS).read_text().split()[broker])


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The cluster, after all ten commands."""
    folder = tmp_path_factory.mktemp("secured")
    found = dict(zip(_PORTS, map(str, free_ports(len(_PORTS))), strict=True))
    # "909$n" counts up, which free ports do not.
    waits = {_ZOOKEEPER_STEP: _ZOOKEEPER_ANSWERS}
    script = "\n".join(f"{step}{waits.get(number, '')}echo '@@ {number}'" for number, step in enumerate(steps(), 1))
    # Renamed: the file is whole as soon as it is there.
    script += f"\njobs -p > {_PIDS}.new\nmv {_PIDS}.new {_PIDS}\nwait\n"
    script = script.replace("localhost:909$n", "localhost:${PORTS[$n]}")
    script = re.sub("|".join(_PORTS), lambda match: found[match[0]], script)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ports = " ".join(found[port] for port in _PORTS[1:])
    output = folder / "printed"
    with output.open("w") as written:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f"PORTS=(- {ports})\n{script}"],
            cwd=folder,
            # What is tested is the page, not how soon a busy disk has what ZooKeeper writes.
            env={**os.environ, "PATH": path, "JDK_JAVA_OPTIONS": "-Dzookeeper.forceSync=no"},
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        until(lambda: (folder / _PIDS).exists() or shell.poll() is not None, "all commands have run", _DEADLINE_S)
        printed = re.split(r"^@@ \d+\n", output.read_text(), flags=re.MULTILINE)
        logs = "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in sorted(folder.glob("*.log")))
        assert len(printed) == 11, f"{output.read_text()}\n{logs}"
        yield Secured(folder, ",".join(f"localhost:{found[port]}" for port in _PORTS[1:]), printed)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def test_there_are_ten_commands_and_the_last_one_reads_what_was_written(secured: Secured) -> None:
    assert len(steps()) == 10
    assert secured.printed[9].splitlines()[-1] == "hello"


def test_no_secret_of_the_page_is_printed_or_logged_or_readable_by_others(secured: Secured) -> None:
    secrets = [
        (secured.folder / name).read_text().strip() for name in ("admin.password", "alice.password", "zookeeper.login")
    ]
    shown = "".join([*secured.printed, *(log.read_text() for log in secured.folder.glob("*.log"))])
    for secret in secrets:
        assert secret.rpartition(":")[2] not in shown
    assert [
        file.name
        for file in secured.folder.iterdir()
        if file.stat().st_mode & 0o077 and file.name not in ("printed", _PIDS)
    ] == []


def test_who_does_not_log_in_is_refused(secured: Secured) -> None:
    (secured.folder / "nobody.properties").write_text(
        f"bootstrap.servers={secured.servers}\nsecurity.protocol=SSL\nssl.ca.location=authority.pem\n"
    )
    wrong = (secured.folder / "alice.properties").read_text()
    (secured.folder / "mallory.properties").write_text(re.sub('password=".*"', 'password="guess"', wrong))
    for name, said in (("nobody", "demands a login"), ("mallory", "refused the login")):
        done = secured.pylog("topic", "list", as_=name)
        assert done.returncode != 0
        assert said in done.stderr, done.stderr


def test_alice_may_do_what_the_page_says_and_nothing_else(secured: Secured) -> None:
    denied = secured.pylog("topic", "create", "other", as_="alice")
    assert denied.returncode != 0
    assert "ask for an ACL" in denied.stderr

    def denials() -> set[str]:
        logs = "".join(log.read_text() for log in secured.folder.glob("broker-*.log"))
        return {line for line in logs.splitlines() if "pylog.broker.authorizer" in line and "other" in line}

    # A broker's log is written by a thread of its own, behind the answer.
    (line,) = until(denials, "the denial is in the log of a broker")
    assert "User:alice" in line
    assert secured.pylog("acl", "list", as_="alice").returncode != 0
    assert secured.pylog("user", "create", "bob", "--password-file", "alice.password", as_="alice").returncode != 0


def test_the_cluster_goes_on_when_a_broker_is_killed(secured: Secured) -> None:
    os.kill(secured.pid_of(1), signal.SIGKILL)
    assert secured.pylog("produce", "events", as_="alice", text="after\n").returncode == 0
    done = secured.pylog("consume", "events", "--from-beginning", "--exit-at-end", as_="alice")
    assert sorted(done.stdout.split()) == ["after", "hello"], done.stderr
