"""The broker's log: one line each with time, level, logger and broker; no flood hides another line; the last lines are there."""

import contextlib
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark import _native, start_broker
from pylog_spark.broker import loggers
from pylog_spark.client import Admin, LogError
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until

NETWORK = "pylog.broker.network"
LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?P<level>[A-Z]+) (?P<logger>pylog[.\w]*)(?: broker=(?P<broker>\d+))?: (?P<message>.+)"
)
GARBAGE = b"GET / HTTP/1.1\r\n\r\n"
LINES_MAX = 20
WINDOW_S = 10


def send_garbage(host: str, port: int, count: int, source: str = "127.0.0.1") -> None:
    """As many connections as `count`, each of which the broker closes."""
    for _ in range(count):
        with socket.create_connection((host, port), 10, (source, 0)) as one:
            one.sendall(GARBAGE)
            with contextlib.suppress(ConnectionError):
                assert one.recv(1) == b""


def lines(text: str) -> list[re.Match[str]]:
    """All lines of a log, each of which has to be one."""
    found = [(line, LINE.fullmatch(line)) for line in text.splitlines()]
    assert all(match for _, match in found), [line for line, match in found if not match]
    return [match for _, match in found if match]


def closed_by(found: list[re.Match[str]], source: str) -> list[re.Match[str]]:
    return [line for line in found if line["message"].startswith(f"closed the connection of {source}:")]


def left_out(found: list[re.Match[str]], source: str) -> int:
    """How many lines about the connections of `source` were left out, as the log says."""
    said = re.compile(
        rf"(\d+) more like this within {WINDOW_S} s from {re.escape(source)} (?:was|were) left out: closed the .*"
    )
    return sum(int(match[1]) for line in found if (match := said.fullmatch(line["message"])))


@pytest.mark.long  # the limit of lines: broker_native/log
def test_a_thousand_garbage_connections_hide_neither_an_offline_partition_nor_another_client(new_broker):
    broker = new_broker()
    # Where the log's directory should be.
    Path(broker.data_dir, "t-0").write_text("")
    send_garbage(broker.host, broker.port, 1_000)
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t")
    send_garbage(broker.host, broker.port, 1, "127.0.0.2")
    until(lambda: closed_by(lines(broker.logs()), "127.0.0.2"), "the other client's line is there")
    offline = [line for line in lines(broker.logs()) if "offline" in line["message"]]
    assert offline, broker.logs()
    assert all(
        (line["level"], line["logger"], line["broker"]) == ("ERROR", "pylog.broker.storage", "1") for line in offline
    )
    # Without any further line of this client or a stop of the broker.
    until(lambda: left_out(lines(broker.logs()), "127.0.0.1"), "what was left out is counted", WINDOW_S * 3)
    broker.terminate()
    found = lines(broker.logs())
    written = closed_by(found, "127.0.0.1")
    assert len(written) + left_out(found, "127.0.0.1") == 1_000
    assert LINES_MAX <= len(written) <= LINES_MAX * 10
    assert {(line["level"], line["logger"], line["broker"]) for line in written} == {("WARN", NETWORK, "1")}


def test_both_halves_have_the_same_loggers():
    assert dict(_native.log_loggers()) == {
        name: about for name, about in loggers.LOGGERS.items() if name.startswith("pylog.broker")
    }


def test_json_lines_are_objects_and_the_last_ones_before_a_stop_are_there(tmp_path):
    broker = LocalBroker(tmp_path / "data")
    broker.program = json_program()
    with broker:
        send_garbage(broker.host, broker.port, 30)
        broker.terminate()
        found = [json.loads(line) for line in broker.logs().splitlines()]
    refused = [line for line in found if line["message"].startswith("closed the connection of 127.0.0.1:")]
    assert len(refused) == LINES_MAX
    assert all(set(line) == {"time", "level", "logger", "broker", "message", "fields"} for line in found)
    assert refused[0]["fields"] == {"client": "127.0.0.1"}
    assert (refused[0]["level"], refused[0]["logger"], refused[0]["broker"]) == ("WARN", NETWORK, 1)
    (counted,) = [line for line in found if "left_out" in line["fields"]]
    assert counted["fields"] == {"client": "127.0.0.1", "left_out": "10"}
    assert found[-1]["message"].startswith("Stopped cleanly")


def json_program() -> tuple[str, ...]:
    """`pylog broker` with the options of these tests, for `LocalBroker`."""
    code = (
        "import sys; from pylog_spark.cli.main import main; "
        "sys.argv += ['--log-format', 'json', '--log-level', 'info,pylog.broker.network=debug']; main()"
    )
    return (sys.executable, "-c", code)


def test_levels_change_while_the_broker_runs(shared):
    with Admin(shared.bootstrap_servers) as admin:

        def level(name):
            (described,) = admin.configs("broker-logger", ["1"])
            (found,) = [one.value for one in described.configs if one.name == name]
            return found

        def details():
            return [line for line in lines(shared.logs()) if (line["level"], line["logger"]) == ("DEBUG", NETWORK)]

        assert (level("root"), level(NETWORK)) == ("INFO", "INFO")
        assert not details()
        admin.alter_configs("broker-logger", "1", {NETWORK: "DEBUG"})
        assert (level("root"), level(NETWORK)) == ("INFO", "DEBUG")
        send_garbage(shared.host, shared.port, 1)
        until(details, "details of connections are there")
        admin.alter_configs("broker-logger", "1", {NETWORK: None})
        assert level(NETWORK) == "INFO"
        before = len(closed_by(lines(shared.logs()), "127.0.0.3"))
        send_garbage(shared.host, shared.port, 1, "127.0.0.3")
        until(lambda: len(closed_by(lines(shared.logs()), "127.0.0.3")) > before, "warnings are there")
        assert not [line for line in details() if "127.0.0.3" in line["message"]]
        for name, value in ((NETWORK, "LOUD"), ("pylog.nothing", "INFO"), ("root", None)):
            with pytest.raises(LogError):
                admin.alter_configs("broker-logger", "1", {name: value})
    changed = [line["message"] for line in lines(shared.logs()) if "as a client asked" in line["message"]]
    assert changed == [
        f"The level of logger {NETWORK} is DEBUG now, as a client asked.",
        f"The level of logger {NETWORK} is not set any more, as a client asked.",
    ]


@pytest.fixture
def as_before() -> Iterator[None]:
    """The loggers' levels are put back."""
    every = {name: loggers.named(name).level for name in (loggers.ROOT, *loggers.LOGGERS)}
    yield
    for name, number in every.items():
        loggers.named(name).setLevel(number)


def test_lines_of_brokers_in_a_program_are_records_of_its_logging_each_with_its_broker(tmp_path, caplog):
    caplog.set_level(logging.INFO, "pylog")
    with (
        start_broker(tmp_path / "1", node_id=1) as one,
        start_broker(tmp_path / "2", node_id=2) as two,
    ):
        send_garbage(one.host, one.port, 3)
        send_garbage(two.host, two.port, 2)
    found = [record for record in caplog.records if record.getMessage().startswith("closed the connection of ")]
    assert sorted(record.broker for record in found) == [1, 1, 1, 2, 2]
    assert {(record.name, record.levelno) for record in found} == {(NETWORK, logging.WARNING)}
    assert {record.fields["client"] for record in found} == {"127.0.0.1"}
    assert all(abs(record.created - time.time()) < 60 for record in found)
    assert all(record.pathname.endswith(".rs") and record.lineno > 0 for record in found)


def test_a_level_that_a_program_sets_in_its_logging_is_the_brokers(tmp_path, caplog, as_before):
    # The handler takes all.
    caplog.set_level(logging.DEBUG, "pylog")
    logging.getLogger("pylog.broker").setLevel(logging.INFO)

    def details():
        return [record for record in caplog.records if (record.name, record.levelno) == (NETWORK, logging.DEBUG)]

    with start_broker(tmp_path) as broker:
        send_garbage(broker.host, broker.port, 1)
        assert not details()
        logging.getLogger(NETWORK).setLevel(logging.DEBUG)

        def come():
            send_garbage(broker.host, broker.port, 1)
            return details()

        until(come, "details of connections come")


@pytest.mark.long  # broker_native/log
def test_nothing_waits_for_the_interpreter_when_threads_log(tmp_path, caplog, as_before):
    """Handlers that ask the broker, threads that hold the interpreter and ask it, and a flood of lines, at once."""
    caplog.set_level(logging.DEBUG, "pylog")
    switch = sys.getswitchinterval()
    ended = threading.Event()

    class Asking(logging.Handler):
        """Asks the broker, which may be about to log, for each of its lines."""

        def emit(self, record: logging.LogRecord) -> None:
            broker.stats()

    def busy() -> None:
        while not ended.is_set():
            sum(range(10_000))
            broker.stats()

    handler = Asking()
    broker = start_broker(tmp_path)
    logging.getLogger(NETWORK).addHandler(handler)
    sys.setswitchinterval(0.05)
    threads = [threading.Thread(target=busy) for _ in range(2)]
    threads += [threading.Thread(target=send_garbage, args=(broker.host, broker.port, 50)) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads[2:]:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads[2:])
    finally:
        ended.set()
        sys.setswitchinterval(switch)
        broker.close()
        logging.getLogger(NETWORK).removeHandler(handler)
    said = [record.getMessage() for record in caplog.records if record.name == NETWORK]
    assert [one for one in said if one.startswith("closed the connection of ")]
    assert [one for one in said if " left out: " in one]


def test_the_lines_are_there_when_a_program_ends_without_a_stop(tmp_path):
    code = f"""
import logging, socket
logging.basicConfig(format="%(levelname)s %(name)s %(broker)s %(message)s")
from pylog_spark import start_broker
broker = start_broker({str(tmp_path / "data")!r})
with socket.create_connection((broker.host, broker.port)) as one:
    one.sendall({GARBAGE!r})
    one.recv(1)
"""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^WARNING {NETWORK} 1 closed the connection of 127\.0\.0\.1", done.stderr, re.MULTILINE), done
