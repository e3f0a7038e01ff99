"""A replica whose files are lost while its broker is stopped: its leader fills it, or, where no other replica has all of it, the partition
is refused by name. No broker serves a log that lacks committed records.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pylog_spark.client import Admin, Consumer, Producer
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker, LocalCluster
from tests.harness.runs import mostly_long
from tests.harness.waiting import said, until

RECORDS = 100
VALUES = [b"%d" % number for number in range(RECORDS)]
#: A client that gives up soon what is not there.
QUICK = {"default.api.timeout.ms": "2000"}


def write(cluster: LocalCluster, topic: str) -> None:
    """Write `VALUES`, each acknowledged by all in sync."""
    servers = ",".join(broker.bootstrap_servers for broker in cluster.brokers if broker.running)
    with Producer(servers, topic, {"acks": "all"}) as producer:
        for value in VALUES:
            producer.send(value)


def read(broker: LocalBroker, topic: str, config: Mapping[str, str] | None = None) -> list[bytes | None]:
    """All of the topic, whose brokers are learnt from this one."""
    with Consumer(broker.bootstrap_servers, topic, start="earliest", follow=False, config=config) as consumer:
        return [record.value for record in consumer]


def remove(data: Path, topic: str) -> None:
    """The partition's folder is gone."""
    shutil.rmtree(data / f"{topic}-0")


def empty(data: Path, topic: str) -> None:
    """The partition's folder is there, with nothing in it."""
    remove(data, topic)
    (data / f"{topic}-0").mkdir()


def cut(data: Path, topic: str) -> None:
    """The active segment has half of its bytes."""
    log = max((data / f"{topic}-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def lose_all(data: Path, _topic: str) -> None:
    """The data folder is empty."""
    shutil.rmtree(data)


HARMS = [remove, empty, cut, lose_all]


def test_a_replica_that_lost_its_files_while_others_were_in_sync_is_filled_by_its_leader(
    cluster: LocalCluster, new_topic: str
) -> None:
    victim = cluster.brokers[2]
    servers = ",".join(broker.bootstrap_servers for broker in cluster.brokers[:2])
    with Admin(servers) as admin:
        admin.create_topic(new_topic, 1, 3)
        cluster.wait_in_sync(new_topic)
        with Producer(servers, new_topic, {"acks": "all"}) as producer:
            for number in range(RECORDS):
                producer.send(b"%d" % number)
        assert victim.terminate() == 0

        def without() -> bool:
            (partition,) = cluster.describe_topic(new_topic)
            return victim.broker_id not in partition.isr and partition.leader != victim.broker_id

        cluster.wait_for(without, "the others are in sync without it")
        shutil.rmtree(Path(victim.data_dir) / f"{new_topic}-0")
        victim.start()
        cluster.wait_in_sync(new_topic)
    until(lambda: "a damaged replica begins anew and is filled by its leader" in victim.logs(), "the log says so")
    logs = [sorted((Path(broker.data_dir) / f"{new_topic}-0").glob("*.log")) for broker in cluster.brokers]
    assert len({b"".join(path.read_bytes() for path in files) for files in logs}) == 1


@pytest.mark.parametrize("harm", mostly_long([remove, lose_all], remove))
def test_a_replica_that_is_in_sync_and_lost_its_files_leads_nothing_before_it_is_filled(
    cluster: LocalCluster, new_topic: str, harm: Callable[[Path, str], None]
) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, 1, 3)
        cluster.wait_in_sync(new_topic)
    write(cluster, new_topic)
    victim = cluster.wait_for_leader(new_topic, 0)
    # So soon that it is still taken for the leader, or for one in sync.
    victim.kill()
    harm(Path(victim.data_dir), new_topic)
    victim.start()
    cluster.wait_in_sync(new_topic)
    until(
        lambda: f"a damaged replica begins anew and is filled by its leader: {new_topic}-0" in victim.logs(),
        "the log says so",
    )
    assert all(read(broker, new_topic) == VALUES for broker in cluster.brokers)
    logs = [sorted((Path(broker.data_dir) / f"{new_topic}-0").glob("*.log")) for broker in cluster.brokers]
    assert len({b"".join(path.read_bytes() for path in files) for files in logs}) == 1


@pytest.mark.parametrize("harm", mostly_long(HARMS, cut))
def test_a_partition_whose_last_replica_in_sync_lost_its_files_is_refused_by_name_until_they_are_back(
    cluster: LocalCluster, new_topic: str, tmp_path: Path, harm: Callable[[Path, str], None]
) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, 1, 1)
        cluster.wait_in_sync(new_topic)
    write(cluster, new_topic)
    victim = cluster.wait_for_leader(new_topic, 0)
    assert victim.terminate() == 0
    shutil.copytree(victim.data_dir, tmp_path / "kept", copy_function=shutil.copy2)
    harm(Path(victim.data_dir), new_topic)
    for stop in (victim.kill, victim.terminate):
        victim.start()
        with pytest.raises(LogError, match=f"{new_topic}-0"):
            read(victim, new_topic, QUICK)
        said(victim, f"a partition is offline: {new_topic}-0: ")
        stop()
    shutil.rmtree(victim.data_dir)
    shutil.copytree(tmp_path / "kept", victim.data_dir, copy_function=shutil.copy2)
    victim.start()
    cluster.wait_in_sync(new_topic)
    assert read(victim, new_topic) == VALUES
