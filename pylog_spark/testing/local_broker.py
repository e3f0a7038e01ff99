"""A real broker as a child process: it can be killed, paused, stopped and started again on the same port and directory.

It is ready when it has printed its readiness line; nothing here sleeps. Signals are sent only to the child's own process id.
"""

import os
import re
import selectors
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown
from pylog_spark.testing.certificates import Certificates
from pylog_spark.testing.login import Login, kept_login, make_user
from pylog_spark.testing.process import ProcessError, Server

_READY = re.compile(r"pylog broker ready on (\S+) \(")
#: What the readiness line calls the servers beside the broker, by their options.
_BESIDE = {"schema-registry": "schema registry", "http": "metrics"}
START_TIMEOUT_S = 60.0
#: The command of this installation of pylog.
PROGRAM = (sys.executable, "-m", "pylog_spark")

LocalBrokerError = ProcessError
"""Another name of `ProcessError`: the broker did not start or stop as it should; the sentence ends with its log."""


class LocalBroker(Server, Display):
    """A broker process on 127.0.0.1. Starts with `start` or ``with``.

    Parameters
    ----------
    data_dir : path
        The broker's directory; kept between starts, and never removed here.
    port : int
        0 takes a free port at the first start and keeps it for later ones.
    listeners : mapping of str to str, optional
        Names of several listeners and their protocols, such as ``{"INSIDE": "PLAINTEXT", "OUTSIDE": "SSL"}``. The first one has `port`
        and is what `bootstrap_servers` names; the others take free ports and keep them, see `address_of`. Without it there is one
        called PLAINTEXT.
    tls : bool or Certificates
        Have throw-away certificates, and one listener, which is SSL, where `listeners` does not say otherwise. True: they are made beside
        the data directory (``<data_dir>-tls``). `client_settings` has what clients need.
    sasl : str or Login, optional
        Ask for a login by this mechanism (``SCRAM-SHA-512``, ``SCRAM-SHA-256``, or ``PLAIN``, which needs `tls`), with one listener, which
        is SASL_SSL or SASL_PLAINTEXT, where `listeners` does not say otherwise. There is one user, called ``admin``, who may do
        everything; the password is made up and kept beside the data directory (``<data_dir>-login``). `client_settings` has what
        clients need, and `login` the name and the password.
    schema_registry : bool or sequence of str
        Serve a schema registry on a free port, which later starts keep, see `schema_registry_url`; further options of ``pylog broker`` for
        it may be given.
    http : bool or sequence of str
        Serve metrics and probes by HTTP, in the same way, see `http_url`.
    **settings
        The broker's settings by Kafka's names, with underscores: ``num_partitions=4``.

    Attributes
    ----------
    certificates : Certificates or None
        With `tls`: its throw-away certificates, called ``broker`` and ``client``.
    login : Login or None
        With `sasl`: the user, with `user`, `password` and `mechanism`.
    program : sequence of str
        The command that the next start runs: this installation of pylog. A test sets another one to upgrade a broker.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        *,
        port: int = 0,
        listeners: Mapping[str, str] | None = None,
        tls: bool | Certificates = False,
        sasl: str | Login | None = None,
        schema_registry: bool | Sequence[str] = False,
        http: bool | Sequence[str] = False,
        **settings: object,
    ) -> None:
        self.data_dir = os.path.abspath(os.fspath(data_dir))
        self.login = kept_login(Path(f"{self.data_dir}-login"), sasl) if isinstance(sasl, str) else sasl
        super().__init__("The broker")
        self.certificates = Certificates(f"{self.data_dir}-tls") if tls is True else tls or None
        self._has_user = self.login is None
        only = {
            (False, False): "PLAINTEXT",
            (True, False): "SSL",
            (False, True): "SASL_PLAINTEXT",
            (True, True): "SASL_SSL",
        }[bool(tls), sasl is not None]
        self._protocols = dict(listeners or {only: only})
        self._ports = dict.fromkeys(self._protocols, 0)
        self.port = port
        self._settings = settings
        self._beside = {"schema-registry": schema_registry, "http": http}
        self._urls = dict.fromkeys(self._beside, "")
        self.program: Sequence[str] = PROGRAM
        self.start_seconds = 0.0

    def __repr__(self) -> str:
        return f"<pylog broker {self.bootstrap_servers} {self._state}, data in {self.data_dir}>"

    def _shown(self) -> Shown:
        listeners = [(f"listener {name}", f"{self.host}:{port}") for name, port in self._ports.items()]
        urls = [(_BESIDE[option], url) for option, url in self._urls.items() if url]
        rows = [*listeners, *urls, ("data", self.data_dir)]
        return Shown(f"Broker {self.broker_id}: {self._state}", ("", "where"), rows)

    @property
    def _state(self) -> str:
        return "running" if self.running else "not running"

    @property
    def schema_registry_url(self) -> str:
        """Where its schema registry answers; empty without one."""
        return self._urls["schema-registry"]

    @property
    def http_url(self) -> str:
        """Where its metrics and probes are; empty without them."""
        return self._urls["http"]

    @property
    def bootstrap_servers(self) -> str:
        """The address that clients connect to, ``HOST:PORT``."""
        return f"{self.host}:{self.port}"

    @property
    def port(self) -> int:
        """The port of its first listener."""
        return self._ports[next(iter(self._ports))]

    @port.setter
    def port(self, port: int) -> None:
        self._ports[next(iter(self._ports))] = port

    def address_of(self, listener: str) -> str:
        """The address, ``HOST:PORT``, of the listener with this name.

        Parameters
        ----------
        listener : str
            The name of the listener.
        """
        return f"{self.host}:{self._ports[listener]}"

    @property
    def client_settings(self) -> dict[str, str]:
        """What a client needs to reach the first listener, by Kafka's names: the address, with TLS the certificates that it trusts, and
        with SASL its login."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.security_settings}

    @property
    def security_settings(self) -> dict[str, str]:
        """The same without the address."""
        protocol = next(iter(self._protocols.values()))
        is_encrypted, has_login = protocol.endswith("SSL"), protocol.startswith("SASL_")
        tls = self.certificates.client_settings("client") if self.certificates is not None and is_encrypted else {}
        sasl = self.login.client_settings() if self.login is not None and has_login else {}
        return {} if protocol == "PLAINTEXT" else {**tls, **sasl, "security.protocol": protocol}

    @property
    def broker_id(self) -> int:
        """Its number, node.id."""
        return int(str(self._settings.get("node_id", 1)))

    def start(self) -> "LocalBroker":
        """Start the process and wait for its readiness line.

        Raises
        ------
        LocalBrokerError
            When it ends, or does not print the line within `START_TIMEOUT_S`; when its user cannot be made.
        """
        self._make_user()
        started = time.perf_counter()
        self._child.start(self._command(), _environment())
        line = self._first_line()
        ready = _READY.match(line)
        if ready is None:
            self._child.end()
            raise LocalBrokerError(f"The broker did not start. Its log:\n{self.logs()}")
        self.start_seconds = time.perf_counter() - started
        ports = [int(address.rpartition(":")[2]) for address in ready[1].split(",")]
        for option, name in _BESIDE.items():
            found = re.search(rf", {name} on (\S+),", line)
            self._urls[option] = found[1] if found else ""
        self._ports = dict(zip(self._ports, ports, strict=True))
        return self

    def configure(self, **settings: object) -> None:
        """Set more settings, which take effect at the next start.

        Parameters
        ----------
        **settings
            By Kafka's names, with underscores.
        """
        self._settings.update(settings)

    def restart(self) -> "LocalBroker":
        """Stop cleanly if it runs, and start again on the same port."""
        if self.running:
            self.terminate()
        return self.start()

    def _make_user(self) -> None:
        from pylog_spark.broker.format import FormatError

        if self.login is None or self._has_user:
            return
        try:
            make_user(self.data_dir, self._all_settings(), self.login)
        except FormatError as error:
            raise LocalBrokerError(str(error)) from error
        self._has_user = True

    def _all_settings(self) -> list[tuple[str, str]]:
        from pylog_spark.broker.config import keyword_settings

        tls = {} if self.certificates is None else self.certificates.made().broker_settings()
        sasl = {} if self.login is None else self.login.broker_settings()
        # Of a setting that is given more than once the last one counts.
        return [*tls.items(), *sasl.items(), *keyword_settings(self._settings)]

    def _command(self) -> list[str]:
        settings = self._all_settings()
        given = [word for name, text in settings for word in ("--config", f"{name}={text}")]
        file = [] if self.login is None else ["--config-file", str(self.login.file)]
        return [
            *self.program,
            "broker",
            "--data-dir",
            self.data_dir,
            *self._listen(),
            *file,
            *given,
            *(word for option in self._beside for word in self._served_beside(option)),
        ]

    def _served_beside(self, option: str) -> list[str]:
        more, url = self._beside[option], self._urls[option]
        if more is False:
            return []
        scheme, _, port = url.rpartition(":") if url else ("http", "", "0")
        address = f"{self.host}:{port}"
        given = [] if more is True else more
        return [f"--{option}", f"https://{address}" if scheme.startswith("https") else address, *given]

    def _listen(self) -> list[str]:
        if self._protocols == {"PLAINTEXT": "PLAINTEXT"}:
            return ["--listen", f"{self.host}:{self.port}"]
        addresses = ",".join(f"{name}://{self.host}:{port}" for name, port in self._ports.items())
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in self._protocols.items())
        return ["--listen", addresses, "--config", f"listener.security.protocol.map={protocols}"]

    def _first_line(self) -> str:
        output = self._child.process().stdout
        assert output is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            return output.readline() if selector.select(START_TIMEOUT_S) else ""


def _environment() -> dict[str, str]:
    """An environment in which the child imports the same pylog_spark as this process."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [*filter(None, [os.environ.get("PYTHONPATH")]), here]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
