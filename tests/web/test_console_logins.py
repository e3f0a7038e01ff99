"""A broker's page where users log in: each sees and changes what the brokers let that user see and change."""

import base64
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pylog_spark.client import Admin, Producer
from pylog_spark.results.security import AclBinding, AclBindingFilter
from pylog_spark.testing import LocalBroker
from pylog_spark.web.console import sessions
from pylog_spark.web.console.sessions import Sessions
from pylog_spark.web.refusal import Refusal
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import said
from tests.web.asking import CHANGE, Page

USERS = ("guest", "second", "third")


def allow(kind: str, name: str, user: str, operation: str) -> AclBinding:
    """An ACL."""
    return AclBinding(kind, name, "LITERAL", f"User:{user}", "*", operation, "ALLOW")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with ACLs; its user guest may describe the topic seen and read the topic read."""
    folder = tmp_path_factory.mktemp("broker") / "data"
    settings = {"authorizer_class_name": AUTHORIZER}
    with (
        LocalBroker(folder, sasl="SCRAM-SHA-256", http=True, schema_registry=True, **settings) as broker,
        Admin(broker.bootstrap_servers, broker.security_settings) as admin,
    ):
        for user in USERS:
            admin.set_user_scram_credential(user, f"{user}-secret", "SCRAM-SHA-256")
        for topic in ("seen", "read", "hidden"):
            admin.create_topic(topic, 1, 1)
        admin.create_acls([allow("TOPIC", "seen", "guest", "DESCRIBE"), allow("TOPIC", "read", "guest", "READ")])
        admin.alter_group_offsets("group", {("hidden", 0): 0})
        with Producer(broker.bootstrap_servers, "read", broker.security_settings) as producer:
            producer.send(b"value", b"key")
        yield broker


@pytest.fixture(scope="module")
def guest(broker: LocalBroker) -> Page:
    """The page as guest sees it."""
    return Page(broker.http_url, "guest:guest-secret")


@pytest.fixture(scope="module")
def chief(broker: LocalBroker) -> Page:
    """As the user who may do everything sees it."""
    assert broker.login is not None
    return Page(broker.http_url, f"{broker.login.user}:{broker.login.password}")


def test_without_a_login_and_with_a_wrong_one_the_page_asks_for_one(broker: LocalBroker) -> None:
    for login in ("", "guest:wrong", "nobody:guest-secret"):
        page = Page(broker.http_url, login)
        for path in ("/", "/api/user", "/api/cluster", "/api/topics/seen/records", "/api/rates"):
            answer = page.raw("GET", path)
            assert answer.status == 401, (login, path)
            assert answer.headers["www-authenticate"] == 'Basic realm="pylog"'
        assert page.get("cluster").error == (401, "UNAUTHORIZED")
        assert page.change("topics", name="new").status == 401
    for login in ("Bearer x", "Basic !", "Basic Zw=="):
        assert Page(broker.http_url).raw("GET", "/api/cluster", {"Authorization": login}).status == 401
    assert Page(broker.http_url).raw("GET", "/static/nowhere.js").status == 404


@pytest.mark.parametrize("server", ["page", "registry"])
@pytest.mark.parametrize("login", ["", "guest:wrong"])
def test_who_has_no_login_is_refused_before_the_body_is_sent(broker: LocalBroker, server: str, login: str) -> None:
    """Else a megabyte of each connection would be in memory for anybody; here the body never comes."""
    url = broker.http_url if server == "page" else broker.schema_registry_url
    path = "/api/topics" if server == "page" else "/subjects/s/versions"
    headers = {**CHANGE, "Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else CHANGE
    lines = (f"POST {path} HTTP/1.1", "Content-Length: 1000000", *(f"{name}: {headers[name]}" for name in headers))
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as wire:
        wire.sendall("\r\n".join(lines).encode() + b"\r\n\r\n{")
        assert wire.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_a_user_sees_only_what_acls_show(guest: Page, chief: Page) -> None:
    assert guest.get("cluster").said["user"] == guest.get("user").said["user"] == "guest"
    assert [each["name"] for each in guest.get("topics").said["topics"]] == ["read", "seen"]
    assert guest.get("groups").said["groups"] == []
    assert guest.get("topics", "hidden").status in (403, 404)
    assert guest.get("groups", "group").status == guest.get("groups", "group", "history").status == 403
    seen = guest.get("topics", "seen").said
    assert (len(seen["partitions"]), seen["configs"]) == (1, [])
    assert seen["configs_refused"].endswith(".")
    assert {"hidden", "read", "seen"} <= {each["name"] for each in chief.get("topics").said["topics"]}
    assert [each["name"] for each in chief.get("groups").said["groups"]] == ["group"]
    assert chief.get("topics", "seen").said["configs_refused"] is None


def test_a_user_reads_and_writes_only_what_acls_allow(guest: Page, chief: Page) -> None:
    record, *_ = guest.get("topics", "read", "records", from_="earliest").said["records"]
    assert record["value"]["text"] == "value"
    assert chief.change("topics", "seen", "records", key=None, value="x").said == {"partition": 0, "offset": 0}
    for answer in (
        guest.get("topics", "seen", "records", from_="earliest"),
        guest.change("topics", "seen", "records", key=None, value="x"),
        guest.change("topics", "read", "records", key=None, value="x"),
        guest.change("topics", "seen", method="DELETE", name="seen"),
        guest.change("topics", "seen", "configs", changes={"retention.ms": "1"}),
        guest.change("topics", "seen", "partitions", count=2),
    ):
        assert answer.error == (403, "TOPIC_AUTHORIZATION_FAILED")
    assert guest.change("topics", name="new").status == 403
    assert chief.get("topics", "seen").said["partitions"][0]["end"] == 1


def test_the_brokers_own_numbers_need_the_right_to_describe_the_cluster(guest: Page, chief: Page) -> None:
    assert guest.get("rates").error == (403, "FORBIDDEN")
    assert chief.get("rates").said["every_s"] > 0


def test_a_right_that_is_taken_away_counts_at_once(broker: LocalBroker, guest: Page) -> None:
    acl = allow("TOPIC", "hidden", "guest", "READ")
    with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
        admin.create_acls([acl])
        assert guest.get("topics", "hidden", "records").status == 200
        admin.delete_acls([AclBindingFilter(resource_name="hidden")])
        assert guest.get("topics", "hidden", "records").status in (403, 404)


def test_values_are_shown_by_their_schemas_to_those_who_may_read_the_registry(
    broker: LocalBroker, guest: Page, chief: Page
) -> None:
    assert broker.login is not None
    registry = Page(broker.schema_registry_url, f"{broker.login.user}:{broker.login.password}")
    registered = registry.raw("POST", "/subjects/s/versions", CHANGE, b'{"schema": "\\"long\\""}').said["id"]
    with Producer(broker.bootstrap_servers, "read", broker.security_settings) as producer:
        producer.send(b"\0" + registered.to_bytes(4, "big") + b"\x0a")
    shown = [page.get("topics", "read", "records", limit=1).said["records"][0]["value"] for page in (guest, chief)]
    assert [(each["avro"], each["schema"]) for each in shown] == [(None, None), ("5", registered)]


def test_changes_are_lines_in_the_log_with_who_made_them(broker: LocalBroker, chief: Page) -> None:
    assert broker.login is not None
    chief.change("topics", name="logged", partitions=1)
    said(broker, f"User {broker.login.user!r} created topic 'logged'.")
    assert broker.login.password not in broker.logs()
    assert "guest-secret" not in broker.logs()


def test_metrics_without_a_login_bring_no_page(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data", sasl="SCRAM-SHA-256", http=["--http-without-login"]) as broker:
        page = Page(broker.http_url)
        assert page.raw("GET", "/metrics").status == 200
        assert page.raw("GET", "/").status == page.get("cluster").status == 404


def basic(user: str, password: str = "") -> str:
    """The header of a user."""
    return Page("http://x", f"{user}:{password or f'{user}-secret'}")._basic["Authorization"]


def test_users_beyond_the_bound_end_the_session_that_was_not_used_for_longest(
    broker: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
    kept = Sessions(broker.client_settings, asks=True)
    with kept.of(basic("guest")) as guest, kept.of(basic("second")) as second:
        with kept.of(basic("guest")) as again:
            assert again is guest
        with kept.of(basic("third")):
            # In use, so it ends when it no longer is.
            assert second.admin.cluster().brokers
        with kept.of(basic("second")) as another:
            assert another is not second
    assert second.settings == {}
    kept.close()
    assert guest.settings == {}


def test_a_session_ends_and_its_login_is_tried_again(broker: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Sessions(broker.client_settings, asks=True)
    with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
        admin.set_user_scram_credential("changing", "old", "SCRAM-SHA-256")
        with kept.of(basic("changing", "old")) as first:
            pass
        admin.set_user_scram_credential("changing", "new", "SCRAM-SHA-256")
        for bound in ("IDLE_S", "AGE_S"):
            with kept.of(basic("changing", "new")) as session:
                pass
            with monkeypatch.context() as patched:
                patched.setattr(sessions, bound, -1.0)
                kept.sweep()
            assert session.settings == first.settings == {}
        with pytest.raises(Refusal) as refused, kept.of(basic("changing", "old")):
            pass
    assert refused.value.status == 401
