"""What a mirror does beside copying: offsets of groups, a limit, the lag; and both sides behind TLS and logins."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.mirror.support import COMMAND, MirrorProcess, environment, until_copied, write

Start = Callable[..., MirrorProcess]


def commit(servers: str, group: str, topic: str, offset: int) -> None:
    """Commit an offset of partition 0, without members."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_that_offsets_of_groups_are_kept_without_disturbing_members_or_going_back(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, mirror: Start, name: str
) -> None:
    servers, idle, active, ahead = target.bootstrap_servers, f"{name}-idle", f"{name}-active", f"{name}-ahead"
    admin.create_topic(name, 1)
    write(source, name, (str(number) for number in range(100)))
    for group in (idle, active, ahead, f"other-{name}"):
        commit(source, group, name, 40)
    process = mirror("--topics", name, "--groups", f"{name}-.*")
    until_copied(source, servers, name)
    commit(servers, ahead, name, 90)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": active, "auto.offset.reset": "latest",
                         "enable.auto.commit": False})  # fmt: skip
    consumer.subscribe([name])
    try:
        until(lambda: consumer.poll(0.1) or consumer.assignment(), "the group in the target has a member")
        commit(source, idle, name, 70)
        commit(source, active, name, 70)
        assert process.terminate() == 0
        assert copies.group_offsets(idle) == {(name, 0): 70}
        assert copies.group_offsets(ahead) == {(name, 0): 90}
        assert copies.group_offsets(active).get((name, 0)) in (None, 40), "before it had members, if at all"
        assert copies.group_offsets(f"other-{name}") == {}
    finally:
        consumer.close()


def test_that_no_more_bytes_are_copied_than_allowed_and_the_lag_is_shown(
    source: str, target: LocalBroker, admin: Admin, mirror: Start, name: str
) -> None:
    admin.create_topic(name, 2)
    write(source, name, (os.urandom(5_000).hex() for _ in range(300)))
    began = time.monotonic()
    process = mirror("--topics", name, "--max-bytes-per-second", "1000000")
    words = [*COMMAND, "lag", "--from", source, "--to", target.bootstrap_servers, "--topics", name, "--json"]
    shown = json.loads(subprocess.run(words, env=environment(), capture_output=True, text=True, check=True).stdout)
    assert [(each["topic"], each["partition"]) for each in shown] == [(name, 0), (name, 1)]
    assert sum(each["source_end_offset"] for each in shown) == 300
    until_copied(source, target.bootstrap_servers, name, 2)
    took = time.monotonic() - began
    # 3 MB; the last part that was fetched is there when it is written, and one is under way when the limit begins.
    assert took > 2, f"3 MB in {took:.1f} s"
    process.says("lag 0 records in 2 partitions")
    table = subprocess.run(words[:-1], env=environment(), capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in table.splitlines()] == ["LAG", "0", "0"]


def test_that_both_sides_may_be_behind_tls_and_logins(tmp_path: Path) -> None:
    brokers = [
        LocalBroker(tmp_path / "source", sasl="SCRAM-SHA-512"),
        LocalBroker(tmp_path / "target", tls=True, sasl="PLAIN"),
    ]
    files = []
    try:
        for broker, side in zip(brokers, ("from", "to"), strict=True):
            broker.start()
            file = tmp_path / f"{side}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in broker.client_settings.items()))
            files.append(f"--{side}-config={file}")
        with Admin(brokers[0].bootstrap_servers, brokers[0].client_settings) as admin:
            admin.create_topic("secured", 1)
        words = [*COMMAND[:-1], "produce", "secured", "--command-config", str(tmp_path / "from.properties")]
        subprocess.run(words, input="a\nb\n", env=environment(), text=True, check=True)
        with MirrorProcess("", "", *files), Admin(brokers[1].bootstrap_servers, brokers[1].client_settings) as copies:
            until(lambda: copies.offsets([("secured", 0, -1)])[0].offset == 2, "the records are copied")
    finally:
        for broker in brokers:
            broker.close()
