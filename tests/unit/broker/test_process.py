"""The control loop over a fake native server: every question is answered, whatever happens inside."""

import json
import queue
import sys
import types

import pytest

from pylog_spark.broker import process, requests
from pylog_spark.broker.describe import SettingSource
from pylog_spark.broker.errors import BrokerError
from pylog_spark.broker.process import start_broker
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cluster.errors import ErrorCode
from tests.harness.waiting import said, until


class NativeError(Exception):
    """As the native module's."""


class FakeNativeBroker:
    """Questions go in by `asked`, answers come out of `answers`."""

    locked = False
    port_taken = False
    unopenable = False
    made = []

    def __init__(self, data_dir, settings_json):
        if self.locked:
            raise NativeError("LOCKED", f"{data_dir} is locked by process 7")
        self.settings = json.loads(settings_json)
        self.asked = queue.Queue()
        self.answers = queue.Queue()
        self.closed = False
        self.served = set()
        self.refused = 0
        self.made.append(self)

    def apply_jwks(self, jwks_json):
        self.jwks = jwks_json

    def apply_security(self, security_json):
        self.security = json.loads(security_json)

    def apply_topics(self, topics_json):
        if self.unopenable:
            self.refused += 1
            raise NativeError("WANT", "t-0: no file descriptor is left to open t-0")
        self.served |= {topic["name"] for topic in json.loads(topics_json)}

    def listen(self, listeners_json):
        self.listeners = json.loads(listeners_json)
        if self.port_taken:
            (one,) = self.listeners
            raise NativeError(
                "IO", f"cannot listen on {one['host']}:{one['port']}: Address already in use (os error 98)"
            )
        return [one["port"] or 12345 + number for number, one in enumerate(self.listeners)]

    def next_event(self, timeout_ms):
        try:
            event = self.asked.get(timeout=timeout_ms / 1000)
        except queue.Empty:
            return None
        if isinstance(event, Exception):
            raise event
        return event

    def complete(self, event_id, answer_json):
        self.answers.put((event_id, json.loads(answer_json)))

    def stats(self):
        return {}

    def close(self, timeout_ms):
        self.closed = True
        self.asked.put(None)


@pytest.fixture
def native(monkeypatch):
    fake = type("Fresh", (FakeNativeBroker,), {"made": []})
    module = types.ModuleType("pylog_spark._native")
    module.NativeBroker, module.NativeError = fake, NativeError
    module.open_log = lambda _deliver: False
    monkeypatch.setitem(sys.modules, "pylog_spark._native", module)
    return fake


def ask(broker_native, kind, request):
    broker_native.asked.put((7, kind, json.dumps(request)))
    event_id, answer = broker_native.answers.get(timeout=30)
    assert event_id == 7
    return answer


def test_a_question_is_answered_and_closing_wakes_the_loop(native, tmp_path):
    with start_broker(tmp_path) as broker:
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": ["num.partitions"]}
        answer = ask(native.made[0], "describe_configs", {"resources": [resource]})
        assert [config["value"] for config in answer["results"][0]["configs"]] == ["1"]
        assert broker.bootstrap_servers == "127.0.0.1:12345"
    assert native.made[0].closed
    assert not broker._thread.is_alive()


def test_a_bug_in_one_request_is_answered_and_the_next_one_is_served(native, tmp_path, monkeypatch, caplog):
    def broken(_registry, _request):
        raise RuntimeError("a bug")

    with start_broker(tmp_path):
        monkeypatch.setitem(requests.HANDLERS, "delete_topics", broken)
        answer = ask(native.made[0], "delete_topics", {"topics": [{"name": "t", "topic_id": None}], "topic_names": []})
        assert answer["responses"][0]["error_code"] == -1
        said(caplog, "a bug")
        assert ask(native.made[0], "auto_create_topics", {"topics": []}) == {}


def test_an_error_of_the_native_server_does_not_end_the_loop(native, tmp_path, caplog):
    with start_broker(tmp_path):
        native.made[0].asked.put(NativeError("IO", "something passed"))
        assert ask(native.made[0], "auto_create_topics", {"topics": []}) == {}
    said(caplog, "something passed")


def test_what_could_not_be_opened_is_served_later_without_another_change(native, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_OPEN_AGAIN_S", 0.01)
    topic = {"name": "t", "num_partitions": 1, "replication_factor": -1, "configs": [], "assignments": []}
    with start_broker(tmp_path):
        (made,) = native.made
        made.unopenable = True
        answer = ask(made, "create_topics", {"topics": [topic], "validate_only": False, "timeout_ms": 1})
        assert answer["topics"][0]["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
        until(lambda: made.refused > 3, "it is tried again and again")
        assert made.served == set()
        made.unopenable = False
        until(lambda: made.served == {"t"}, "the topic is served")
        tries = made.refused
    assert made.refused == tries


def test_the_cluster_id_is_made_once(native, tmp_path):
    for _ in range(2):
        with start_broker(tmp_path):
            pass
    first, second = (server.settings["cluster_id"] for server in native.made)
    assert first == second
    assert len(first) == 22


def test_a_locked_directory_is_one_sentence_and_nothing_is_written(native, tmp_path):
    native.locked = True
    with pytest.raises(BrokerError, match="is in use by another broker: stop that one, or use another directory"):
        start_broker(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_one_sentence_and_the_directory_is_let_go(native, tmp_path):
    native.port_taken = True
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:9 is already in use"):
        start_broker(tmp_path, port=9)
    assert native.made[0].closed


@pytest.mark.parametrize(
    ("host", "settings", "advertised"),
    [
        ("127.0.0.1", {}, "PLAINTEXT://127.0.0.1:12345"),
        ("::1", {}, "PLAINTEXT://[::1]:12345"),
        ("0.0.0.0", {}, None),
        ("0.0.0.0", {"advertised_listeners": "log.example:9093"}, "PLAINTEXT://log.example:9093"),
    ],
)
def test_the_address_that_clients_are_given_is_shown(native, tmp_path, host, settings, advertised):
    with start_broker(tmp_path, host, allow_plaintext=True, **settings):
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": ["advertised.listeners"]}
        (shown,) = ask(native.made[0], "describe_configs", {"resources": [resource]})["results"][0]["configs"]
        assert (shown["value"], shown["config_source"] == SettingSource.DEFAULT_CONFIG) == (
            advertised,
            advertised is None,
        )


def test_several_listeners_are_opened_and_each_has_its_port_and_its_address(native, tmp_path):
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:9093",
        "advertised_listeners": "PLAINTEXT://127.0.0.1:0,SSL://log.example:19093",
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with start_broker(tmp_path, **settings) as broker:
        (made,) = native.made
        plain, tls = made.listeners
        assert (plain["name"], plain["protocol"], plain["advertised_host"], plain["advertised_port"]) == (
            "PLAINTEXT", "PLAINTEXT", "127.0.0.1", None,
        )  # fmt: skip
        assert (tls["name"], tls["port"], tls["advertised_host"], tls["advertised_port"]) == (
            "SSL", 9093, "log.example", 19093,
        )  # fmt: skip
        assert [one["settings"]["ssl.client.auth"] for one in (plain, tls)] == ["none", "required"]
        assert made.settings["inter_broker"] == "PLAINTEXT"
        assert (broker.bootstrap_servers, broker.address_of("ssl")) == ("127.0.0.1:12345", "127.0.0.1:9093")
        resource = {
            "resource_type": 4,
            "resource_name": "1",
            "configuration_keys": ["advertised.listeners", "listeners"],
        }
        shown = ask(made, "describe_configs", {"resources": [resource]})["results"][0]["configs"]
        assert {one["name"]: one["value"] for one in shown} == {
            "advertised.listeners": "PLAINTEXT://127.0.0.1:12345,SSL://log.example:19093",
            "listeners": "PLAINTEXT://127.0.0.1:12345,SSL://127.0.0.1:9093",
        }


def test_host_and_listeners_together_are_refused(native, tmp_path):
    with pytest.raises(ConfigError, match="give the addresses in listeners alone"):
        start_broker(tmp_path, "127.0.0.1", listeners="PLAINTEXT://127.0.0.1:0")


def test_a_password_is_never_shown(native, tmp_path):
    with start_broker(tmp_path, ssl_keystore_password="swordfish"):
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
        answer = ask(native.made[0], "describe_configs", {"resources": [resource], "include_synonyms": True})
        assert "swordfish" not in json.dumps(answer)
        (shown,) = (one for one in answer["results"][0]["configs"] if one["name"] == "ssl.keystore.password")
        assert (shown["value"], shown["is_sensitive"]) == (None, True)
