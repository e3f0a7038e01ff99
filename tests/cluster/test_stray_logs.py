"""What a broker has on its disk of topics that were deleted, or made anew, while it was away."""

from pathlib import Path

import pytest

from pylog_spark.client import Admin, Consumer, Producer
from pylog_spark.testing import LocalBroker, LocalCluster
from tests.harness.runs import mostly_long

pytestmark = pytest.mark.long  # the decision: tests/unit/broker/test_clustered.py

OLD, NEW = b"of the topic that was deleted", b"of the topic that was made anew"
RECORDS = 20


def write(servers: str, topic: str, value: bytes) -> None:
    with Producer(servers, topic, {"acks": "all"}) as producer:
        for _ in range(RECORDS):
            producer.send(value)


def values(servers: str, topic: str) -> list[bytes | None]:
    with Consumer(servers, topic, start="earliest", follow=False) as consumer:
        return [record.value for record in consumer]


def log_of(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def directories(broker: LocalBroker, topic: str) -> list[Path]:
    found = Path(broker.data_dir).glob(f"{topic}-0*")
    # Renamed so, it is removed a little later.
    return sorted(path for path in found if not path.name.endswith("-delete"))


def cluster_moves(cluster: LocalCluster) -> list[object]:
    with Admin(cluster.bootstrap_servers) as admin:
        return list(admin.reassignments())


def is_known(broker: LocalBroker, topic: str) -> bool:
    with Admin(broker.bootstrap_servers) as admin:
        return admin.topics([topic])[0].error is None


def topic_id(broker: LocalBroker, topic: str) -> str:
    with Admin(broker.bootstrap_servers) as admin:
        return str(admin.topics([topic])[0].topic_id)


def is_registered(cluster: LocalCluster, broker: LocalBroker) -> bool:
    """Whether any other broker, the one that controls among them, knows it."""
    known: set[int] = set()
    for other in cluster.brokers:
        if other is not broker:
            with Admin(other.bootstrap_servers) as admin:
                known |= {node.node_id for node in admin.cluster().brokers}
    return broker.broker_id in known


@pytest.mark.parametrize("away", mostly_long(["kill", "terminate", "pause"], "kill"))
def test_topics_that_were_deleted_meanwhile_are_not_served_and_one_made_anew_has_only_its_own_records(
    cluster: LocalCluster, away: str
) -> None:
    absent = cluster.brokers[2]
    kept, gone, anew = (f"{name}-{away}" for name in ("kept", "gone", "anew"))
    servers = ",".join(broker.bootstrap_servers for broker in cluster.brokers[:2])
    with Admin(servers) as admin:
        for topic in (kept, gone, anew):
            admin.create_topic(topic, 1, 3)
            write(cluster.bootstrap_servers, topic, OLD)
            cluster.wait_in_sync(topic)
    assert OLD in log_of(Path(absent.data_dir) / f"{anew}-0")
    getattr(absent, away)()
    cluster.wait_for(lambda: not is_registered(cluster, absent), "the others go on without it")
    with Admin(servers) as admin:
        assert [result.error for result in admin.delete_topics([gone, anew])] == [None, None]
        for broker in cluster.brokers[:2]:
            cluster.wait_for(lambda broker=broker: not is_known(broker, anew), "both know that it is deleted")
        made = admin.create_topic(anew, 1, 2).topic_id
        for broker in cluster.brokers[:2]:
            cluster.wait_for(lambda broker=broker: topic_id(broker, anew) == made, "both know the new topic")
        write(servers, anew, NEW)
        absent.resume() if away == "pause" else absent.start()
        cluster.wait_in_sync(kept)

        # What it had of topics that are no more is not where a topic would look for its log.
        cluster.wait_for(lambda: directories(absent, anew) == [], "the old topic's directory is removed")
        if away == "pause":
            cluster.wait_for(lambda: directories(absent, gone) == [], "the deleted topic's directory is removed")
        else:
            # It cannot know that the topic was deleted; ZooKeeper may have lost its data.
            (stray,) = directories(absent, gone)
            assert stray.name.endswith("-stray")
            assert OLD in log_of(stray)
        assert admin.topics([gone])[0].error == "UNKNOWN_TOPIC_OR_PARTITION"

        # It leads the topic that was made anew, and another one of the deleted topic's name.
        admin.reassign({(anew, 0): (3, 1, 2)})
        admin.create_topic(gone, 1, 3)
    for topic in (anew, gone):
        cluster.wait_in_sync(topic)
    write(cluster.bootstrap_servers, gone, NEW)
    cluster.wait_for(lambda: not cluster_moves(cluster), "the replica is moved")
    with Admin(cluster.bootstrap_servers) as admin:
        admin.elect_leaders([(anew, 0)])
    assert cluster.wait_for(lambda: cluster.leader(anew, 0) is absent, "it leads")
    for topic in (anew, gone):
        assert values(cluster.bootstrap_servers, topic) == [NEW] * RECORDS
        assert OLD not in log_of(Path(absent.data_dir) / f"{topic}-0")
