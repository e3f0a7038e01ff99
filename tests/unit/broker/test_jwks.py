"""Where the keys for tokens are read, when again, and what is refused."""

import http.server
import json
import threading

import pytest

from pylog_spark.broker.config import broker_config
from pylog_spark.broker.jwks import BYTES_MAX, URL, JwksError, JwksReader, KeySource, source_of
from pylog_spark.broker.setting import ConfigError
from tests.harness.waiting import until

KEYS = json.dumps({"keys": []})


class Refused(Exception):
    """The native server's."""


def at(url, refresh_s=60.0):
    return KeySource(url, refresh_s, 0.001, 0.01)


def test_without_the_setting_there_are_no_keys():
    assert source_of(broker_config()) is None


@pytest.mark.parametrize(
    "url", ["https://id.example/keys", "file:///etc/keys.json", "http://127.0.0.1:8080/keys", "https://id.example:8443"]
)
def test_where_keys_may_be(url):
    source = source_of(broker_config([(URL, url), ("sasl.oauthbearer.jwks.endpoint.refresh.ms", "2500")]))
    assert (source.url, source.refresh_s) == (url, 2.5)


@pytest.mark.parametrize(
    "url",
    [
        "http://id.example/keys",
        "keys.json",
        "file:keys.json",
        "file://host/keys",
        "ftp://x/y",
        "https://",
        "https://a:b/c",
    ],
)
def test_a_url_that_others_could_answer_for_or_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="https:// URL, or a file as file:///PATH"):
        source_of(broker_config([(URL, url)]))


def test_after_errors_it_waits_twice_as_long_each_time_up_to_the_most():
    source = KeySource("https://x/", 3600.0, 0.1, 10.0)
    assert [source.pause_s(failures) for failures in (0, 1, 2, 3, 8, 10_000)] == [3600.0, 0.1, 0.2, 0.4, 10.0, 10.0]


def test_a_message_does_not_show_a_password_in_the_url():
    assert (
        KeySource("https://user:secret@id.example:8443/keys?token=secret", 1, 1, 1).shown
        == "https://id.example:8443/keys"
    )


def test_a_file_that_is_missing_too_large_or_refused_is_an_error_at_the_start(tmp_path):
    path = tmp_path / "key s.json"

    def apply(jwks):
        raise Refused("no keys in it")

    def starting():
        JwksReader(at(path.as_uri()), apply, Refused, 1).start()

    with pytest.raises(JwksError, match="No such file"):
        starting()
    path.write_bytes(b" " * (BYTES_MAX + 1))
    with pytest.raises(JwksError, match="larger than"):
        starting()
    path.write_bytes(b"\xff")
    with pytest.raises(JwksError, match="not UTF-8"):
        starting()
    path.write_text(KEYS)
    with pytest.raises(JwksError, match="no keys in it"):
        starting()


def test_a_file_that_changes_is_read_again(tmp_path):
    path, applied = tmp_path / "keys.json", []
    path.write_text("1")
    reader = JwksReader(at(path.as_uri(), refresh_s=0.01), applied.append, Refused, 1)
    reader.start()
    try:
        path.write_text("2")
        until(lambda: "2" in applied, "the new keys are applied")
    finally:
        reader.close()
    assert applied[0] == "1"


def test_a_key_that_is_missed_is_looked_for_at_once(tmp_path):
    path, applied = tmp_path / "keys.json", []
    path.write_text("1")
    reader = JwksReader(at(path.as_uri(), refresh_s=3600.0), applied.append, Refused, 1)
    reader.start()
    try:
        path.write_text("2")
        reader.hurry()
        until(lambda: applied[-1] == "2", "the new keys are applied")
    finally:
        reader.close()


@pytest.fixture
def server():
    """A server of keys: what it answers is a list of (status, body), the last one again and again."""
    answers = [(200, KEYS.encode())]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield answers, f"http://127.0.0.1:{serving.server_port}/keys"
        serving.shutdown()


def test_a_server_that_fails_is_asked_again_and_what_it_gave_stays(server):
    answers, url = server
    answers[:] = [(503, b""), (302, b""), (200, KEYS.encode())]
    applied = []
    reader = JwksReader(at(url), applied.append, Refused, 1)
    reader.start()
    try:
        until(lambda: applied, "the keys are applied")
    finally:
        reader.close()
    assert applied == [KEYS]
    assert len(answers) == 1


def test_a_server_that_answers_something_else_is_named(server):
    answers, url = server
    answers[:] = [(302, b"")]
    with pytest.raises(JwksError, match="answers 302"):
        at(url).read()
    answers[:] = [(200, b" " * (BYTES_MAX + 2))]
    with pytest.raises(JwksError, match="larger than"):
        at(url).read()
