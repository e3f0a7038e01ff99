"""A broker behind TLS and logins, with one way in for each that clients have, and what somebody needs to come in by one of them.

| way | what the client shows | who it is then |
|---|---|---|
| `SSL` | nothing | ANONYMOUS |
| `SSL mutual` | a certificate | CN=client |
| `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` | a user's name and password, over TLS | the user |
| `OAUTHBEARER` | a signed token, over TLS | the `sub` of the token |

ACLs let each write and read the topics of its own ways only, so a client that came in as somebody else would not get far. The
administrator's listener is a fourth one.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pylog_spark.client import Admin
from pylog_spark.results.security import AclBinding
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.certificates import Certificates
from tests.harness.secured import TokenServer
from tests.harness.security import AUTHORIZER
from tests.harness.tokens import Issuer

PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAYS = ("SSL", "SSL mutual", *PASSWORDS, "OAUTHBEARER")
#: The user and the password, with every sign that SCRAM, Java's settings and command lines give a meaning to; a guess of the password.
USER, PASSWORD, GUESS = "al=ic,e", 'planted "pass"\\word;', "wr0ng-gue55"
#: Of the client of the token servers.
CLIENT_ID, CLIENT_SECRET = "robots", "sw0rdfish"
AUDIENCE, ISSUER = "pylog", "https://issuer.example"
_LISTENERS = {"ADMIN": "SASL_SSL", "SSL": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL"}
_LISTENER_OF = {"SSL": "SSL", "SSL mutual": "MUTUAL"}
_NAMES = {"SSL": "ANONYMOUS", "SSL mutual": "CN=client", "OAUTHBEARER": "robot"}


@dataclass(frozen=True)
class Entry:
    """What somebody has who wants to come in by a way, in nobody's words.

    Attributes
    ----------
    servers : str
        The address.
    ca : str
        A PEM file of who is trusted.
    certificate : str, optional
        A PEM file of a key and its certificate.
    mechanism : str, optional
        How to log in, with `user` and `password` or with a token of `tokens`.
    """

    servers: str
    ca: str
    certificate: str | None = None
    mechanism: str | None = None
    user: str = USER
    password: str = PASSWORD
    tokens: TokenServer | None = None


@dataclass(frozen=True)
class Place:
    """The running broker and all that lies around it. `strangers` and `false_tokens` are of people whom it does not know."""

    broker: LocalBroker
    own: Certificates
    strangers: Certificates
    tokens: TokenServer
    false_tokens: TokenServer

    def entry(self, way: str) -> Entry:
        """All that is needed to come in."""
        entry = Entry(self.broker.address_of(_LISTENER_OF.get(way, "LOGIN")), self.own.ca)
        if way in _LISTENER_OF:
            return replace(entry, certificate=self.own.store("client") if way == "SSL mutual" else None)
        return replace(entry, mechanism=way, tokens=self.tokens if way == "OAUTHBEARER" else None)

    def wrong_entry(self, way: str) -> Entry:
        """The same, but for what proves something, which is of a stranger: the authority, the certificate, the password, the token."""
        strangers = {
            "SSL": {"ca": self.strangers.ca},
            "SSL mutual": {"certificate": self.strangers.store("client")},
            "OAUTHBEARER": {"tokens": self.false_tokens},
        }
        return replace(self.entry(way), **strangers.get(way, {"password": GUESS}))

    def make_topic(self, way: str, client: str) -> str:
        """An empty topic for one client that comes by this way."""
        topic = f"{_prefix(way)}{client}"
        with self.admin() as admin:
            assert admin.create_topic(topic, 1).error is None
        return topic

    def admin(self) -> Admin:
        """A client that may do everything."""
        return Admin(self.broker.bootstrap_servers, self.broker.security_settings)


def principal_of(way: str) -> str:
    """Who comes by this way."""
    return f"User:{_NAMES.get(way, USER)}"


def _prefix(way: str) -> str:
    return f"{way.replace(' ', '-')}."


def _acls(way: str) -> Iterator[AclBinding]:
    principal = principal_of(way)
    for operation in ("READ", "WRITE"):
        yield AclBinding("TOPIC", _prefix(way), "PREFIXED", principal, "*", operation, "ALLOW")
    # librdkafka and kafkajs read only with a group.
    yield AclBinding("GROUP", "interop", "LITERAL", principal, "*", "READ", "ALLOW")
    yield AclBinding("GROUP", _prefix(way), "PREFIXED", principal, "*", "READ", "ALLOW")


def _signed_by(issuer: Issuer, own: Certificates) -> TokenServer:
    """A server of tokens that `issuer` signs; its certificate is the broker's."""
    server = TokenServer(f"{CLIENT_ID}:{CLIENT_SECRET}", token=lambda: issuer.token(aud=AUDIENCE, iss=ISSUER))
    return server.over_tls(own.directory, "broker.pem")


@contextmanager
def secured_broker(folder: Path) -> Iterator[Place]:
    """The broker, with its users and ACLs, inside the block."""
    own, strangers = Certificates(folder / "own").made(), Certificates(folder / "strangers").made()
    issuer = Issuer(folder / "issuer")
    (folder / "keys.json").write_text(issuer.jwks())
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "connection.failed.authentication.delay.ms": 10,
        "group.initial.rebalance.delay.ms": 0,
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join((*PASSWORDS, "OAUTHBEARER")),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
    }
    with ExitStack() as held:
        # The same name of the key: nothing but the signature is wrong.
        servers = [_signed_by(each, own) for each in (issuer, Issuer(folder / "other"))]
        tokens, false_tokens = (held.enter_context(server) for server in servers)
        data = folder / "data"
        broker = held.enter_context(LocalBroker(data, listeners=_LISTENERS, tls=own, sasl="SCRAM-SHA-512", **settings))
        place = Place(broker, own, strangers, tokens, false_tokens)
        with place.admin() as admin:
            made = [admin.set_user_scram_credential(USER, PASSWORD, way) for way in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
            made += admin.create_acls([acl for way in WAYS for acl in _acls(way)])
        assert {result.error for result in made} == {None}
        yield place
