"""Which settings are secret, and that they are not printed."""

import pickle

import pytest

from pylog_spark._native import settings
from pylog_spark.errors import PylogError
from pylog_spark.options import BATCH, check_names, read_options, write_options
from pylog_spark.options.secrets import HIDDEN, ClientSettings, is_secret

BASE = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


def test_every_setting_that_is_declared_as_a_password_is_secret_and_no_other() -> None:
    declared = {name for row in settings("client") if row.kind == "PASSWORD" for name in (row.name, *row.aliases)}
    named = {name for row in settings("client") for name in (row.name, *row.aliases) if is_secret(name)}
    assert len(declared) > 10
    assert named == declared


def test_a_password_has_no_default_that_could_be_shown() -> None:
    assert {row.default for row in settings("client") if row.kind == "PASSWORD"} == {""}


@pytest.mark.parametrize("thing", ["read", "tasks", "write"])
def test_settings_of_a_query_are_printed_without_secrets_wherever_they_go(thing: str) -> None:
    given = {**BASE, "kafka.sasl.password": "planted", "kafka.SASL.JAAS.CONFIG": "planted"}
    reading = read_options(given, BATCH)
    del given["subscribe"]
    whole = {"read": reading, "tasks": reading.task_client, "write": write_options(given)}[thing]
    for shown in (whole, pickle.loads(pickle.dumps(whole))):
        assert "planted" not in f"{shown!r} {shown}"
        assert HIDDEN in repr(shown)
    assert reading.client["sasl.password"] == "planted"


@pytest.mark.parametrize("name", ["kafka.ssl.keystore.key", "kafka.SSL.KEY.pem"])
@pytest.mark.parametrize("kind", ["", "EC ", "RSA ", "ENCRYPTED "])
def test_a_private_key_that_spark_would_show_is_refused_and_one_that_it_hides_is_taken(name: str, kind: str) -> None:
    key = f"-----BEGIN {kind}PRIVATE KEY-----\nplanted\n-----END {kind}PRIVATE KEY-----\n"
    with pytest.raises(PylogError, match=r"kafka\.ssl\.key\.location") as caught:
        check_names({**BASE, name: key})
    assert "planted" not in caught.value.sentence
    check_names({**BASE, name: f"# secret\n{key}"})


@pytest.mark.parametrize(
    "url", ["https://planted@h/", "https://u:planted@h:abc/", "http://planted.example/", "https://[planted/"]
)
def test_a_url_of_tokens_that_has_a_password_or_cannot_be_asked_is_refused_before_it_could_be_printed(url: str) -> None:
    with pytest.raises(
        PylogError, match=r"The option kafka\.SASL\.oauthbearer\.token\.endpoint\.url (has|is)"
    ) as caught:
        check_names({**BASE, "kafka.SASL.oauthbearer.token.endpoint.url": url})
    assert caught.value.condition == "PYLOG_INVALID_OPTION"
    assert "planted" not in caught.value.sentence
    for good in ("https://h/", " https://h:1/a?b=c ", "http://127.0.0.1:1/", "file:/a/token", " "):
        check_names({**BASE, "kafka.sasl.oauthbearer.token.endpoint.url": good})


def test_settings_are_a_dict_like_another() -> None:
    made = ClientSettings({"a": "b", "sasl.password": "c"})
    assert made == {"a": "b", "sasl.password": "c"}
    assert repr(made) == f"{{'a': 'b', 'sasl.password': '{HIDDEN}'}}"
