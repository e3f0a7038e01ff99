"""Secrets among the options are shown nowhere: not in plans, pages, the event log, errors, logs, nor in what is carried to tasks."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import javaproperties
import pytest

from pylog_spark.datasource import PylogDataSource
from tests.spark.secrets_driver import PLANTED, SECRETS
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


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["secrets_driver", "secrets_connect"], ids=["classic", "connect"])
def test_nothing_that_spark_shows_or_keeps_has_a_secret_in_it(
    servers: str, make_topic: Callable[..., Topic], tmp_path: Path, driver: str
) -> None:
    topic = make_topic()
    topic.put(["a", "b"])
    shown = tmp_path / "shown"
    shown.mkdir()
    words = [servers, topic.name, str(shown), *([documented_regex()] if driver == "secrets_connect" else [])]
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
    telling = [path.name for path in files if PLANTED in path.read_text(errors="replace")]
    assert telling == []
    # The test sees what would be told: what is no secret is there.
    assert any(topic.name in path.read_text(errors="replace") for path in files)


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
