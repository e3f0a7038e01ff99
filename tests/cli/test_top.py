"""``pylog top``: rates and lag as they are, as JSON, as tables, and in a terminal, which gets back what it had. About 6 s."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import uuid
from contextlib import contextmanager, suppress

import pytest

from pylog_spark.cli.activity import Activity
from pylog_spark.client import AclBinding, Admin, Producer
from pylog_spark.results.markup import printable
from pylog_spark.testing import LocalBroker
from tests.harness.ports import nowhere
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import until


@pytest.fixture(params=["pylog", pytest.param("kafka", marks=[pytest.mark.peers, pytest.mark.long])])
def servers(request):
    """The address of a broker of either kind."""
    return (
        request.getfixturevalue("kafka")
        if request.param == "kafka"
        else request.getfixturevalue("broker").bootstrap_servers
    )


@pytest.fixture
def busy(servers):
    """A topic with 30 records, and a group that has committed 10 of each of its two partitions: 10 behind."""
    name = f"busy-{uuid.uuid4()}"
    with Admin(servers) as admin:
        admin.create_topic(name, 2, 1)
        until(lambda: all(each.leader >= 0 for each in admin.topic(name).partitions), "it has leaders")
        with Producer(servers, name) as producer:
            for number in range(30):
                producer.send(b"x", partition=number % 2)
        admin.alter_group_offsets(f"of-{name}", {(name, 0): 10, (name, 1): 10})
        yield name
        admin.delete_groups([f"of-{name}"])
        admin.delete_topics([name])


def of(rows, key, name):
    (row,) = (row for row in rows if row[key] == name)
    return row


def test_a_script_gets_rates_and_lag_as_json(command, environment, servers, busy, tmp_path):
    words = [*command, "top", "--once", "--every", "1s", "--json", "--bootstrap-server", servers]
    printed = tmp_path / "printed.json"
    # A pipe that nobody reads would stop it as soon as the brokers have many topics.
    with printed.open("w") as out, subprocess.Popen(words, env=environment, stdout=out) as running:
        written = 30
        with Producer(servers, busy) as producer:
            # Whenever it looks: what is written before and after each look is counted.
            while running.poll() is None:
                producer.send(b"y", partition=0)
                written = producer.flush().records + 30
    found = json.loads(printed.read_text())
    topic = of(found["topics"], "name", busy)
    assert (topic["partitions"], topic["under_replicated"], topic["offline"]) == (2, 0, 0)
    assert 30 < topic["records"] <= written
    assert 0 < topic["records_per_s"] * found["interval_s"] <= written - 30
    group = of(found["groups"], "group_id", f"of-{busy}")
    assert group["lag"] == topic["records"] - 20
    assert (group["members"], group["records_per_s"]) == (0, 0.0)
    assert sum(broker["records_per_s"] for broker in found["brokers"]) >= topic["records_per_s"]
    assert [broker["is_controller"] for broker in found["brokers"]].count(True) == 1
    assert found["left_out"] == []
    assert found["topics"][0]["records_per_s"] == max(row["records_per_s"] for row in found["topics"])


def test_tables_of_one_look_are_sorted_and_hide_internal_topics(pylog, broker, make_topic):
    names = [make_topic(f"quiet-{uuid.uuid4()}") for _ in range(2)]
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("strange\x1b[2J", {(names[0], 0): 0})
    done = pylog("top", "--once", "--every", "1s")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("BROKER", "TOPIC", "GROUP"))] == [
        "BROKER",
        "TOPIC",
        "GROUP",
    ]
    places = [next(at for at, line in enumerate(lines) if line.startswith(name)) for name in sorted(names)]
    assert places == sorted(places)
    assert "__consumer_offsets" not in done.stdout
    assert "\\x1b[2J" in done.stdout
    assert "\x1b" not in done.stdout


@contextmanager
def terminal(words, environment):
    """A program in a terminal of 100 columns and 30 lines: the process, what it is shown so far, and how to press keys."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    os.set_blocking(master, False)
    shown = bytearray()

    def look():
        # There is nothing new, or the terminal is closed.
        with suppress(OSError):
            shown.extend(os.read(master, 65536))
        return shown.decode(errors="replace")

    before = termios.tcgetattr(slave)
    environment = {**environment, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        words, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    ) as process:
        try:
            yield process, look, lambda keys: os.write(master, keys)
            until(lambda: look() and process.poll() is not None, lambda: f"it ends: {look()}")
            assert termios.tcgetattr(slave) == before
        finally:
            process.kill()
            os.close(slave)
            os.close(master)


def test_a_terminal_shows_it_until_q_and_is_as_before(command, environment, broker, make_topic):
    name = make_topic(f"shown-{uuid.uuid4()}")
    with terminal([*command, "top", "--every", "1s"], environment) as (process, look, press):
        until(lambda: name in look() and "1 broker" in look(), lambda: f"the topic is shown: {look()}")
        with Producer(broker.bootstrap_servers, name) as producer:
            producer.send(b"x")
        until(lambda: look().count("records/s") >= 2, lambda: f"it looks again: {look()}")
        press(b"xq")
    assert process.returncode == 0, look()
    assert "\x1b[?1049h" in look()
    assert look().rindex("\x1b[?1049l") > look().index("\x1b[?1049h")


def test_ctrl_c_ends_it_and_gives_the_terminal_back(command, environment, make_topic):
    name = make_topic(f"shown-{uuid.uuid4()}")
    with terminal([*command, "top"], environment) as (process, look, _):
        until(lambda: name in look(), lambda: f"the topic is shown: {look()}")
        process.send_signal(2)
    assert process.returncode == 130, look()


def test_without_a_terminal_it_says_what_to_do(pylog):
    done = pylog("top")
    assert done.returncode == 2
    assert "Standard output is no terminal: say --once, or --json for a line at each look." in done.stderr


def test_brokers_that_do_not_answer_are_an_error_of_a_script(pylog):
    done = pylog("top", "--once", "--bootstrap-server", nowhere(), "--client-config", "default.api.timeout.ms=300")
    assert done.returncode == 1
    assert nowhere() in done.stderr


def test_names_do_nothing_to_a_terminal():
    assert printable("a\x1b[31m\nb\u202e") == "a\\x1b[31m\\nb\\u202e"


def test_a_user_sees_what_acls_let_him_describe(tmp_path):
    with LocalBroker(tmp_path / "data", sasl="SCRAM-SHA-256", authorizer_class_name=AUTHORIZER) as broker:
        with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
            for topic in ("seen", "hidden"):
                admin.create_topic(topic, 1)
                admin.alter_group_offsets(f"{topic}-group", {(topic, 0): 0})
            admin.set_user_scram_credential("bob", "swordfish", mechanism="SCRAM-SHA-256", iterations=4096)
            rights = [("TOPIC", "seen"), ("GROUP", "seen-group")]
            admin.create_acls(
                [AclBinding(kind, name, "LITERAL", "User:bob", "*", "DESCRIBE", "ALLOW") for kind, name in rights]
            )
        login = {**broker.security_settings, "sasl.jaas.config": broker.login.jaas}
        assert "admin" in login["sasl.jaas.config"]
        password = broker.login.password
        login["sasl.jaas.config"] = login["sasl.jaas.config"].replace("admin", "bob").replace(password, "swordfish")
        with Admin(broker.bootstrap_servers, login) as admin:
            sample = Activity(admin).look()
    assert [topic.name for topic in sample.topics] == ["seen"]
    assert [(group.group_id, group.lag) for group in sample.groups] == [("seen-group", 0)]
    assert len(sample.brokers) == 1
