"""Tokens of OAUTHBEARER: kept while they are good, replaced in time, never shown; whoever waits for one waits once."""

import base64
import json
import logging
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pylog_spark.login import tokens as module
from pylog_spark.login.errors import TokenError
from pylog_spark.login.local import TOKEN_BYTES_MAX, Token, checked, end_of, of_file, of_function, seconds, unsecured
from pylog_spark.login.oidc import HURRIED_S
from pylog_spark.login.tokens import FAILURE_KEPT_S, KEPT_MAX_S, REFRESH_AGAIN_S, Source
from tests.harness.waiting import said

_SETTINGS = {"sasl.login.refresh.window.factor": "0.8", "sasl.login.refresh.buffer.seconds": "300"}


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Tokens:
    """A source with a clock that the test sets, whose tokens `give` makes, by their number.

    Attributes
    ----------
    hurried : list of bool
        What each of those who made a token was told.
    """

    def __init__(self, give: Callable[[int], Token], settings: dict[str, str] | None = None) -> None:
        self.clock = Clock()
        self.hurried: list[bool] = []
        self._source = Source({**_SETTINGS, **(settings or {})}, self.clock)
        self._give = give

    def _get(self, hurried: bool) -> Token:
        self.hurried.append(hurried)
        return self._give(len(self.hurried))

    def token(self) -> str:
        """What a client gets."""
        return self._source.token(self._get).value


def lasting(life_s: float) -> Tokens:
    """A source whose tokens are called t1, t2..., each good for `life_s`."""
    found = Tokens(lambda number: Token(f"t{number}", found.clock.now_s + life_s))
    return found


def test_a_token_is_used_again_until_most_of_its_life_is_over() -> None:
    tokens = lasting(10_000)
    assert [tokens.token() for _ in range(3)] == ["t1"] * 3
    tokens.clock.now_s += 7_999
    assert tokens.token() == "t1"
    tokens.clock.now_s += 1
    assert tokens.token() == "t2"


def test_a_token_is_replaced_some_time_before_its_end_where_its_life_is_long_enough() -> None:
    tokens = lasting(1_000)
    tokens.token()
    tokens.clock.now_s += 699
    assert tokens.token() == "t1"
    tokens.clock.now_s += 1
    assert tokens.token() == "t2"


def test_a_token_whose_end_is_not_known_is_used_once() -> None:
    tokens = Tokens(lambda number: Token(f"t{number}"))
    assert [tokens.token() for _ in range(2)] == ["t1", "t2"]


@pytest.mark.parametrize("life_s", [KEPT_MAX_S + 1, 1e18, math.inf])
def test_no_token_is_kept_for_ever_whatever_its_end(life_s: float) -> None:
    tokens = lasting(life_s)
    assert tokens.token() == "t1"
    tokens.clock.now_s += KEPT_MAX_S
    assert tokens.token() == "t2"


@pytest.mark.parametrize("life_s", [0, -1, -1e18, -math.inf])
def test_a_token_that_has_ended_already_is_refused(life_s: float) -> None:
    with pytest.raises(TokenError, match="has ended already"):
        lasting(life_s).token()


def test_a_token_that_ends_while_it_is_got_is_refused() -> None:
    def give(_: int) -> Token:
        ends_s = tokens.clock.now_s + 5
        tokens.clock.now_s += 6
        return Token("t", ends_s)

    tokens = Tokens(give)
    with pytest.raises(TokenError, match="has ended already"):
        tokens.token()


def away(tokens_before: int, life_s: float, settings: dict[str, str] | None = None) -> Tokens:
    """A source that is away when it has given some tokens."""

    def give(number: int) -> Token:
        if number > tokens_before:
            raise TokenError(f"The server is away (asked for t{number})", retriable=True)
        return Token(f"t{number}", found.clock.now_s + life_s)

    found = Tokens(give, settings)
    return found


def test_the_token_before_is_used_to_its_end_when_there_is_no_new_one(caplog: pytest.LogCaptureFixture) -> None:
    tokens = away(1, 1_000)
    tokens.token()
    tokens.clock.now_s += 999
    with caplog.at_level(logging.WARNING, "pylog_spark.login"):
        assert tokens.token() == "t1"
    said(caplog, "The server is away (asked for t2); the token before it is used.")
    tokens.clock.now_s += 1
    with pytest.raises(TokenError, match="away"):
        tokens.token()


def test_while_the_token_before_is_good_a_server_that_is_away_is_asked_now_and_then_and_only_for_a_moment() -> None:
    tokens = away(1, 1_000)
    tokens.token()
    tokens.clock.now_s += 800
    assert [tokens.token() for _ in range(5)] == ["t1"] * 5
    assert tokens.hurried == [False, True]
    tokens.clock.now_s += REFRESH_AGAIN_S
    assert [tokens.token() for _ in range(5)] == ["t1"] * 5
    assert tokens.hurried == [False, True, True]
    # The last chance before its end is taken with patience.
    tokens.clock.now_s = 2_000 - HURRIED_S
    assert tokens.token() == "t1"
    assert tokens.hurried[-1] is False


def test_a_failure_is_told_to_those_who_ask_soon_after_it_and_no_longer() -> None:
    tokens = away(0, 1_000)
    for _ in range(5):
        with pytest.raises(TokenError, match="asked for t1") as caught:
            tokens.token()
        assert caught.value.retriable
    tokens.clock.now_s += FAILURE_KEPT_S
    with pytest.raises(TokenError, match="asked for t2"):
        tokens.token()
    # A clock that is set back does not keep it for ever.
    tokens.clock.now_s -= 10_000
    with pytest.raises(TokenError, match="asked for t3"):
        tokens.token()


def test_a_file_that_was_not_there_is_looked_for_at_the_next_login() -> None:
    tokens = away(0, 1_000, {"sasl.oauthbearer.token.endpoint.url": "file:/t"})
    for number in (1, 2):
        with pytest.raises(TokenError, match=f"asked for t{number}"):
            tokens.token()


def test_who_comes_while_a_good_token_is_replaced_uses_it_at_once() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def give(number: int) -> Token:
        if number > 1:
            begun.set()
            assert go_on.wait(30)
        return Token(f"t{number}", tokens.clock.now_s + 1_000)

    tokens = Tokens(give)
    tokens.token()
    tokens.clock.now_s += 900
    with ThreadPoolExecutor(1) as pool:
        replacing = pool.submit(tokens.token)
        assert begun.wait(30)
        assert tokens.token() == "t1"
        go_on.set()
        assert replacing.result() == "t2"
    assert tokens.token() == "t2"


@pytest.mark.parametrize("fails", [False, True])
def test_all_threads_share_what_came_of_one_request(fails: bool) -> None:
    coming: list[int] = []
    all_there = threading.Event()

    def give(number: int) -> Token:
        assert all_there.wait(30)
        if fails:
            raise TokenError(f"The server is away (asked for t{number})", retriable=True)
        return Token(f"t{number}", tokens.clock.now_s + 1_000)

    def ask() -> str:
        coming.append(1)
        if len(coming) == 4:
            all_there.set()
        try:
            return tokens.token()
        except TokenError as error:
            return error.sentence

    tokens = Tokens(give)
    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(ask) for _ in range(4)]]
    assert found == ["The server is away (asked for t1)" if fails else "t1"] * 4
    assert len(tokens.hurried) == 1


def test_when_who_asks_is_interrupted_that_is_told_to_nobody_else_and_another_thread_asks() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def give(number: int) -> Token:
        if number == 1:
            begun.set()
            assert go_on.wait(30)
            raise KeyboardInterrupt
        return Token(f"t{number}", tokens.clock.now_s + 1_000)

    tokens = Tokens(give)
    with ThreadPoolExecutor(2) as pool:
        interrupted = pool.submit(tokens.token)
        assert begun.wait(30)
        waiting = pool.submit(tokens.token)
        go_on.set()
        assert waiting.result() == "t2"
        assert isinstance(interrupted.exception(), KeyboardInterrupt)


def test_clients_that_differ_only_in_how_long_they_wait_share_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting_tokens.py").write_text(
        "import time\ngiven = []\ndef give(config):\n    given.append(config)\n    return f't{len(given)}', time.time() + 900\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"sasl.oauthbearer.token.provider": "counting_tokens:give"}
    found = [module.token({**settings, "sasl.login.read.timeout.ms": text}) for text in ("3000", "10000")]
    assert found == [("t1", [])] * 2
    assert module.token({**settings, "sasl.oauthbearer.scope": "other"}) == ("t2", [])


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
    nan = base64.urlsafe_b64encode(b'{"exp": NaN}').decode()
    for text in ("opaque", "a.b.c", "a.W10.c", "", f"h.{nan}.s"):
        assert end_of(text) is None


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (7, 7.0), ("7.5", 7.5), (-1, -1.0), (10**400, math.inf), (-(10**400), -math.inf), ("1e999", math.inf),
        (math.nan, None), ("NaN", None), (True, None), (None, None), ([], None), ("soon", None),
    ],
)  # fmt: skip
def test_what_others_say_of_an_end_is_a_number_or_nothing(said: object, found: float | None) -> None:
    assert seconds(said) == found


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
    with pytest.raises(TokenError, match="must be file:") as refused:
        of_file("file://user:planted@elsewhere/token")
    assert "planted" not in refused.value.sentence


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
        "def endless(config): return 'd', float('nan')\n"
        "def odd(config): return 'e', 17, 'principal', {'planted': 5}\n"
        "number = 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert of_function("giving_tokens:Signer.alone", "x") == Token("a-x")
    assert of_function("giving_tokens:ended", "") == Token("b", 17.0)
    assert of_function("giving_tokens:extended", "") == Token("c", 17.5, {"logicalCluster": "lkc"})
    for name in ("wrong", "bad", "endless", "odd"):
        with pytest.raises(TokenError, match="must give a token") as caught:
            of_function(f"giving_tokens:{name}", "")
        assert "planted" not in caught.value.sentence
    for name in ("number", "missing"):
        with pytest.raises(TokenError, match=f"has no function {name}"):
            of_function(f"giving_tokens:{name}", "")


def test_where_a_function_failed_stands_in_the_log_at_debug_without_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "failing_tokens.py").write_text(
        "def sign(key):\n"
        "    password = 'planted-1'\n"
        "    raise ValueError('planted-2 ' + key)\n"
        "def failing(config):\n"
        "    try:\n"
        "        return sign(config)\n"
        "    except ValueError as error:\n"
        "        raise RuntimeError('planted-3') from error\n"
    )
    (tmp_path / "unimportable_tokens.py").write_text("raise OSError('planted-4')\n")
    (tmp_path / "incomplete_tokens.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.DEBUG, "pylog_spark.login"):
        with pytest.raises(TokenError, match=r"it raised RuntimeError; logger pylog_spark\.login says where") as caught:
            of_function("failing_tokens:failing", "planted-5")
        with pytest.raises(TokenError, match=r"unimportable_tokens of .* \(OSError\)") as unimportable:
            of_function("unimportable_tokens:f", "")
        with pytest.raises(TokenError, match=r"\(ModuleNotFoundError of a_package_that_is_not_there\)"):
            of_function("incomplete_tokens:f", "")
    for where in (
        f"raised RuntimeError at {module.__file__.replace('tokens.py', 'local.py')}:",
        f"{tmp_path}/failing_tokens.py:8 in failing",
        f"{tmp_path}/failing_tokens.py:3 in sign",
        f"{tmp_path}/unimportable_tokens.py:1 in <module>",
    ):
        said(caplog, where)
    assert "planted" not in caplog.text + caught.value.sentence + unimportable.value.sentence


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
    for wrong in ({"unsecuredLoginNumberClaim_level": "x"}, {"unsecuredLoginLifetimeSeconds": "9" * 400}):
        with pytest.raises(TokenError, match="a number is expected"):
            unsecured(wrong)
