"""The settings of ``docs/security-clients.md``: each is accepted as it stands, and those that can be had here reach Apache Kafka set up alike."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import Client
from pylog_spark.client import Admin
from pylog_spark.options import STREAM, read_options, write_options
from tests.docs.test_snippets import ROOT, snippets
from tests.harness.certificates import PASSWORD, Certificates, make
from tests.harness.secured import USER, USER_PASSWORD, Secured, TokenServer, jaas
from tests.harness.tap import Tap

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
    oauth = {"confluent_cloud_oauth", "msk_iam"}
    assert documented().keys() >= {"strimzi", "strimzi_tls", "confluent_cloud", "event_hubs", "msk"} | oauth


@pytest.mark.long  # that they are accepted: above
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


#: In the place of AWS's package: tokens that Kafka takes in tests, for as long as the real ones are good.
_SIGNER = """
import time
from tests.harness.secured import unsigned_token

class MSKAuthTokenProvider:
    regions = []

    @classmethod
    def generate_auth_token(cls, region):
        cls.regions.append(region)
        return unsigned_token("signed"), int((time.time() + 900) * 1000)
"""


@pytest.mark.long  # that they are accepted: above
@pytest.mark.peers
def test_the_function_for_msk_gives_a_login_where_the_package_of_aws_is(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (module,) = re.findall(r"^```python\n(# my_tokens\.py\n.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "my_tokens.py").write_text(module)
    (tmp_path / "aws_msk_iam_sasl_signer.py").write_text(_SIGNER)
    monkeypatch.syspath_prepend(tmp_path)
    options = {
        **documented()["msk_iam"],
        "kafka.bootstrap.servers": secured.servers("SECURED"),
        "kafka.ssl.ca.location": secured.certificates.path("ca.pem"),
    }
    with Admin(secured.servers("SECURED"), dict(write_options(options).client)) as admin:
        assert admin.cluster().brokers
    import aws_msk_iam_sasl_signer  # type: ignore[import-not-found]  # made above

    assert aws_msk_iam_sasl_signer.MSKAuthTokenProvider.regions == ["eu-central-1"]


@pytest.mark.long  # that they are accepted: above
@pytest.mark.peers
def test_extensions_for_confluent_cloud_reach_the_broker_beside_the_token(secured: Secured) -> None:
    options = documented()["confluent_cloud_oauth"]
    prefix = "kafka.sasl.oauthbearer"
    client = ":".join(options[f"{prefix}.client.credentials.client.{name}"] for name in ("id", "secret"))
    with TokenServer(client) as server:
        here = {
            **options,
            f"{prefix}.token.endpoint.url": f"http://localhost:{server.port}/",
            "kafka.bootstrap.servers": secured.servers("SECURED"),
            "kafka.ssl.ca.location": secured.certificates.path("ca.pem"),
        }
        with Admin(secured.servers("SECURED"), dict(write_options(here).client)) as admin:
            assert admin.cluster().brokers
        assert [asked["scope"] for asked, _ in server.asked] == [["kafka"]]
        # What the broker got can be read where there is no TLS.
        with Tap(secured.ports["LOGIN"]) as tap:
            servers = f"localhost:{tap.port}"
            plain = {**here, "kafka.bootstrap.servers": servers, "kafka.security.protocol": "SASL_PLAINTEXT"}
            with Admin(servers, dict(write_options(plain).client)) as admin:
                assert admin.cluster().brokers
    assert b"\x01auth=Bearer " in tap.sent
    for extension in (b"logicalCluster=lkc-00000", b"identityPoolId=pool-0000"):
        assert b"\x01" + extension + b"\x01" in tap.sent
