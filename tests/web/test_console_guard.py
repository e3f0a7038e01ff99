"""Who may use a broker's page: not the pages of other sites, not by other names, and of files only those that are its own."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.client import Admin
from pylog_spark.results.security import AclBinding
from pylog_spark.testing import LocalBroker
from pylog_spark.web.console import static_files
from tests.harness.security import AUTHORIZER
from tests.web.asking import CHANGE, Page

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
STATIC = Path(static_files.__file__).with_name("static")
TOPIC = b'{"name": "made-by-another-site"}'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker without logins, with a page and a registry."""
    with LocalBroker(tmp_path_factory.mktemp("broker") / "data", http=True, schema_registry=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def page(broker: LocalBroker) -> Page:
    """Its page."""
    return Page(broker.http_url)


@pytest.fixture(scope="module")
def registry(broker: LocalBroker) -> Page:
    """Its registry."""
    return Page(broker.schema_registry_url)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 403),
        ({"Content-Type": "application/json", "X-Requested-With": "XMLHttpRequest"}, 403),
        ({"X-Requested-With": "pylog"}, 415),
        ({**CHANGE, "Content-Type": "text/plain"}, 415),
        ({**CHANGE, "Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({**CHANGE, "Origin": "http://evil.example"}, 403),
        ({**CHANGE, "Origin": "null"}, 403),
        ({**CHANGE, "Origin": "http://127.0.0.1:1"}, 403),
        ({**CHANGE, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**CHANGE, "Sec-Fetch-Site": "same-site"}, 403),
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_change_that_another_sites_page_could_send_is_refused(
    page: Page, method: str, headers: dict[str, str], status: int
) -> None:
    path = "/api/topics" if method == "POST" else "/api/topics/made-by-another-site"
    assert page.raw(method, path, headers, TOPIC).error[0] == status
    assert page.get("topics", search="made-by").said["total"] == 0


def test_a_change_of_its_own_page_is_taken(page: Page) -> None:
    own = {**CHANGE, "Content-Type": "application/json; charset=utf-8", "Origin": f"http://{page.place}"}
    for headers in (own, {**own, "Sec-Fetch-Site": "same-origin"}):
        assert page.raw("POST", "/api/topics", headers, b'{"name": "own"}').status in (200, 409)
        assert page.raw("DELETE", "/api/topics/own", headers, b'{"name": "own"}').status == 200


def test_a_name_that_is_not_the_servers_own_is_refused(page: Page) -> None:
    port = page.place.rpartition(":")[2]
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "",
        "[::1",
        "localhost.evil.example",
    ):
        for path in ("/", "/api/cluster"):
            assert page.raw("GET", path, {"Host": host}).status in (400, 421), host
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
        assert page.raw("GET", "/api/cluster", {"Host": host}).status == 200, host
    assert page.raw("GET", "/healthz", {"Host": "evil.example"}).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "application/json", "Origin": "http://evil.example"}, 403),
        ({"Content-Type": "application/json", "Origin": "null"}, 403),
        ({"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "application/json", "Host": "evil.example"}, 421),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Type": "application/vnd.schemaregistry.v1+json"}, 200),
    ],
)
def test_a_schema_that_another_sites_page_sends_to_an_open_registry_is_refused(
    registry: Page, headers: dict[str, str], status: int
) -> None:
    answer = registry.raw("POST", "/subjects/s/versions", headers, b'{"schema": "\\"int\\""}')
    assert answer.status == status
    if status != 200:
        assert answer.said["error_code"] == status


def test_by_another_name_nobody_reads_or_deletes_schemas_or_reads_numbers(page: Page, registry: Page) -> None:
    evil = {"Host": "evil.example"}
    for method in ("GET", "DELETE"):
        assert registry.raw(method, "/subjects/s", evil).status == 421
    assert registry.raw("DELETE", "/subjects/s", {"Origin": "http://evil.example"}).status == 403
    assert page.raw("GET", "/metrics", evil).status == 421
    assert page.raw("GET", "/metrics", {"Host": "localhost"}).status == 200
    assert registry.raw("GET", "/subjects", {"Host": "localhost"}).status == 200


def test_the_files_of_the_page_are_served_for_this_page_alone(page: Page) -> None:
    index = page.raw("GET", "/")
    assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (index.headers["content-security-policy"], index.headers["cache-control"]) == (POLICY, "no-cache")
    names = re.findall(r'(?:src|href)="(/[^"]+)"', index.body.decode())
    assert "/static/main.js" in names
    # A module that is not named here would only be found in another one, one after the other.
    modules = {f"/static/{each.relative_to(STATIC).as_posix()}" for each in STATIC.rglob("*.js")}
    assert modules <= set(names)
    for name in names:
        file = page.raw("GET", name)
        assert (file.status, file.headers["x-content-type-options"]) == (200, "nosniff"), name
    assert page.raw("GET", "/static/main.js").headers["content-type"] == "text/javascript; charset=utf-8"
    assert page.raw("POST", "/", CHANGE, b"{}").status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/static/../service.py",
        "/static/%2e%2e/service.py",
        "/static/..%2fservice.py",
        "/static//etc/passwd",
        "/static/../../../../../../etc/passwd",
        "/static/",
        "/static/.",
        "/static",
        "/index.html",
        "/static/index.html%00.js",
        "//etc/passwd",
        "/service.py",
    ],
)
def test_only_files_of_the_page_are_there(page: Page, path: str) -> None:
    answer = page.raw("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/cluster", 200),
        ("GET", "/api/topics/nowhere", 404),
        ("GET", "/api/nowhere", 404),
        ("GET", "/api", 404),
        ("GET", "/api/", 404),
        ("GET", "/api/topics/%ff", 400),
        ("POST", "/api/cluster", 405),
        ("PUT", "/api/topics", 405),
        ("GET", "/api/topics?" + "&".join(f"p{each}=1" for each in range(50)), 400),
    ],
)
def test_each_answer_of_the_api_is_json_that_nobody_keeps_or_frames(
    page: Page, method: str, path: str, status: int
) -> None:
    answer = page.raw(method, path)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    if status != 200:
        assert answer.error[0] == status


ODD = (
    "",
    ".",
    "..",
    "%00",
    "%2F..%2F",
    "a" * 300,
    "%F0%9F%92%A9",
    "-1",
    "9" * 30,
    "'\"<>",
    "%0d%0aX:1",
    "__consumer_offsets",
)


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_and_parameters_get_an_answer_and_fail_nothing(page: Page, odd: str) -> None:
    odd = odd.replace(" ", "%20")
    paths = [
        f"/api/topics?search={odd}&internal={odd}",
        *(f"/api/{kind}/{odd}{rest}" for kind in ("topics", "groups") for rest in ("", "/records", "/history")),
        *(
            f"/api/topics/__consumer_offsets/records?{name}={odd}"
            for name in ("from", "partition", "limit", "after", "isolation", "key", "contains")
        ),
    ]
    for path in paths:
        answer = page.raw("GET", path)
        assert answer.status in (200, 400, 404), path
        assert answer.headers.get("x") is None
        assert isinstance(answer.said, dict)
    path = f"/api/topics/{odd}"
    for suffix, body in (("/records", {"key": None, "value": odd}), ("/configs", {"changes": {odd: odd}})):
        assert page.raw("POST", path + suffix, CHANGE, json.dumps(body).encode()).error[0] in (400, 404), (path, suffix)


def test_a_body_that_is_no_object_is_refused(page: Page) -> None:
    for body in (b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000):
        assert page.raw("POST", "/api/topics", CHANGE, body).error == (400, "INVALID_REQUEST")
    assert page.raw("POST", "/api/topics", CHANGE, b"{" + b" " * (1 << 20) + b"}").status == 413


def test_what_is_no_request_is_refused_too(page: Page) -> None:
    host, _, port = page.place.rpartition(":")
    for sent in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"HEAD /api/cluster HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(sent)
            assert connection.recv(100).startswith(b"HTTP/1.1 "), sent


def test_the_page_can_be_left_out(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", http=["--http-without-page"]) as broker:
        page = Page(broker.http_url)
        assert page.raw("GET", "/").status == page.get("cluster").status == 404
        assert page.raw("GET", "/healthz").status == page.raw("GET", "/metrics").status == 200


def test_the_page_has_not_the_rights_of_the_brokers_certificate(tmp_path: Path) -> None:
    rights = {"authorizer_class_name": AUTHORIZER, "super_users": "User:CN=broker;User:CN=client"}
    with (
        LocalBroker(tmp_path / "data", tls=True, http=True, ssl_client_auth="requested", **rights) as broker,
        Admin(broker.bootstrap_servers, broker.security_settings) as admin,
    ):
        admin.create_topic("t", 1, 1)
        page = Page(broker.http_url)
        assert page.get("cluster").said["user"] is None
        assert page.get("topics").said["total"] == 0
        assert page.change("topics", name="new", partitions=1).error[0] == 403
        everybody = AclBinding("TOPIC", "t", "LITERAL", "User:ANONYMOUS", "*", "ALL", "ALLOW")
        admin.create_acls([everybody])
        assert page.change("topics", "t", "records", key=None, value="x").said == {"partition": 0, "offset": 0}
        assert page.get("topics", "t", "records").said["records"][0]["value"]["text"] == "x"
