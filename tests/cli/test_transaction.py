"""``pylog transaction``: transactions of confluent-kafka, seen and ended from outside."""

import json
import re
import uuid

import pytest
from confluent_kafka import KafkaException, Producer

from pylog_spark.client.admin import LATEST, Admin

TIMEOUT_S = 30


@pytest.fixture
def topic(make_topic):
    return make_topic(f"topic-{uuid.uuid4()}")


@pytest.fixture
def name():
    return f"id-{uuid.uuid4()}"


@pytest.fixture
def open_transaction(broker, topic, name):
    """A producer whose transaction holds one record at offset 0."""
    producer = Producer({
        "bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "transaction.timeout.ms": 600_000,
    })  # fmt: skip
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    return producer


def committed_end(broker, topic):
    with Admin(broker.bootstrap_servers) as admin:
        ((_, _, end, _),) = admin._client.list_offsets([(topic, 0, LATEST)], "read_committed")
    return end


def test_an_open_transaction_is_listed_and_described(pylog, open_transaction, topic, name):
    listed = {row["transactional_id"]: row for row in json.loads(pylog("transaction", "list", "--json").stdout)}
    assert listed[name]["state"] == "Ongoing"
    assert name in pylog("transaction", "list", "--state", "Ongoing").stdout
    assert name not in pylog("transaction", "list", "--open-longer-than", "PT1H").stdout
    assert (listed[name]["prepared"], 0 <= listed[name]["open_for_s"] <= 600) == (False, True)
    headings, *lines = pylog("transaction", "list", "--state", "Ongoing").stdout.splitlines()
    assert headings.split() == ["TRANSACTIONAL-ID", "STATE", "PREPARED", "OPEN-FOR-S", "PRODUCER", "COORDINATOR"]
    assert [line.split()[:3] for line in lines if name in line] == [[name, "Ongoing", "-"]]
    shown = pylog("transaction", "describe", name).stdout
    assert shown.startswith(f"Transactional id {name} (Ongoing)\nproducer ")
    assert re.search(r"^open for \d+ s of 600 s$", shown, re.MULTILINE)
    assert re.search(rf"^{topic} +0$", shown, re.MULTILINE)
    open_transaction.commit_transaction(TIMEOUT_S)
    assert "open" not in pylog("transaction", "describe", name).stdout
    ended = {row["transactional_id"]: row for row in json.loads(pylog("transaction", "list", "--json").stdout)}
    assert (ended[name]["prepared"], ended[name]["open_for_s"]) == (False, None)


def test_the_producers_of_a_partition_and_where_their_transactions_begin_are_shown(pylog, open_transaction, topic):
    writers = json.loads(pylog("transaction", "producers", topic, "--json").stdout)
    assert [writer["transaction_start_offset"] for writer in writers] == [0]


def test_an_abort_is_only_shown_until_it_is_to_be_executed(pylog, broker, open_transaction, topic, name):
    shown = pylog("transaction", "abort", name)
    assert shown.returncode == 0
    assert shown.stderr == f"Would abort the transaction of {name}; nothing is changed without --execute.\n"
    assert committed_end(broker, topic) == 0
    done = pylog("transaction", "abort", name, "--execute")
    assert (done.returncode, done.stderr) == (0, f"Aborted the transaction of {name}.\n")
    assert committed_end(broker, topic) == 2
    with pytest.raises(KafkaException):
        open_transaction.commit_transaction(TIMEOUT_S)


def test_a_transaction_is_ended_where_it_begins(pylog, broker, open_transaction, topic):
    where = ["--topic", topic, "--partition", "0", "--start-offset"]
    wrong = pylog("transaction", "abort", *where, "7", "--execute")
    assert (wrong.returncode, "No transaction begins at offset 7" in wrong.stderr) == (1, True)
    assert pylog("transaction", "abort", *where, "0").returncode == 0
    assert committed_end(broker, topic) == 0
    done = pylog("transaction", "abort", *where, "0", "--execute")
    assert (done.returncode, done.stderr) == (0, f"Aborted the transaction at {topic}-0, offset 0.\n")
    assert committed_end(broker, topic) == 2
    open_transaction.purge()


def test_wrong_words_are_one_sentence(pylog, topic):
    for words, code, part in (
        (["describe", "none"], 1, "Transactional id 'none' does not exist"),
        (["abort", "none", "--execute"], 1, "Transactional id 'none' does not exist"),
        (["abort"], 2, "Give a TRANSACTIONAL-ID, or"),
        (["abort", "x", "--topic", "t"], 2, "Give a TRANSACTIONAL-ID, or"),
        (["abort", "--topic", "t"], 2, "belong together"),
        (["list", "--open-longer-than", "1h"], 2, "is not a duration"),
        (["list", "--state", "Confused"], 1, 'no transaction state "Confused"'),
        (["producers", "none"], 1, "Topic 'none' does not exist"),
    ):
        done = pylog("transaction", *words)
        assert (done.returncode, part in done.stderr) == (code, True), (words, done.stderr)
    assert pylog("transaction", "producers", topic).stderr == "No producer with an id writes there.\n"
