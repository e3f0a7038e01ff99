"""A replica whose files are lost while its broker is stopped is filled by the leader."""

import shutil
from pathlib import Path

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalCluster

RECORDS = 100


def test_a_replica_that_lost_its_files_while_others_were_in_sync_is_filled_by_its_leader(
    cluster: LocalCluster, new_topic: str
) -> None:
    victim = cluster.brokers[2]
    servers = ",".join(one.bootstrap_servers for one in cluster.brokers[:2])
    with Admin(servers) as admin:
        admin.create_topic(new_topic, 1, 3)
        cluster.wait_in_sync(new_topic)
        with Producer(servers, new_topic, {"acks": "all"}) as producer:
            for number in range(RECORDS):
                producer.send(b"%d" % number)
        assert victim.terminate() == 0

        def without() -> bool:
            (partition,) = cluster.describe_topic(new_topic)
            return victim.broker_id not in partition["isr"] and partition["leader"] != victim.broker_id

        cluster.wait_for(without, "the others are in sync without it")
        shutil.rmtree(Path(victim.data_dir) / f"{new_topic}-0")
        victim.start()
        cluster.wait_in_sync(new_topic)
    assert "a damaged replica begins anew and is filled by its leader" in victim.logs()
    logs = [sorted((Path(one.data_dir) / f"{new_topic}-0").glob("*.log")) for one in cluster.brokers]
    assert len({b"".join(path.read_bytes() for path in files) for files in logs}) == 1
