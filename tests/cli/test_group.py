"""``pylog group``: with real members of confluent-kafka; what destroys is only shown until --execute is given."""

import json
import re
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark._native import RawConnection
from tests.harness.waiting import until

TIMEOUT_S = 30


@pytest.fixture
def topic(make_topic, broker):
    """A topic of two partitions with ten records in the first, one a second from 1970 on."""
    name = make_topic(f"topic-{uuid.uuid4()}", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(10):
        producer.produce(name, b"x", partition=0, timestamp=1000 * (number + 1))
    assert producer.flush(TIMEOUT_S) == 0
    return name


@pytest.fixture
def group():
    return f"group-{uuid.uuid4()}"


@contextmanager
def member(broker, group, topic):
    """A member that has the topic's partitions."""
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": "reader",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    try:
        consumer.subscribe([topic])

        def assigned():
            consumer.poll(0.1)
            return consumer.assignment()

        until(assigned, "the member has partitions", TIMEOUT_S)
        yield consumer
    finally:
        consumer.close()


def reset(pylog, group, *words):
    """The offsets that a reset shows: {(partition): (old, new)}."""
    done = pylog("group", "reset-offsets", group, *words, "--json")
    assert done.returncode == 0, done.stderr
    return {move["partition"]: (move["offset"], move["new_offset"]) for move in json.loads(done.stdout)["offsets"]}


def committed_offsets(pylog, group):
    """{partition: offset} as described."""
    (described,) = json.loads(pylog("group", "describe", group, "--json").stdout)
    return {partition["partition"]: partition["offset"] for partition in described["partitions"]}


def test_a_group_shows_its_lag_and_members(pylog, broker, topic, group):
    with member(broker, group, topic) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        shown = pylog("group", "describe", group, "--members")
        assert shown.returncode == 0, shown.stderr
        lines = shown.stdout.splitlines()
        assert re.fullmatch(rf"Group {group} \(Stable, classic, \w+\)", lines[0])
        assert lines[1] == "1 member, 2 partitions, lag 6"
        assert lines[2].split() == ["TOPIC", "PARTITION", "OFFSET", "END", "LAG", "CLIENT", "HOST"]
        assert lines[3].split()[:6] == [topic, "0", "4", "10", "6", "reader"]
        assert lines[4].split()[:6] == [topic, "1", "-", "0", "-", "reader"]
        assert lines[5].split() == ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"]
        listed = {group_row["group_id"]: group_row for group_row in json.loads(pylog("group", "list", "--json").stdout)}
        assert (listed[group]["state"], listed[group]["type"]) == ("Stable", "classic")
    assert group in pylog("group", "list", "--state", "Empty").stdout
    assert group not in pylog("group", "list", "--state", "Stable").stdout


def test_offsets_go_every_way_that_kafkas_tool_knows(pylog, topic, group):
    assert reset(pylog, group, "--topic", topic, "--to-earliest") == {0: (None, 0), 1: (None, 0)}
    assert pylog("group", "describe", group).returncode == 1, "nothing happened without --execute"
    assert reset(pylog, group, "--topic", f"{topic}:0", "--to-offset", "3", "--execute") == {0: (None, 3)}
    assert committed_offsets(pylog, group) == {0: 3}
    for words, expected in (
        (["--to-latest"], 10),
        (["--to-current"], 3),
        (["--to-offset", "99"], 10),
        (["--shift-by", "2"], 5),
        (["--shift-by", "-9"], 0),
        (["--to-datetime", "1970-01-01T00:00:07"], 6),
        (["--by-duration", "PT1S"], 10),
    ):
        assert reset(pylog, group, "--all-topics", *words) == {0: (3, expected)}, words
    assert committed_offsets(pylog, group) == {0: 3}
    assert reset(pylog, group, "--all-topics", "--shift-by", "1", "--execute") == {0: (3, 4)}
    assert committed_offsets(pylog, group) == {0: 4}


def test_a_reset_says_that_it_was_not_done(pylog, topic, group):
    done = pylog("group", "reset-offsets", group, "--topic", topic, "--to-earliest")
    assert re.search(rf"^{topic} +0 +- +0$", done.stdout, re.MULTILINE)
    assert done.stderr == f"Would have moved group {group} in 2 partitions; nothing is changed without --execute.\n"


def test_a_group_with_members_is_not_moved_and_not_deleted(pylog, broker, topic, group):
    with member(broker, group, topic) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        for words in (
            ["reset-offsets", group, "--all-topics", "--to-latest", "--execute"],
            ["reset-offsets", group, "--all-topics", "--to-latest"],
            ["delete", group],
            ["delete", group, "--execute"],
        ):
            done = pylog("group", *words)
            assert done.returncode == 1
            assert done.stderr.startswith(f"Error: Group '{group}' has members"), done.stderr
            assert done.stderr.count("\n") == 1
        assert committed_offsets(pylog, group)[0] == 4


def test_a_group_is_deleted_when_that_is_to_be_executed(pylog, topic, group):
    reset(pylog, group, "--topic", topic, "--to-latest", "--execute")
    shown = pylog("group", "delete", group)
    assert (shown.returncode, "nothing is changed without --execute" in shown.stderr) == (0, True)
    assert pylog("group", "describe", group).returncode == 0
    done = pylog("group", "delete", group, "--execute")
    assert (done.returncode, done.stderr) == (0, f"Deleted {group}.\n")
    gone = pylog("group", "describe", group)
    assert (gone.returncode, gone.stderr) == (1, f"Error: Group '{group}' does not exist.\n")


def share_heartbeat(broker, group, topic, epoch):
    """What a member of a share group says: 0 joins, -1 leaves."""
    host, port = broker.bootstrap_servers.split(":")
    connection = RawConnection(host, int(port))
    said = {"group_id": group, "member_id": "reader", "member_epoch": epoch, "subscribed_topic_names": [topic]}

    def is_taken():
        connection.call("FindCoordinator", 6, json.dumps({"key_type": 0, "coordinator_keys": [group]}))
        return json.loads(connection.call("ShareGroupHeartbeat", 1, json.dumps(said)))["error_code"] == 0

    until(is_taken, "the group's coordinator is there", TIMEOUT_S)


def test_a_share_group_is_shown_moved_and_deleted(pylog, broker, topic, group):
    share_heartbeat(broker, group, topic, epoch=0)
    assert group in pylog("group", "list", "--type", "share").stdout
    assert group not in pylog("group", "list", "--type", "consumer").stdout
    lines = pylog("group", "describe", group, "--members").stdout.splitlines()
    assert lines[:2] == [f"Group {group} (Stable, share, simple)", "1 member, 2 partitions, lag 0"]
    assert lines[2].split() == ["TOPIC", "PARTITION", "OFFSET", "END", "LAG", "MEMBERS"]
    assert lines[3].split() == [topic, "0", "-", "10", "-", "1"]
    refused = pylog("group", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
    assert refused.stderr.startswith(f"Error: Group '{group}' has members"), refused.stderr
    share_heartbeat(broker, group, topic, epoch=-1)
    assert reset(pylog, group, "--topic", topic, "--to-offset", "4", "--execute") == {0: (None, 4), 1: (None, 0)}
    assert reset(pylog, group, "--all-topics", "--shift-by", "-1") == {0: (4, 3), 1: (0, 0)}
    (described,) = json.loads(pylog("group", "describe", group, "--json").stdout)
    rows = [
        (partition["partition"], partition["offset"], partition["end_offset"], partition["lag"])
        for partition in described["partitions"]
    ]
    assert rows == [(0, 4, 10, 6), (1, 0, 0, 0)]
    assert pylog("group", "delete", group, "--execute").returncode == 0
    gone = pylog("group", "describe", group)
    assert (gone.returncode, gone.stderr) == (1, f"Error: Group '{group}' does not exist.\n")


def test_wrong_words_are_one_sentence(pylog, topic, group):
    for words, code, part in (
        (["reset-offsets", group, "--topic", topic], 2, "Say which offsets to set"),
        (["reset-offsets", group, "--topic", topic, "--to-latest", "--to-earliest"], 2, "Say which offsets to set"),
        (["reset-offsets", group, "--to-latest"], 2, "Say which partitions"),
        (["reset-offsets", group, "--to-latest", "--topic", "t:x"], 2, "is not TOPIC"),
        (["reset-offsets", group, "--topic", topic, "--by-duration", "1h"], 2, "is not a duration"),
        (["reset-offsets", group, "--topic", topic, "--to-datetime", "soon"], 2, "neither milliseconds nor"),
        (["reset-offsets", group, "--topic", f"{topic}:7", "--to-latest"], 1, "has no partition 7"),
        (["reset-offsets", group, "--topic", "none", "--to-latest"], 1, "Topic 'none' does not exist"),
        (["reset-offsets", group, "--topic", topic, "--shift-by", "1"], 1, "has no offset in"),
        (["reset-offsets", group, "--all-topics", "--to-latest"], 1, "has no offsets"),
        (["describe", group], 1, "does not exist"),
        (["delete", group, "--execute"], 1, "does not exist"),
    ):
        done = pylog("group", *words)
        assert (done.returncode, part in done.stderr) == (code, True), (words, done.stderr)
