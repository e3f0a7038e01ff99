"""An archive in HDFS, a real one, by WebHDFS, which `fsspec` opens (about 30 s, in a long run); and in Google Cloud Storage, a server in memory (about 5 s)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import prune
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import KEPT_RECORDS, SHORT, begun, until_short, values
from tests.archive.gcs_store import running_gcs
from tests.directories.support import LEVELS, consumed, stored
from tests.mirror.support import write, write_in_transactions
from tests.peers.hdfs import hdfs

pytestmark = pytest.mark.long  # a local one: test_store.py; S3: test_s3.py

SMALL = CopyOptions(segment_bytes=4_000, frame_bytes=1_500)


Urls = Callable[[str], str]


@pytest.fixture(scope="module", params=[pytest.param("hdfs", marks=pytest.mark.long), "gcs"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Urls]:
    """Gives the URL of a folder, in HDFS and in GCS."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "hdfs":
        with hdfs(folder) as port:
            yield lambda name: f"webhdfs://127.0.0.1:{port}/archives/{name}"
    else:
        with running_gcs(folder) as server:
            yield lambda name: f"gs://logs/archives/{name}?{server}"


def test_objects_are_written_whole_read_in_parts_listed_and_replaced(url: Urls) -> None:
    objects = Objects(url("objects"))
    assert objects.files("folder") == []
    objects.put("folder/one", b"first content")
    objects.put("folder/two", b"")
    assert objects.read("folder/one") == b"first content"
    assert objects.read_part("folder/one", 6, 4) == b"cont"
    assert objects.read_part("folder/one", 6, 400) == b"content"
    assert objects.files("folder") == ["one", "two"]
    assert objects.folders("") == ["folder"]
    assert objects.folders("folder") == []
    objects.put("folder/below/it", b"other")
    assert (objects.files("folder"), objects.folders("folder")) == (["one", "two"], ["below"])
    assert sorted(objects.all_files("")) == ["folder/below/it", "folder/one", "folder/two"]
    objects.put("folder/one", b"other")
    assert objects.read("folder/one") == b"other"
    assert objects.files("folder") == ["one", "two"]
    assert objects.exists("folder/one")
    objects.delete("folder/one")
    objects.delete("folder/one")
    assert not objects.exists("folder/one")
    with pytest.raises(FileNotFoundError):
        objects.read("folder/one")


def test_an_archive_gives_the_rows_that_a_client_saw(url: Urls, tmp_path: Path) -> None:
    copied = url("copied")
    with LocalBroker(tmp_path / "source", group_initial_rebalance_delay_ms=0) as running:
        servers = running.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("events", 2)
            write(servers, "events", values(0, 300), batch_num_messages=10)
            write_in_transactions(servers, "events", "some", 4)
            assert len(list(copy_topic(admin, open_archive(copied, create=True), "events", SMALL, pytest.fail))) > 4
            assert list(copy_topic(admin, open_archive(copied), "events", SMALL, pytest.fail)) == []
            write(servers, "events", values(300, 400), batch_num_messages=10)
            assert list(copy_topic(admin, open_archive(copied), "events", SMALL, pytest.fail))
        for level in LEVELS:
            assert stored("", "events", path=copied, isolationLevel=level) == consumed(servers, "events", 2, level)
    topic = ArchiveLog(copied).stored_topic("events")
    assert topic is not None
    assert list(prune(open_archive(copied), "events", topic.topic_id, 2, 2_000_000_000_000))
    with pytest.raises(LogError, match="is no archive"):
        open_archive(url("nothing"))


def test_a_broker_archives_there_and_clients_read_it(url: Urls, tmp_path: Path) -> None:
    with begun(tmp_path / "broker", url("tiered")) as running, Admin(running.bootstrap_servers) as admin:
        servers = running.bootstrap_servers
        admin.create_topic("cold", 1, config={**SHORT, "local.retention.bytes": "-2"})
        write(servers, "cold", values(0, 400), batch_num_messages=10)
        rows = consumed(servers, "cold", 1, "read_committed")
        admin.alter_configs("topic", "cold", {"local.retention.bytes": "10000"})
        until_short(admin, "cold", 400 - KEPT_RECORDS)
        assert consumed(servers, "cold", 1, "read_committed") == rows
