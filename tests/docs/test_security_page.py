"""The settings of ``docs/security-clients.md``: each is accepted as it stands, and those of Strimzi reach Apache Kafka set up alike."""

import os
from typing import Any

import pytest

from pylog_spark._native import Client
from pylog_spark.client import Admin
from pylog_spark.options import STREAM, read_options, write_options
from tests.docs.test_snippets import ROOT, snippets
from tests.harness.certificates import PASSWORD, Certificates, make
from tests.harness.secured import USER, USER_PASSWORD, Secured, jaas

PAGE = ROOT / "docs" / "security-clients.md"


def documented() -> dict[str, dict[str, str]]:
    """The options that the page has, by the names that it gives them."""
    names: dict[str, Any] = {}
    exec(compile(snippets(PAGE, "python"), str(PAGE), "exec"), names)
    return {name: value for name, value in names.items() if isinstance(value, dict) and not name.startswith("_")}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """In the place of the files that the page names."""
    return make(tmp_path_factory.mktemp("certificates"))


def with_files(options: dict[str, str], certificates: Certificates) -> dict[str, str]:
    """The options with files that are there."""
    there = {"ca.p12": "trust.p12", "ca.crt": "ca.pem", "user.crt": "client.pem", "user.key": "client.key"}
    found = {
        name: certificates.path(there[os.path.basename(text)]) if text.startswith("/") else text
        for name, text in options.items()
    }
    if "kafka.ssl.truststore.password" in found:
        found["kafka.ssl.truststore.password"] = PASSWORD
    return found


@pytest.mark.parametrize("name", documented())
def test_the_settings_of_the_page_are_accepted(name: str, certificates: Certificates) -> None:
    options = with_files(documented()[name], certificates)
    assert Client(dict(write_options(options).client))
    options.pop("delivery", None)
    assert Client(dict(read_options({**options, "subscribe": "t"}, STREAM).client))


def test_all_kinds_of_clusters_are_there() -> None:
    assert documented().keys() >= {"strimzi", "strimzi_tls", "confluent_cloud", "event_hubs", "msk", "msk_iam"}


@pytest.mark.peers
@pytest.mark.parametrize(("name", "listener"), [("strimzi", "SECURED"), ("strimzi_tls", "MUTUAL")])
def test_settings_of_the_page_reach_apache_kafka(name: str, listener: str, secured: Secured) -> None:
    options = with_files(documented()[name], secured.certificates)
    if "kafka.sasl.jaas.config" in options:
        login = jaas("scram.ScramLoginModule", username=USER, password=USER_PASSWORD)
        assert options["kafka.sasl.jaas.config"].split()[0] == login.split()[0]
        options["kafka.sasl.jaas.config"] = login
    options["kafka.bootstrap.servers"] = secured.servers(listener)
    with Admin(secured.servers(listener), dict(write_options(options).client)) as admin:
        assert admin.cluster().brokers
