"""Spark reads and writes Apache Kafka behind TLS and logins: batches, streams, exactly once, on the driver and in tasks."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.client import Admin
from tests.harness.certificates import PASSWORD
from tests.harness.runs import mostly_long
from tests.harness.secured import PLAIN_JAAS, USER_PASSWORD, Secured, TokenServer, is_served, jaas
from tests.harness.waiting import until

# a secured broker of ours, with Spark's connector: test_secured_broker.py
pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.slow]

_NUMBERS = itertools.count()


def options(settings: dict[str, str]) -> dict[str, str]:
    """Settings of a client as options of the data source."""
    return {f"kafka.{name}": text for name, text in settings.items()}


@pytest.fixture
def new_topics(secured: Secured) -> Callable[[], str]:
    """Makes topics with two partitions, over the plain listener."""

    def create() -> str:
        name = f"spark-secured-{os.getpid()}-{next(_NUMBERS)}"
        with Admin(secured.servers("PLAINTEXT")) as admin:
            admin.create_topic(name, 2)
            until(lambda: is_served(admin, name, 2), "the topic is served")
        return name

    return create


def goes_round(spark: Any, given: dict[str, str], topic: str, copy: str, folder: Path) -> None:
    """Written exactly once, read, and copied by a stream."""
    frame = spark.range(1000).selectExpr("CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 300) AS value")
    frame.write.format("pylog").options(**given, topic=topic).mode("append").save()
    read = spark.read.format("pylog").options(**given, subscribe=topic).load()
    assert read.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value").exceptAll(frame).isEmpty()
    assert read.count() == 1000
    stream = spark.readStream.format("pylog").options(**given, subscribe=topic, startingOffsets="earliest").load()
    query = (
        stream.select("key", "value").writeStream.format("pylog").options(**given, topic=copy)
        .option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert spark.read.format("pylog").options(**given, subscribe=copy).load().count() == 1000


# By a password, by a certificate, by a token; what else there is of each differs for the client alone: tests/client/test_secured.py.
@pytest.mark.parametrize(
    "way",
    mostly_long(["scram", "certificate", "function", "plain", "server", "short"], "scram"),
)
def test_batches_and_streams_go_round(
    spark: Any, secured: Secured, new_topics: Callable[[], str], tmp_path: Path, way: str
) -> None:
    made = secured.certificates
    bearer = {**secured.login(mechanism="OAUTHBEARER")}
    del bearer["sasl.jaas.config"]
    with TokenServer("me:sw0rdfish") as server:
        settings = {
            "scram": secured.login(),
            "plain": {**secured.login("LOGIN", "PLAIN"), "sasl.jaas.config": PLAIN_JAAS},
            "certificate": {
                "bootstrap.servers": secured.servers("MUTUAL"),
                "security.protocol": "SSL",
                **secured.tls(),
                "ssl.certificate.location": made.path("client.pem"),
                "ssl.key.location": made.path("client.key"),
            },
            "function": {
                **bearer,
                "sasl.oauthbearer.token.provider": "tests.harness.secured:give_token",
                "sasl.oauthbearer.token.provider.config": "alice",
            },
            "server": {
                **bearer,
                "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{server.port}/",
                "sasl.jaas.config": jaas("oauthbearer.OAuthBearerLoginModule", clientId="me", clientSecret="sw0rdfish"),
            },
            # Logins end every second or so, under all of it.
            "short": secured.login("SHORT"),
        }[way]
        goes_round(spark, options(settings), new_topics(), new_topics(), tmp_path)


@pytest.mark.parametrize("way", mostly_long(["text", "jks", "pkcs12", "name"], "text"))
def test_every_form_of_a_key_and_a_name_that_is_not_looked_at_get_to_the_tasks(
    spark: Any, secured: Secured, new_topics: Callable[[], str], way: str
) -> None:
    made = secured.certificates
    mutual = {"bootstrap.servers": secured.servers("MUTUAL"), "security.protocol": "SSL"}
    settings = {
        # Spark hides an option with the word secret in it, and shows a key that has none.
        "text": {
            **mutual,
            "ssl.ca.pem": made.text("ca.pem"),
            "ssl.certificate.pem": made.text("client.pem"),
            "ssl.key.pem": f"# secret\n{made.text('client.key')}",
        },
        "jks": {**mutual, **stores(secured, "jks"), "ssl.key.password": PASSWORD},
        "pkcs12": {**mutual, **stores(secured, "p12")},
        "name": {
            **mutual,
            **secured.tls(),
            "bootstrap.servers": secured.servers("WRONGNAME"),
            "ssl.endpoint.identification.algorithm": "",
        },
    }[way]
    given, topic = options(settings), new_topics()
    frame = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("pylog").options(**given, topic=topic).mode("append").save()
    read = spark.read.format("pylog").options(**given, subscribe=topic).load()
    assert read.selectExpr("CAST(value AS STRING) AS value").exceptAll(frame).isEmpty()
    assert read.count() == 100


def stores(secured: Secured, kind: str) -> dict[str, str]:
    """Trust and the client's own key in stores of Java's."""
    made = secured.certificates
    return {
        "ssl.truststore.location": made.path(f"trust.{kind}"),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": made.path(f"client.{kind}"),
        "ssl.keystore.password": PASSWORD,
    }


def test_a_wrong_password_fails_a_query_at_once_and_is_not_shown(
    spark: Any, secured: Secured, new_topics: Callable[[], str]
) -> None:
    settings = {
        **secured.login(),
        "sasl.jaas.config": jaas("scram.ScramLoginModule", username="alice", password="wr0ng"),
    }
    with pytest.raises(Exception, match="PYLOG_AUTHENTICATION") as caught:
        spark.read.format("pylog").options(**options(settings), subscribe=new_topics()).load()
    assert 'as user "alice" by SCRAM-SHA-512' in str(caught.value)
    for secret in ("wr0ng", USER_PASSWORD):
        assert secret not in str(caught.value)
