"""A broker's metrics and probes by HTTP: what Prometheus's own parser reads of them, who may see them, and when a broker is not ready.

What the server does with hostile requests is in `tests/registry/test_hostile.py`: the schema registry stands on the same one.
"""

import base64
import json
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.error import HTTPError

import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from pylog_spark.broker.process import open_broker
from pylog_spark.broker.setting import ConfigError
from pylog_spark.client import Admin, Producer, read_range
from pylog_spark.results.security import AclBinding
from pylog_spark.testing import LocalBroker, LocalCluster, ZooKeeper
from pylog_spark.testing.local_broker import LocalBrokerError
from pylog_spark.web.beside import HttpOptions, Place
from pylog_spark.web.pages import SCRAPES_MAX, Pages, open_pages
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"
Labels = tuple[tuple[str, str], ...]


def asked(url: str, login: str = "", method: str = "GET") -> tuple[int, str]:
    """The status of the answer, and its text."""
    basic = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=basic, method=method), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def numbers(broker: LocalBroker) -> dict[tuple[str, Labels], float]:
    """All of the broker's numbers, by name and labels."""
    status, text = asked(f"{broker.http_url}/metrics")
    assert status == 200
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}


def test_prometheus_reads_what_a_broker_has_done_and_what_it_holds(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", http=True) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("of-all-kinds", partitions=2)
        with Producer(broker.bootstrap_servers, "of-all-kinds") as producer:
            for number in range(10):
                producer.send(b"value", partition=number % 2)
        admin.delete_records([("of-all-kinds", 0, 2)])
        assert read_range(broker.bootstrap_servers, "of-all-kinds").read_all().num_rows == 8
        found = numbers(broker)
    of = {number: (("partition", str(number)), ("topic", "of-all-kinds")) for number in range(2)}
    assert found["kafka_server_brokertopicmetrics_messagesin_total", ()] == 10
    assert found["kafka_server_brokertopicmetrics_bytesout_total", ()] > 0
    assert found["kafka_log_log_logstartoffset", of[0]] == 2
    assert found["kafka_log_log_logstartoffset", of[1]] == 0
    assert found["kafka_log_log_logendoffset", of[0]] == found["pylog_log_high_watermark", of[1]] == 5
    assert found["kafka_log_log_size", of[1]] > 5 * len("value")
    assert (
        found["kafka_server_replicamanager_leadercount", ()] == found["kafka_server_replicamanager_partitioncount", ()]
    )
    assert found["kafka_server_replicamanager_underreplicatedpartitions", ()] == 0
    assert found["kafka_cluster_partition_insyncreplicascount", of[0]] == 1
    assert found["kafka_controller_kafkacontroller_activecontrollercount", ()] == 1
    assert found["process_resident_memory_bytes", ()] > 1e6
    missing = {name for name, _ in found if name.startswith(("kafka_", "pylog_"))} - set(PAGE.read_text().split("`"))
    assert missing == set(), "the page has a line for each"


def test_probes_are_answered_and_other_pages_are_not(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", http=True) as broker:
        assert asked(f"{broker.http_url}/healthz") == asked(f"{broker.http_url}/readyz?verbose") == (200, "ok\n")
        status, text = asked(f"{broker.http_url}/nowhere")
        assert (status, "/metrics" in text) == (404, True)
        assert asked(f"{broker.http_url}/metrics", method="POST")[0] == 405
        url = broker.http_url
        assert broker.restart().http_url == url
        assert asked(f"{url}/healthz")[0] == 200


def test_metrics_are_for_users_that_may_describe_the_cluster_and_probes_for_everybody(tmp_path: Path) -> None:
    with LocalBroker(
        tmp_path / "data",
        sasl="SCRAM-SHA-256",
        http=True,
        authorizer_class_name=AUTHORIZER,
    ) as broker:
        assert broker.login is not None
        with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
            for user in ("watcher", "writer"):
                admin.set_user_scram_credential(user, "secret", "SCRAM-SHA-256")
            cluster = AclBinding("CLUSTER", "kafka-cluster", "LITERAL", "User:watcher", "*", "DESCRIBE", "ALLOW")
            topic = AclBinding("TOPIC", "t", "LITERAL", "User:writer", "*", "WRITE", "ALLOW")
            admin.create_acls([cluster, topic])
        metrics = f"{broker.http_url}/metrics"
        assert asked(metrics)[0] == asked(metrics, "watcher:wrong")[0] == 401
        status, text = asked(metrics, "writer:secret")
        assert (status, "DESCRIBE on the cluster" in text) == (403, True)
        assert asked(metrics, "watcher:secret")[0] == 200
        assert asked(metrics, f"{broker.login.user}:{broker.login.password}")[0] == 200
        assert asked(f"{broker.http_url}/healthz")[0] == asked(f"{broker.http_url}/readyz")[0] == 200


def test_metrics_without_a_login_are_refused_where_the_broker_asks_for_one(tmp_path: Path) -> None:
    listeners = {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_PLAINTEXT"}
    settings = {"inter_broker_listener_name": "INSIDE"}
    refused = LocalBroker(tmp_path / "a", listeners=listeners, sasl="SCRAM-SHA-512", http=True, **settings)
    with closing(refused), pytest.raises(LocalBrokerError, match="--http-without-login"):
        refused.start()
    assert not refused.running
    shown = LocalBroker(tmp_path / "b", sasl="SCRAM-SHA-512", http=["--http-without-login"])
    with shown as broker:
        assert asked(f"{broker.http_url}/metrics")[0] == 200


def test_a_groups_lag_is_what_it_has_not_read_and_the_offset_what_it_has_committed(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", http=True) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("read", partitions=2)
        assert not [name for name, _ in numbers(broker) if name.startswith("kafka_consumergroup")]
        with Producer(broker.bootstrap_servers, "read") as producer:
            for number in range(10):
                producer.send(b"value", partition=number % 2)
        admin.alter_group_offsets('a "group"', {("read", 0): 1, ("read", 1): 5})
        admin.alter_group_offsets("other", {("read", 1): 7})
        found = numbers(broker)
    of = {
        (group, number): (("consumergroup", group), ("partition", str(number)), ("topic", "read"))
        for group, number in (('a "group"', 0), ('a "group"', 1), ("other", 1))
    }
    assert {labels: value for (name, labels), value in found.items() if name == "kafka_consumergroup_lag"} == {
        of['a "group"', 0]: 4,
        of['a "group"', 1]: 0,
        of["other", 1]: 0,  # behind the end: the log was another one
    }
    offsets = [found["kafka_consumergroup_current_offset", labels] for labels in of.values()]
    assert offsets == [1, 5, 7]
    assert (found["pylog_consumergroups", ()], found["pylog_consumergroup_offsets_left_out", ()]) == (2, 0)
    missing = {name for name, _ in found if "consumergroup" in name} - set(PAGE.read_text().split("`"))
    assert missing == set(), "the page has a line for each"


@pytest.mark.long  # the page: above
def test_each_api_has_a_histogram_of_its_times_with_what_its_requests_waited_for(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", http=True) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("read", partitions=1)
        with closing(
            Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "fetch.wait.max.ms": 400})
        ) as reader:
            reader.assign([TopicPartition("read", 0, 0)])
            until(lambda: numbers(broker).get(("pylog_fetches_waited_total", ()), 0) >= 2, "a fetch has waited")
        found = numbers(broker)
    name = "pylog_network_request_seconds"

    def of(api: str, bound: str = "+Inf") -> float:
        return found[f"{name}_bucket", (("le", bound), ("request", api))]

    assert of("CreateTopics") == found[f"{name}_count", (("request", "CreateTopics"),)] == 1
    assert 0 < found[f"{name}_sum", (("request", "CreateTopics"),)] < 30
    assert of("Fetch") - of("Fetch", "0.3") >= 1, "a fetch without records takes fetch.wait.max.ms"
    assert of("Fetch", "10.0") == of("Fetch")
    assert (f"{name}_count", (("request", "Produce"),)) not in found


@pytest.mark.long  # a lag that is known: above
def test_a_lag_is_not_guessed_where_the_coordinator_has_no_replica(tmp_path: Path) -> None:
    with (
        LocalCluster(tmp_path, brokers=2, http=True, offsets_topic_replication_factor=1) as cluster,
        Admin(cluster.bootstrap_servers) as admin,
    ):
        admin.create_topic("divided", partitions=2, replication_factor=1)
        with Producer(cluster.bootstrap_servers, "divided") as producer:
            for number in range(10):
                producer.send(b"value", partition=number % 2)
        admin.alter_group_offsets("group", {("divided", 0): 1, ("divided", 1): 2})
        all_numbers = [numbers(broker) for broker in cluster.brokers]

    def of_group(name: str) -> dict[str, float]:
        shown = [item for found in all_numbers for item in found.items() if item[0][0] == name]
        return {dict(labels)["partition"]: value for (_, labels), value in shown}

    assert of_group("kafka_consumergroup_current_offset") == {"0": 1, "1": 2}
    assert of_group("kafka_consumergroup_lag") in ({"0": 4}, {"1": 3})


@pytest.mark.long  # a broker alone: above
def test_a_broker_that_has_lost_zookeeper_is_alive_and_not_ready(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        shared = {"zookeeper_connect": zookeeper.address, "zookeeper_session_timeout_ms": 1500}
        with LocalBroker(tmp_path / "data", http=True, **shared) as broker:

            def readiness() -> tuple[int, str]:
                return asked(f"{broker.http_url}/readyz")

            until(lambda: readiness() == (200, "ok\n"), "the broker is ready")
            zookeeper.pause()
            until(lambda: readiness()[0] == 503, "the session is over")
            assert "ZooKeeper" in readiness()[1]
            assert asked(f"{broker.http_url}/healthz")[0] == 200
            assert numbers(broker)["pylog_may_lead", ()] == 0
            zookeeper.resume()
            until(lambda: readiness()[0] == 200, "the broker is ready again")


def test_answers_that_nobody_reads_take_bounded_memory(tmp_path: Path) -> None:
    with closing(open_broker(str(tmp_path), [("listeners", "PLAINTEXT://127.0.0.1:0")], False)) as broker:
        made: list[int] = []

        def text() -> tuple[str, bytes]:
            """More than sockets take in."""
            made.append(1)
            return "text/plain", b"#" * (64 << 20)

        pages = Pages(Place("127.0.0.1", 0, None, {}, asks=False), broker, None, None, text)
        pages.start("pages")
        with closing(pages), ExitStack() as stack:
            for number in range(SCRAPES_MAX):
                wire = stack.enter_context(socket.create_connection(pages.server_address[:2], timeout=60))
                wire.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
                until(lambda number=number: len(made) == number + 1, "the text is made")
            assert asked(f"{pages.url}/metrics")[0] == 503
            assert asked(f"{pages.url}/healthz")[0] == 200
            wire.close()
            until(lambda: asked(f"{pages.url}/metrics")[0] == 200, "the place of who hung up is free")
        assert len(made) == SCRAPES_MAX + 1


def test_without_prometheus_client_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pylog_spark.web.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    options = HttpOptions("127.0.0.1:0", {}, without_login=False, allow_plaintext=False)
    with (
        closing(open_broker(str(tmp_path), [("listeners", "PLAINTEXT://127.0.0.1:0")], False)) as broker,
        pytest.raises(ConfigError, match=r"pip install 'pylog-spark\[http\]'"),
    ):
        open_pages(broker, options)


#: Starts a broker, and says after each step which of these modules are loaded; it asks with a socket, since clients load some of them.
_LOADED = """
import json, socket, sys
from pylog_spark.broker.process import open_broker

NAMES = ("http.server", "ssl", "_hashlib", "prometheus_client", "pylog_spark.web", "pylog_spark.web.console.service", "pyarrow")
steps = {}

def note(step):
    steps[step] = [name for name in NAMES if name in sys.modules]

def get(path):
    with socket.create_connection(("127.0.0.1", pages.server_address[1])) as wire:
        wire.sendall(f"GET {path} HTTP/1.0\\r\\n\\r\\n".encode())
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    assert answer.split(None, 2)[1] == b"200", answer[:200]
    note(path)

broker = open_broker(sys.argv[1], [("listeners", "PLAINTEXT://127.0.0.1:0")], False)
note("without")
from pylog_spark.web.beside import HttpOptions
from pylog_spark.web.pages import open_pages
pages = open_pages(broker, HttpOptions("127.0.0.1:0", {}, without_login=False, allow_plaintext=False))
note("idle")
for path in ("/healthz", "/metrics"):
    get(path)
pages.close()
broker.close()
print(json.dumps(steps))
"""


def test_a_broker_has_in_memory_only_what_somebody_asks_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, str(tmp_path / "data")], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == {
        "without": [],
        "idle": ["pylog_spark.web"],
        "/healthz": ["http.server", "ssl", "pylog_spark.web"],
        "/metrics": ["http.server", "ssl", "_hashlib", "prometheus_client", "pylog_spark.web"],
    }
