"""A broker as it would stand on a network where strangers are: TLS, logins by all mechanisms, client certificates, ACLs; and who comes to it.

Its processes run on one processor and attackers on the others, see `PROCESSOR`. Users have a password each, and attackers tokens, certificates
and connections that are logged in already. What is made here is kept: an attempt costs the attacker little, so that it can make many.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pylog_spark._native import RawConnection
from pylog_spark.client import AclBinding, Admin
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.certificates import Certificates
from tests.harness.security import AUTHORIZER
from tests.harness.tokens import Issuer
from tests.hostile.floods import connect, until_coordinators_serve
from tests.hostile.logins import Client, Login, context, dialled, encrypted
from tests.interop.clients import create_topic
from tests.oracle.script import error_names

#: Of the broker and the good client. Attackers have the others, so that what an attack costs its sender is not counted.
PROCESSOR = max(os.sched_getaffinity(0))
OTHERS = os.sched_getaffinity(0) - {PROCESSOR}
#: INSIDE is for those who prepare; AGAIN has sessions that end, and TLS 1.3 only; of CERTIFIED one needs a certificate.
LISTENERS = {
    "INSIDE": "PLAINTEXT",
    "SECURED": "SASL_SSL",
    "OPEN": "SASL_PLAINTEXT",
    "AGAIN": "SASL_SSL",
    "CERTIFIED": "SSL",
}
HANDSHAKE_MS, LOGIN_MS, REQUEST_MS = 2_000, 2_500, 1_500
FROM, AUDIENCE = "https://issuer.example", "pylog"
#: A line that an attacker would like to see in the log.
FORGED = "\n1999-01-01T00:00:00.000Z INFO pylog.broker: all well"
_SETTINGS: dict[str, object] = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "sasl.oauthbearer.expected.issuer": FROM,
    "sasl.login.deadline.ms": LOGIN_MS,
    "socket.request.receive.timeout.ms": REQUEST_MS,
    "ssl.handshake.timeout.ms": HANDSHAKE_MS,
    # Who fails is answered at once, and can try again.
    "connection.failed.authentication.delay.ms": 0,
    "listener.name.again.connections.max.reauth.ms": 3_600_000,
    "listener.name.again.ssl.enabled.protocols": "TLSv1.3",
    "listener.name.certified.ssl.client.auth": "required",
}
#: What each user may do: (operation, resource type, name). An attacker is called after what it attacks.
GOOD, VICTIM = "good", "victim"
_OWN = (("ALL", "TOPIC", "own"), ("ALL", "GROUP", "own"), ("ALL", "TRANSACTIONAL_ID", "own"))
RIGHTS = {
    GOOD: (("ALL", "TOPIC", "honest"),),
    VICTIM: (("ALL", "TOPIC", "secret"), ("ALL", "GROUP", "secret"), ("ALL", "TRANSACTIONAL_ID", "secret")),
    "by-id": _OWN,
    "by-transaction": _OWN,
    "by-internal": (*_OWN, ("ALL", "TOPIC", "*")),
    "by-another": (*_OWN, ("DESCRIBE", "TOPIC", "secret")),
    "by-broker": (*_OWN, ("READ", "TOPIC", "secret")),
    "by-name": _OWN,
    "by-login": _OWN,
    "by-iterations": (("ALTER", "CLUSTER", "kafka-cluster"),),
}


@contextmanager
def only_on(processors: set[int]) -> Iterator[None]:
    """What this thread does, and processes and threads that it starts, run on these processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Fort:
    """A context manager: the broker runs inside.

    Attributes
    ----------
    broker : LocalBroker
        The broker. Its first listener asks nobody who it is.
    certificates : Certificates
        Its own, and whom clients trust.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificates = Certificates(folder / "tls").made()
        self._signed = {
            "expired": Certificates(folder / "expired").made(["client"], days=(-3, -1)),
            "not yet": Certificates(folder / "early").made(["client"], days=(1, 3)),
            "for servers": Certificates(folder / "servers").made(["client"], usage="server"),
        }
        self._stores = {name: made.store("client") for name, made in self._signed.items()}
        self._stores["good"] = self.certificates.store("client")
        self._stores["stranger's"] = Certificates(folder / "stranger").made(["client"]).store("client")
        self._stores["self-signed"] = _self_signed(folder / "self.pem", "/CN=client")
        self._stores["forging"] = _self_signed(folder / "forging.pem", f"/CN=forger{FORGED}")
        self.issuer, self.other_issuer = Issuer(folder / "issuer"), Issuer(folder / "other")
        self.broker = LocalBroker(folder / "data", tls=self.certificates, listeners=LISTENERS, **self._settings())
        self._kept: dict[object, Any] = {}

    def _settings(self) -> dict[str, object]:
        trusted = [Path(made.ca).read_text() for made in (self.certificates, *self._signed.values())]
        trust, keys = self._folder / "trust.pem", self._folder / "keys.json"
        trust.write_text("".join([*trusted, _certificate(self._stores["forging"])]))
        keys.write_text(self.issuer.jwks())
        return {
            **_SETTINGS,
            "listener.name.certified.ssl.truststore.location": str(trust),
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        }

    def __enter__(self) -> "Fort":
        with only_on({PROCESSOR}):
            self.broker.start()
        try:
            self._prepare()
        except BaseException:
            self.broker.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()
        self.broker.close()

    def _prepare(self) -> None:
        with Admin(self.broker.bootstrap_servers) as admin:
            for user in RIGHTS:
                assert admin.set_user_scram_credential(user, password(user), iterations=4096).error is None
            acls = [
                AclBinding(resource_type, name, "LITERAL", f"User:{user}", "*", operation, "ALLOW")
                for user, rights in RIGHTS.items()
                for operation, resource_type, name in rights
            ]
            assert {created.error for created in admin.create_acls(acls)} == {None}
        for topic in ("honest", "own", "secret"):
            create_topic(self.broker.bootstrap_servers, topic, config={"retention.ms": "-1"})
        with connect(self.broker) as inside:
            until_coordinators_serve(inside)

    def address(self, listener: str) -> str:
        """``HOST:PORT`` of a listener."""
        return self.broker.address_of(listener)

    def login(self, user: str) -> Login:
        """What a user needs to come in over TLS."""
        return Login(self.certificates.ca, user, password(user))

    def context(self, certificate: str | None = None, **more: Any) -> Any:
        """What a client trusts and shows."""
        return context(self.certificates.ca, certificate and self._stores[certificate], **more)

    def dial(self, listener: str, from_host: str, certificate: str | None = None, **more: Any) -> Client:
        """A connection to a listener, with TLS where that has it. Raises `OSError` when the handshake fails."""
        if LISTENERS[listener].endswith("SSL"):
            return Client(encrypted(self.address(listener), self.context(certificate, **more), from_host))
        return Client(dialled(self.address(listener), from_host))

    def raw(self, user: str | None) -> RawConnection:
        """A connection on which a user, or nobody, has logged in, which stays."""
        return self.kept(("raw", user), lambda: self._connected(user))

    def _connected(self, user: str | None) -> RawConnection:
        host, _, port = self.address("SECURED" if user else "INSIDE").rpartition(":")
        return RawConnection(host, int(port), config=self._security(user) if user else None)

    def ask(self, user: str | None, api: str, version: int, client_id: str = "raw", **fields: object) -> Any:
        """What the broker answers a user who is logged in."""
        return json.loads(self.raw(user).call(api, version, json.dumps(fields), client_id))

    def errors(self, user: str | None, api: str, version: int, client_id: str = "raw", **fields: object) -> str:
        """The errors in the answer, each once; NONE when there is none."""
        return "+".join(dict.fromkeys(error_names(self.ask(user, api, version, client_id, **fields))))

    def _security(self, user: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.certificates.ca,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password(user),
        }

    def kept(self, key: object, make: Callable[[], Any]) -> Any:
        """What was made at the first call with this key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def id_of(self, topic: str) -> str:
        """The id of a topic."""
        return str(self.kept(("id", topic), lambda: self._described(topic)["topic_id"]))

    def _described(self, topic: str) -> Any:
        asked = [{"name": topic}]
        return self.ask(None, "Metadata", 12, topics=asked, allow_auto_topic_creation=False)["topics"][0]

    def end_of(self, topic: str) -> int:
        """The offset behind the last record of a topic's first partition."""
        asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        return int(self.ask(None, "ListOffsets", 7, topics=asked)["topics"][0]["partitions"][0]["offset"])

    def sockets(self) -> int:
        """How many descriptors of sockets the broker has."""
        return sum(_is_socket(file) for file in Path(f"/proc/{self.broker.pid}/fd").iterdir())


def _is_socket(file: Path) -> bool:
    try:
        return str(file.readlink()).startswith("socket:")
    except FileNotFoundError:
        return False


def password(user: str) -> str:
    """Of a user of this broker alone."""
    return f"password of {user}"


def _certificate(store: str) -> str:
    text = Path(store).read_text()
    return text[text.index("-----BEGIN CERTIFICATE-----") :]


def _self_signed(file: Path, subject: str) -> str:
    """A key and a certificate that nobody else signed, and that is no authority's."""
    certificate, config = file.with_suffix(".crt"), file.with_suffix(".cnf")
    config.write_text("[req]\ndistinguished_name=name\n[name]\n")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-utf8",
               "-days", "30", "-subj", subject, "-addext", "extendedKeyUsage=clientAuth", "-config", str(config),
               "-keyout", str(file), "-out", str(certificate)]  # fmt: skip
    subprocess.run(command, capture_output=True, check=True)
    file.write_text(file.read_text() + certificate.read_text())
    return str(file)
