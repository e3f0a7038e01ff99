"""Servers of tokens (OIDC): asked by HTTPS for as long as the settings say, and told apart from what is none; no secret is shown or goes astray."""

import base64
import json
import logging
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from pylog_spark.login import oidc
from pylog_spark.login.endpoint import Endpoint, endpoint, refused
from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import TOKEN_BYTES_MAX
from pylog_spark.login.oidc import of_server
from tests.harness.odd_server import OddServer, answer
from tests.harness.ports import silent_port
from tests.harness.secured import TokenServer, unsigned_token
from tests.harness.waiting import let_pass

_CREDENTIALS = "sasl.oauthbearer.client.credentials"
_SECRET = "planted: s/1"
#: Seconds in which an answer is given up that would take 20 of them or more.
SOON_S = 30.0


def asked(port: int, **more: str) -> dict[str, str]:
    """Settings of a client of a server at `port`."""
    settings = {
        "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{port}/a?b=c",
        f"{_CREDENTIALS}.client.id": "m/e",
        f"{_CREDENTIALS}.client.secret": _SECRET,
        "sasl.login.connect.timeout.ms": "5000",
        "sasl.login.read.timeout.ms": "5000",
        "sasl.login.retry.backoff.ms": "100",
        "sasl.login.retry.backoff.max.ms": "1000",
    }
    return {**settings, **{name.replace("_", "."): text for name, text in more.items()}}


def failure(settings: dict[str, str], **how: bool) -> TokenError:
    """The error of who asks with these settings; it never shows the secret."""
    with pytest.raises(TokenError) as caught:
        of_server(settings, **how)
    assert "planted" not in caught.value.sentence
    return caught.value


def test_a_server_is_asked_as_rfc_6749_says() -> None:
    with TokenServer(f"m/e:{_SECRET}") as server:
        assert of_server(asked(server.port)).ends_s is not None
    with TokenServer("m%2Fe:planted%3A+s%2F1") as server:
        of_server(asked(server.port, sasl_oauthbearer_header_urlencode="true"))
        assert server.asked == [({"grant_type": ["client_credentials"]}, 200)]


def test_the_whole_path_is_asked_for_and_the_query_is_not_shown() -> None:
    with OddServer(answer({}, 400)) as server:
        sentence = failure(asked(server.port)).sentence
    (request,) = server.asked
    assert request.startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert f"http://127.0.0.1:{server.port}/a refused the client 'm/e' with status 400" in sentence


def test_a_token_that_a_server_says_it_has_made_is_taken() -> None:
    with OddServer(answer({"access_token": "t"}, 201)) as server:
        assert of_server(asked(server.port)).value == "t"


def test_a_server_is_asked_again_with_longer_pauses_and_not_for_ever() -> None:
    pauses: list[float] = []
    with TokenServer(f"m/e:{_SECRET}") as server:
        server.refusals = [500, 503, 408]
        of_server(asked(server.port, sasl_login_retry_backoff_max_ms="60000"), pause_s=pauses.append)
        assert pauses == [0.1, 0.2, 0.4]
        server.refusals = [500]
        error = failure(asked(server.port, sasl_login_retry_backoff_max_ms="0"))
        assert "status 500" in error.sentence
        assert error.retriable
        # Who has a token that is still good does not wait.
        server.refusals = [503]
        assert "status 503" in failure(asked(server.port), hurried=True).sentence


def test_a_refusal_is_told_with_what_the_server_says_of_it() -> None:
    with TokenServer("other:secret") as server:
        error = failure(asked(server.port))
    assert not error.retriable
    assert error.sentence.endswith("refused the client 'm/e' with status 401: 'invalid_client'")
    assert unsigned_token("x") not in error.sentence


@pytest.mark.parametrize(
    "said",
    [_SECRET, quote_plus(_SECRET), base64.b64encode(f"m/e:{_SECRET}".encode()).decode(), {"nested": _SECRET}],
    ids=["plain", "in-a-url", "in-a-header", "nested"],
)
def test_a_server_that_says_a_secret_again_is_not_repeated(said: object, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), OddServer(answer({"error_description": said}, 503)) as server:
        error = failure(asked(server.port, sasl_login_retry_backoff_max_ms="150"))
    assert "status 503" in error.sentence
    for text in ("planted", base64.b64encode(f"m/e:{_SECRET}".encode()).decode()):
        assert text not in error.sentence + caplog.text


def test_what_is_no_http_is_not_repeated() -> None:
    def echo(request: bytes, connection: socket.socket) -> None:
        (header,) = (line for line in request.splitlines() if line.startswith(b"Authorization"))
        connection.sendall(header + b"\r\n\r\n")

    with OddServer(echo) as server:
        error = failure(asked(server.port, sasl_login_retry_backoff_max_ms="0"))
    assert "its answer is no HTTP" in error.sentence
    assert "Basic" not in error.sentence


def test_a_redirection_is_not_followed() -> None:
    with OddServer(answer({})) as elsewhere:
        location = f"http://127.0.0.1:{elsewhere.port}/"
        with OddServer(answer("", 302, Location=location)) as server:
            error = failure(asked(server.port))
    assert "status 302, a redirection, which is not followed" in error.sentence
    assert not error.retriable
    assert (len(server.asked), elsewhere.asked) == (1, [])


def test_a_server_that_does_not_answer_is_given_up_in_time() -> None:
    patience = {"sasl_login_read_timeout_ms": "50", "sasl_login_retry_backoff_max_ms": "0"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "did not answer in time" in failure(asked(silent.getsockname()[1], **patience)).sentence
    assert "Connection refused" in failure(asked(silent_port(), **patience)).sentence


def dripping(text: bytes) -> Callable[[bytes, socket.socket], None]:
    """Sends the bytes of `text`, and more of its last one, each soon enough for whoever looks at the last one only."""

    def send(_request: bytes, connection: socket.socket) -> None:
        for number in range(5000):
            connection.sendall(text[number : number + 1] or text[-1:])
            let_pass(0.02)

    return send


@pytest.mark.parametrize(
    "begin",
    [b"HTTP/1.1 200 ", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n ", b"HTTP/1.1 100 C\r\n\r\n"],
    ids=["status", "headers", "body", "goes-on"],
)  # fmt: skip
def test_a_server_whose_bytes_drip_is_given_up_by_the_deadline_of_the_whole_answer(begin: bytes) -> None:
    with OddServer(dripping(begin * 20 if begin.endswith(b"C\r\n\r\n") else begin)) as server:
        began = time.monotonic()
        settings = asked(server.port, sasl_login_read_timeout_ms="200", sasl_login_retry_backoff_max_ms="0")
        assert "did not answer in time" in failure(settings).sentence
        assert time.monotonic() - began < SOON_S


def test_tls_that_does_not_come_about_is_given_up_by_the_deadline_of_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = asked(0, sasl_login_connect_timeout_ms="200", sasl_login_retry_backoff_max_ms="0")
        settings["sasl.oauthbearer.token.endpoint.url"] = f"https://localhost:{silent.getsockname()[1]}/"
        began = time.monotonic()
        assert "did not answer in time" in failure(settings).sentence
        assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize(
    ("again_ms", "hurried"), [("1500", False), ("0", False), ("60000", True)], ids=["again", "once", "hurried"]
)
def test_all_attempts_together_have_a_deadline(again_ms: str, hurried: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "HURRIED_S", 0.3)
    patience = {"sasl_login_connect_timeout_ms": "150", "sasl_login_read_timeout_ms": "60000" if hurried else "300"}
    with OddServer(dripping(b"HTTP/1.1 ")) as server:
        began = time.monotonic()
        failure(asked(server.port, sasl_login_retry_backoff_max_ms=again_ms, **patience), hurried=hurried)
        assert time.monotonic() - began < SOON_S
    # The first attempt ends in 300 ms; there is time for others where that is asked for.
    assert len(server.asked) == 1 or (again_ms == "1500" and len(server.asked) < 6)
    assert len(server.asked) > 1 or again_ms != "1500"


def test_an_answer_that_is_too_large_is_refused() -> None:
    with OddServer(answer({"access_token": "t", "more": " " * TOKEN_BYTES_MAX})) as server:
        assert f"has more than {TOKEN_BYTES_MAX} bytes" in failure(asked(server.port)).sentence


@pytest.mark.parametrize("body", ["", "[]", "5", '"t"', "{", "[" * 60_000, '{"access_token": 5}', "\x00"])
def test_what_is_no_answer_gives_no_token(body: str) -> None:
    with OddServer(answer(body)) as server:
        assert "gave no token" in failure(asked(server.port)).sentence


@pytest.mark.parametrize("lasts", ["Infinity", "1e400", "1" + "0" * 400, "-5", "-Infinity", '"60"', "60"])
def test_a_life_that_is_a_number_is_taken_as_one(lasts: str) -> None:
    with OddServer(answer(f'{{"access_token": "t", "expires_in": {lasts}}}')) as server:
        ends_s = of_server(asked(server.port)).ends_s
    assert ends_s is not None
    assert (ends_s > time.time()) == (not lasts.startswith("-"))


@pytest.mark.parametrize("lasts", ["NaN", "null", "true", '"soon"', "[]"])
def test_a_life_that_is_none_is_looked_for_in_the_token(lasts: str) -> None:
    token = unsigned_token("x", 50)
    with OddServer(answer(f'{{"access_token": {json.dumps(token)}, "expires_in": {lasts}}}')) as server:
        assert of_server(asked(server.port)).ends_s == pytest.approx(time.time() + 50, abs=30)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://h:abc/", "has a port that is no number"),
        ("https://h:0/", "has a port that is no number"),
        ("https://h:65536/", "has a port that is no number"),
        ("https://[bad/", "has no host that can be read"),
        ("https://", "has no host"),
        ("https:///path", "has no host"),
        ("https://a..b/", "has no host"),
        (f"https://{'a' * 64}.example/", "has no host"),
        ("https://planted:word@h/", "has a user or a password"),
        ("https://planted@h/", "has a user or a password"),
        ("https://h/a b", "has characters"),
        ("https://h/\na", "has characters"),
        ("https://hé/", "has characters"),
        ("ftp://h/", "must begin with https://"),
        ("planted", "must begin with https://"),
        ("http://planted.example/", "is http://, by which the client's secret could be read"),
        ("http://localhost.example/", "is http://, by which the client's secret could be read"),
        ("http://10.0.0.1/", "is http://, by which the client's secret could be read"),
        ("http://[::2]/", "is http://, by which the client's secret could be read"),
        ("http://127.0.0.1@planted.example/", "has a user or a password"),
    ],
)
def test_a_url_that_cannot_be_asked_is_refused_by_the_name_of_its_setting_and_not_shown(url: str, why: str) -> None:
    error = failure({**asked(1), "sasl.oauthbearer.token.endpoint.url": url})
    assert error.sentence.startswith(f"sasl.oauthbearer.token.endpoint.url {why}")
    assert not error.retriable
    assert (refused(url) or "").startswith(why)


@pytest.mark.parametrize(
    ("url", "read", "shown"),
    [
        ("https://h", Endpoint("https", "h", 443, "", ""), "https://h"),
        ("https://H.example:8443/a/b?c=d", Endpoint("https", "h.example", 8443, "/a/b", "c=d"), "https://h.example:8443/a/b"),
        ("http://localhost:80/", Endpoint("http", "localhost", 80, "/", ""), "http://localhost/"),
        ("http://127.1.2.3/", Endpoint("http", "127.1.2.3", 80, "/", ""), "http://127.1.2.3/"),
        ("http://[::1]:81/", Endpoint("http", "::1", 81, "/", ""), "http://[::1]:81/"),
    ],
)  # fmt: skip
def test_a_url_is_read_and_shown_without_its_query(url: str, read: Endpoint, shown: str) -> None:
    assert endpoint(url) == read
    assert str(read) == shown
    assert refused(url) is None
    assert refused("file:/a/token") is None


def test_a_file_of_certificates_that_cannot_be_used_is_named_with_its_setting(tmp_path: Path) -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": "https://localhost:1/"}
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("nothing")
    error = failure({**asked(1), **url, "https.ca.location": str(missing)})
    assert error.sentence == f"The file {missing} of https.ca.location cannot be read: No such file or directory"
    assert not error.retriable
    error = failure({**asked(1), **url, "https.ca.location": str(empty)})
    assert error.sentence == f"The file {empty} of https.ca.location has no certificates as PEM text"
