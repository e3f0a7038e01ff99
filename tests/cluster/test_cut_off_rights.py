"""What a broker that is cut off from ZooKeeper, and so may know too little, answers a client with few rights."""

from contextlib import closing
from pathlib import Path

import pytest

from pylog_spark._native import RawConnection
from pylog_spark.results.security import AclBinding
from pylog_spark.testing import ZooKeeper
from tests.cluster.sharing import ask
from tests.harness.bench import Bench
from tests.harness.security import MECHANISM, secured
from tests.harness.waiting import until

pytestmark = pytest.mark.slow
CUT_OFF = 3


def test_who_may_only_write_a_topic_finds_it_though_the_broker_has_not_heard_of_it(
    worker_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    security = secured(tmp_path, ["writer"])
    with Bench(tmp_path, worker_zookeeper, security=security) as bench, bench.admin(1) as admin:
        admin.set_user_scram_credential("writer", security.passwords["writer"], MECHANISM)
        admin.create_acls([AclBinding("TOPIC", "new", "LITERAL", "User:writer", "*", "WRITE", "ALLOW")])
        with bench.admin(CUT_OFF) as there:
            until(lambda: there.describe_acls(), "the broker knows the ACL, and so the user")
        broker = bench.brokers[CUT_OFF]
        with closing(RawConnection(broker.host, broker.port, 10_000, security.client("writer"))) as connection:

            def metadata(name: str) -> tuple[int, int]:
                """Error and number of partitions of the topic, which would be made if it were missing."""
                asked = [{"name": name}]
                (topic,) = ask(connection, "Metadata", 9, topics=asked, allow_auto_topic_creation=True)["topics"]
                return topic["error_code"], len(topic["partitions"])

            bench.cut_off_zookeeper(CUT_OFF)
            until(lambda: CUT_OFF not in {each.node_id for each in admin.cluster().brokers}, "its session has ended")
            admin.create_topic("new", 2, 2)
            until(lambda: admin.topics(["new"])[0].error is None, "the topic is served")
            assert metadata("new") == (0, 2)
            # Who may not create a topic does not make the others create it either.
            assert metadata("other")[1] == 0
        assert "other" not in {topic.name for topic in admin.topics()}
        denied = [line for line in broker.logs().splitlines() if '"new"' in line and "may not" in line]
        assert denied == []
