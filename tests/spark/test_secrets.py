"""Secrets among the options are shown nowhere: not in plans, pages, the event log, errors, logs, nor in what is carried to tasks."""

import base64
import dataclasses
import json
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import javaproperties
import pytest

from pylog_spark.client import Admin, Producer
from pylog_spark.datasource import PylogDataSource
from tests.harness.odd_server import OddServer, answer
from tests.harness.secured import Secured, is_served
from tests.harness.waiting import until
from tests.spark.secrets_driver import PLANTED, SECRETS
from tests.spark.secrets_logins import CLIENT_ID, CLIENT_SECRET, RIGHT, TELLING, TOKEN, WRONG_SECRET, Place
from tests.spark.support import Topic, topic_maker


@pytest.fixture
def make_topic(servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics; none of these tests needs a session of Spark in its own process."""
    return topic_maker(None, servers, new_topic)


def documented_regex() -> str:
    """The value of ``spark.sql.redaction.string.regex`` that the page for users gives, as Java reads it from a properties file."""
    page = (Path(__file__).parents[2] / "docs" / "security-clients.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith("spark.sql.redaction.string.regex "))
    return javaproperties.loads(line)["spark.sql.redaction.string.regex"]


def echo(request: bytes, connection: socket.socket) -> None:
    """A server of tokens that says a wrong secret again, as it was told and as it was sent."""
    (told,) = (line for line in request.splitlines() if line.startswith(b"Authorization: Basic "))
    secret = base64.b64decode(told.split()[-1]).decode().partition(":")[2]
    said = {"error": "invalid_client", "error_description": f"not {secret}, {told.decode()}"}
    if secret == CLIENT_SECRET:
        answer({"access_token": TOKEN, "expires_in": 3600})(request, connection)
    else:
        answer(said, 401)(request, connection)


@pytest.fixture
def place(secured: Secured, new_topic: str) -> Iterator[Place]:
    """Apache Kafka with a user and a topic of this test's own, and a server of tokens."""
    user = f"keeper-{new_topic}"
    with OddServer(echo) as tokens, Admin(secured.servers("PLAINTEXT")) as admin:
        made = Place(
            secured.servers("PLAINTEXT"), secured.servers("SECURED"), secured.certificates.path("ca.pem"),
            user, new_topic, f"http://127.0.0.1:{tokens.port}/",
        )  # fmt: skip
        assert admin.set_user_scram_credential(user, RIGHT).error is None
        admin.create_topic(new_topic, 1)
        until(lambda: is_served(admin, new_topic, 1) and made.lets_in(RIGHT), "topic and user are there")
        with Producer(made.open, new_topic) as producer:
            producer.send(b"a")
        yield made
    if tokens.asked:
        # The secrets were told to it, and it told them again.
        basic = [base64.b64encode(f"{CLIENT_ID}:{secret}".encode()) for secret in (CLIENT_SECRET, WRONG_SECRET)]
        assert all(any(secret in request for request in tokens.asked) for secret in basic)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.long  # what is carried to tasks: below; how options are shown: tests/unit/spark/test_secret_settings.py
@pytest.mark.parametrize("driver", ["secrets_driver", "secrets_connect"], ids=["classic", "connect"])
def test_nothing_that_spark_shows_or_keeps_has_a_secret_in_it(
    servers: str, make_topic: Callable[..., Topic], place: Place, tmp_path: Path, driver: str
) -> None:
    topic = make_topic()
    topic.put(["a", "b"])
    shown = tmp_path / "shown"
    shown.mkdir()
    words = [servers, topic.name, str(shown), json.dumps(dataclasses.asdict(place))]
    words += [documented_regex()] if driver == "secrets_connect" else []
    done = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{driver}", *words],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (shown / "log.txt").write_text(done.stdout + done.stderr)
    # What a stream keeps in its checkpoint is there, too.
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("events_") and path.stat().st_size for path in files), "there is no event log"
    if driver == "secrets_driver":
        assert len(files) > 30
        assert any(path.parent.name == "commits" for path in files)
    texts = {str(path.relative_to(tmp_path)): path.read_text(errors="replace") for path in files}
    telling = [(name, secret) for name, text in texts.items() for secret in TELLING if secret in text]
    assert telling == []
    # The test sees what would be told: what is no secret is there.
    assert any(topic.name in text for text in texts.values())
    assert any(place.user in text for text in texts.values())
    if driver == "secrets_driver":
        # Workers write into the same log as the driver.
        assert (
            "pylog_spark.login DEBUG The function tests.spark.secrets_logins:failing_in_tasks raised ValueError at "
            in texts["shown/log.txt"]
        )


def test_what_is_carried_to_tasks_is_printed_without_secrets(servers: str, make_topic: Callable[..., Topic]) -> None:
    from pyspark.sql.types import BinaryType, StructType

    topic = make_topic()
    topic.put(["a"])
    schema = StructType().add("value", BinaryType())
    given = {"kafka.bootstrap.servers": servers, **SECRETS}
    reading = PylogDataSource({**given, "subscribe": topic.name})
    reader, writer = reading.reader(schema), PylogDataSource({**given, "topic": topic.name}).writer(schema, False)
    streaming = reading.streamReader(schema)
    things = [reading, reader, writer, streaming, *reader.partitions(), writer._plan, reader._source, reader._options]
    carried = [pickle.loads(pickle.dumps(thing)) for thing in things[1:]]
    for thing in [*things, *carried]:
        assert PLANTED not in f"{thing!r} {thing}"
    # They have them all the same.
    assert carried[-1].client["sasl.password"] == SECRETS["kafka.sasl.password"]
