"""This build opens what every release before left (`release`), after a kill and after a clean stop, and goes on with it. Costs 10 s."""

import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from pylog_spark.testing import LocalBroker
from tests.upgrade import release
from tests.upgrade.release import COPIES, GROUP, IN_TRANSACTIONS, PASSWORD, RECORDS, command, producer, put

RELEASES = sorted(path.name for path in release.DATA.iterdir())
LEFT = [(version, state) for version in RELEASES for state in ("killed", "stopped")]
#: A broker that was killed left more to do; a clean stop is opened in a long run.
_LEFT = [pytest.param(left, marks=pytest.mark.long if left[1] == "stopped" else []) for left in LEFT]
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Opened:
    """What a release left, with a broker of this build on it, and what the clients of both saw."""

    folder: Path
    broker: LocalBroker
    before: dict[str, Any]
    now: dict[str, Any]

    @property
    def servers(self) -> str:
        """The address for those who may do everything."""
        return self.broker.bootstrap_servers


@pytest.fixture(scope="module", params=_LEFT, ids=lambda left: f"{left[0]} {left[1]}")
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A broker of this build on what a release left."""
    version, state = request.param
    folder = tmp_path_factory.mktemp("upgrade")
    packed = (
        zstandard.ZstdDecompressor()
        .decompressobj()
        .decompress((release.DATA / version / f"{state}.tar.zst").read_bytes())
    )
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")
    with release.broker(folder / "data") as running:
        before = json.loads((release.DATA / version / "seen.json").read_text())
        yield Opened(folder, running, before, json.loads(json.dumps(release.seen(running))))


def values(rows: list[list[Any]]) -> Counter[tuple[str, str | None]]:
    """How often each key and value is there."""
    return Counter((row[3], row[4]) for row in rows)


@pytest.mark.parametrize(
    "what", ["records", "table", "settings", "groups", "acls", "users", "quotas", "schemas", "texts", "sink"]
)
def test_clients_see_what_they_saw_before(opened: Opened, what: str) -> None:
    assert opened.before[what]
    assert opened.now[what] == opened.before[what]


def test_a_transactional_producer_and_a_group_go_on(opened: Opened) -> None:
    with producer(opened.servers, **{"transactional.id": release.TRANSACTIONAL_ID}) as writer:
        writer.init_transactions(_TIMEOUT_S)
        writer.begin_transaction()
        put(writer, IN_TRANSACTIONS, range(RECORDS, RECORDS + 10))
        writer.commit_transaction(_TIMEOUT_S)
    before = opened.before["records"][IN_TRANSACTIONS]
    found = release.records(opened.servers, IN_TRANSACTIONS)
    assert [row for row in found if row in before] == before
    assert len(found) == len(before) + 10
    command(opened.servers, "group", "reset-offsets", GROUP, "--topic", "gzip:1", "--shift-by", "1", "--execute")
    moved = release.offsets(AdminClient({"bootstrap.servers": opened.servers}), GROUP)
    assert [row[2] for row in moved] == [8, 7]


def test_a_user_logs_in_and_may_do_what_he_might(opened: Opened) -> None:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    address = opened.broker.address_of("LOGIN")
    assert release.records(address, "gzip", **login) == opened.before["records"]["gzip"]
    refused: list[Message] = []
    with producer(address, **login) as writer:
        writer.produce("gzip", b"not allowed", on_delivery=lambda error, _: refused.append(error))
    assert [error.name() for error in refused] == ["TOPIC_AUTHORIZATION_FAILED"]


def test_an_archive_of_a_topic_is_restored(opened: Opened) -> None:
    command(opened.servers, "archive", "import", str(opened.folder / "topic.pylog.zst"), "--topic", "restored")
    assert release.records(opened.servers, "restored") == opened.before["records"]["zstd"]


def test_a_query_goes_on_from_its_checkpoint_and_an_archive_is_read(opened: Opened, spark: Any) -> None:
    history = spark.read.format("pylog").load(str(opened.folder / "history"))
    assert history.where("topic = 'zstd'").count() == RECORDS
    with producer(opened.servers) as writer:
        put(writer, "zstd", range(RECORDS, RECORDS + 10))
    release.copy(spark, opened.servers, str(opened.folder / "checkpoint"))
    wanted = values(release.records(opened.servers, "zstd"))
    assert values(release.records(opened.servers, COPIES)) == wanted
    assert wanted.total() == RECORDS + 10
