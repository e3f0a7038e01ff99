"""OffsetForLeaderEpoch (KIP-320) of leader epochs whose records only the archive has: consumers find out that a log was truncated.

A cluster of one broker, whose partitions have a new leader epoch after each start. The file takes about 20 s.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from pylog_spark._native import RawConnection
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker, LocalCluster, ZooKeeper
from tests.archive.brokers import EARLIEST, LATEST, QUICK, SHORT, offset, until_short, values
from tests.harness.waiting import said, until
from tests.harness.zookeeper import new_chroot
from tests.mirror.support import write

pytestmark = pytest.mark.long  # tests/oracle/test_list_offsets.py

NONE = 0
#: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR: clients ask again.
_AGAIN = (6, 56)
Found = tuple[int, int, int]


@pytest.fixture
def broker(tmp_path: Path, worker_zookeeper: ZooKeeper) -> Iterator[LocalBroker]:
    """The broker."""
    place = {"zookeeper": worker_zookeeper, "chroot": new_chroot()}
    with LocalCluster(tmp_path / "cluster", 1, **place, archive_url=str(tmp_path / "archive"), **QUICK) as cluster:
        yield cluster.brokers[0]


def ends_of_epochs(broker: LocalBroker, topic: str, epochs: int) -> list[Found]:
    """Error, leader epoch and end offset of each epoch below `epochs`, as the broker answers a client."""
    with closing(RawConnection(broker.host, broker.port)) as connection:
        found = []
        for epoch in range(epochs):
            asked = {
                "topic": topic,
                "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}],
            }
            request = json.dumps({"replica_id": -1, "topics": [asked]})
            answer = json.loads(connection.call("OffsetForLeaderEpoch", 4, request))
            each = answer["topics"][0]["partitions"][0]
            found.append((each["error_code"], each["leader_epoch"], each["end_offset"]))
        return found


def fill(broker: LocalBroker, topic: str, start: int, end: int) -> None:
    """Write 300 records in a leader epoch of their own."""
    write(broker.bootstrap_servers, topic, values(start, end), batch_num_messages=10)


def known_epochs(archive: Path, topic: str) -> list[tuple[int, int]]:
    """Leader epochs in the archive, each with its first offset."""
    found: dict[int, int] = {}
    for segment in ArchiveLog(str(archive)).manifest(topic, 0).segments:
        for epoch, first in segment.epochs:
            found.setdefault(epoch, first)
    return sorted(found.items())


@pytest.mark.long  # one that cuts a consumer back: below
def test_epochs_end_where_they_ended_when_only_the_archive_has_their_records(
    broker: LocalBroker, tmp_path: Path
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(
            "epochs", 1, config={**SHORT, "remote.storage.enable": "false", "local.retention.bytes": "-1"}
        )
    for turn in range(4):
        fill(broker, "epochs", turn * 300, turn * 300 + 300)
        if turn < 3:
            broker.restart()
    epochs = 12
    before = ends_of_epochs(broker, "epochs", epochs)
    ends = sorted({end for error, _, end in before if error == NONE and end > 0})
    assert ends == [300, 600, 900, 1_200], before
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_configs("topic", "epochs", {"remote.storage.enable": "true", "local.retention.bytes": "10000"})
        until_short(admin, "epochs", 900)
        assert offset(admin, "epochs", EARLIEST) == 0
    assert ends_of_epochs(broker, "epochs", epochs) == before
    assert len(known_epochs(tmp_path / "archive", "epochs")) >= 3

    # A leader that has not read yet what the archive has says nothing, and never anything else.
    broker.restart()
    ended = [each for each in before if 0 < each[2] < 1_200]

    def answered() -> bool:
        found = ends_of_epochs(broker, "epochs", len(ended))
        wrong = [each for each, known in zip(found, ended, strict=True) if each != known and each[0] not in _AGAIN]
        assert wrong == [], (found, ended)
        return found == ended

    until(answered, "all epochs are known")

    # Records before the start of the log are nobody's: an epoch before all others ends where the log begins.
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records([("epochs", 0, 450)])
        assert offset(admin, "epochs", EARLIEST) == 450
        until(
            lambda: ends_of_epochs(broker, "epochs", 1) == [(NONE, 0, 450)], lambda: ends_of_epochs(broker, "epochs", 1)
        )
        later = [each for each in before if each[2] > 450]
        assert [each for each in ends_of_epochs(broker, "epochs", epochs) if each[2] > 450][: len(later) - 1] == later[
            :-1
        ]


def test_a_consumer_of_records_that_a_log_has_lost_is_told_so_although_the_archive_has_them(
    broker: LocalBroker, tmp_path: Path
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("lost", 1, config=SHORT)
    fill(broker, "lost", 0, 300)
    broker.terminate()
    shutil.copytree(broker.data_dir, tmp_path / "before")
    broker.start()
    for turn in range(1, 3):
        fill(broker, "lost", turn * 300, turn * 300 + 300)
        if turn < 2:
            broker.restart()
    with Admin(broker.bootstrap_servers) as admin:
        until_short(admin, "lost", 700)
    (_, _), (second, _), (third, begins) = known_epochs(tmp_path / "archive", "lost")
    assert (begins, ends_of_epochs(broker, "lost", second + 1)[second]) == (600, (NONE, second, 600))
    broker.terminate()
    shutil.rmtree(broker.data_dir)
    (tmp_path / "before").rename(broker.data_dir)
    broker.start()
    with Admin(broker.bootstrap_servers) as admin:
        said(broker, "has lost records since they were archived")
        assert offset(admin, "lost", LATEST) == 300
    for epoch in (second, third):
        error, known, end = ends_of_epochs(broker, "lost", epoch + 1)[epoch]
        assert (error, end) == (NONE, 300), "what comes behind is another history"
        assert known < epoch

    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "any", "auto.offset.reset": "error", "log_level": 0}
    )
    with closing(consumer):
        # So a consumer comes back that has read so far in the second epoch.
        consumer.assign([TopicPartition("lost", 0, 450, leader_epoch=second)])
        message = until(lambda: consumer.poll(0.1), "an error")
        assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
        assert "Partition log truncation detected at offset 450" in message.error().str()
