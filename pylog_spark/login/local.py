"""Tokens that no server is asked for: from a file, from a Python function of the user's, or made here and signed by nobody.

What a function raises may have a secret in its text, so that only its class is told. Where it was raised stands in the log at DEBUG: files,
lines and names of functions, no text and no values.
"""

from __future__ import annotations

import base64
import importlib
import json
import logging
import math
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from pylog_spark.login.endpoint import SETTING
from pylog_spark.login.errors import TokenError

#: Largest file or answer with a token. Brokers take no larger message before a login.
TOKEN_BYTES_MAX = 65_536
#: Most calls, the innermost ones, of those that led to an exception of the user's function that are logged.
FRAMES_MAX = 50
_DEFAULT_LIFETIME_S = 3600
_STRING_CLAIM = "unsecuredLoginStringClaim_"
_NUMBER_CLAIM = "unsecuredLoginNumberClaim_"
_LIST_CLAIM = "unsecuredLoginListClaim_"

log = logging.getLogger("pylog_spark.login")


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes
    ----------
    value : str
        As it is sent; never shown.
    ends_s : float or None
        Its end in seconds since 1970; None when not known, then it is used once.
    extensions : mapping of str to str
        SASL extensions that belong to it.
    """

    value: str = field(repr=False)
    ends_s: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


def checked(value: object, source: str) -> str:
    """Give the token `value` without spaces around it. Raises `TokenError` for what cannot be one."""
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise TokenError(f"{source} gave no token")
    if len(text) > TOKEN_BYTES_MAX or not text.isascii() or any(sign.isspace() or ord(sign) < 32 for sign in text):
        raise TokenError(f"What {source} gave is no token: it is too long, or has characters that no token has")
    return text


def of_file(url: str) -> Token:
    """Read the token in the file that a ``file:`` URL names; at each login, since whoever renews it writes the file again."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path:
        raise TokenError(f"{SETTING} of a file must be file: and its path, without a host")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(TOKEN_BYTES_MAX + 2)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise TokenError(f"The file {path} with the token cannot be read: {why}", retriable=True) from None
    return Token(checked(text, f"the file {path}"))


def of_function(name: str, config: str) -> Token:
    """Call the function ``module:function``, as confluent-kafka calls its ``oauth_cb``: with a text, for a token and its end in
    seconds since 1970, and after that a principal, which is not used, and extensions where it gives them. A token alone is used
    once."""
    function = _function(name)
    try:
        given = function(config)
    except Exception as error:  # noqa: BLE001  # the user's code
        _log_frames(f"The function {name}", error)
        raise TokenError(
            f"The function {name} gave no token: it raised {type(error).__name__}; logger pylog_spark.login says where, at level DEBUG",
            retriable=True,
        ) from None
    if isinstance(given, str):
        return Token(checked(given, f"the function {name}"))
    try:
        value, ends, *more = given
        extensions = dict(more[1]) if len(more) > 1 and more[1] else {}
    except (TypeError, ValueError):
        raise _no_token(name, given) from None
    ends_s = seconds(ends)
    if ends_s is None or not all(isinstance(text, str) for pair in extensions.items() for text in pair):
        raise _no_token(name, given)
    return Token(checked(value, f"the function {name}"), ends_s, extensions)


def _no_token(name: str, given: object) -> TokenError:
    return TokenError(
        f"The function {name} must give a token, or a token and its end in seconds since 1970, and after a principal extensions as a "
        f"dict of texts, not {type(given).__name__}"
    )


def _log_frames(who: str, error: BaseException) -> None:
    """Log where `error` was raised, and those that it came of."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen and log.isEnabledFor(logging.DEBUG):
        seen.add(id(found))
        frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(found.__traceback__)][-FRAMES_MAX:]
        where = ", ".join(f"{code.co_filename}:{line} in {code.co_name}" for code, line in frames)
        log.debug("%s raised %s at %s", who, type(found).__name__, where)
        found = found.__cause__ or found.__context__


def _function(name: str) -> Callable[[str], Any]:
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # noqa: BLE001  # the user's code
        _log_frames(f"The module {module}", error)
        about = f" of {error.name}" if isinstance(error, ImportError) and error.name else ""
        raise TokenError(
            f"The module {module} of sasl.oauthbearer.token.provider cannot be imported here ({type(error).__name__}{about}); "
            "it must be installed on the driver and on the executors"
        ) from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise TokenError(
            f"The module {module} has no function {attribute}, which sasl.oauthbearer.token.provider names"
        )
    function: Callable[[str], Any] = found
    return function


def unsecured(settings: Mapping[str, str], now_s: Callable[[], float] = time.time) -> Token:
    """Make a token that nobody signs, of the options that Kafka's own clients have for it; only brokers for tests take it."""
    now = now_s()
    lifetime = settings.get("unsecuredLoginLifetimeSeconds", str(_DEFAULT_LIFETIME_S))
    try:
        claims: dict[str, object] = {"iat": now, "exp": now + int(lifetime)}
        for name, text in settings.items():
            if name.startswith(_STRING_CLAIM):
                claims[name.removeprefix(_STRING_CLAIM)] = text
            elif name.startswith(_NUMBER_CLAIM):
                claims[name.removeprefix(_NUMBER_CLAIM)] = float(text)
            elif name.startswith(_LIST_CLAIM):
                claims[name.removeprefix(_LIST_CLAIM)] = text[1:].split(text[:1]) if text else []
    except (ValueError, OverflowError):
        raise TokenError(
            "The options unsecuredLogin... of sasl.jaas.config have a text where a number is expected"
        ) from None
    parts = ({"alg": "none"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return Token(".".join(encoded) + ".", now + int(lifetime))


def end_of(value: str) -> float | None:
    """Give the end that a JWT names itself; None when it names none, or is none."""
    try:
        claims = value.split(".")[1]
        end = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("exp")
    except (IndexError, ValueError, AttributeError, RecursionError):
        return None
    return seconds(end) if not isinstance(end, str) else None


def seconds(value: Any) -> float | None:
    """Give a number that somebody else said, also as text; infinite when it is too large, None when it is no number."""
    if isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None
    return None if math.isnan(found) else found
