"""Requests that no client of good will sends: each is refused in the interface's form, and others are served beside it."""

import base64
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient

from pylog_spark.registry.client import RegistryClient, RegistryError
from pylog_spark.registry.server import start_server
from pylog_spark.registry.topic import SchemasTopic
from pylog_spark.testing import LocalBroker
from pylog_spark.web import server
from pylog_spark.web.server import BODY_BYTES_MAX, CONNECTIONS_MAX
from tests.harness.ports import nowhere
from tests.harness.waiting import brief, until

#: What a request beside a hostile one may take, on a machine that is busy: far less than what it would wait for.
BESIDE_S = 30.0


#: A change is sent so.
MEDIA = "Content-Type: application/json"


class Wire:
    """A connection whose bytes are the test's."""

    def __init__(self, broker: LocalBroker) -> None:
        parts = urlsplit(broker.schema_registry_url)
        assert parts.hostname is not None
        self.socket = socket.create_connection((parts.hostname, parts.port or 0), timeout=60)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send this; the server may have hung up."""
        with suppress(OSError):
            self.socket.sendall(data)

    def answer(self) -> tuple[int, Any]:
        """Status and document of the next answer."""
        read = b""
        while b"\r\n\r\n" not in read:
            piece = self.socket.recv(65536)
            assert piece, f"the connection ended without an answer: {read!r}"
            read += piece
        head, _, body = read.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        (length,) = (int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length"))
        while len(body) < length:
            body += self.socket.recv(65536)
        return int(lines[0].split()[1]), json.loads(body)


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", MEDIA, *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def asked(broker: LocalBroker, data: bytes) -> tuple[int, Any]:
    """What a request is answered, on a connection of its own."""
    with Wire(broker) as wire:
        wire.send(data)
        return wire.answer()


def answered_while(broker: LocalBroker, data: bytes, meanwhile: Callable[[], None]) -> tuple[int, Any]:
    """What a request is answered beside something else."""
    answers: list[tuple[int, Any]] = []
    sending = threading.Thread(target=lambda: answers.append(asked(broker, data)))
    sending.start()
    meanwhile()
    sending.join()
    (answer,) = answers
    return answer


def registration(text: str, schema_type: str = "JSON", subject: str = "hostile") -> bytes:
    """A request to register a schema."""
    return request(
        "POST", f"/subjects/{subject}/versions", json.dumps({"schema": text, "schemaType": schema_type}).encode()
    )


@pytest.fixture
def beside(client: SchemaRegistryClient) -> Callable[[], None]:
    """Asserts that another client is served at once."""

    def served() -> None:
        started = time.monotonic()
        client.clear_caches()
        client.get_subjects()
        assert time.monotonic() - started < BESIDE_S

    return served


def test_requests_that_are_none_are_refused_in_the_interfaces_form(
    broker: LocalBroker, beside: Callable[[], None]
) -> None:
    cases = {
        b"nonsense\r\n\r\n": 400,
        b"GET / HTTP/9.9\r\n\r\n": 505,
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n": 414,
        b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000 + b"\r\n\r\n": 431,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n": 431,
        request("PATCH", "/subjects"): 501,
        request("GET", "/subjects/%zz/versions"): 400,
        request("GET", "/subjects/%ff%fe/versions"): 400,
        request("GET", "/subjects/%/versions"): 400,
        request("GET", "/subjects?subjectPrefix=%ff"): 400,
        request("GET", "/subjects?" + "&".join("a=b" for _ in range(500))): 400,
        request("GET", "/../../etc/passwd"): 404,
        request("GET", "/schemas/ids/../../../etc/passwd"): 404,
        request("DELETE", "/schemas/ids/1"): 405,
        request("PUT", "/config", b"[]"): 422,
        request("PUT", "/config", b"\xff\xfe"): 400,
        request("PUT", "/config", b"{" + b'"a":{' * 50_000): 400,
        request("PUT", "/config", b"[" * 200_000): 400,
        request("GET", "/subjects?limit=" + "0" * 4_400 + "1"): 422,
        request("GET", "/schemas/ids/" + "0" * 20 + "1"): 404,
        f"PUT /config HTTP/1.1\r\nHost: 127.0.0.1\r\n{MEDIA}\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".encode(): 400,
        b"PUT /config HTTP/1.1\r\nContent-Length: -1\r\n\r\n": 400,
        f"PUT /config HTTP/1.1\r\nContent-Length: {BODY_BYTES_MAX + 1}\r\n\r\n".encode(): 413,
        b"PUT /config HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n": 413,
        b"PUT /config HTTP/1.1\r\nContent-Length: 000000000000000000003000000000\r\n\r\n": 413,
    }
    for data, expected in cases.items():
        status, answer = asked(broker, data)
        assert status == expected, data[:80]
        assert answer["error_code"] == expected, data[:80]
        assert 0 < len(answer["message"]) < 500, data[:80]
        beside()


@pytest.mark.parametrize(
    "encoded", ["..%2F..%2Fetc%2Fpasswd", "%2e%2e", "a%00b", "%0d%0aX:%20y", "%E2%80%AE", ":.ctx:s"]
)
def test_a_subject_is_a_name_and_never_a_path(broker: LocalBroker, encoded: str) -> None:
    status, answer = asked(broker, request("GET", f"/subjects/{encoded}/versions"))
    assert (status, answer["error_code"]) == (404, 40401)
    status, answer = asked(broker, registration('{"type": "string"}', subject=encoded))
    assert (status, answer.get("error_code")) in [(200, None), (422, 42208)]


@pytest.mark.parametrize(
    ("schema_type", "text"),
    [
        pytest.param("JSON", '{"not":' * 20_000 + "{}" + "}" * 20_000, id="deep"),
        pytest.param("AVRO", '{"type":"array","items":' * 20_000 + '"int"' + "}" * 20_000, id="deep Avro"),
        pytest.param("PROTOBUF", 'syntax = "proto3";' + "message A {" * 10_000 + "}" * 10_000, id="deep Protobuf"),
        pytest.param(
            "PROTOBUF", 'syntax = "proto3"; option (x) = ' + "{a:" * 60_000 + "}" * 60_000 + ";", id="deep option"
        ),
        pytest.param("PROTOBUF", base64.b64encode(b"\x22\xff\xff\xff\xff\x0f" * 1_000).decode(), id="cut descriptor"),
        pytest.param("JSON", json.dumps({"enum": list(range(100_000))}), id="long list"),
        pytest.param("JSON", json.dumps({"properties": {str(n): {} for n in range(50_000)}}), id="wide"),
        pytest.param("JSON", '{"$ref": "#"}', id="itself"),
        pytest.param(
            "JSON",
            '{"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}, "$ref": "#/definitions/a"}',
            id="circle",
        ),
        pytest.param("JSON", '{"$ref": "file:///etc/passwd"}', id="file"),
        pytest.param("JSON", f'{{"$ref": "http://{nowhere()}/x"}}', id="address"),
        pytest.param("PROTOBUF", 'syntax = "proto3"; import "/etc/passwd";', id="file of Protobuf"),
        pytest.param("PROTOBUF", 'syntax = "proto3"; import "this schema";', id="imports itself"),
        pytest.param(
            "AVRO", '{"type": "record", "name": "A", "fields": ' + "[" * 1_000 + "]" * 1_000 + "}", id="no fields"
        ),
        pytest.param("JSON", '{"minimum": ' + "9" * 100_000 + "}", id="long number"),
    ],
)
def test_schemas_that_would_cost_much_are_refused_while_others_are_served(
    broker: LocalBroker, beside: Callable[[], None], schema_type: str, text: str
) -> None:
    status, answer = answered_while(broker, registration(text, schema_type), beside)
    assert (status, answer["error_code"]) == (422, 42201)
    assert len(answer["message"]) < 1_000


def test_patterns_and_combinations_that_explode_are_compared_in_bounded_time(
    broker: LocalBroker, client: SchemaRegistryClient, beside: Callable[[], None], new_subject: Callable[[], str]
) -> None:
    bomb = {"additionalProperties": False, "patternProperties": {"^(a+)+$": {"type": "string"}}}
    named = {"additionalProperties": False, "properties": {"a" * 5_000 + "!": {"type": "string"}}}
    many = {
        "definitions": {
            f"d{n}": {"anyOf": [{"$ref": f"#/definitions/d{(n * k + 1) % 40}"} for k in (3, 5, 7)] + [{"maxLength": n}]}
            for n in range(40)
        },
        "$ref": "#/definitions/d0",
    }
    others = json.loads(json.dumps(many).replace('"maxLength": 39', '"maxLength": 38'))
    for old, new in ((named, bomb), (many, others)):
        subject = new_subject()
        assert asked(broker, registration(json.dumps(old), subject=subject))[0] == 200
        started = time.monotonic()
        assert answered_while(broker, registration(json.dumps(new), subject=subject), beside)[0] == 409
        assert time.monotonic() - started < 30


def test_a_hundred_clients_that_stop_in_the_middle_keep_nobody_waiting(
    broker: LocalBroker, beside: Callable[[], None]
) -> None:
    with ExitStack() as stack:
        for part in (b"", b"POST", b"POST /subjects/s HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"):
            for _ in range(33):
                stack.enter_context(Wire(broker)).send(part)
        beside()
        # One that sends a byte at a time is not served sooner than its request is there.
        slow = stack.enter_context(Wire(broker))
        for byte in request("GET", "/subjects"):
            slow.send(bytes([byte]))
        assert slow.answer()[0] == 200


def test_connections_of_one_address_end_at_the_limit_and_are_taken_again_when_others_close(broker: LocalBroker) -> None:
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(CONNECTIONS_MAX // 2 + 20)]
        for wire in wires:
            wire.send(request("GET", "/subjects"))
        answered = [is_answered(wire) for wire in wires]
        assert 0 < sum(answered) <= CONNECTIONS_MAX // 2

    def is_taken() -> bool:
        with Wire(broker) as wire:
            wire.send(request("GET", "/subjects"))
            return is_answered(wire)

    until(is_taken, "a connection is taken again")


def is_answered(wire: Wire) -> bool:
    """Whether the server took the connection; else it ended it."""
    try:
        return bool(wire.socket.recv(1))
    except ConnectionError:
        return False


def test_references_that_lead_in_a_circle_are_refused_although_the_topic_has_them(
    broker: LocalBroker, new_subject: Callable[[], str]
) -> None:
    """No request makes such; who may write to the topic can."""
    one, other = new_subject(), new_subject()
    client = RegistryClient(broker.schema_registry_url)
    client.register(new_subject(), '"int"')
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number, (subject, referred) in enumerate(((one, other), (other, one))):
        key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
        reference = {"name": f"n.{referred.replace('-', '_')}", "subject": referred, "version": 1}
        value = {"subject": subject, "version": 1, "id": 900_000 + number, "references": [reference], "schema": '"int"'}
        producer.produce("_schemas", json.dumps(value).encode(), key=json.dumps(key, separators=(",", ":")).encode())
    assert producer.flush(30) == 0
    with pytest.raises(RegistryError) as refused:
        client.register(one, '"long"')
    assert refused.value.code in (409, 42201)


@pytest.mark.long  # the same server: tests/web/test_server.py
def test_a_request_that_never_ends_is_ended(broker: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.5)
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    topic = SchemasTopic({"bootstrap.servers": broker.bootstrap_servers})
    running = start_server("127.0.0.1", 0, topic, None, None, lambda: None)
    try:
        address = urlsplit(running.url)
        for begin in (b"", b"GET /", b"POST /subjects/s HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"):
            with socket.create_connection((address.hostname, address.port), timeout=60) as wire, brief(wire, 0.1):
                wire.sendall(begin)
                until(
                    lambda wire=wire, begin=begin: is_ended_after_a_byte(wire, begin), "the server ends the connection"
                )
    finally:
        running.close()


def is_ended_after_a_byte(wire: socket.socket, begin: bytes) -> bool:
    """Whether the server has hung up; else it is sent one byte more of what it waits for."""
    try:
        if begin:
            wire.sendall(b"x")
        return wire.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
