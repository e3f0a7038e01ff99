"""A mirror into pylog: the same bytes at the same offsets, the same settings, and nobody else who writes."""

import os
import subprocess
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer

from pylog_spark.client import Admin
from pylog_spark.client.admin import EARLIEST
from pylog_spark.client.errors import LogError
from pylog_spark.mirror.promotion import promote
from pylog_spark.testing import LocalBroker
from tests.harness.ports import nowhere
from tests.harness.waiting import until
from tests.mirror.support import (
    COMMAND,
    MirrorProcess,
    committed,
    ends,
    environment,
    raw_batches,
    until_copied,
    write,
    write_in_transactions,
)

Start = Callable[..., MirrorProcess]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def given(admin: Admin, name: str) -> dict[str, str | None]:
    """The settings that were given to a topic."""
    (described,) = admin.configs("topic", [name])
    return {entry.name: entry.value for entry in described.configs if entry.source == "DYNAMIC_TOPIC_CONFIG"}


def test_that_a_copy_has_the_sources_bytes_offsets_and_transactions_and_goes_on_after_kills(
    source: str, target: LocalBroker, admin: Admin, mirror: Start, name: str
) -> None:
    admin.create_topic(name, 3, config={"segment.bytes": "1048576"})
    for codec in CODECS:
        write(source, name, (f"{codec}-{number}" for number in range(500)), compression_type=codec)
    write_in_transactions(source, name, f"{name}-first", 6)
    process = mirror("--topics", name)
    until_copied(source, target.bootstrap_servers, name, 3)
    write_in_transactions(source, name, f"{name}-second", 4)
    process.kill()
    write(source, name, (f"later-{number}" for number in range(2_000)))
    target.kill()
    target.start()
    process.start()
    wanted = until_copied(source, target.bootstrap_servers, name, 3)
    for partition, end in enumerate(wanted):
        assert raw_batches(source, name, partition, 0, end) == raw_batches(
            target.bootstrap_servers, name, partition, 0, end
        )
    stable = ends(source, name, 3, "read_committed")
    assert ends(target.bootstrap_servers, name, 3, "read_committed") == stable
    assert committed(source, name, 3, wanted) == committed(target.bootstrap_servers, name, 3, wanted)
    assert process.terminate() == 0
    assert process.lines.endswith("stopped\n")


def test_that_settings_and_partitions_follow_the_source_and_a_deleted_topic_stays(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, mirror: Start, name: str
) -> None:
    admin.create_topic(name, 1, config={"retention.ms": "86400000", "cleanup.policy": "compact,delete"})
    process = mirror("--topics", name, "--config", "durability=flushed")
    wanted = {"retention.ms": "86400000", "cleanup.policy": "compact,delete", "durability": "flushed"}
    wanted["mirror.source"] = str(admin.cluster().cluster_id)
    assert given(copies, name) == wanted
    admin.alter_configs("topic", name, {"retention.ms": None, "max.message.bytes": "2000000"})
    admin.create_partitions(name, 4)
    del wanted["retention.ms"]
    wanted["max.message.bytes"] = "2000000"
    until(lambda: given(copies, name) == wanted, lambda: f"settings follow: {given(copies, name)}")
    until(lambda: len(copies.topic(name).partitions) == 4, "partitions follow")
    write(source, name, (str(number) for number in range(100)))
    until_copied(source, target.bootstrap_servers, name, 4)
    admin.delete_topics([name])
    process.says(f"topic {name} is gone from the source: its copy stays as it is")
    assert sum(ends(target.bootstrap_servers, name, 4)) == 100


def test_that_records_deleted_in_the_source_are_deleted_in_the_copy_which_may_begin_late(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, mirror: Start, name: str
) -> None:
    admin.create_topic(name, 1)
    write(source, name, (str(number) for number in range(100)), batch_num_messages=10)
    admin.delete_records([(name, 0, 55)])
    mirror("--topics", name)
    assert until_copied(source, target.bootstrap_servers, name) == [100]

    def start_of_copy() -> int:
        return copies.offsets([(name, 0, EARLIEST)])[0].offset

    until(lambda: start_of_copy() == 55, lambda: f"the copy begins at 55, not {start_of_copy()}")
    admin.delete_records([(name, 0, 77)])
    until(lambda: start_of_copy() == 77, lambda: f"the copy begins at 77, not {start_of_copy()}")
    admin.delete_records([(name, 0, 100)])
    until(lambda: start_of_copy() == 100, lambda: f"the copy begins at 100, not {start_of_copy()}")
    write(source, name, ["the next"])
    assert until_copied(source, target.bootstrap_servers, name) == [101]
    assert raw_batches(source, name, 0, 100, 101) == raw_batches(target.bootstrap_servers, name, 0, 100, 101)


def test_that_nobody_else_writes_to_a_copy_until_it_is_promoted(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, mirror: Start, name: str
) -> None:
    admin.create_topic(name, 2)
    write(source, name, (str(number) for number in range(50)))
    process = mirror("--topics", name)
    wanted = until_copied(source, target.bootstrap_servers, name, 2)
    servers = target.bootstrap_servers
    said = subprocess.run(
        [*COMMAND[:-1], "produce", name, "-b", servers], input="x\n", env=environment(), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 1
    assert f"pylog mirror promote {name}" in said.stderr
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": 60_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, "in a transaction")
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    with pytest.raises(LogError, match=f"pylog mirror promote {name}"):
        copies.alter_configs("topic", name, {"mirror.source": None})
    assert ends(servers, name, 2) == wanted
    done = subprocess.run(
        [*COMMAND, "promote", name, "-b", servers], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"Topic {name} is no mirror any more: it can be written to.\n")
    process.says(f"topic {name} is in the target and no mirror of cluster")
    write(servers, name, (f"new-{number}" for number in range(50)), enable_idempotence=True)
    found = committed(servers, name, 2, ends(servers, name, 2))
    assert sum(map(len, found)) == 100
    with pytest.raises(LogError, match="is no mirror"):
        promote(copies, name)
    with pytest.raises(LogError, match="only when a topic is created"):
        copies.alter_configs("topic", name, {"mirror.source": "another"})


def test_that_an_open_transaction_of_the_source_is_aborted_by_the_promotion(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, mirror: Start, name: str
) -> None:
    admin.create_topic(name, 1)
    write(source, name, ["before"])
    producer = Producer({"bootstrap.servers": source, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, "undecided")
    producer.flush(30)
    mirror("--topics", name)
    servers = target.bootstrap_servers
    until_copied(source, servers, name)
    assert ends(servers, name, 1, "read_committed") == [1]
    promote(copies, name)
    write(servers, name, ["after"])
    assert [value for _offset, value in committed(servers, name, 1, [])[0]] == [b"before", b"after"]
    producer.commit_transaction(30)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Which cluster? Give --from HOST:PORT."),
        (["--from", "{nowhere}"], "Which cluster? Give --to HOST:PORT."),
        (["--from", "{nowhere}", "--to", "{target}"], "no broker answered"),
        (["--from", "{target}", "--to", "{target}"], "Source and target are the same cluster"),
        (["--from", "{target}", "--to", "{target}", "--topics", "("], "is no regular expression"),
    ],
)
def test_that_what_cannot_be_mirrored_is_refused_at_once(target: LocalBroker, words: list[str], sentence: str) -> None:
    places = {"{target}": target.bootstrap_servers, "{nowhere}": nowhere()}
    given_words = [places.get(word, word) for word in words]
    done = subprocess.run(
        [*COMMAND, *given_words], env={**environment(), "COLUMNS": "200"}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert os.linesep.join(done.stderr.splitlines()).count("Traceback") == 0
