"""ApiVersions from version 5 on (KIP-1242): a client that names the cluster and the broker that it means."""

from tests.oracle.compare import case
from tests.oracle.script import Script

NAMES_ITS_BROKER = 5


def asked(s: Script, *, cluster: str | None, node: int) -> None:
    """ApiVersions; of the table, which two brokers need not share, only the error is compared."""
    client = {"client_software_name": "oracle", "client_software_version": "1"}
    s.call("ApiVersions", NAMES_ITS_BROKER, **client, cluster_id=cluster, node_id=node)
    s.without("api_keys", "supported_features", "finalized_features", "finalized_features_epoch")


def broker(s: Script) -> tuple[str, int]:
    """The cluster and the only broker in it."""
    answer = s.quietly("DescribeCluster")
    return answer["cluster_id"], answer["brokers"][0]["broker_id"]


@case
def test_who_is_meant_answers(s: Script) -> None:
    cluster, node = broker(s)
    asked(s, cluster=cluster, node=node)
    s.says("NONE")
    asked(s, cluster=None, node=-1)
    s.says("NONE")


@case
def test_a_client_that_means_another_cluster_or_broker_is_sent_back_to_its_bootstrap_servers(s: Script) -> None:
    cluster, node = broker(s)
    asked(s, cluster="another", node=node)
    s.says("REBOOTSTRAP_REQUIRED")
    asked(s, cluster=cluster, node=node + 1)
    s.says("REBOOTSTRAP_REQUIRED")


@case
def test_a_cluster_without_a_broker_and_a_broker_without_a_cluster_are_refused(s: Script) -> None:
    cluster, node = broker(s)
    asked(s, cluster=cluster, node=-1)
    s.says("INVALID_REQUEST")
    asked(s, cluster=None, node=node)
    s.says("INVALID_REQUEST")
