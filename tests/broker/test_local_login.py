"""`LocalBroker(sasl=...)`: what users' own tests start, reached by a client that is not ours and by our own."""

import stat
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker, LocalBrokerError

pytestmark = pytest.mark.long  # tests/broker/test_logins.py


def of_librdkafka(broker: LocalBroker) -> dict[str, object]:
    """The same as `client_settings`, by librdkafka's names."""
    settings: dict[str, object] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    settings["security.protocol"] = broker.client_settings["security.protocol"]
    if broker.certificates is not None:
        settings["ssl.ca.location"] = broker.certificates.ca
    assert broker.login is not None
    names = {"sasl.mechanism": broker.login.mechanism, "sasl.username": broker.login.user}
    return {**settings, **names, "sasl.password": broker.login.password}


@pytest.mark.parametrize(
    ("tls", "mechanism", "protocol"),
    [(True, "SCRAM-SHA-512", "SASL_SSL"), (True, "PLAIN", "SASL_SSL"), (False, "SCRAM-SHA-256", "SASL_PLAINTEXT")],
)
def test_its_settings_let_clients_in_and_others_stay_out(tmp_path, tls, mechanism, protocol):
    with LocalBroker(tmp_path / "data", tls=tls, sasl=mechanism) as broker:
        assert broker.client_settings["security.protocol"] == protocol
        with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
            admin.create_topic("t", 1)
        assert "t" in AdminClient(of_librdkafka(broker)).list_topics(timeout=60).topics
        wrong = {**broker.security_settings, "sasl.jaas.config": broker.login.jaas.replace(broker.login.password, "no")}
        with pytest.raises(Exception, match='as user "admin"'), Admin(broker.bootstrap_servers, wrong) as stranger:
            stranger.cluster()


def test_the_same_user_logs_in_after_a_start_with_the_same_data(tmp_path):
    with LocalBroker(tmp_path / "data", sasl="SCRAM-SHA-512") as first:
        password = first.login.password
    with LocalBroker(tmp_path / "data", sasl="SCRAM-SHA-512") as broker:
        assert broker.login.password == password
        with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
            assert len(admin.cluster().brokers) == 1


def test_its_password_is_in_a_file_of_its_own_and_nowhere_else(tmp_path):
    with LocalBroker(tmp_path / "data", sasl="SCRAM-SHA-512") as broker:
        password = broker.login.password
        command = Path(f"/proc/{broker.pid}/cmdline").read_text()
        assert password not in command + broker.logs() + repr(broker.login)
        assert stat.S_IMODE(broker.login.file.stat().st_mode) == 0o600


def test_another_mechanism_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="SCRAM-SHA-512, not 'GSSAPI'"):
        LocalBroker(tmp_path / "data", sasl="GSSAPI")


def test_plain_without_tls_is_refused_when_it_starts(tmp_path):
    broker = LocalBroker(tmp_path / "data", sasl="PLAIN")
    try:
        with pytest.raises(LocalBrokerError, match="PLAIN"):
            broker.start()
    finally:
        broker.close()
