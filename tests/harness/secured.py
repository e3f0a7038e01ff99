"""Apache Kafka behind TLS and logins, for the tests of a process: one broker with a listener for each way in.

| listener | what it demands |
|---|---|
| `PLAINTEXT` | nothing |
| `TLS` | TLS |
| `MUTUAL` | TLS, and a certificate of the client |
| `WRONGNAME` | TLS; its certificate is for another host |
| `LOGIN` | a login, without TLS |
| `SECURED` | a login over TLS, by any mechanism |
| `SHORT` | a login over TLS, again every few seconds (KIP-368) |

Tokens of OAUTHBEARER are taken without a signature, as Kafka does for tests; `TokenServer` gives some.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from pylog_spark.client import Admin, LogError
from pylog_spark.client.admin import LATEST
from pylog_spark.testing.process import free_ports
from tests.harness import certificates
from tests.harness.certificates import Certificates

USER, USER_PASSWORD = "alice", 'planted "secret"\\ of alice;'
#: How long a login of the listener SHORT lasts.
SHORT_MS = 1_500
#: How soon a server of tokens sees that it is to end.
_POLL_S = 0.02
_PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "WRONGNAME": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "SECURED": "SASL_SSL",
    "SHORT": "SASL_SSL",
}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LOGIN_MODULES = "org.apache.kafka.common.security"
_UNSECURED_VALIDATOR = f"{_LOGIN_MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


def jaas(module: str, **options: str) -> str:
    """A value of sasl.jaas.config, quoted as Java wants it."""
    quoted = ('{}="{}"'.format(name, text.replace("\\", "\\\\").replace('"', '\\"')) for name, text in options.items())
    return f"{_LOGIN_MODULES}.{module} required {' '.join(quoted)};"


PLAIN_JAAS = jaas("plain.PlainLoginModule", username=USER, password=USER_PASSWORD)
SCRAM_JAAS = jaas("scram.ScramLoginModule", username=USER, password=USER_PASSWORD)


@dataclass(frozen=True)
class Secured:
    """A running Kafka."""

    ports: dict[str, int]
    certificates: Certificates

    def servers(self, listener: str) -> str:
        """The address of a listener."""
        return f"localhost:{self.ports[listener]}"

    def tls(self) -> dict[str, str]:
        """Settings that trust the broker."""
        return {"ssl.ca.location": self.certificates.path("ca.pem")}

    def login(self, listener: str = "SECURED", mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """All settings of a client that logs in by a password."""
        return {
            "bootstrap.servers": self.servers(listener),
            "security.protocol": _PROTOCOLS[listener],
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": PLAIN_JAAS if mechanism == "PLAIN" else SCRAM_JAAS,
            **self.tls(),
        }


def _settings(ports: dict[str, int], controller: int, folder: Certificates) -> dict[str, str]:
    names = {**_PROTOCOLS, "CONTROLLER": "PLAINTEXT"}
    settings = {
        "listeners": ",".join([*(f"{name}://127.0.0.1:{port}" for name, port in ports.items()), f"CONTROLLER://127.0.0.1:{controller}"]),
        "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in names.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
        "num.network.threads": "1",
        "num.partitions": "2",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "4",
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": folder.path("ca.pem"),
    }  # fmt: skip
    for name, protocol in _PROTOCOLS.items():
        prefix = f"listener.name.{name.lower()}"
        if protocol.endswith("SSL"):
            settings[f"{prefix}.ssl.keystore.type"] = "PEM"
            store = "elsewhere.both.pem" if name == "WRONGNAME" else "server.both.pem"
            settings[f"{prefix}.ssl.keystore.location"] = folder.path(store)
        if protocol.startswith("SASL"):
            plain = jaas("plain.PlainLoginModule", **{f"user_{USER}": USER_PASSWORD})
            settings[f"{prefix}.plain.sasl.jaas.config"] = plain
            for scram in ("scram-sha-256", "scram-sha-512"):
                settings[f"{prefix}.{scram}.sasl.jaas.config"] = f"{_LOGIN_MODULES}.scram.ScramLoginModule required;"
            settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = (
                f'{_LOGIN_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            )
            settings[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = _UNSECURED_VALIDATOR
    for mechanism in _MECHANISMS:
        settings[f"listener.name.short.{mechanism.lower()}.connections.max.reauth.ms"] = str(SHORT_MS)
    # Backslashes are escapes in a properties file.
    return {name: text.replace("\\", "\\\\") for name, text in settings.items()}


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Apache Kafka with all of these listeners."""
    # Imported when needed: it looks for Java.
    from tests.peers.kafka import KafkaBroker

    folder = tmp_path_factory.mktemp("secured")
    made = certificates.make(folder / "certificates")
    controller, *free = free_ports(1 + len(_PROTOCOLS))
    ports = dict(zip(_PROTOCOLS, free, strict=True))
    users = [f"{scram}=[name={USER},password={USER_PASSWORD}]" for scram in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    broker = KafkaBroker(
        folder / "kafka",
        _settings(ports, controller, made),
        heap="512m",
        port=ports["PLAINTEXT"],
        quick=True,
        format_options=[word for user in users for word in ("--add-scram", user)],
    )
    with broker:
        yield Secured(ports, made)


def is_served(admin: Admin, topic: str, partitions: int) -> bool:
    """Whether the leaders of a topic that was just made serve it."""
    try:
        admin.offsets([(topic, partition, LATEST) for partition in range(partitions)])
    except LogError as error:
        if error.kind != "UNKNOWN_TOPIC_OR_PARTITION":
            raise
        return False
    return True


def unsigned_token(user: str, lasts_s: float = 3600) -> str:
    """A token that nobody signed."""
    now = time.time()
    parts: list[dict[str, Any]] = [{"alg": "none"}, {"sub": user, "iat": now, "exp": now + lasts_s}]
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join(encoded) + "."


def give_token(user: str) -> tuple[str, float]:
    """A function that `sasl.oauthbearer.token.provider` may name."""
    return unsigned_token(user), time.time() + 3600


class TokenServer:
    """A server of tokens (OIDC client credentials). A context manager.

    Parameters
    ----------
    client : str
        ``id:secret`` of the one client that it serves.
    lasts_s : float
        How long its tokens are good.
    token : callable, optional
        Makes one, for brokers that do not take those that nobody signed.
    """

    def __init__(self, client: str, lasts_s: float = 3600, token: Callable[[], str] | None = None) -> None:
        #: Makes a token, as for each who asks.
        self.token = token or (lambda: unsigned_token("robot", lasts_s))
        #: What was asked, form and status of each request.
        self.asked: list[tuple[dict[str, list[str]], int]] = []
        #: Statuses with which the next requests are refused.
        self.refusals: list[int] = []
        expected = "Basic " + base64.b64encode(client.encode()).decode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status = 200 if self.headers["Authorization"] == expected else 401
                if outer.refusals:
                    status = outer.refusals.pop(0)
                outer.asked.append((form, status))
                answer: dict[str, Any] = {"error": "invalid_client"}
                if status == 200:
                    answer = {"access_token": outer.token(), "expires_in": lasts_s}
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)

    def over_tls(self, folder: Path, store: str = "server.both.pem") -> "TokenServer":
        """The same by HTTPS, with the key and certificate in `folder`'s file `store`."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / store)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        return self

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> "TokenServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
