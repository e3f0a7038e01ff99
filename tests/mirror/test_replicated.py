"""A copy with three replicas: it begins late, its leader is killed, and in the end every replica has the source's bytes."""

from pathlib import Path

import pytest

from pylog_spark.client import Admin
from pylog_spark.client.admin import EARLIEST
from pylog_spark.testing import LocalBroker, LocalCluster
from tests.harness.waiting import until
from tests.mirror.support import (
    MirrorProcess,
    committed,
    ends,
    raw_batches,
    until_copied,
    write,
    write_in_transactions,
)

pytestmark = pytest.mark.long  # of one broker: test_mirror.py

TOPIC = "replicated"


@pytest.mark.slow  # about 25 s: a cluster starts, and an election waits for a session to end
def test_that_a_copy_with_replicas_loses_nothing_when_its_leader_is_killed_and_each_may_lead(tmp_path: Path) -> None:
    source, cluster = LocalBroker(tmp_path / "source"), LocalCluster(tmp_path / "target", 3, min_insync_replicas=2)
    try:
        source.start()
        cluster.start()
        servers = cluster.bootstrap_servers
        with Admin(source.bootstrap_servers) as admin:
            admin.create_topic(TOPIC, 1)
            write(source.bootstrap_servers, TOPIC, (str(number) for number in range(200)), batch_num_messages=10)
            admin.delete_records([(TOPIC, 0, 95)])
        words = ("--replication-factor", "3")
        with MirrorProcess(source.bootstrap_servers, servers, *words), Admin(servers) as copies:
            until_copied(source.bootstrap_servers, servers, TOPIC)
            write_in_transactions(source.bootstrap_servers, TOPIC, "first", 4)
            until_copied(source.bootstrap_servers, servers, TOPIC)
            for number in range(2):
                _in_sync(copies, 3)
                leader = _leader(copies)
                cluster.broker(leader).kill()
                write_in_transactions(source.bootstrap_servers, TOPIC, f"later-{number}", 4)
                wanted = until_copied(source.bootstrap_servers, servers, TOPIC)
                assert _leader(copies) != leader
                cluster.broker(leader).start()
            _in_sync(copies, 3)
            until(
                lambda: copies.offsets([(TOPIC, 0, EARLIEST)])[0].offset == 95, "the copy begins where the source does"
            )
        stored = raw_batches(source.bootstrap_servers, TOPIC, 0, 95, wanted[0])
        seen = committed(source.bootstrap_servers, TOPIC, 1, wanted)
        for _ in range(3):
            assert raw_batches(_led_by(servers, cluster), TOPIC, 0, 95, wanted[0]) == stored
            assert committed(servers, TOPIC, 1, wanted) == seen
            assert ends(servers, TOPIC, 1) == wanted
            with Admin(servers) as copies:
                _in_sync(copies, 3)
                leader = _leader(copies)
                cluster.broker(leader).terminate()
                _another_leads(copies, leader)
                cluster.broker(leader).start()
    finally:
        source.close()
        cluster.close()


def _leader(copies: Admin) -> int:
    return copies.topic(TOPIC).partitions[0].leader


def _another_leads(copies: Admin, than: int) -> None:
    until(lambda: _leader(copies) not in (than, -1), "another broker leads", 60)


def _in_sync(copies: Admin, count: int) -> None:
    until(lambda: len(copies.topic(TOPIC).partitions[0].isr) == count, "all replicas are in sync", 60)


def _led_by(servers: str, cluster: LocalCluster) -> str:
    with Admin(servers) as copies:
        return cluster.broker(_leader(copies)).bootstrap_servers
