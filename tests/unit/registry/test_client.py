"""The client of schema registries, before servers that answer as a test says."""

import json
import pickle
import socket

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.registry import client as client_module
from pylog_spark.registry.client import RegistryClient, RegistryError
from pylog_spark.registry.model import JSON, Reference, Schema
from tests.harness.odd_server import OddServer
from tests.harness.ports import nowhere

ID_7 = {"schema": '"string"'}


def serving(*answers: tuple[int, object]) -> OddServer:
    """A server that gives these answers, the last one again and again."""
    left = list(answers)

    def answer(_request: bytes, connection: socket.socket) -> None:
        status, body = left.pop(0) if len(left) > 1 else left[0]
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.sendall(b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n\r\n" % (status, len(sent)) + sent)

    return OddServer(answer)


def url(server: OddServer) -> str:
    return f"http://127.0.0.1:{server.port}"


def test_a_schema_is_asked_for_once() -> None:
    with serving((200, ID_7)) as server:
        client = RegistryClient(url(server))
        assert client.schema_by_id(7) == client.schema_by_id(7) == Schema("AVRO", '"string"')
        assert len(server.asked) == 1
        assert server.asked[0].startswith(b"GET /schemas/ids/7 HTTP/1.1")


def test_a_schema_has_its_type_and_references_and_they_are_resolved_in_their_order() -> None:
    outer = {"schema": "{}", "schemaType": "JSON", "references": [{"name": "a", "subject": "s/a", "version": 2}]}
    middle = {"schema": "1", "id": 2, "version": 2, "references": [{"name": "b", "subject": "b", "version": 1}]}
    inner = {"schema": "2", "id": 1, "version": 1}
    with serving((200, outer), (200, middle), (200, inner)) as server:
        client = RegistryClient(url(server))
        found = client.schema_by_id(3)
        assert found == Schema(JSON, "{}", (Reference("a", "s/a", 2),))
        assert list(client.resolved(found).items()) == [("b", "2"), ("a", "1")]
        assert server.asked[1].startswith(b"GET /subjects/s%2Fa/versions/2 ")


def test_the_newest_version_of_a_subject_has_its_number_and_id() -> None:
    with serving((200, {"subject": "s", "version": 3, "id": 9, **ID_7})) as server:
        found = RegistryClient(url(server)).latest("s")
    assert (found.version, found.id, found.schema.text) == (3, 9, '"string"')


def test_a_schema_is_registered_with_its_type_and_references() -> None:
    with serving((200, {"id": 4})) as server:
        assert RegistryClient(url(server)).register("s", "{}", JSON, [Reference("a", "b", 1)]) == 4
        head, _, body = server.asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /subjects/s/versions HTTP/1.1")
    references = [{"name": "a", "subject": "b", "version": 1}]
    assert json.loads(body) == {"schema": "{}", "schemaType": "JSON", "references": references}


def test_a_server_that_is_gone_and_one_that_fails_are_passed_over() -> None:
    with (
        serving((500, {"error_code": 50001, "message": "no"})) as failing,
        serving((200, ID_7)) as well,
    ):
        client = RegistryClient([f"http://{nowhere()}", url(failing), url(well)])
        assert client.schema_by_id(7).text == '"string"'
        assert (len(failing.asked), len(well.asked)) == (1, 1)


def test_a_server_that_fails_for_a_while_is_asked_again() -> None:
    with serving((503, b"starting"), (200, ID_7)) as server:
        assert RegistryClient(url(server)).schema_by_id(7).text == '"string"'
        assert len(server.asked) == 2


def test_when_nobody_answers_one_sentence_says_what_each_did() -> None:
    with serving((500, {"error_code": 50001, "message": "the disk is full"})) as server:
        with pytest.raises(PylogError, match=r"PYLOG_REGISTRY_UNREACHABLE.*the disk is full\); check"):
            RegistryClient(url(server)).schema_by_id(7)
        assert len(server.asked) == client_module.ROUNDS


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (404, {"error_code": 40403, "message": "Schema 7 not found"}, 40403),
        (409, {"error_code": 409, "message": "incompatible"}, 409),
        (401, b"<html>", 401),
    ],
)
def test_a_refusal_is_not_asked_again(status: int, body: object, code: int) -> None:
    with serving((status, body)) as server:
        with pytest.raises(RegistryError, match="PYLOG_REGISTRY_REFUSED") as caught:
            RegistryClient(url(server)).schema_by_id(7)
        assert len(server.asked) == 1
    assert pickle.loads(pickle.dumps(caught.value)).code == code


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"id": 7}', b"7"])
def test_what_is_no_registry_is_named_as_that(body: bytes) -> None:
    with serving((200, body)) as server, pytest.raises(PylogError, match="What answered is no schema registry"):
        RegistryClient(url(server)).schema_by_id(7)


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ANSWER_BYTES_MAX", 1000)
    monkeypatch.setattr(client_module, "ROUNDS", 1)
    with serving((200, b" " * 1001)) as server, pytest.raises(PylogError, match="more than 1000 bytes"):
        RegistryClient(url(server)).schema_by_id(7)


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "ROUNDS", 1)
    with OddServer(lambda _request, _connection: server.over.wait() and None) as server:
        client = RegistryClient(url(server), {"schema.registry.request.timeout.ms": "100"})
        with pytest.raises(PylogError, match="timed out"):
            client.schema_by_id(7)


@pytest.mark.parametrize(
    ("user", "settings", "sent"),
    [
        ("", {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "me:it"}, b"Basic bWU6aXQ="),
        ("", {"schema.registry.basic.auth.user.info": "me:it"}, b"Basic bWU6aXQ="),
        ("me:i%74@", {}, b"Basic bWU6aXQ="),
        ("", {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t0"}, b"Bearer t0"),
    ],
)
def test_a_login_is_sent(user: str, settings: dict[str, str], sent: bytes) -> None:
    with serving((200, ID_7)) as server:
        RegistryClient(f"http://{user}127.0.0.1:{server.port}", settings).schema_by_id(7)
        assert b"\r\nAuthorization: " + sent + b"\r\n" in server.asked[0]


@pytest.mark.parametrize(
    ("urls", "settings", "sentence"),
    [
        ("", {}, "No schema registry is named"),
        ("me:secret@host", {}, r"\] host is no address"),
        ("http://host", {"basic.auth.user": "x"}, "basic.auth.user is no setting"),
        ("http://host", {"basic.auth.credentials.source": "USER_INFO"}, "must be USER:PASSWORD"),
        ("http://host", {"bearer.auth.credentials.source": "STATIC_TOKEN"}, "needs bearer.auth.token"),
        ("http://host", {"ssl.truststore.type": "JKS"}, "reads PEM alone"),
        ("https://host", {"ssl.truststore.location": "/nowhere.pem"}, "cannot be used"),
        ("http://host", {"request.timeout.ms": "soon"}, "number of milliseconds"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_asked(
    urls: str, settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PylogError, match=sentence):
        RegistryClient(urls, settings)


def test_a_client_may_be_pickled() -> None:
    with serving((200, ID_7)) as server:
        client = pickle.loads(pickle.dumps(RegistryClient(url(server), {"basic.auth.user.info": "me:it"})))
        assert client.schema_by_id(7).text == '"string"'
        assert b"Authorization" in server.asked[0]
