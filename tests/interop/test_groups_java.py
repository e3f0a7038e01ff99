"""Apache Kafka's own consumer and tools in groups on a pylog broker."""

import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.harness.children import PipedChild
from tests.interop.groups import PARTITIONS, Group, until
from tests.peers.tools import java, java_command

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def group(servers: str, new_topic: str) -> Iterator[Group]:
    """A topic of six partitions and a group without members."""
    with Group(servers, new_topic) as made:
        yield made


def tool(group: Group, *options: str) -> list[list[str]]:
    """What ConsumerGroupCommand prints, by lines and words."""
    printed = java(TOOL, "--bootstrap-server", group.servers, *options)
    return [line.split() for line in printed.splitlines() if line.strip()]


def described(group: Group, *options: str) -> dict[str, dict[str, str]]:
    """The table of ``--describe``, by partition."""
    header, *rows = [
        words
        for words in tool(group, "--describe", "--group", group.name, *options)
        if words[0] in ("GROUP", group.name)
    ]
    return {row[2]: dict(zip(header, row, strict=False)) for row in rows}


@pytest.mark.long  # three clients: test_groups.py
def test_a_java_consumer_shares_a_group_with_librdkafka(group: Group) -> None:
    group.keep_producing()
    ours = group.start("confluent", {"partition.assignment.strategy": "range"})
    until(lambda: ours.partitions() == PARTITIONS, "the first has everything")
    command = java_command("org.apache.kafka.tools.consumer.ConsoleConsumer")
    options = ["--bootstrap-server", group.servers, "--topic", group.topic, "--group", group.name]
    own = ["auto.commit.interval.ms=200", "auto.offset.reset=earliest", "session.timeout.ms=6000"]
    words = [word for setting in own for word in ("--command-property", setting)]
    with PipedChild([*command, *options, *words], stdin=subprocess.DEVNULL) as java_member:
        until(lambda: ours.partitions() == PARTITIONS // 2, "the Java consumer takes its half")
        read = {java_member.line().strip() for _ in range(200)}
        assert {member.client_id for member in group.describe().members} == {"rdkafka", "console-consumer"}
        java_member.signal(signal.SIGTERM)
        rest = java_member.rest()
    read |= set(rest.split())
    until(lambda: ours.partitions() == PARTITIONS, "and gives it back when it leaves")
    group.stop_producing()
    until(lambda: group.committed() == group.ends(), "all is committed")
    # A member prints what it reads before it commits it; the last lines may still be on their way here.
    of_java = {value for value in read if value.startswith("record-")}
    until(lambda: of_java | group.read() >= group.sent(), "every record was read by one or the other")


def test_the_java_tool_lists_describes_resets_and_deletes_groups(group: Group) -> None:
    group.produce(60)
    member = group.start("confluent", {"partition.assignment.strategy": "range"})
    group.until_all_is_read()
    until(lambda: group.committed() == group.ends(), "all is committed")
    assert [group.name] in tool(group, "--list")
    assert [group.name, "Stable"] in tool(group, "--list", "--state", "stable")
    rows = described(group)
    assert len(rows) == PARTITIONS
    for row in rows.values():
        assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"], row["HOST"]) == (
            "10",
            "10",
            "0",
            "/127.0.0.1",
        )
        assert re.fullmatch(r"rdkafka-[0-9a-f-]{36}", row["CONSUMER-ID"])
    [state] = [words for words in tool(group, "--describe", "--group", group.name, "--state") if words[0] == group.name]
    assert state[-3:] == ["range", "Stable", "1"]
    refused = tool(group, "--delete", "--group", group.name)
    assert any("GroupNotEmptyException" in word for words in refused for word in words), refused
    member.leave()
    reset = ["--reset-offsets", "--group", group.name, "--topic", group.topic, "--to-offset", "4"]
    tool(group, *reset, "--dry-run")
    assert group.committed() == group.ends()
    tool(group, *reset, "--execute")
    assert set(group.committed().values()) == {4}
    assert {row["LAG"] for row in described(group).values()} == {"6"}
    removed = ["--delete-offsets", "--group", group.name, "--topic", f"{group.topic}:0"]
    tool(group, *removed)
    assert set(described(group)) == {str(partition) for partition in range(1, PARTITIONS)}
    tool(group, "--delete", "--group", group.name)
    assert [group.name] not in tool(group, "--list")
