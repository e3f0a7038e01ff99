"""What Apache Kafka's own tools and Admin client make of a broker without rules, quorum and further directories, and of its loggers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.harness.brokers import Brokers
from tests.interop.clients import create_topic
from tests.peers.tools import java

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

TIMEOUT_S = 30


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Brokers(tmp_path_factory.mktemp("admin")) as brokers:
        yield brokers.bootstrap_servers


@pytest.fixture(scope="module")
def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def tool(name: str, servers: str, *arguments: str) -> str:
    """What one of Kafka's tools prints."""
    return java(f"org.apache.kafka.tools.{name}", "--bootstrap-server", servers, *arguments)


def test_rules_are_said_to_be_off_not_to_be_none(servers: str) -> None:
    with pytest.raises(RuntimeError, match=r"SecurityDisabledException: .*No Authorizer is configured"):
        tool("AclCommand", servers, "--list")


def test_the_quorum_is_the_controller(servers: str, admin: AdminClient) -> None:
    status = tool("MetadataQuorumCommand", servers, "describe", "--status")
    (leader,) = re.findall(r"LeaderId:\s+(\d+)", status)
    (voters,) = re.findall(r"CurrentVoters:\s+(.*)", status)
    assert re.findall(r'"id": (\d+)', voters) == [leader]
    assert re.search(r"MaxFollowerLag:\s+0\b", status), status
    rows = [line.split() for line in tool("MetadataQuorumCommand", servers, "describe", "--replication").splitlines()]
    described = admin.describe_cluster().result(TIMEOUT_S)
    roles = {row[0]: row[-1] for row in rows[1:] if row}
    assert roles == {str(node.id): "Leader" if str(node.id) == leader else "Observer" for node in described.nodes}


def test_no_client_metrics_are_subscribed_to(servers: str) -> None:
    assert tool("ClientMetricsCommand", servers, "--list").strip() == ""


def test_a_reassignment_to_a_directory_that_is_not_there_is_refused(
    servers: str, admin: AdminClient, tmp_path: Path
) -> None:
    create_topic(servers, "directories")
    (topic,) = admin.list_topics("directories", TIMEOUT_S).topics.values()
    replicas = topic.partitions[0].replicas
    plan = tmp_path / "plan.json"
    move = {"topic": "directories", "partition": 0, "replicas": replicas, "log_dirs": ["/no/such"] * len(replicas)}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    with pytest.raises(RuntimeError, match="LogDirNotFoundException"):
        tool(
            "reassign.ReassignPartitionsCommand", servers, "--reassignment-json-file", str(plan), "--execute",
            "--timeout", "1000",
        )  # fmt: skip


def test_a_feature_that_cannot_be_raised_is_an_invalid_update(servers: str) -> None:
    with pytest.raises(RuntimeError, match=r"no\.such\.feature"):
        tool("FeatureCommand", servers, "upgrade", "--feature", "no.such.feature=1")
    shown = tool("FeatureCommand", servers, "describe")
    assert "transaction.version" in shown


def levels(servers: str, broker: str, *changes: str) -> dict[str, str]:
    """The levels of a broker's loggers after these changes, made by Java's Admin client."""
    lines = [line.split(" ") for line in java("LoggerLevels", servers, broker, *changes).splitlines()]
    assert {source for _, source in lines} == {"DYNAMIC_BROKER_LOGGER_CONFIG"}
    return dict(shown.split("=") for shown, _ in lines)


def test_levels_of_loggers_are_changed_while_the_broker_runs_where_it_is_asked(servers: str) -> None:
    network = "pylog.broker.network"
    before = levels(servers, "1")
    assert (before["root"], before[network]) == ("INFO", "INFO")
    assert levels(servers, "1", f"{network}=DEBUG") == {**before, network: "DEBUG"}
    assert levels(servers, "1", network) == before
    with pytest.raises(RuntimeError, match=r"InvalidConfigurationException: .*pylog\.nothing"):
        levels(servers, "1", "pylog.nothing=INFO")
    with pytest.raises(RuntimeError, match="InvalidRequestException"):
        levels(servers, "1", "root")
