"""The listeners of a broker: read from its settings, checked, and written for the native half. Pure: no socket, no name is looked up.

=====================================  ==============================================================================
setting                                what it says
=====================================  ==============================================================================
``listeners``                          name, host and port of each
``listener.security.protocol.map``     the protocol that a name stands for
``advertised.listeners``               the address that clients of each listener are sent
``inter.broker.listener.name``,        the listener over which the brokers of a cluster reach each other
``security.inter.broker.protocol``
``listener.name.<name>.<setting>``     a setting of one listener, which wins over the broker's; the name is in lower case
=====================================  ==============================================================================

The rules are Kafka's (kafka.server.KafkaConfig, org.apache.kafka.network.SocketServerConfigs), with three differences: a broker without a
cluster needs no inter-broker listener; a broker with one listener uses it between brokers when no setting names one; and a broker that
is alone may listen on all addresses without advertised.listeners, since each client is sent the address that it connected to, or the
name, if that is in its TLS handshake.
"""

import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pylog_spark.broker.config import BROKER_SETTINGS, BrokerConfig, native_value
from pylog_spark.broker.setting import ConfigError, Value
from pylog_spark.cluster.model import Endpoint

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Protocols whose bytes everybody on the way can read.
OPEN_PROTOCOLS = (PLAINTEXT, "SASL_PLAINTEXT")
_PORT_MAX = 65535
# Of a listener with TLS: what brokers need as its clients, too.
_CLIENT_SETTINGS = (
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener.

    Attributes
    ----------
    protocol : str
        One of `PROTOCOLS`.
    port : int
        Where it listens; 0 before it has a port of its own.
    advertised : Endpoint or None
        The address that its clients are sent, its port 0 for the one on which it listens. None: its own host where that is a name, else
        what each of them dialled.
    """

    name: str
    protocol: str
    host: str
    port: int
    advertised: Endpoint | None = None

    @property
    def is_public(self) -> bool:
        """Whether other machines may be able to reach it."""
        return not is_loopback(self.host)

    @property
    def sent(self) -> Endpoint | None:
        """What clients are sent; None: what each of them dialled."""
        return self.advertised or (Endpoint(self.host, 0) if _family(self.host) is None and self.host else None)

    def __str__(self) -> str:
        return f"{self.name}://{address(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Listeners:
    """All listeners of a broker, in the order in which they were given.

    Attributes
    ----------
    inter_broker : str
        The name of the one over which brokers reach each other.
    """

    all: tuple[Listener, ...]
    inter_broker: str

    @property
    def first(self) -> Listener:
        """The listener that was given first."""
        return self.all[0]

    def bound(self, ports: Iterable[int]) -> "Listeners":
        """Give these with the ports on which they listen."""
        listening = (
            Listener(listener.name, listener.protocol, listener.host, port, listener.advertised)
            for listener, port in zip(self.all, ports, strict=True)
        )
        return Listeners(tuple(listening), self.inter_broker)

    def endpoints(self) -> dict[str, Endpoint]:
        """The addresses by which others reach the broker, by listener; without listeners whose address only the client that connects knows."""
        found = {}
        for listener in self.all:
            host, port = listener.advertised or (listener.host, listener.port)
            if not is_every_address(host):
                found[listener.name] = Endpoint(host, port or listener.port)
        return found

    def check_cluster(self) -> None:
        """Check what a broker of a cluster needs. Raises `ConfigError`."""
        for listener in self.all:
            if listener.advertised is None and is_every_address(listener.host):
                raise ConfigError(
                    f"In a cluster a broker must have an address by which others reach it, which {listener.host or 'an empty host'} is not: set "
                    f"advertised.listeners={listener.name}://HOST:PORT."
                )


def read_listeners(broker: BrokerConfig) -> Listeners:
    """Read the listeners of `broker` from its settings.

    Raises
    ------
    ConfigError
        A setting cannot be read, or they contradict each other.
    """
    protocols = _protocols(broker.text("listener.security.protocol.map") or "")
    listening = _endpoints("listeners", broker.text("listeners") or "")
    if not listening:
        raise ConfigError("listeners is empty: name at least one address, such as PLAINTEXT://127.0.0.1:9092.")
    _check_ports(listening)
    advertised = _endpoints("advertised.listeners", broker.text("advertised.listeners") or "")
    for name, (host, _) in advertised.items():
        if name not in listening:
            raise ConfigError(
                f"advertised.listeners has {name}, which is not in listeners ({', '.join(listening)}): give each address the name "
                "of its listener."
            )
        if is_every_address(host):
            raise ConfigError(
                f"advertised.listeners has {name}://{host or ''}..., to which nobody can connect: give the name or address by which "
                "clients reach this broker."
            )
    for name in listening:
        if name not in protocols:
            raise ConfigError(
                f"The listener {name} has no protocol: add {name}:PROTOCOL to listener.security.protocol.map, with one of "
                f"{', '.join(PROTOCOLS)}."
            )
    _check_overrides(broker, listening)
    found = tuple(
        Listener(name, protocols[name], host, port, advertised.get(name)) for name, (host, port) in listening.items()
    )
    listeners = Listeners(found, _inter_broker(broker, found, advertised))
    _check_public(broker, listeners)
    return listeners


def native_listeners(broker: BrokerConfig, listeners: Listeners) -> str:
    """The JSON from which `NativeBroker.listen` opens them."""

    def shown(listener: Listener) -> dict[str, object]:
        host, port = listener.sent or (None, 0)
        return {
            "name": listener.name,
            "protocol": listener.protocol,
            "host": listener.host,
            "port": listener.port,
            "advertised_host": host,
            "advertised_port": port or None,
            "settings": {
                setting.name: native_value(broker.of_listener(listener.name, setting.name))
                for setting in BROKER_SETTINGS
                if setting.native and setting.per_listener
            },
        }

    return json.dumps([shown(listener) for listener in listeners.all])


def inter_broker_client(broker: BrokerConfig, listeners: Listeners) -> dict[str, str]:
    """Give the settings of a client with which this broker reaches the others; none for a plain connection.

    Raises
    ------
    ConfigError
        The listener between brokers has SASL, and there is no login.
    """
    return {} if broker.text("zookeeper.connect") is None else own_client(broker, listeners)


def own_client(broker: BrokerConfig, listeners: Listeners) -> dict[str, str]:
    """Give the same of a broker that may be alone, and whose own programs reach it so."""
    (listener,) = (listener for listener in listeners.all if listener.name == listeners.inter_broker)
    if listener.protocol == PLAINTEXT:
        return {}
    found: dict[str, Value] = {"security.protocol": listener.protocol}
    if listener.protocol in ("SSL", "SASL_SSL"):
        found |= {name: broker.of_listener(listener.name, name) for name in _CLIENT_SETTINGS}
    if listener.protocol.startswith("SASL_"):
        mechanism = str(broker["sasl.mechanism.inter.broker.protocol"])
        jaas = broker.of_listener(listener.name, "sasl.jaas.config", mechanism)
        if not jaas:
            raise ConfigError(
                f"The listener {listener.name} between brokers has {listener.protocol}, and this broker has no login for it: set "
                f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config."
            )
        found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    # An empty text means something only there: the host name is not checked.
    kept = "ssl.endpoint.identification.algorithm"
    return {name: str(value) for name, value in found.items() if value or (name == kept and value is not None)}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())


def dialled(listeners: Listeners, listener: Listener) -> str:
    """Give the address, ``HOST:PORT``, by which a program of this machine reaches a listener that has its port."""
    host, port = listeners.endpoints().get(listener.name) or (listener.host, listener.port)
    if is_every_address(host):
        host = "::1" if host == "::" else "127.0.0.1"
    return address(host, port)


def is_every_address(host: str) -> bool:
    """Whether `host` stands for all addresses of the machine."""
    return host in ("", "0.0.0.0", "::")


def address(host: str, port: int) -> str:
    """``HOST:PORT``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _endpoints(setting: str, text: str) -> dict[str, Endpoint]:
    """The addresses in a comma list of ``NAME://HOST:PORT``; ``HOST:PORT`` alone is that of PLAINTEXT."""
    found: dict[str, Endpoint] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        scheme, separator, rest = entry.partition("://")
        if not separator:
            scheme, rest = PLAINTEXT, entry
        host, colon, port = rest.rpartition(":")
        name = scheme.upper()
        if not (colon and name and port.isascii() and port.isdigit() and int(port) <= _PORT_MAX):
            raise ConfigError(
                f"{setting} has {entry!r}, which is refused: write each address as NAME://HOST:PORT (or as HOST:PORT for PLAINTEXT)."
            )
        if name in found:
            raise ConfigError(f"{setting} has {name} twice: give each listener a name of its own.")
        found[name] = Endpoint(host.strip("[]"), int(port))
    return found


def _protocols(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map has {entry!r}, which is refused: write NAME:PROTOCOL, with one of {', '.join(PROTOCOLS)}."
            )
        if name in found:
            raise ConfigError(f"listener.security.protocol.map has {name} twice: give each listener one protocol.")
        found[name] = protocol
    return found


def _check_ports(listening: Mapping[str, Endpoint]) -> None:
    """Two listeners share a port only when one has an IPv4 address and the other an IPv6 address (KIP-797)."""
    by_port: dict[int, list[tuple[str, str]]] = {}
    for name, (host, port) in listening.items():
        if port:
            by_port.setdefault(port, []).append((name, host))
    for port, sharing in by_port.items():
        families = [_family(host) for _, host in sharing]
        if len(sharing) > 1 and sorted(map(str, families)) != ["4", "6"]:
            names = " and ".join(name for name, _ in sharing)
            raise ConfigError(f"listeners has {names} on port {port}: give each listener a port of its own.")


def _family(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def _check_overrides(broker: BrokerConfig, listening: Mapping[str, Endpoint]) -> None:
    names = {name.lower() for name in listening}
    for listener, setting in broker.listener_settings():
        if listener not in names:
            raise ConfigError(
                f"listener.name.{listener}.{setting} names a listener that is not in listeners ({', '.join(listening)})."
            )


def _inter_broker(broker: BrokerConfig, found: tuple[Listener, ...], advertised: Mapping[str, Endpoint]) -> str:
    name, protocol = broker.text("inter.broker.listener.name"), broker.text("security.inter.broker.protocol")
    if name is not None and protocol is not None:
        raise ConfigError(
            "inter.broker.listener.name and security.inter.broker.protocol are both given: give only one of them."
        )
    names = [listener.name for listener in found]
    asked = (name or protocol or "").upper()
    alone = broker.text("zookeeper.connect") is None
    if not asked:
        if len(names) == 1 or (alone and PLAINTEXT not in names):
            return names[0]
        asked = PLAINTEXT
    setting = "inter.broker.listener.name" if name is not None else "security.inter.broker.protocol"
    known = [each for each in names if not advertised or each in advertised]
    if asked not in known:
        which = "advertised.listeners" if asked in names else "listeners"
        raise ConfigError(
            f"The listener between brokers is {asked} ({setting}), which is not in {which}: name one of "
            f"{', '.join(known) or 'the listeners'} by inter.broker.listener.name."
        )
    return asked


def _check_public(broker: BrokerConfig, listeners: Listeners) -> None:
    if broker["allow.plaintext.listeners"]:
        return
    for listener in listeners.all:
        if listener.protocol in OPEN_PROTOCOLS and listener.is_public:
            lacking = "neither encrypted nor authenticated" if listener.protocol == PLAINTEXT else "not encrypted"
            raise ConfigError(
                f"{listener.host or 'Every address'} can be reached by other machines, and what passes over the listener {listener.name} is {lacking}: "
                "listen on 127.0.0.1, use SASL_SSL or SSL, or say that you want this with --allow-plaintext (in Python: allow_plaintext=True; "
                "as a setting: allow.plaintext.listeners=true)."
            )
