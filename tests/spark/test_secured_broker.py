"""Spark at a pylog broker behind TLS, logins and ACLs: Spark's own Kafka connector with the options of its jobs, and pylog's source."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.client import Consumer
from pylog_spark.results.security import AclBinding
from tests.harness.runs import mostly_long
from tests.harness.secured_broker import GUESS, PASSWORD, WAYS, Entry, Place, principal_of, secured_broker
from tests.interop.secured_clients import java_settings, token_url

pytestmark = [pytest.mark.peers, pytest.mark.slow]

ROWS = 500
SOURCES = ("kafka", "pylog")
CLIENT_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.ClientJwtValidator"
AUTHENTICATION = {"kafka": "S(as|s)lAuthenticationException", "pylog": "PYLOG_AUTHENTICATION"}
#: Spark's connector asks again and again, even who is refused.
AT_ONCE = {"fetchOffset.retryIntervalMs": "1"}
#: The ways by which streams come, too; by the others batches do.
STREAMED = ("SCRAM-SHA-512", "SSL mutual")

#: What docs/security-clients.md says that a job needs: kind, name, how the name counts, operations.
RIGHTS = [
    ("TOPIC", "jobs-", "PREFIXED", ("READ", "WRITE")),
    # Spark's connector, which reads with a group whose name it makes up.
    ("GROUP", "spark-kafka-", "PREFIXED", ("READ",)),
    # pylog, to write exactly once.
    ("TOPIC", "__pylog_sink", "LITERAL", ("CREATE", "READ", "WRITE")),
    ("TRANSACTIONAL_ID", "pylog-sink.", "PREFIXED", ("WRITE", "TWO_PHASE_COMMIT")),
    ("TRANSACTIONAL_ID", "pylog-once.", "PREFIXED", ("WRITE", "TWO_PHASE_COMMIT")),
]


def allowed(principal: str) -> list[AclBinding]:
    """What a job needs, as ACLs."""
    return [
        AclBinding(kind, name, pattern, principal, "*", operation, "ALLOW")
        for kind, name, pattern, operations in RIGHTS
        for operation in operations
    ]


def topic_of(way: str, source: str) -> str:
    """A topic of one job; there is another one for its copy."""
    return f"jobs-{way.replace(' ', '-')}-{source}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[Place]:
    """A broker whose administrator has made topics, and let all who come do what a job needs."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        with running.admin() as admin:
            made = admin.create_acls([acl for principal in {*map(principal_of, WAYS)} for acl in allowed(principal)])
            assert {result.error for result in made} == {None}
            copied = [f"{topic_of(way, source)}-copy" for way in STREAMED for source in SOURCES]
            for topic in (*(topic_of(way, source) for way in WAYS for source in SOURCES), *copied, "other"):
                assert admin.create_topic(topic, 2).error is None
        # Java asks nobody for tokens whom the process as a whole does not allow.
        urls = [token_url(entry("OAUTHBEARER")) for entry in (running.entry, running.wrong_entry)]
        spark.sparkContext._jvm.System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", ",".join(urls))
        yield running


def options(entry: Entry) -> dict[str, str]:
    """The options that both sources understand."""
    settings = {"bootstrap.servers": entry.servers, "https.ca.location": entry.ca, **java_settings(entry)}
    if entry.tokens is not None:
        # The one that Kafka takes by itself needs jose4j, which Spark and its connector do not bring.
        settings["sasl.oauthbearer.jwt.validator.class"] = CLIENT_VALIDATOR
    return {f"kafka.{name}": text for name, text in settings.items()}


def test_the_page_names_each_of_these_rights() -> None:
    rows = (Path(__file__).parents[2] / "docs" / "security-clients.md").read_text().splitlines()
    for kind, name, _, operations in RIGHTS:
        shown = "its topics" if name == "jobs-" else f"`{name}`"
        described = "".join(row for row in rows if row.startswith("| ") and f"`{kind}`" in row and shown in row)
        assert all(operation in described for operation in operations), (kind, name)


def goes_round(spark: Any, source: str, given: dict[str, str], topic: str) -> None:
    """A batch is written, and read."""
    frame = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 100) AS value")
    frame.write.format(source).options(**given, topic=topic).mode("append").save()
    read = spark.read.format(source).options(**given, subscribe=topic).load()
    assert read.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value").exceptAll(frame).isEmpty()
    assert read.count() == ROWS


@pytest.mark.long  # two ways with streams below, every way in tests/interop/test_secured_matrix.py
@pytest.mark.parametrize("way", [way for way in WAYS if way not in STREAMED])
@pytest.mark.parametrize("source", SOURCES)
def test_batches_go_round(spark: Any, place: Place, source: str, way: str) -> None:
    goes_round(spark, source, options(place.entry(way)), topic_of(way, source))


@pytest.mark.parametrize("way", mostly_long(STREAMED, "SCRAM-SHA-512"))
@pytest.mark.parametrize("source", mostly_long(SOURCES, "kafka"))
def test_batches_and_streams_go_round(spark: Any, place: Place, source: str, way: str, tmp_path: Path) -> None:
    given, topic = options(place.entry(way)), topic_of(way, source)
    goes_round(spark, source, given, topic)
    stream = spark.readStream.format(source).options(**given, subscribe=topic, startingOffsets="earliest").load()
    query = (
        stream.select("key", "value").writeStream.format(source).options(**given, topic=f"{topic}-copy")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert spark.read.format(source).options(**given, subscribe=f"{topic}-copy").load().count() == ROWS


@pytest.mark.long  # tests/spark/test_sink_protocol.py
def test_what_a_job_writes_with_these_rights_is_prepared_so_that_no_broker_ends_it(place: Place) -> None:
    entry = place.entry("SCRAM-SHA-512")
    with Consumer(
        entry.servers, "__pylog_sink", start="earliest", follow=False, config=java_settings(entry)
    ) as decided:
        decisions = [json.loads(record.value) for record in decided if record.value]
    # Those of the batches and streams before.
    assert {decision["kind"] for decision in decisions} == {"once", "stream"}
    assert all(decision["prepared"] for decision in decisions)


@pytest.mark.parametrize("source", SOURCES)
def test_a_topic_without_rights_is_refused_to_both(spark: Any, place: Place, source: str) -> None:
    given = {**options(place.entry("SCRAM-SHA-512")), **AT_ONCE}
    with pytest.raises(Exception, match=r"(?i)(not authorized|not allowed|authoriz)"):
        spark.read.format(source).options(**given, subscribe="other").load().count()


@pytest.mark.parametrize("way", mostly_long(WAYS, "SCRAM-SHA-512"))
@pytest.mark.parametrize("source", SOURCES)
def test_a_wrong_proof_is_refused_to_both(spark: Any, place: Place, source: str, way: str) -> None:
    given = {**options(place.wrong_entry(way)), **AT_ONCE}
    with pytest.raises(Exception, match=AUTHENTICATION[source]) as caught:
        spark.read.format(source).options(**given, subscribe=topic_of(way, source)).load().count()
    assert GUESS not in str(caught.value)
    assert PASSWORD not in str(caught.value)
