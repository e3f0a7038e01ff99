"""Every client x every way into a secured broker, by name: it writes and reads as who it is, and with a wrong proof it is told that it may not.

What a client cannot do stands here with the reason, and is tested to be so still.
"""

import shutil
from collections.abc import Iterator

import pytest

from tests.harness.runs import mostly_long
from tests.harness.secured_broker import GUESS, PASSWORD, WAYS, Place, secured_broker
from tests.harness.waiting import said
from tests.interop.clients import Record
from tests.interop.secured_clients import SECURED_CLIENTS, Kcat

# aiokafka does not wait until its connections over TLS are closed.
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")]

# More than a record of TLS holds, and one that no record of TLS holds.
RECORDS = [Record(b"key-%d" % (n % 17), b"%d: " % n + b"all work and no play " * (1 + n % 12)) for n in range(200)]
RECORDS += [Record(b"large", b"x" * 50_000)]

#: Client and way: why it cannot come in by it.
LACKS = {
    ("kcat", "OAUTHBEARER"): (
        "Debian builds its librdkafka without libcurl, so it cannot ask for tokens and only makes ones that nobody signed"
    ),
}
#: Client and way: why its user does not see that a wrong proof was the reason, but only a closed connection (tests/interop/FINDINGS.md).
UNTOLD = {
    ("aiokafka", "SSL mutual"): "shows every error of a connection as a closed one, at Apache Kafka too",
    ("aiokafka", "OAUTHBEARER"): "takes the broker's challenge (RFC 7628), which says invalid_token, for success",
    ("kafkajs", "OAUTHBEARER"): "takes the broker's challenge (RFC 7628), which says invalid_token, for success",
}

CELLS = [(client, way) for client in SECURED_CLIENTS for way in WAYS if (client, way) not in LACKS]

#: Those of `make test`: every client comes in by the strongest password and by its certificate.
OFTEN = [cell for cell in CELLS if cell[1] in ("SCRAM-SHA-512", "SSL mutual")]

#: The broker's words for a login that failed, which clients pass on.
SAID = {
    "PLAIN": "Authentication failed: Invalid username or password",
    "SCRAM-SHA-256": "due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    "SCRAM-SHA-512": "due to invalid credentials with SASL mechanism SCRAM-SHA-512",
    "OAUTHBEARER": '{"status":"invalid_token"}',
}
#: How each client calls a login that failed.
LOGIN_ERROR = {
    "confluent-kafka": "_AUTHENTICATION ",
    "aiokafka": "SaslAuthenticationFailed: ",
    "java": "org.apache.kafka.common.errors.SaslAuthenticationException: ",
    "kcat": "ERROR: Local: Authentication failure: ",
    "kafkajs": "KafkaJSSASLAuthenticationError ",
    "pylog": "SASL_AUTHENTICATION_FAILED ",
}
#: How each client calls a broker that it does not trust, and a broker that does not trust it. Java and newer ones of OpenSSL do not show a
#: certificate that the broker, by the authorities that it names, would not take.
TLS_ERRORS = {
    "confluent-kafka": (("certificate verify failed",), ("alert certificate required",)),
    "aiokafka": (("CERTIFICATE_VERIFY_FAILED",), ()),
    "java": (
        ("SslAuthenticationException", "unable to find valid certification path"),
        ("SslAuthenticationException", "certificate_required"),
    ),
    "kcat": (("certificate verify failed",), ("alert unknown ca",)),
    "kafkajs": (("KafkaJSConnectionError", "self-signed certificate"), ("KafkaJSConnectionError", "alert unknown ca")),
    "pylog": (
        ("SSL_AUTHENTICATION_FAILED", "ssl.truststore.location"),
        ("SSL_AUTHENTICATION_FAILED", "ssl.keystore.location"),
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The broker of all cells."""
    assert shutil.which("kcat"), "kcat is missing: apt install kcat"
    with secured_broker(tmp_path_factory.mktemp("matrix")) as running:
        yield running
        logs = running.broker.logs()
        assert PASSWORD not in logs
        assert GUESS not in logs


@pytest.mark.parametrize(("client", "way"), mostly_long(CELLS, *OFTEN))
def test_a_client_writes_and_reads_what_it_wrote(place: Place, client: str, way: str) -> None:
    topic, entry = place.make_topic(way, client), place.entry(way)
    one = SECURED_CLIENTS[client]
    one.produce(entry.servers, topic, RECORDS, "none", one.given(entry))
    assert one.consume(entry.servers, topic, len(RECORDS), one.given(entry)) == RECORDS


def expected_error(client: str, way: str) -> tuple[str, ...]:
    """What a client's error must hold."""
    if way in SAID:
        return LOGIN_ERROR[client], SAID[way]
    return TLS_ERRORS[client][WAYS.index(way)]


@pytest.mark.parametrize(("client", "way"), mostly_long([cell for cell in CELLS if cell not in UNTOLD], *OFTEN))
def test_a_client_with_a_wrong_proof_is_refused_and_says_so(place: Place, client: str, way: str) -> None:
    error = SECURED_CLIENTS[client].refusal(place.wrong_entry(way))
    expected = expected_error(client, way)
    assert expected
    assert [part for part in expected if part not in error] == [], error
    assert GUESS not in error


@pytest.mark.long  # that others are refused: above
@pytest.mark.parametrize(("client", "way"), UNTOLD)
def test_a_client_that_cannot_say_why_it_is_refused_still_cannot_and_the_broker_logs_it(
    place: Place, client: str, way: str
) -> None:
    logged = len(place.broker.logs())
    error = SECURED_CLIENTS[client].refusal(place.wrong_entry(way))
    assert "closed" in error.lower()
    assert not any(part in error for part in (LOGIN_ERROR[client], *SAID.values(), "alert"))
    line = "its certificate is not trusted" if way == "SSL mutual" else "the token's signature is wrong"
    said(place.broker, line, after=logged)


def test_what_kcat_lacks_it_still_lacks(place: Place) -> None:
    assert set(LACKS) == {("kcat", "OAUTHBEARER")}, "a test for each"
    kcat, entry = Kcat(), place.entry("OAUTHBEARER")
    assert "depends on libcurl" in kcat.refusal(entry)
    unsigned = {name: None for name in kcat.given(entry) if name.startswith(("sasl.oauthbearer.", "https."))}
    unsigned |= {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=robot"}
    error = kcat.refusal(entry, unsigned)
    assert LOGIN_ERROR["kcat"] in error
    assert SAID["OAUTHBEARER"] in error
