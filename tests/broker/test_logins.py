"""Logins at a broker, by librdkafka and by hand: how those are told who do not get in, when a login ends.

Every client by every mechanism is in `tests/interop/test_secured_matrix.py`.
"""

import base64
import contextlib
import json
import struct
import time

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from pylog_spark.testing import LocalBroker, LocalBrokerError
from pylog_spark.testing.certificates import Certificates
from tests.broker.wire import connect, text
from tests.harness.tokens import Issuer
from tests.harness.waiting import during, said, until

METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 3, 17, 18, 36
UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED = 33, 34, 58
LISTENERS = {"PLAINTEXT": "PLAINTEXT", "OPEN": "SASL_PLAINTEXT", "SECURED": "SASL_SSL", "SHORT": "SASL_SSL"}
SHORT_MS = 3_000
USER, PASSWORD = "al=ic,e", 'planted "pass"\\word;'
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
KAFKA_SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}


def add_user(broker, name, password, mechanisms=tuple(KAFKA_SCRAM)):
    """Give a user a password for each mechanism, as Kafka's tools do it."""
    admin = AdminClient({"bootstrap.servers": broker.address_of("PLAINTEXT")})
    for mechanism in mechanisms:
        credential = ScramCredentialInfo(KAFKA_SCRAM[mechanism], 4096)
        upsertion = UserScramCredentialUpsertion(name, credential, password.encode())
        for altered in admin.alter_user_scram_credentials([upsertion]).values():
            altered.result(60)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    return Issuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory, issuer):
    """A broker with each kind of listener, one user and somebody who makes tokens."""
    folder = tmp_path_factory.mktemp("logins")
    certificates = Certificates(folder / "tls").made()
    keys = folder / "keys.json"
    keys.write_text(issuer.jwks())
    settings = {
        **certificates.broker_settings(),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.short.connections.max.reauth.ms": SHORT_MS,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "pylog,others",
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "connection.failed.authentication.delay.ms": 10,
    }
    with LocalBroker(folder / "data", listeners=LISTENERS, **settings) as running:
        running.ca = certificates.ca
        add_user(running, USER, PASSWORD)
        admin = AdminClient({"bootstrap.servers": running.address_of("PLAINTEXT")})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
        yield running


def token(issuer, user="robot", lasts_s=3600, **claims):
    return issuer.token(user, lasts_s, **{"aud": "pylog", "iss": "https://issuer.example", **claims})


def librdkafka(broker, mechanism, listener="SECURED", user=USER, password=PASSWORD, **more):
    return {
        "bootstrap.servers": broker.address_of(listener),
        "security.protocol": LISTENERS[listener],
        "ssl.ca.location": broker.ca,
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
        **more,
    }


def topics_of(settings):
    """The names of all topics, as an AdminClient sees them."""
    return set(AdminClient(settings).list_topics(timeout=60).topics)


def failure_of(settings):
    """The first error that a client of librdkafka reports of its connection."""
    errors = []
    client = AdminClient({**settings, "error_cb": errors.append})
    until(lambda: client.poll(0.1) is not None and errors, "the client reports an error")
    return errors[0]


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(USER, "guessed"), ("nobody", PASSWORD)])
def test_a_wrong_password_and_an_unknown_user_are_told_the_same(broker, mechanism, user, password):
    error = failure_of(librdkafka(broker, mechanism, user=user, password=password))
    assert error.code() == KafkaError._AUTHENTICATION
    expected = {
        "PLAIN": "Authentication failed: Invalid username or password",
        "SCRAM-SHA-256": "due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        "SCRAM-SHA-512": "due to invalid credentials with SASL mechanism SCRAM-SHA-512",
    }
    assert expected[mechanism] in error.str()
    assert password not in broker.logs()


def by_token(broker, give, **more):
    settings = librdkafka(broker, "OAUTHBEARER", oauth_cb=lambda _: (give(), time.time() + 3600), **more)
    return {name: value for name, value in settings.items() if name not in ("sasl.username", "sasl.password")}


def test_confluent_kafka_logs_in_with_a_token(broker, issuer):
    assert "t" in topics_of(by_token(broker, lambda: token(issuer)))


@pytest.mark.parametrize(
    "change",
    [
        {"lasts_s": -60},
        {"aud": "somebody else"},
        {"iss": "https://elsewhere.example"},
        {"header": {"alg": "none"}},
        {"header": {"alg": "HS256"}},
        {"header": {"kid": "other"}},
        {"nbf": 4_000_000_000},
        {"user": ""},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_is_refused(broker, issuer, change):
    with plain_connection(broker, "OPEN") as connection:
        handshake(connection, "OAUTHBEARER")
        message = b"n,,\x01auth=Bearer " + token(issuer, **change).encode() + b"\x01\x01"
        error, _, answered, _ = authenticate(connection, message)
        assert (error, answered) == (0, b'{"status":"invalid_token"}')
        error, sentence, _, _ = authenticate(connection, b"\x01")
        assert (error, sentence) == (SASL_AUTHENTICATION_FAILED, '{"status":"invalid_token"}')
        assert connection.closed()


def test_the_key_of_somebody_else_makes_no_tokens(broker, tmp_path):
    other = Issuer(tmp_path)
    with plain_connection(broker, "OPEN") as connection:
        handshake(connection, "OAUTHBEARER")
        error, _, answered, _ = authenticate(connection, b"n,,\x01auth=Bearer " + token(other).encode() + b"\x01\x01")
        assert (error, answered) == (0, b'{"status":"invalid_token"}')


@pytest.mark.long  # of our own client: tests/client/test_secured.py
def test_a_login_that_ends_is_continued_by_librdkafka_without_an_error(broker):
    errors, delivered = [], []
    producer = Producer(librdkafka(broker, "SCRAM-SHA-512", "SHORT", error_cb=errors.append))
    for _ in during(2.2 * SHORT_MS / 1000):
        producer.produce("t", b"x", on_delivery=lambda error, _: delivered.append(error))
        producer.flush(60)
    assert set(delivered) == {None}
    assert errors == []


# By hand: what clients do not do.


@contextlib.contextmanager
def plain_connection(broker, listener):
    with connect(broker.address_of(listener)) as connection:
        yield connection


def handshake(connection, mechanism, version=1):
    """The error and the mechanisms of a SaslHandshake."""
    answer = connection.ask(SASL_HANDSHAKE, version, text(mechanism))
    error = answer.take("h")
    return error, [answer.text() for _ in range(answer.take("i"))]


def authenticate(connection, token, version=1):
    """Error, sentence, bytes and lifetime of a SaslAuthenticate."""
    answer = connection.ask(SASL_AUTHENTICATE, version, struct.pack(">i", len(token)) + token)
    error, sentence, length = answer.take("h"), answer.text(), answer.take("i")
    answer.at += length
    return error, sentence, answer.data[answer.at - length : answer.at], answer.take("q") if version > 0 else None


def test_plain_is_not_offered_where_everybody_could_read_the_password(broker):
    with plain_connection(broker, "OPEN") as connection:
        error, mechanisms = handshake(connection, "PLAIN")
        assert error == UNSUPPORTED_SASL_MECHANISM
        assert mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
        assert connection.closed()


def test_a_listener_with_nothing_but_plain_and_without_tls_does_not_open(tmp_path):
    settings = {"sasl.enabled.mechanisms": "PLAIN"}
    broker = LocalBroker(tmp_path, listeners={"INSIDE": "SASL_PLAINTEXT"}, **settings)
    try:
        with pytest.raises(LocalBrokerError, match="PLAIN is offered only by SASL_SSL"):
            broker.start()
    finally:
        broker.close()


def test_kerberos_is_refused_with_what_to_use_instead(tmp_path):
    settings = {"sasl.enabled.mechanisms": "GSSAPI"}
    broker = LocalBroker(tmp_path, listeners={"INSIDE": "SASL_PLAINTEXT"}, **settings)
    try:
        with pytest.raises(LocalBrokerError, match=r"SCRAM-SHA-512.*Kerberos"):
            broker.start()
    finally:
        broker.close()


@pytest.mark.parametrize("api", [0, 1, METADATA, SASL_AUTHENTICATE, 50, 1000])
def test_a_request_before_a_login_closes_the_connection(broker, api):
    with plain_connection(broker, "OPEN") as connection:
        connection.send(api, 0, b"\0" * 20)
        assert connection.closed()


def test_a_large_length_before_a_login_closes_the_connection_before_anything_is_read(broker):
    with plain_connection(broker, "OPEN") as connection:
        connection.socket.sendall(struct.pack(">i", 64 * 1024 + 1))
        assert connection.closed()


def test_the_same_name_gets_the_same_salt_whether_there_is_such_a_user_or_not(broker):
    def first(user):
        with plain_connection(broker, "OPEN") as connection:
            handshake(connection, "SCRAM-SHA-256")
            error, _, answered, _ = authenticate(connection, f"n,,n={user},r=abc".encode())
            assert error == 0
            fields = dict(part.partition("=")[::2] for part in answered.decode().split(","))
            return fields["s"], fields["i"]

    for user in (USER.replace("=", "=3D").replace(",", "=2C"), "nobody", "somebody"):
        assert first(user) == first(user)
        salt, iterations = first(user)
        assert (len(base64.b64decode(salt)) > 8, iterations) == (True, "4096")
    assert first("nobody") != first("somebody")


def test_an_unknown_user_gets_the_same_salt_after_a_restart(new_broker):
    broker = new_broker(listeners={"PLAINTEXT": "PLAINTEXT", "OPEN": "SASL_PLAINTEXT"})

    def salt():
        with plain_connection(broker, "OPEN") as connection:
            handshake(connection, "SCRAM-SHA-512")
            return authenticate(connection, b"n,,n=nobody,r=abc")[2].partition(b",s=")[2]

    # The secret that made-up salts are made of is kept from the first user on.
    add_user(broker, USER, PASSWORD)
    before = salt()
    broker.restart()
    assert salt() == before


def test_a_name_cannot_write_lines_into_the_log(broker):
    forged = "x\n2026-01-01 00:00:00 INFO pylog.broker all is well"
    with plain_connection(broker, "OPEN") as connection:
        handshake(connection, "SCRAM-SHA-256")
        authenticate(connection, f"n,,n={forged},r=abc".encode())
        proof = base64.b64encode(bytes(32)).decode()
        authenticate(connection, f"c=biws,r=abc,p={proof}".encode())
        assert connection.closed()
    said(broker, "all is well")
    assert not any(line.startswith("2026-01-01") for line in broker.logs().splitlines())


def test_where_nobody_logs_in_the_requests_of_a_login_are_out_of_place(broker):
    with plain_connection(broker, "PLAINTEXT") as connection:
        assert handshake(connection, "SCRAM-SHA-256") == (ILLEGAL_SASL_STATE, [])
        assert authenticate(connection, b"")[0] == ILLEGAL_SASL_STATE


def test_a_user_who_is_removed_cannot_log_in_and_a_new_password_counts_at_once(broker):
    add_user(broker, "guest", "first")
    assert "t" in topics_of(librdkafka(broker, "SCRAM-SHA-256", user="guest", password="first"))
    add_user(broker, "guest", "second")
    assert "t" in topics_of(librdkafka(broker, "SCRAM-SHA-256", user="guest", password="second"))
    error = failure_of(librdkafka(broker, "SCRAM-SHA-256", user="guest", password="first"))
    assert error.code() == KafkaError._AUTHENTICATION
    assert json.dumps(PASSWORD) not in broker.logs()
