"""An HTTP server beside a broker of this process: where it listens, how it reaches the broker, whether it asks for a login.

It refuses to start where it would let in everybody although the broker does not.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pylog_spark.broker.listeners import PLAINTEXT, dialled, is_loopback, own_client
from pylog_spark.broker.process import Broker
from pylog_spark.broker.setting import ConfigError
from pylog_spark.web.access import MECHANISMS

if TYPE_CHECKING:
    import ssl

_PROTOCOL = "security.protocol"


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What the options of `pylog broker` say of a server.

    Attributes
    ----------
    address : str
        ``[http://|https://]HOST:PORT``.
    client : mapping of str to str
        Settings of its client of the brokers; empty: those by which brokers reach each other, or none.
    without_login : bool
        Ask nobody for a login, although the broker does.
    allow_plaintext : bool
        Serve without encryption where other machines can reach it.
    page : bool
        Whether the broker's page is among what is served; the schema registry has none.
    """

    address: str
    client: Mapping[str, str]
    without_login: bool
    allow_plaintext: bool
    page: bool = True


class Server(NamedTuple):
    """What a server is called in sentences, its option, and whether it has a client of the brokers even if it asks for no login."""

    name: str
    option: str
    needs_client: bool


class Place(NamedTuple):
    """Where a server listens, with which certificate, by which settings it reaches the broker, whether it asks for a login, and the names by which it may
    be addressed; None: by any, since a login or a certificate stands in between."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    client: dict[str, str]
    asks: bool
    hosts: frozenset[str] | None = None


def place(broker: Broker, options: HttpOptions, server: Server) -> Place:
    """Decide it.

    Raises
    ------
    ConfigError
        The options and the broker's settings do not fit together.
    """
    name, option, needs_client = server
    scheme, host, port = _address(options.address, name)
    if scheme == "http" and not is_loopback(host) and not options.allow_plaintext:
        raise ConfigError(
            f"The {name} would serve {host} without encryption, where other machines can reach it: give https://{host}:{port}, "
            "or --allow-plaintext."
        )
    tls = _certificate(broker, name) if scheme == "https" else None
    if options.without_login and not needs_client:
        return Place(host, port, tls, {}, False, None if tls else known_hosts(host, broker))
    client = _client(broker, options.client, server)
    has_login = client[_PROTOCOL].startswith("SASL_")
    asks = has_login and not options.without_login
    if asks and client.get("sasl.mechanism", "") not in MECHANISMS:
        raise ConfigError(
            f"The {name} can ask for logins by {', '.join(MECHANISMS)}, and its own is by {client.get('sasl.mechanism') or 'GSSAPI'}: "
            f"name another in {option}-config, or give {option}-without-login to let in everybody."
        )
    if not has_login and not options.without_login and _demands_login(broker):
        raise ConfigError(
            f"The broker asks for a login, and the {name} would not: give its own login at the broker in "
            f"{option}-config FILE (security.protocol=SASL_..., sasl.mechanism, sasl.jaas.config), or "
            f"{option}-without-login to let in everybody."
        )
    return Place(host, port, tls, client, asks, None if asks or tls else known_hosts(host, broker))


def known_hosts(given: str, broker: Broker) -> frozenset[str]:
    """The names of a server: the one given to it, this machine's, and those by which the broker's listeners are known."""
    advertised = (host for host, _ in broker.listeners.endpoints().values())
    return frozenset(each.lower() for each in ("localhost", given, socket.gethostname(), *advertised) if each)


def _address(given: str, name: str) -> tuple[str, str, int]:
    parts = urlsplit(given if "://" in given else f"http://{given}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None or parts.path not in ("", "/"):
        raise ConfigError(f"{given} is no address of a {name}: give HOST:PORT or https://HOST:PORT.")
    return parts.scheme, parts.hostname, port


def _client(broker: Broker, given: Mapping[str, str], server: Server) -> dict[str, str]:
    """Settings of a client of this broker: those given, or those by which brokers of a cluster reach each other."""
    found = {_PROTOCOL: PLAINTEXT, **(given or own_client(broker.config, broker.listeners))}
    if "bootstrap.servers" not in found:
        listeners = broker.listeners.all
        # The listener of brokers among themselves, if it is one of those that fit.
        fitting = [each for each in listeners if each.protocol == found[_PROTOCOL]]
        fitting.sort(key=lambda each: each.name != broker.listeners.inter_broker)
        if not fitting:
            raise ConfigError(
                f"The {server.name} reaches the broker by {found[_PROTOCOL]}, and it has no such listener: give a client's settings in "
                f"{server.option}-config FILE."
            )
        found["bootstrap.servers"] = dialled(broker.listeners, fitting[0])
    return found


def _demands_login(broker: Broker) -> bool:
    """Whether one of the broker's listeners lets in nobody without a login or a certificate."""
    return any(
        each.protocol.startswith("SASL_")
        or (each.protocol == "SSL" and broker.config.of_listener(each.name, "ssl.client.auth") == "required")
        for each in broker.listeners.all
    )


def _certificate(broker: Broker, name: str) -> ssl.SSLContext:
    """The broker's certificate, as OpenSSL takes it."""
    secured = next((each.name for each in broker.listeners.all if "SSL" in each.protocol), broker.listeners.first.name)
    file, kind, password = (
        str(broker.config.of_listener(secured, setting) or "")
        for setting in ("ssl.keystore.location", "ssl.keystore.type", "ssl.key.password")
    )
    if not file or kind.upper() != "PEM":
        raise ConfigError(
            f"The {name} takes the broker's certificate, which must be a PEM file: set ssl.keystore.type=PEM and "
            "ssl.keystore.location."
        )
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(file, password=password)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"The certificate {file} cannot be used for the {name}: {error}.") from error
    return context
