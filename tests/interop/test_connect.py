"""Kafka Connect on pylog: a distributed worker keeps connectors, offsets and states in topics of the broker, and copies lines of a file exactly
once into a topic and from there into another file, also when it is killed. It costs about 12 s, most of them the two starts of Connect.
"""

import json
import re
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.mirror.support import committed
from tests.peers.tools import java_command

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.timeout(240)]

_WAIT_S = 90.0
_TOPICS = {"offset": "connect-offsets", "config": "connect-configs", "status": "connect-states"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalBroker(
        tmp_path_factory.mktemp("connect"), group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=1_000
    ) as running:
        yield running.bootstrap_servers


@contextmanager
def worker(folder: Path, servers: str) -> Iterator[str]:
    """A worker of Connect; gives its address, and kills it at the end."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "connect",
        "listeners": "http://127.0.0.1:0",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "200",
        "session.timeout.ms": "2000",
        "heartbeat.interval.ms": "500",
        "consumer.session.timeout.ms": "2000",
        "consumer.heartbeat.interval.ms": "500",
        "plugin.discovery": "service_load",
        "scheduled.rebalance.max.delay.ms": "0",
        **{f"{of}.storage.topic": topic for of, topic in _TOPICS.items()},
        **{f"{of}.storage.replication.factor": "1" for of in _TOPICS},
        **{f"{of}.storage.partitions": "1" for of in ("offset", "status")},
    }
    file, log = folder / "connect.properties", folder / "log"
    file.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    with log.open("w") as printed:
        command = [*java_command("org.apache.kafka.connect.cli.ConnectDistributed"), str(file)]
        running = subprocess.Popen(command, stdout=printed, stderr=printed, cwd=folder)
        try:
            found = until(
                lambda: re.search(r"Advertised URI: (http://[^/\s]+)", log.read_text()),
                lambda: f"Connect starts: {log.read_text()[-3000:]}",
                _WAIT_S,
            )
            yield found.group(1)
        finally:
            running.kill()
            running.wait()


def asked(url: str, path: str, document: object = None) -> object:
    """What the worker answers; raises OSError for a refusal."""
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"{url}{path}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def begin(url: str, name: str, kind: str, **settings: object) -> None:
    """Make a connector of files, once the worker has joined its group."""
    config = {"connector.class": f"org.apache.kafka.connect.file.FileStream{kind}Connector", "tasks.max": 1, **settings}

    refusals: list[object] = [None]

    def accepted() -> bool:
        try:
            asked(url, "/connectors", {"name": name, "config": {key: str(value) for key, value in config.items()}})
        except OSError as refusal:
            refusals.append(refusal.read() if isinstance(refusal, HTTPError) else refusal)
            return False
        return True

    until(accepted, lambda: f"connector {name} is accepted; the last refusal: {refusals[-1]}", _WAIT_S)


def test_connect_copies_a_file_into_a_topic_and_into_a_file_each_line_once_though_it_is_killed(
    servers: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    lines = [f"line {number}" for number in range(900)]

    def write(some: list[str]) -> None:
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in some))

    def in_topic() -> list[str]:
        (found,) = committed(servers, "connect-lines", 1, ())
        return [value.decode() for _, value in found]

    with Admin(servers) as admin:
        admin.create_topic("connect-lines", 1)
    write(lines[:300])
    with worker(tmp_path, servers) as url:
        begin(url, "in", "Source", file=source, topic="connect-lines")
        begin(url, "out", "Sink", file=target, topics="connect-lines")
        until(lambda: target.exists() and lines[299] in target.read_text().splitlines(), "300 came through", _WAIT_S)
        write(lines[300:600])
        until(lambda: len(in_topic()) > 300, "more are in the topic", _WAIT_S)
    write(lines[600:])
    with worker(tmp_path, servers) as url:
        log = tmp_path / "log"
        until(lambda: set(target.read_text().splitlines()) == set(lines), lambda: log.read_text()[-3000:], _WAIT_S)
        assert Counter(in_topic()) == Counter(lines), "each line is in the topic once"
        assert in_topic() == lines
        states = asked(url, "/connectors?expand=status")
        assert isinstance(states, dict)
        assert {name: [task["state"] for task in each["status"]["tasks"]] for name, each in states.items()} == {
            "in": ["RUNNING"],
            "out": ["RUNNING"],
        }
        with Admin(servers) as admin:
            assert {topic.name for topic in admin.topics()} >= set(_TOPICS.values())
            until(lambda: sum(admin.group_offsets("connect-out").values()) > 0, "the sink is a consumer group")
