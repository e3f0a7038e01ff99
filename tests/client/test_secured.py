"""Apache Kafka behind TLS and logins: written, read and administered by this client, with the settings of Java's clients and librdkafka's."""

import itertools
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pylog_spark.client import Admin, Consumer, LogError, Producer
from tests.harness.certificates import PASSWORD
from tests.harness.odd_server import OddServer, answer
from tests.harness.runs import mostly_long
from tests.harness.secured import (
    PLAIN_JAAS,
    SCRAM_JAAS,
    SHORT_MS,
    USER,
    USER_PASSWORD,
    Secured,
    TokenServer,
    is_served,
    jaas,
    unsigned_token,
)
from tests.harness.waiting import let_pass, until

# every way into a secured broker, with this client, too: tests/interop/test_secured_matrix.py
pytestmark = [pytest.mark.long, pytest.mark.peers]

_NUMBERS = itertools.count()
_PATIENT = {"default.api.timeout.ms": "60000", "delivery.timeout.ms": "60000"}
_OIDC = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def works(settings: dict[str, str]) -> None:
    """A topic is made, written, read and deleted."""
    servers = settings["bootstrap.servers"]
    given = {**_PATIENT, **{name: text for name, text in settings.items() if name != "bootstrap.servers"}}
    topic = f"secured-{os.getpid()}-{next(_NUMBERS)}"
    with Admin(servers, given) as admin:
        admin.create_topic(topic, 2)
        until(lambda: is_served(admin, topic, 2), "the topic is served")
        with Producer(servers, topic, given) as producer:
            for number in range(1000):
                producer.send(b"%d" % number + b"x" * 1000)
            assert producer.flush().records == 1000
        with Consumer(servers, topic, start="earliest", follow=False, config=given) as consumer:
            found = sorted(int((record.value or b"").rstrip(b"x")) for record in consumer)
        assert found == list(range(1000))
        admin.delete_topics([topic])


def refused(settings: dict[str, str]) -> LogError:
    """The error of a client with these settings, which comes soon and shows no password."""
    given = {name: text for name, text in settings.items() if name != "bootstrap.servers"}
    begun = time.monotonic()
    with pytest.raises(LogError) as caught, Admin(settings["bootstrap.servers"], given) as admin:
        admin.topics()
    # Clients wait a minute for what they may wait for.
    assert time.monotonic() - begun < 30
    for secret in (PASSWORD, USER_PASSWORD, "planted", "wr0ng"):
        assert secret not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "trust",
    [
        {"ssl.ca.location": "ca.pem"},
        {"ssl.ca.pem": "text:ca.pem"},
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"},
        {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "text:ca.pem"},
        {"ssl.truststore.location": "trust.jks", "ssl.truststore.password": PASSWORD},
        {"ssl.truststore.location": "trust.p12", "ssl.truststore.password": PASSWORD, "ssl.truststore.type": "PKCS12"},
    ],
    ids=lambda trust: "+".join(trust),
)
def test_tls_with_every_form_of_trust(secured: Secured, trust: dict[str, str]) -> None:
    settings = {"bootstrap.servers": secured.servers("TLS"), "security.protocol": "SSL"}
    works({**settings, **_files(secured, trust)})


#: A program that logs in and asks for the brokers, and prints the kind of what went wrong.
_ASKS = """
import json, sys
from pylog_spark.client import Admin, LogError
settings = json.loads(sys.argv[1])
try:
    with Admin(settings.pop("bootstrap.servers"), settings) as admin:
        print(len(admin.cluster().brokers))
except LogError as error:
    print(error.kind, error.sentence)
"""


@pytest.mark.parametrize(
    ("trusted", "printed"),
    [("ca.pem", "1\n"), ("stranger.pem", "SSL_AUTHENTICATION_FAILED ")],
    ids=["own", "strangers"],
)
def test_without_a_setting_for_it_what_the_operating_system_trusts_is_trusted(
    secured: Secured, trusted: str, printed: str
) -> None:
    settings = {"bootstrap.servers": secured.servers("TLS"), "security.protocol": "SSL"}
    assert _asks(secured, trusted, settings).startswith(printed)


def test_a_server_of_tokens_is_trusted_as_the_operating_system_does_without_a_setting_for_it(secured: Secured) -> None:
    with TokenServer("me:sw0rdfish").over_tls(secured.certificates.folder) as server:
        settings = {
            "bootstrap.servers": secured.servers("SECURED"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": f"https://localhost:{server.port}/",
            "sasl.jaas.config": jaas("oauthbearer.OAuthBearerLoginModule", clientId="me", clientSecret="sw0rdfish"),
        }
        assert _asks(secured, "ca.pem", settings) == "1\n"
        own = {**settings, **secured.tls()}
        assert "is not trusted" in _asks(secured, "stranger.pem", own)


def _asks(secured: Secured, trusted: str, settings: dict[str, str]) -> str:
    """What a process prints that has `trusted` for the certificates of the operating system."""
    done = subprocess.run(
        [sys.executable, "-c", _ASKS, json.dumps(settings)],
        env={**os.environ, "SSL_CERT_FILE": secured.certificates.path(trusted)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_tls_in_either_version(secured: Secured, version: str) -> None:
    works(
        {"bootstrap.servers": secured.servers("TLS"), "security.protocol": "SSL", "ssl.enabled.protocols": version}
        | secured.tls()
    )


@pytest.mark.parametrize(
    "own",
    [
        {"ssl.certificate.location": "client.pem", "ssl.key.location": "client.key"},
        {
            "ssl.certificate.location": "client.pem",
            "ssl.key.location": "client.encrypted.key",
            "ssl.key.password": PASSWORD,
        },
        {"ssl.certificate.pem": "text:client.pem", "ssl.key.pem": "text:client.key"},
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "client.both.pem"},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": "text:client.pem",
            "ssl.keystore.key": "text:client.key",
        },
        {"ssl.keystore.location": "client.p12", "ssl.keystore.password": PASSWORD, "ssl.keystore.type": "PKCS12"},
        {"ssl.keystore.location": "client.jks", "ssl.keystore.password": PASSWORD, "ssl.key.password": PASSWORD},
    ],
    ids=lambda own: "+".join(own),
)
def test_mutual_tls_with_every_form_of_key(secured: Secured, own: dict[str, str]) -> None:
    settings = {"bootstrap.servers": secured.servers("MUTUAL"), "security.protocol": "SSL", **secured.tls()}
    works({**settings, **_files(secured, own)})


def _files(secured: Secured, settings: dict[str, str]) -> dict[str, str]:
    """Names of files as paths, and those behind ``text:`` as their text."""
    made = secured.certificates
    found = {}
    for name, value in settings.items():
        if value.startswith("text:"):
            value = made.text(value.removeprefix("text:"))
        elif name.endswith(".location"):
            value = made.path(value)
        found[name] = value
    return found


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("listener", ["SECURED", "LOGIN"])
def test_logins_by_password_as_java_writes_them(secured: Secured, mechanism: str, listener: str) -> None:
    works(secured.login(listener, mechanism))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_logins_by_password_as_librdkafka_writes_them(secured: Secured, mechanism: str) -> None:
    works(
        {
            "bootstrap.servers": secured.servers("SECURED"),
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": mechanism,
            "sasl.username": USER,
            "sasl.password": USER_PASSWORD,
            **secured.tls(),
        }
    )


def test_a_shaded_login_module_is_understood(secured: Secured) -> None:
    works({**secured.login(mechanism="PLAIN"), "sasl.jaas.config": f"kafkashaded.{PLAIN_JAAS}"})


@pytest.fixture
def bearer(secured: Secured) -> dict[str, str]:
    """Settings of OAUTHBEARER, but for where tokens come from."""
    return {
        "bootstrap.servers": secured.servers("SECURED"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        **secured.tls(),
    }


def test_tokens_that_nobody_signs(bearer: dict[str, str]) -> None:
    module = jaas("oauthbearer.OAuthBearerLoginModule", unsecuredLoginStringClaim_sub="alice")
    works({**bearer, "sasl.jaas.config": module})


@pytest.mark.parametrize("https", [False, True], ids=["http", "https"])
def test_tokens_of_a_server_are_asked_for_once_and_used_by_all_connections(
    secured: Secured, bearer: dict[str, str], https: bool
) -> None:
    server = TokenServer("me:sw0rdfish")
    if https:
        server.over_tls(secured.certificates.folder)
    with server:
        url = f"http{'s' if https else ''}://localhost:{server.port}/token"
        credentials = jaas("oauthbearer.OAuthBearerLoginModule", clientId="me", clientSecret="sw0rdfish", scope="logs")
        works(
            {
                **bearer,
                "sasl.oauthbearer.token.endpoint.url": url,
                "sasl.login.callback.handler.class": _OIDC,
                "sasl.jaas.config": credentials,
                "https.ca.location": secured.certificates.path("ca.pem"),
            }
        )
    assert server.asked == [({"grant_type": ["client_credentials"], "scope": ["logs"]}, 200)]


def test_a_server_of_tokens_that_fails_for_a_while_is_asked_again(bearer: dict[str, str]) -> None:
    with TokenServer("you:sw0rdfish") as server:
        server.refusals = [503, 429]
        works(
            {
                **bearer,
                "sasl.oauthbearer.token.endpoint.url": f"http://localhost:{server.port}/",
                "sasl.oauthbearer.client.credentials.client.id": "you",
                "sasl.oauthbearer.client.credentials.client.secret": "sw0rdfish",
            }
        )
    assert [status for _, status in server.asked] == [503, 429, 200]


def test_a_client_that_the_server_of_tokens_refuses_is_told_at_once(bearer: dict[str, str]) -> None:
    with TokenServer("you:sw0rdfish") as server:
        error = refused(
            {
                **bearer,
                "sasl.oauthbearer.token.endpoint.url": f"http://localhost:{server.port}/",
                "sasl.oauthbearer.client.id": "you",
                "sasl.oauthbearer.client.secret": "wr0ng",
            }
        )
    assert error.kind == "SASL_AUTHENTICATION_FAILED"
    assert "status 401" in error.sentence
    assert "invalid_client" in error.sentence
    assert len(server.asked) == 1


def test_a_token_of_a_file(bearer: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "token"
    settings = {**bearer, "sasl.oauthbearer.token.endpoint.url": f"file:{file}"}
    assert "no such file" in refused(settings).sentence.lower()
    file.write_text(unsigned_token("alice") + "\n")
    works(settings)


@pytest.fixture
def asking(secured: Secured, bearer: dict[str, str]) -> dict[str, str]:
    """Settings of a client of a server of tokens, but for its URL and whom to trust there."""
    credentials = jaas("oauthbearer.OAuthBearerLoginModule", clientId="planted-id", clientSecret="planted")
    return {**bearer, "sasl.jaas.config": credentials, "https.ca.location": secured.certificates.path("ca.pem")}


@pytest.fixture
def known_elsewhere(secured: Secured) -> Iterator[OddServer]:
    """A server of tokens by HTTPS that is called localhost, and shows the certificate of another host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secured.certificates.path("elsewhere.both.pem"))
    with OddServer(answer({"access_token": unsigned_token("robot")}), context) as server:
        yield server


@pytest.mark.parametrize(
    ("trusted", "parts"),
    [
        ("ca.pem", ("shows a certificate for another name", "sasl.oauthbearer.token.endpoint.url")),
        ("stranger.pem", ("is not trusted", "https.ca.location")),
        ("nowhere.pem", ("nowhere.pem of https.ca.location cannot be read", "No such file")),
    ],
)
def test_a_server_of_tokens_that_cannot_be_trusted_is_told_no_secret(
    secured: Secured, asking: dict[str, str], known_elsewhere: OddServer, trusted: str, parts: tuple[str, str]
) -> None:
    error = refused(
        {
            **asking,
            "sasl.oauthbearer.token.endpoint.url": f"https://localhost:{known_elsewhere.port}/",
            "https.ca.location": secured.certificates.path(trusted),
        }
    )
    assert error.kind == "SASL_AUTHENTICATION_FAILED"
    assert all(part in error.sentence for part in parts), error.sentence
    assert known_elsewhere.asked == []


def test_a_redirection_of_a_server_of_tokens_is_not_followed(asking: dict[str, str]) -> None:
    with OddServer(answer({"access_token": unsigned_token("robot")})) as elsewhere:
        location = f"http://localhost:{elsewhere.port}/"
        with OddServer(answer("", 302, Location=location)) as server:
            error = refused({**asking, "sasl.oauthbearer.token.endpoint.url": f"http://localhost:{server.port}/"})
    assert error.kind == "SASL_AUTHENTICATION_FAILED"
    assert "status 302, a redirection, which is not followed" in error.sentence
    assert (len(server.asked), elsewhere.asked) == (1, [])


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("http://tokens.example/", "must begin with https://"),
        ("https://me:planted@tokens.example/", "has a user or a password"),
        ("https://h:abc/", "has a port that is no number"),
        ("https://[bad/", "has no host"),
    ],
)
def test_a_url_of_tokens_that_cannot_be_used_is_refused_by_its_name(
    asking: dict[str, str], url: str, part: str
) -> None:
    error = refused({**asking, "sasl.oauthbearer.token.endpoint.url": url})
    assert f"sasl.oauthbearer.token.endpoint.url {part}" in error.sentence


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with functions that give tokens."""
    name = f"tokens_{os.getpid()}_{next(_NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(
        "from tests.harness.secured import unsigned_token\n"
        "import time\n"
        "def given(config):\n"
        "    return unsigned_token(config), time.time() + 3600\n"
        "def failing(config):\n"
        "    raise ValueError('planted ' + config)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_token_of_a_python_function(bearer: dict[str, str], provider: str) -> None:
    works(
        {
            **bearer,
            "sasl.oauthbearer.token.provider": f"{provider}:given",
            "sasl.oauthbearer.token.provider.config": "alice",
        }
    )


@pytest.mark.parametrize(
    ("function", "part"),
    [("failing", "raised ValueError"), ("missing", "has no function missing"), ("nowhere:f", "cannot be imported")],
)
def test_a_function_that_gives_no_token_is_named_and_what_it_raised_is_not_shown(
    bearer: dict[str, str], provider: str, function: str, part: str
) -> None:
    named = function if ":" in function else f"{provider}:{function}"
    error = refused(
        {**bearer, "sasl.oauthbearer.token.provider": named, "sasl.oauthbearer.token.provider.config": "planted"}
    )
    assert part in error.sentence


def flows(settings: dict[str, str], seconds: float, enough: Callable[[], bool] = lambda: True) -> None:
    """Records are written for so long, and until it is enough, a few at a time; each of them is there once, in its place."""
    given = {**settings, **_PATIENT}
    servers = given.pop("bootstrap.servers")
    topic = f"short-{os.getpid()}-{next(_NUMBERS)}"
    with Admin(servers, given) as admin:
        admin.create_topic(topic, 1)
        until(lambda: is_served(admin, topic, 1), "the topic is served")
    sent = 0
    with Producer(servers, topic, given) as producer:
        ends = time.monotonic() + seconds

        def long_enough() -> bool:
            nonlocal sent
            for number in range(10):
                producer.send(b"%d" % (sent + number))
            sent += 10
            assert producer.flush().records == sent
            return time.monotonic() > ends and enough()

        until(long_enough, "records flow for long enough", seconds + 30, 0)
    with Consumer(servers, topic, start="earliest", follow=False, config=given) as consumer:
        assert [int(record.value or b"") for record in consumer] == list(range(sent))


@pytest.mark.parametrize("mechanism", mostly_long(["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"], "SCRAM-SHA-512"))
def test_a_login_that_ends_is_repeated_while_records_flow(secured: Secured, mechanism: str) -> None:
    flows(secured.login("SHORT", mechanism), 2 * SHORT_MS / 1000)


@pytest.mark.long  # by a password: above
def test_a_login_by_a_token_that_ends_is_repeated_with_a_new_one_while_records_flow(
    secured: Secured, bearer: dict[str, str]
) -> None:
    with TokenServer("me:sw0rdfish", lasts_s=2 * SHORT_MS / 1000) as server:
        settings = {
            **bearer,
            "bootstrap.servers": secured.servers("SHORT"),
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{server.port}/",
            "sasl.jaas.config": jaas("oauthbearer.OAuthBearerLoginModule", clientId="me", clientSecret="sw0rdfish"),
            # Each login after the first finds its token too old.
            "sasl.login.refresh.window.factor": "0.3",
        }
        flows(settings, 2.2 * SHORT_MS / 1000, lambda: len(server.asked) >= 3)
    assert [status for _, status in server.asked] == [200] * len(server.asked)


def test_a_login_that_ended_while_nothing_was_asked_is_repeated(secured: Secured) -> None:
    settings = secured.login("SHORT")
    with Admin(settings.pop("bootstrap.servers"), settings) as admin:
        assert admin.cluster().brokers
        # It is the time itself that the test is about.
        let_pass(1.1 * SHORT_MS / 1000)
        assert admin.cluster().brokers


@pytest.mark.parametrize(
    ("listener", "changes", "kind", "part"),
    [
        ("TLS", {"ssl.ca.location": "stranger.pem"}, "SSL_AUTHENTICATION_FAILED", "ssl.truststore.location"),
        ("WRONGNAME", {}, "SSL_AUTHENTICATION_FAILED", "ssl.endpoint.identification.algorithm"),
        ("MUTUAL", {}, "SSL_AUTHENTICATION_FAILED", "ssl.keystore.location"),
        ("PLAINTEXT", {}, "UNREACHABLE", "security.protocol"),
        ("TLS", {"security.protocol": "PLAINTEXT"}, "SSL_AUTHENTICATION_FAILED", "security.protocol"),
    ],
)
def test_tls_that_cannot_be_agreed_on_names_the_setting(
    secured: Secured, listener: str, changes: dict[str, str], kind: str, part: str
) -> None:
    settings = {"bootstrap.servers": secured.servers(listener), "security.protocol": "SSL", **secured.tls()}
    error = refused({**settings, **_files(secured, changes)})
    assert (error.kind, part in error.sentence) == (kind, True), error.sentence


def test_the_host_name_is_not_looked_at_where_that_is_asked_for(secured: Secured) -> None:
    settings = {"bootstrap.servers": secured.servers("WRONGNAME"), "security.protocol": "SSL", **secured.tls()}
    works({**settings, "ssl.endpoint.identification.algorithm": ""})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_final_and_said_in_kafkas_words(secured: Secured, mechanism: str) -> None:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    wrong = jaas(module, username=USER, password="wr0ng")
    error = refused({**secured.login(mechanism=mechanism), "sasl.jaas.config": wrong})
    assert error.kind == "SASL_AUTHENTICATION_FAILED"
    assert 'as user "alice"' in error.sentence
    assert "uthentication failed" in error.sentence


def test_a_client_without_a_login_at_a_listener_that_demands_one_is_told_what_to_set(secured: Secured) -> None:
    error = refused({"bootstrap.servers": secured.servers("LOGIN")})
    assert "security.protocol" in error.sentence


def test_a_client_with_a_login_at_a_listener_without_one_is_told_what_to_set(secured: Secured) -> None:
    error = refused({**secured.login(), "bootstrap.servers": secured.servers("TLS")})
    assert "security.protocol" in error.sentence


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "SCRAM-SHA-512"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM_JAAS}, "ScramLoginModule"),
        ({"ssl.ca.location": "nowhere.pem"}, "nowhere.pem"),
        ({"enable.ssl.certificate.verification": "false"}, "ssl.truststore.location"),
        ({"ssl.keystore.location": "client.p12", "ssl.keystore.password": "wr0ng"}, "ssl.keystore.password"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_sent(
    secured: Secured, changes: dict[str, str], part: str
) -> None:
    error = refused({**secured.login(), **_files(secured, changes)})
    assert (error.kind, part in error.sentence) == ("INVALID_ARGUMENT", True), error.sentence
