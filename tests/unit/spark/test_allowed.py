"""What the options of a query may make Spark run, open and send away."""

from pathlib import Path

import pytest
from pyspark.sql.datasource import DataSource

from pylog_spark._native import settings
from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from pylog_spark.options.allowed import FILES, FUNCTIONS, VARIABLES, check_allowed

PROVIDER, URL = "kafka.sasl.oauthbearer.token.provider", "kafka.sasl.oauthbearer.token.endpoint.url"
JAAS = "kafka.sasl.jaas.config"


def refused(option: str, text: str, **environment: str) -> bool:
    """Whether an option with this text is refused; the sentence says which one, and which variable would allow it."""
    found: list[PylogError] = []
    try:
        check_allowed({option: text}, environment)
    except PylogError as error:
        found.append(error)
    for error in found:
        assert error.condition == "PYLOG_NOT_ALLOWED"
        assert option in error.sentence
        assert "PYLOG_ALLOWED_" in error.sentence
    return bool(found)


@pytest.mark.parametrize("option", [PROVIDER, "kafka.SASL.oauthbearer.Token.Provider"])
def test_a_query_runs_no_function_but_those_that_the_environment_lists(option: str) -> None:
    listed = {FUNCTIONS: "my_tokens:msk_token, other:give"}
    for text in ("os:system", " os:system ", "my_tokens:msk_token.other", "my_tokens", "other:giv"):
        assert refused(option, text)
        assert refused(option, text, **listed)
        assert refused(option, text, **{FUNCTIONS: "*"})
    for text in ("my_tokens:msk_token", " other:give", "", " "):
        assert not refused(option, text, **listed)


@pytest.mark.parametrize(
    "text",
    [
        "file:/etc/passwd",
        " file:///etc/passwd",
        "file:{folder}/../secret",
        "file:{folder}%2f..%2fsecret",
        "file:{folder}-other/token",
        "file:{folder}/link/secret",
        "file:relative",
    ],
)
def test_a_query_sends_no_file_away_but_those_that_the_environment_lists(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "tokens"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    text = text.format(folder=folder)
    assert refused(URL, text)
    assert refused(URL, text, **{FILES: str(folder)})
    for good in (f"file:{folder}/token", f"file://{folder}/a%20b", "https://h/token", "http://127.0.0.1/", ""):
        assert not refused(URL, good, **{FILES: f"/nowhere,{folder}/"})
    assert not refused(URL, f"file:{folder}/one", **{FILES: f"{folder}/one"})
    assert refused(URL, f"file:{folder}/two", **{FILES: f"{folder}/one"})


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("kafka.ssl.truststore.location", "/etc/other.pem"),
        ("kafka.ssl.keystore.location", "/srv/keys/../other.pem"),
        ("kafka.ssl.key.location", "keys/relative.pem"),
        ("kafka.https.ca.location", "/etc/other.pem"),
        ("schema.registry.ssl.keystore.location", "/etc/other.pem"),
        ("valueSchema", "@/etc/passwd"),
        ("keyschema", " @/etc/passwd"),
        ("path", "/var/lib/pylog"),
        ("path", "file:/var/lib/pylog"),
        ("archive", "s3://other/logs"),
        ("archive", "s3://logs-of-others"),
        ("archive", "s3://logs/../others"),
        ("archive", "s3://logs/a?endpoint_override=evil.example"),
        (JAAS, 'x.OAuthBearerLoginModule required ssl.truststore.location="/etc/other.pem";'),
        (JAAS, "x.OAuthBearerLoginModule required ssl.truststore.location=/etc/other.pem;"),
        (JAAS, 'x.OAuthBearerLoginModule required ssl.truststore.location="/srv/keys/\\"/../../etc/other.pem";'),
    ],
)
def test_files_and_folders_are_free_until_the_environment_lists_some_and_then_no_others_are(
    option: str, text: str
) -> None:
    assert not refused(option, text)
    assert refused(option, text, **{FILES: ""})
    assert refused(option, text, **{FILES: "/srv/keys, s3://logs"})


def test_listed_files_folders_and_archives_are_taken() -> None:
    listed = {FILES: "/srv/keys,/srv/ca.pem,s3://logs/"}
    for option, text in {
        "kafka.ssl.truststore.location": "/srv/ca.pem",
        "kafka.ssl.keystore.location": "/srv/keys/a/own.p12",
        "archive": "s3://logs/2026",
        "path": "s3://logs",
        "valueSchema": "id bigint",
        "kafka.sasl.password": "/not/a/file",
        JAAS: 'x.ScramLoginModule required username="a" password="b";',
    }.items():
        assert not refused(option, text, **listed)
        assert not refused(option, "", **listed)
    with_store = 'x.OAuthBearerLoginModule required clientId="a" ssl.truststore.location="/srv/keys/ca.pem";'
    assert not refused(JAAS, with_store, **listed)


def test_no_variable_is_sent_to_brokers_as_a_rack_but_those_of_places_and_listed_ones() -> None:
    for option in ("clientRack", "kafka.client.rack"):
        assert refused(option, "env:AWS_SECRET_ACCESS_KEY")
        assert refused(option, " env: HOME ", **{VARIABLES: "SITE"})
        assert refused(option, "env:TRACKING_KEY")
        for good in ("env:RACK", "env:PYLOG_TEST_RACK", "env:AVAILABILITY_ZONE", "env:SITE", "a", ""):
            assert not refused(option, good, **{VARIABLES: "SITE"})


def test_every_setting_of_a_client_that_names_a_file_is_known_here() -> None:
    named = {name for row in settings("client") for name in (row.name, *row.aliases) if "location" in name}
    assert len(named) >= 6
    assert all(refused(f"kafka.{name}", "/a", **{FILES: ""}) for name in named)


def test_spark_refuses_such_options_before_anything_is_done_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FUNCTIONS, raising=False)
    with pytest.raises(Exception, match="PYLOG_NOT_ALLOWED"):
        PylogDataSource({"kafka.bootstrap.servers": "b:9092", "subscribe": "t", PROVIDER: "os:system"})
    monkeypatch.setenv(FUNCTIONS, "os:system")
    assert isinstance(PylogDataSource({PROVIDER: "os:system"}), DataSource)
