"""Tokens of OAUTHBEARER: kept while they are good, replaced in time, never shown."""

import base64
import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import TOKEN_BYTES_MAX, Token, checked, end_of, of_file, of_function, unsecured
from pylog_spark.login.oidc import of_server
from pylog_spark.login.tokens import Source
from tests.harness.secured import TokenServer, unsigned_token

_SETTINGS = {"sasl.login.refresh.window.factor": "0.8", "sasl.login.refresh.buffer.seconds": "300"}


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def source(clock: Clock, give: Callable[[int], Token]) -> tuple[Source, list[int]]:
    """A source, and how often a token was got."""
    got: list[int] = []

    def get() -> Token:
        got.append(len(got))
        return give(len(got))

    return Source(_SETTINGS, get, clock), got


def test_a_token_is_used_again_until_most_of_its_life_is_over() -> None:
    clock = Clock()
    tokens, got = source(clock, lambda number: Token(f"t{number}", clock.now_s + 10_000))
    assert [tokens.token().value for _ in range(3)] == ["t1"] * 3
    clock.now_s += 7_999
    assert tokens.token().value == "t1"
    clock.now_s += 1
    assert tokens.token().value == "t2"
    assert len(got) == 2


def test_a_token_is_replaced_some_time_before_its_end_where_its_life_is_long_enough() -> None:
    clock = Clock()
    tokens, got = source(clock, lambda number: Token(f"t{number}", clock.now_s + 1_000))
    tokens.token()
    clock.now_s += 699
    tokens.token()
    assert len(got) == 1
    clock.now_s += 1
    tokens.token()
    assert len(got) == 2


def test_a_token_whose_end_is_not_known_is_used_once() -> None:
    tokens, got = source(Clock(), lambda number: Token(f"t{number}"))
    assert [tokens.token().value for _ in range(2)] == ["t1", "t2"]
    assert len(got) == 2


def test_the_token_before_is_used_to_its_end_when_there_is_no_new_one(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()

    def give(number: int) -> Token:
        if number > 1:
            raise TokenError("The server is away", retriable=True)
        return Token("t1", clock.now_s + 1_000)

    tokens, _ = source(clock, give)
    tokens.token()
    clock.now_s += 999
    with caplog.at_level(logging.WARNING, "pylog.login"):
        assert tokens.token().value == "t1"
    assert "The server is away; the token before it is used." in caplog.text
    clock.now_s += 1
    with pytest.raises(TokenError, match="away"):
        tokens.token()


def test_a_token_that_has_ended_already_is_refused() -> None:
    clock = Clock()
    tokens, _ = source(clock, lambda _: Token("t", clock.now_s))
    with pytest.raises(TokenError, match="has ended already"):
        tokens.token()


def test_a_token_shows_itself_nowhere() -> None:
    assert "planted" not in repr(Token("planted"))


@pytest.mark.parametrize("value", ["", " ", None, 7, "a b", "a\nb", "a\x01b", "é", "x" * (TOKEN_BYTES_MAX + 1)])
def test_what_cannot_be_a_token_is_refused_and_not_shown(value: object) -> None:
    with pytest.raises(TokenError) as caught:
        checked(value, "somebody")
    assert "a b" not in caught.value.sentence


def test_the_end_of_a_jwt_is_read_and_of_anything_else_is_not_known() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 17}).encode()).rstrip(b"=").decode()
    assert end_of(f"h.{claims}.s") == 17
    for text in ("opaque", "a.b.c", "a.W10.c", ""):
        assert end_of(text) is None


def test_a_file_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    url = f"file://{str(file).replace(' ', '%20')}"
    for text in ("one", "two\n"):
        file.write_text(text)
        assert of_file(url) == Token(text.strip())
    file.unlink()
    with pytest.raises(TokenError, match="No such file") as caught:
        of_file(url)
    assert caught.value.retriable
    with pytest.raises(TokenError, match="must be file:"):
        of_file("file://elsewhere/token")


def test_a_function_may_give_a_token_alone_or_with_its_end_and_extensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "giving_tokens.py").write_text(
        "class Signer:\n"
        "    @staticmethod\n"
        "    def alone(config): return 'a-' + config\n"
        "def ended(config): return 'b', 17\n"
        "def extended(config): return 'c', 17.5, 'principal', {'logicalCluster': 'lkc'}\n"
        "def wrong(config): return 5\n"
        "def bad(config): return ('planted', 'never')\n"
        "number = 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert of_function("giving_tokens:Signer.alone", "x") == Token("a-x")
    assert of_function("giving_tokens:ended", "") == Token("b", 17.0)
    assert of_function("giving_tokens:extended", "") == Token("c", 17.5, {"logicalCluster": "lkc"})
    for name in ("wrong", "bad"):
        with pytest.raises(TokenError, match="must give a token") as caught:
            of_function(f"giving_tokens:{name}", "")
        assert "planted" not in caught.value.sentence
    for name in ("number", "missing"):
        with pytest.raises(TokenError, match=f"has no function {name}"):
            of_function(f"giving_tokens:{name}", "")


def test_an_unsecured_token_has_the_claims_of_the_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "3",
        "unsecuredLoginListClaim_scope": ",a,b",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    token = unsecured(options, lambda: 1000.0)
    head, claims, signature = token.value.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {
        "sub": "alice", "level": 3.0, "scope": ["a", "b"], "iat": 1000.0, "exp": 1060.0,
    }  # fmt: skip
    assert (signature, token.ends_s) == ("", 1060.0)
    with pytest.raises(TokenError, match="a number is expected"):
        unsecured({"unsecuredLoginNumberClaim_level": "x"})


def _asked(port: int, **more: str) -> dict[str, str]:
    prefix = "sasl.oauthbearer.client.credentials"
    settings = {
        "sasl.oauthbearer.token.endpoint.url": f"http://user:pass@127.0.0.1:{port}/a?b=c",
        f"{prefix}.client.id": "m/e",
        f"{prefix}.client.secret": "s:1",
        "sasl.login.connect.timeout.ms": "5000",
        "sasl.login.read.timeout.ms": "5000",
        "sasl.login.retry.backoff.ms": "100",
        "sasl.login.retry.backoff.max.ms": "1000",
    }
    return {**settings, **{name.replace("_", "."): text for name, text in more.items()}}


def test_a_server_is_asked_as_rfc_6749_says() -> None:
    with TokenServer("m/e:s:1") as server:
        assert of_server(_asked(server.port)).ends_s is not None
    with TokenServer("m%2Fe:s%3A1") as server:
        of_server(_asked(server.port, sasl_oauthbearer_header_urlencode="true"))
        assert server.asked == [({"grant_type": ["client_credentials"]}, 200)]


def test_a_server_is_asked_again_with_longer_pauses_and_not_for_ever() -> None:
    pauses: list[float] = []
    with TokenServer("m/e:s:1") as server:
        server.refusals = [500, 503, 408]
        of_server(_asked(server.port, sasl_login_retry_backoff_max_ms="60000"), pauses.append)
        assert pauses == [0.1, 0.2, 0.4]
        server.refusals = [500]
        with pytest.raises(TokenError, match="status 500") as caught:
            of_server(_asked(server.port, sasl_login_retry_backoff_max_ms="0"))
    assert caught.value.retriable
    assert "user:pass" not in caught.value.sentence


def test_a_server_that_does_not_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = _asked(silent.getsockname()[1], sasl_login_read_timeout_ms="50", sasl_login_retry_backoff_max_ms="0")
        with pytest.raises(TokenError, match="did not answer in time"):
            of_server(settings)
    with pytest.raises(TokenError, match="cannot be asked"):
        of_server(settings)


def test_a_refusal_is_told_with_what_the_server_says_of_it() -> None:
    with TokenServer("other:secret") as server, pytest.raises(TokenError) as caught:
        of_server(_asked(server.port))
    assert not caught.value.retriable
    assert caught.value.sentence.endswith("refused the client 'm/e' with status 401: 'invalid_client'")
    assert unsigned_token("x") not in caught.value.sentence
