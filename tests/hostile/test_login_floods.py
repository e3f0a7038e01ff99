"""Logins that fail without end, and connections that never log in: honest clients are answered within a second meanwhile."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from pylog_spark.testing import LocalBroker
from pylog_spark.testing.certificates import Certificates
from tests.harness.waiting import said
from tests.hostile.floods import MIB, SERVED_WITHIN_S, peak_bytes
from tests.hostile.neighbour import Neighbour
from tests.interop.clients import create_topic

_ATTACKERS = 16
_LOGINS = 20
_SILENT = 500
_LISTENERS = {"PLAINTEXT": "PLAINTEXT", "OPEN": "SASL_PLAINTEXT", "SECURED": "SASL_SSL"}
_DEADLINE_MS = 3_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with logins."""
    folder = tmp_path_factory.mktemp("logins")
    certificates = Certificates(folder / "tls").made()
    settings: dict[str, object] = {
        **certificates.broker_settings(),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.login.deadline.ms": _DEADLINE_MS,
        "connection.failed.authentication.delay.ms": 1,
    }
    with LocalBroker(folder / "data", listeners=_LISTENERS, **settings) as running:
        yield running


@pytest.fixture
def topic(broker: LocalBroker, request: pytest.FixtureRequest) -> str:
    """A topic for one honest client."""
    name = f"honest-{abs(hash(request.node.name))}"
    create_topic(broker.bootstrap_servers, name)
    return name


def _opened(broker: LocalBroker, listener: str) -> socket.socket:
    host, _, port = broker.address_of(listener).rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    if listener != "SECURED":
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


def _frame(api: int, body: bytes) -> bytes:
    request = struct.pack(">hhi", api, 1, 7) + struct.pack(">h", -1) + body
    return struct.pack(">i", len(request)) + request


def _answered(connection: socket.socket) -> bytes:
    length = b""
    while len(length) < 4 and (more := connection.recv(4 - len(length))):
        length += more
    wanted, body = struct.unpack(">i", length)[0] if len(length) == 4 else 0, b""
    while len(body) < wanted and (more := connection.recv(wanted - len(body))):
        body += more
    return body


def _fails(broker: LocalBroker, listener: str, mechanism: bytes, messages: list[bytes]) -> None:
    """One login that fails: the broker says so and closes."""
    with _opened(broker, listener) as connection:
        connection.sendall(_frame(17, struct.pack(">h", len(mechanism)) + mechanism))
        assert _answered(connection)[4:6] == b"\0\0"
        for message in messages:
            connection.sendall(_frame(36, struct.pack(">i", len(message)) + message))
            last = _answered(connection)
        assert struct.unpack_from(">h", last, 4) == (58,)
        assert connection.recv(1) == b""


def _at_once(work: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(_LOGINS):
                work()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(_ATTACKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize(
    ("listener", "mechanism", "messages"),
    [
        ("OPEN", b"SCRAM-SHA-256", [b"n,,n=nobody,r=abc", b"c=biws,r=abc,p=" + b"A" * 43 + b"="]),
        ("OPEN", b"SCRAM-SHA-256", [b"n,,n=" + b"x" * 60_000 + b",r=abc", b"nonsense"]),
        ("SECURED", b"PLAIN", [b"\0nobody\0guess"]),
    ],
    ids=["scram", "long names", "plain"],
)
def test_guesses_without_end_hold_nobody_up(
    broker: LocalBroker, topic: str, listener: str, mechanism: bytes, messages: list[bytes]
) -> None:
    before = peak_bytes(broker)
    with Neighbour(broker, topic) as neighbour:
        _at_once(lambda: _fails(broker, listener, mechanism, messages))
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < 64 * MIB


def test_connections_that_never_log_in_are_closed_in_time_and_hold_nobody_up(broker: LocalBroker, topic: str) -> None:
    with contextlib.ExitStack() as stack, Neighbour(broker, topic) as neighbour:
        silent = []
        for number in range(_SILENT):
            connection = stack.enter_context(_opened(broker, "OPEN"))
            silent.append(connection)
            # Some say nothing, some begin a request, some a login.
            if number % 3 == 1:
                connection.sendall(struct.pack(">i", 60_000) + b"x")
            if number % 3 == 2:
                connection.sendall(_frame(17, struct.pack(">h", 13) + b"SCRAM-SHA-256"))
                assert _answered(connection)[4:6] == b"\0\0"
        for connection in silent:
            # A reset, where the broker closes what has bytes that it did not read.
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert neighbour.slowest_s < SERVED_WITHIN_S
    said(broker, "sasl.login.deadline.ms")
