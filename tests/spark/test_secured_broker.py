"""Spark at a pylog broker behind TLS, logins and ACLs: Spark's own Kafka connector with the options of its jobs, and pylog's source."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.client import Admin
from pylog_spark.results.security import AclBinding
from pylog_spark.testing import LocalBroker

pytestmark = [pytest.mark.peers, pytest.mark.slow]

PASSWORD = "swordfish"  # of a broker of this file alone
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENERS = {"ADMIN": "SASL_SSL", "LOGIN": "SASL_SSL", "MUTUAL": "SSL"}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "listener.name.mutual.ssl.client.auth": "required",
}
ROWS = 500


#: What docs/security-clients.md says that a job needs: kind, name, how the name counts, operations.
RIGHTS = [
    ("TOPIC", "jobs-", "PREFIXED", ("READ", "WRITE")),
    # Spark's connector, which reads with a group whose name it makes up.
    ("GROUP", "spark-kafka-", "PREFIXED", ("READ",)),
    # pylog, to write exactly once.
    ("TOPIC", "__pylog_sink", "LITERAL", ("CREATE", "READ", "WRITE")),
    ("TRANSACTIONAL_ID", "pylog-sink.", "PREFIXED", ("WRITE",)),
    ("TRANSACTIONAL_ID", "pylog-once.", "PREFIXED", ("WRITE",)),
]


def allowed(principal: str) -> list[AclBinding]:
    """What a job needs, as ACLs."""
    return [
        AclBinding(kind, name, pattern, principal, "*", operation, "ALLOW")
        for kind, name, pattern, operations in RIGHTS
        for operation in operations
    ]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker whose administrator has made the user ``spark``, and topics."""
    folder = tmp_path_factory.mktemp("secured")
    with LocalBroker(folder / "data", tls=True, sasl="SCRAM-SHA-512", listeners=LISTENERS, **SETTINGS) as running:
        with Admin(running.bootstrap_servers, running.security_settings) as admin:
            made = [admin.set_user_scram_credential("spark", PASSWORD)]
            made += admin.create_acls([*allowed("User:spark"), *allowed("User:CN=client")])
            assert {result.error for result in made} == {None}
            for way in ("login", "mutual"):
                for source in ("kafka", "pylog"):
                    for topic in (f"jobs-{way}-{source}", f"jobs-{way}-{source}-copy"):
                        assert admin.create_topic(topic, 2).error is None
            assert admin.create_topic("other", 1).error is None
        yield running


def options(broker: LocalBroker, way: str, *, password: str = PASSWORD) -> dict[str, str]:
    """The options that both sources understand."""
    assert broker.certificates is not None
    trusted = {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": broker.certificates.ca}
    if way == "mutual":
        own = {f"kafka.{name}": text for name, text in broker.certificates.client_settings("client").items()}
        return {**own, "kafka.bootstrap.servers": broker.address_of("MUTUAL")}
    return {
        **trusted,
        "kafka.bootstrap.servers": broker.address_of("LOGIN"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{MODULE} required username="spark" password="{password}";',
    }


def test_the_page_names_each_of_these_rights() -> None:
    rows = (Path(__file__).parents[2] / "docs" / "security-clients.md").read_text().splitlines()
    for kind, name, _, operations in RIGHTS:
        shown = "its topics" if name == "jobs-" else f"`{name}`"
        described = "".join(row for row in rows if row.startswith("| ") and f"`{kind}`" in row and shown in row)
        assert all(operation in described for operation in operations), (kind, name)


@pytest.mark.parametrize("way", ["login", "mutual"])
@pytest.mark.parametrize("source", ["kafka", "pylog"])
def test_batches_and_streams_go_round(spark: Any, broker: LocalBroker, source: str, way: str, tmp_path: Path) -> None:
    given, topic = options(broker, way), f"jobs-{way}-{source}"
    frame = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 100) AS value")
    frame.write.format(source).options(**given, topic=topic).mode("append").save()
    read = spark.read.format(source).options(**given, subscribe=topic).load()
    assert read.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value").exceptAll(frame).isEmpty()
    assert read.count() == ROWS
    stream = spark.readStream.format(source).options(**given, subscribe=topic, startingOffsets="earliest").load()
    query = (
        stream.select("key", "value").writeStream.format(source).options(**given, topic=f"{topic}-copy")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert spark.read.format(source).options(**given, subscribe=f"{topic}-copy").load().count() == ROWS


@pytest.mark.parametrize("source", ["kafka", "pylog"])
def test_a_topic_without_rights_is_refused_to_both(spark: Any, broker: LocalBroker, source: str) -> None:
    with pytest.raises(Exception, match=r"(?i)(not authorized|not allowed|authoriz)"):
        spark.read.format(source).options(**options(broker, "login"), subscribe="other").load().count()


@pytest.mark.parametrize("source", ["kafka", "pylog"])
def test_a_wrong_password_is_refused_to_both(spark: Any, broker: LocalBroker, source: str) -> None:
    given = options(broker, "login", password="wr0ng")
    with pytest.raises(Exception, match=r"(?i)(authentication|PYLOG_AUTHENTICATION)") as caught:
        spark.read.format(source).options(**given, subscribe="jobs-login-kafka").load().count()
    assert "wr0ng" not in str(caught.value)
