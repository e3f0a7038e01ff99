"""How a cluster that tests may harm is guarded, as values: what its brokers are told, and what each client says to be let in.

`OPEN` guards nothing. With `secured` there is one listener, SASL_SSL, for clients and between brokers: all log in by SCRAM-SHA-512, again
every few seconds, and brokers log in at ZooKeeper, where only they may change what they keep. Who is no super user may do what ACLs allow.
The users are made by whoever starts the cluster (`tests.harness.bench` has none but the super user).
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pylog_spark.testing.certificates import Certificates
from pylog_spark.testing.login import USER, kept_login, write_private

#: The super user: brokers among themselves, and who administers the cluster.
ADMIN = USER
MECHANISM = "SCRAM-SHA-512"
#: How long a login is good: about as long as a fault lasts. A connection over which somebody logs in again is not idle, so it is longer than
#: the load's copier waits until it gives up an idle one (`tests.harness.load`).
SESSION_MS = 3_000
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True)
class Security:
    """What guards a cluster; by default nothing.

    Attributes
    ----------
    protocol : str
        Of the brokers' one listener; it is called so, too.
    cluster : mapping
        Arguments of the `LocalCluster`, broker settings among them.
    ca : str
        The file of the authority that issued the brokers' certificates.
    passwords : mapping of str to str
        By user; the cluster may be told of others later.
    log_level : str
        The brokers' ``--log-level``.
    """

    protocol: str = "PLAINTEXT"
    cluster: Mapping[str, Any] = field(default_factory=dict)
    ca: str = ""
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    log_level: str = "info"

    def client(self, user: str, password: str | None = None) -> dict[str, str]:
        """What a client says to come in as `user`, by names that librdkafka and pylog's own client understand."""
        if self.protocol == "PLAINTEXT":
            return {}
        said = self.passwords[user] if password is None else password
        login = {"sasl.mechanism": MECHANISM, "sasl.username": user, "sasl.password": said}
        return {"security.protocol": self.protocol, "ssl.ca.location": self.ca, **login}


OPEN = Security()


def secured(directory: Path, users: Iterable[str]) -> Security:
    """TLS, logins and ACLs for a cluster whose data is in `directory`, and passwords for some users, who have yet to be made."""
    digest = directory / "zookeeper.login"
    write_private(digest, f"brokers:{secrets.token_hex()}\n")
    cluster = {
        "tls": True,
        "sasl": MECHANISM,
        "connections_max_reauth_ms": SESSION_MS,
        "authorizer_class_name": AUTHORIZER,
        "zookeeper_digest_file": str(digest),
        "zookeeper_set_acl": "true",
    }
    passwords = {user: secrets.token_urlsafe() for user in users}
    passwords[ADMIN] = kept_login(directory / "login", MECHANISM).password
    # So that logins can be counted.
    log_level = "info,pylog.broker.network=debug"
    return Security("SASL_SSL", cluster, Certificates(directory / "tls").ca, passwords, log_level)


@dataclass(frozen=True)
class Way:
    """How clients reach a cluster: the addresses of its brokers, and what guards it."""

    servers: str
    security: Security = OPEN

    def client(self, user: str) -> dict[str, str]:
        """Settings of a client that comes in as `user`."""
        return {"bootstrap.servers": self.servers, **self.security.client(user)}
