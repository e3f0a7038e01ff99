"""An archive that is only read (`remote.log.copy.disable`, KIP-950), and what monitoring shows of one that is copied to. The file takes about 9 s."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import (
    EARLIEST,
    EARLIEST_LOCAL,
    KEPT_RECORDS,
    LATEST_TIERED,
    SHORT,
    begun,
    offset,
    read_from,
    until_short,
    values,
)
from tests.broker.test_http import PAGE, numbers
from tests.harness.waiting import said, until
from tests.mirror.support import write

_TOPICS = "kafka_server_brokertopicmetrics"
READ_ONLY = {"remote.log.copy.disable": "true", "local.retention.bytes": "-2"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The archive."""
    return tmp_path / "archive"


@pytest.fixture
def broker(tmp_path: Path, archive: Path) -> Iterator[LocalBroker]:
    """Who archives there."""
    with begun(tmp_path / "broker", archive, http=True) as running:
        yield running


@pytest.fixture
def admin(broker: LocalBroker) -> Iterator[Admin]:
    """Of the broker."""
    with Admin(broker.bootstrap_servers) as client:
        yield client


def fill(broker: LocalBroker, topic: str, start: int, end: int) -> None:
    write(broker.bootstrap_servers, topic, values(start, end), batch_num_messages=10)


def until_a_turn_is_over(broker: LocalBroker, admin: Admin, name: str) -> None:
    """Wait until a topic was copied that is made now: turns go over the topics by their names."""
    admin.create_topic(name, 1, config=SHORT)
    fill(broker, name, 0, 300)
    until(lambda: offset(admin, name, LATEST_TIERED) > 0, f"{name} is copied")


def test_an_archive_that_is_only_read_gets_nothing_more_and_whole_log_retention_deletes_on_both_sides(
    broker: LocalBroker, admin: Admin, archive: Path
) -> None:
    admin.create_topic("kept", 1, config=SHORT)
    fill(broker, "kept", 0, 600)
    local = until_short(admin, "kept", 600 - KEPT_RECORDS)
    admin.alter_configs("topic", "kept", READ_ONLY)
    tiered = offset(admin, "kept", LATEST_TIERED)
    fill(broker, "kept", 600, 1_200)
    until_a_turn_is_over(broker, admin, "z-copied")
    assert tiered <= offset(admin, "kept", LATEST_TIERED) < 600, "what a turn was copying when it was set"
    tiered = offset(admin, "kept", LATEST_TIERED)
    # The broker keeps what it would have removed, and who reads finds all of it.
    assert (offset(admin, "kept", EARLIEST), offset(admin, "kept", EARLIEST_LOCAL)) == (0, local)
    rows = read_from(broker.bootstrap_servers, "kept", 0, 1_200)
    assert [value.decode() for _, value in rows] == list(values(0, 1_200))
    assert ArchiveLog(str(archive)).manifest("kept", 0).end == tiered + 1

    # The whole log's retention deletes records that were never copied; then nothing before them is left, either.
    admin.alter_configs("topic", "kept", {"retention.bytes": "30000"})
    start = until_short(admin, "kept", 900)
    until(lambda: offset(admin, "kept", EARLIEST) == offset(admin, "kept", EARLIEST_LOCAL), "the archive is empty")
    # The last one says up to where the log was archived.
    until(lambda: len(list(archive.glob("topics/kept/*/0/*.pylog.zst"))) == 1, "its objects are deleted")
    assert [number for number, _ in read_from(broker.bootstrap_servers, "kept", start, 1_200 - start)] == list(
        range(start, 1_200)
    )

    # It can be copied to again.
    admin.alter_configs("topic", "kept", {"remote.log.copy.disable": "false", "local.retention.bytes": "10000"})
    until(lambda: offset(admin, "kept", LATEST_TIERED) > start, "it is copied again")
    start = offset(admin, "kept", EARLIEST)
    assert len(read_from(broker.bootstrap_servers, "kept", start, 1_200 - start)) == 1_200 - start


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        (
            {"local.retention.ms": "1000"},
            "remote.log.copy.disable=true is refused: nothing is copied any more, so local.retention.ms (1000) must be -2 or as retention.ms (604800000).",
        ),
        (
            {"local.retention.bytes": "-1", "retention.bytes": "5000"},
            "remote.log.copy.disable=true is refused: nothing is copied any more, so local.retention.bytes (-1) must be -2 or as retention.bytes (5000).",
        ),
    ],
)
def test_limits_of_the_brokers_alone_are_refused_where_nothing_is_copied(
    admin: Admin, configs: dict[str, str], sentence: str
) -> None:
    wanted = {"remote.storage.enable": "true", "remote.log.copy.disable": "true", **configs}
    with pytest.raises(LogError) as refused:
        admin.create_topic("refused", 1, config=wanted)
    assert refused.value.sentence.endswith(sentence)
    equal = {**wanted, "local.retention.ms": "5000", "retention.ms": "5000", "local.retention.bytes": "-2"}
    admin.create_topic("equal", 1, config=equal)
    with pytest.raises(LogError, match=r"local\.retention\.ms \(5000\) must be -2 or as retention\.ms \(6000\)"):
        admin.alter_configs("topic", "equal", {"retention.ms": "6000"})


@pytest.mark.long  # tests/broker/test_http.py
def test_monitoring_shows_what_is_copied_read_and_not_copied_yet(
    broker: LocalBroker, admin: Admin, archive: Path
) -> None:
    admin.create_topic("shown", 1, config=SHORT)
    fill(broker, "shown", 0, 600)
    until_short(admin, "shown", 600 - KEPT_RECORDS)
    read_from(broker.bootstrap_servers, "shown", 0, 100)
    lag = (f"{_TOPICS}_remotecopylagbytes", (("topic", "shown"),))
    segments = (f"{_TOPICS}_remotecopylagsegments", (("topic", "shown"),))
    until(lambda: numbers(broker)[lag] == 0, "all closed segments are copied")
    shown = numbers(broker)
    assert shown[segments] == 0
    assert {name for name, _ in shown if name.startswith(_TOPICS)} <= set(PAGE.read_text().split("`"))
    assert shown[f"{_TOPICS}_remotecopybytes_total", ()] > 450 * 128
    assert shown[f"{_TOPICS}_remotecopyrequests_total", ()] == len(list(archive.rglob("*.pylog.zst")))
    assert shown[f"{_TOPICS}_remotefetchbytes_total", ()] > 100 * 128
    assert shown[f"{_TOPICS}_remotefetchrequests_total", ()] >= 1
    assert shown[f"{_TOPICS}_remotecopyerrors_total", ()] == shown[f"{_TOPICS}_remotefetcherrors_total", ()] == 0

    # An archive that is full of somebody else's file.
    (folder,) = (archive / "topics" / "shown").iterdir()
    shutil.move(folder, archive / "away")
    folder.write_text("in the way")
    fill(broker, "shown", 600, 900)
    until(lambda: numbers(broker)[f"{_TOPICS}_remotecopyerrors_total", ()] > 0, "it cannot be copied")
    shown = numbers(broker)
    assert shown[lag] > 10_000
    assert shown[segments] >= 2
    folder.unlink()
    shutil.move(archive / "away", folder)
    until(lambda: numbers(broker)[segments] == 0, "it is copied again")
    admin.alter_configs("topic", "shown", READ_ONLY)
    until(lambda: segments not in numbers(broker), "nothing lags behind of a topic that is not copied")


@pytest.mark.long  # tests/broker/test_http.py
def test_monitoring_shows_how_large_the_archive_is_and_what_is_still_to_be_deleted(
    broker: LocalBroker, admin: Admin, archive: Path
) -> None:
    admin.create_topic("sized", 1, config=SHORT)
    fill(broker, "sized", 0, 600)
    until_short(admin, "sized", 600 - KEPT_RECORDS)
    sized = (("topic", "sized"),)

    def shown(name: str, labels: tuple[tuple[str, str], ...] = sized) -> float:
        return numbers(broker)[name if name.startswith("pylog_") else f"{_TOPICS}_{name}", labels]

    until(lambda: shown("remotecopylagsegments") == 0, "all closed segments are copied")
    (folder,) = archive.glob("topics/sized/*/0")
    objects = sorted(folder.glob("*.pylog.zst"))
    manifest = ArchiveLog(str(archive)).manifest("sized", 0)
    assert shown("remotelogmetadatacount") == len(objects) == len(manifest.segments)
    assert shown("pylog_archive_stored_bytes") == sum(path.stat().st_size for path in objects)
    assert shown("remotelogsizebytes") == sum(each.bytes for each in manifest.segments) > 450 * 128
    assert shown("remotelogsizecomputationtime", ()) > 0
    assert shown("remotedeleterequests_total", ()) == shown("remotedeletelagbytes") == 0

    # A folder cannot be deleted as an object can.
    stuck = objects[1]
    stuck.unlink()
    stuck.mkdir()
    admin.alter_configs("topic", "sized", {"retention.bytes": "30000"})
    until(lambda: shown("remotedeleteerrors_total", ()) > 0, "one cannot be deleted")
    said(broker, "what is too old cannot be deleted from the archive now")
    left = ArchiveLog(str(archive)).manifest("sized", 0).segments
    assert shown("remotelogmetadatacount") == len(left) < len(objects)
    assert shown("remotedeletelagsegments") == len(objects) - len(left) - 1, "those behind it wait, too"
    assert shown("remotedeletelagbytes") == sum(each.bytes for each in manifest.segments[1 : len(objects) - len(left)])
    assert shown("remotecopyerrors_total", ()) == 0
    fill(broker, "sized", 600, 900)
    until(lambda: ArchiveLog(str(archive)).manifest("sized", 0).end > manifest.end, "copying goes on")
    stuck.rmdir()
    until(lambda: shown("remotedeletelagsegments") == 0, "it is deleted")
    assert not {path.name for path in objects[: len(objects) - len(left)]} & {path.name for path in folder.iterdir()}
    deleted = shown("remotedeleterequests_total", ())
    assert deleted >= len(objects) - len(left)
    admin.delete_topics(["sized"])
    until(lambda: shown("remotedeleterequests_total", ()) > deleted, "those of a deleted topic count, too")
    assert sized not in {labels for _, labels in numbers(broker)}, "nothing of it is shown"
