"""The keys that tokens are checked with (a JWKS, RFC 7517): read from a file or by HTTPS, again and again, and handed to the native server.

A file must be readable when the broker starts. A server may be down then: until it answers no token is valid, and what was read last stays
in force when it stops answering. It is asked every ``sasl.oauthbearer.jwks.endpoint.refresh.ms``; after an error again after
``sasl.oauthbearer.jwks.endpoint.retry.backoff.ms``, each time twice as long up to its ``.max.ms``; and at once for a token that names a
key which is not known, though not more than every 10 seconds. What it answers is refused when it is
larger than `BYTES_MAX`, is no JWKS, or comes from another server (redirections are not followed).
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pylog_spark.broker.config import BrokerConfig
from pylog_spark.broker.listeners import is_loopback
from pylog_spark.broker.loggers import serving_as
from pylog_spark.broker.setting import ConfigError

log = logging.getLogger("pylog.broker")

URL = "sasl.oauthbearer.jwks.endpoint.url"
BYTES_MAX = 1 << 20
_TIMEOUT_S = 10.0
_OK = 200


class JwksError(Exception):
    """The keys cannot be read. `args[0]` is one sentence."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys are read, and how often.

    Attributes
    ----------
    url : str
        A URL with https, http to this machine, or file.
    refresh_s, backoff_s, backoff_max_s : float
        Seconds to the next reading after one that succeeded, after one that failed, and at most after many that failed.
    """

    url: str
    refresh_s: float
    backoff_s: float
    backoff_max_s: float

    @property
    def is_file(self) -> bool:
        """Whether it is a file of this machine."""
        return urlsplit(self.url).scheme == "file"

    def pause_s(self, failures: int) -> float:
        """How long to wait after so many readings in a row that failed."""
        if failures == 0:
            return self.refresh_s
        # Not 2.0 ** failures: that has an end.
        doubled = self.backoff_s * 2 ** min(failures - 1, 32)
        return float(min(doubled, self.backoff_max_s))

    def read(self) -> str:
        """The JWKS. Raises `JwksError`."""
        # Not at the top: a broker without tokens loads neither HTTP nor TLS.
        import http.client

        try:
            content = self._of_file() if self.is_file else self._of_server()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise JwksError(
                f"The keys that tokens are checked with cannot be read from {self.shown}: {error}"
            ) from None
        if len(content) > BYTES_MAX:
            raise JwksError(f"What {self.shown} gives is larger than {BYTES_MAX} bytes: it cannot be a JWKS.")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise JwksError(f"What {self.shown} gives is no JWKS: it is not UTF-8.") from None

    @property
    def shown(self) -> str:
        """The URL for messages: without a user, a password and a query."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"

    def _of_file(self) -> bytes:
        with Path(unquote(urlsplit(self.url).path)).open("rb") as file:
            return file.read(BYTES_MAX + 1)

    def _of_server(self) -> bytes:
        import http.client
        import ssl

        parts = urlsplit(self.url)
        host = parts.hostname or ""
        connection = (
            http.client.HTTPSConnection(host, parts.port, timeout=_TIMEOUT_S, context=ssl.create_default_context())
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT_S)
        )
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            if answer.status != _OK:
                raise JwksError(f"{self.shown} answers {answer.status} {answer.reason} instead of a JWKS.")
            return answer.read(BYTES_MAX + 1)
        finally:
            connection.close()


def source_of(broker: BrokerConfig) -> KeySource | None:
    """Where a broker's keys are, by its settings; None when no tokens are used. Raises `ConfigError`."""
    url = broker.text(URL)
    if not url:
        return None
    try:
        parts = urlsplit(url)
        known = (
            (parts.scheme == "file" and parts.path.startswith("/") and not parts.netloc)
            or (parts.scheme == "https" and parts.hostname)
            or (parts.scheme == "http" and parts.hostname and is_loopback(parts.hostname))
        )
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        raise ConfigError(
            f"{URL} is refused: give an https:// URL, or a file as file:///PATH (http:// only to this machine)."
        )
    return KeySource(
        url,
        broker.number("sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000,
        broker.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms") / 1000,
        broker.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms") / 1000,
    )


class JwksReader:
    """Keeps a broker's keys up to date, with a thread of its own between `start` and `close`.

    `apply` hands a JWKS to the native server, from that thread, and raises `refused` for one that it does not take.
    """

    def __init__(
        self, source: KeySource | None, apply: Callable[[str], None], refused: type[Exception], node_id: int
    ) -> None:
        self._source = source
        self._apply = apply
        self._refused = refused
        self._node_id = node_id
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._failures = 0

    def start(self) -> None:
        """Begin, if there is a source. Raises `JwksError` for a file that cannot be used."""
        if self._source is not None:
            if self._source.is_file:
                self._read(self._source)
            self._thread = threading.Thread(target=self._run, args=(self._source,), name="pylog-jwks", daemon=True)
            self._thread.start()

    def hurry(self) -> None:
        """Read the keys now: there may be a new one. Any thread."""
        self._wake.set()

    def close(self) -> None:
        """End; a reading that is under way is not waited for."""
        self._closing.set()
        self._wake.set()

    def _run(self, source: KeySource) -> None:
        with serving_as(self._node_id):
            if not source.is_file:
                self._turn(source)
            while not self._closing.is_set():
                self._wake.wait(source.pause_s(self._failures))
                self._wake.clear()
                if not self._closing.is_set():
                    self._turn(source)

    def _turn(self, source: KeySource) -> None:
        try:
            self._read(source)
        except JwksError as error:
            self._failures += 1
            log.warning("%s The keys that were read before stay in force.", error)
        else:
            if self._failures:
                log.info("The keys that tokens are checked with were read from %s again.", source.shown)
            self._failures = 0

    def _read(self, source: KeySource) -> None:
        jwks = source.read()
        try:
            self._apply(jwks)
        except self._refused as error:
            raise JwksError(f"What {source.shown} gives is refused: {error.args[-1]}.") from None
