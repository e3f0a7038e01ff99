"""A topic as lines of JSON (`FILE.jsonl.zst`) and back: the same records, from and to brokers of both kinds, cut and gone on with. About 25 s."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from pylog_spark.archive import lines
from pylog_spark.archive.exporting import ExportOptions
from pylog_spark.archive.line_import import import_lines
from pylog_spark.archive.lines import LinesReader, export_lines, is_lines, verify_lines
from pylog_spark.archive.restoring import RestoreOptions
from pylog_spark.client import Admin, Producer
from pylog_spark.client.consumer import Record
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.directories.support import Row, consumed
from tests.harness import runs
from tests.mirror.support import environment, write_in_transactions

SEED = runs.seed("PYLOG_ARCHIVE_SEED")
ROUNDS = runs.rounds("PYLOG_ARCHIVE_ROUNDS", 6, 60)
COMMAND = (sys.executable, "-m", "pylog_spark")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that each file has many frames."""
    monkeypatch.setattr(lines, "FRAME_BYTES", 5_000)


def fill(servers: str, admin: Admin, topic: str, count: int = 400) -> None:
    """A topic of three partitions with whatever a record may have, and aborted transactions."""
    drawn = random.Random(SEED)
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    admin.create_topic(topic, 3, config={"segment.bytes": "1048576", "retention.ms": "123456789012"})

    def value() -> bytes | None:
        texts = [b"", "Grüße 😀\n\u2028\"'".encode(), b"\xff\x00\xfe", b'{"base64": "AA=="}', drawn.randbytes(30)]
        return drawn.choice([None, *texts])

    with Producer(servers, topic) as producer:
        for number in range(count):
            producer.send(
                value(),
                value(),
                partition=number % 2,
                timestamp_ms=1_700_000_000_000 + drawn.randrange(10**6),
                headers=[(f"h{each}", value()) for each in range(drawn.randrange(3))],
            )
    write_in_transactions(servers, topic, f"{topic}-some", 6)


def exported(servers: str, topic: str, path: Path, **options: int | bool | None) -> Path:
    """Export a topic."""
    export_lines({"bootstrap.servers": servers}, topic, str(path), ExportOptions(**options), lambda _done, _whole: None)
    return path


def imported(servers: str, path: Path, topic: str, resume: bool = False) -> int:
    """Import a file; how many records that appended."""
    given = {"bootstrap.servers": servers}
    reader, options = LinesReader(str(path)), RestoreOptions(topic)
    return import_lines(given, reader, options, resume, lambda _line: None, lambda _done, _whole: None)[1]


def records_of(path: Path) -> list[Record]:
    """The records of a file."""
    return [record for piece in LinesReader(str(path)).pieces() for record in piece.records]


def found_by_verify(path: Path) -> str | None:
    """What is wrong with a file."""
    try:
        verify_lines(str(path))
    except LogError as error:
        return error.sentence
    return None


def content(rows: list[Row]) -> list[tuple[object, ...]]:
    """Rows without their offsets."""
    return [(row.partition, row.key, row.value, row.timestamp_ms, row.headers) for row in rows]


def test_an_imported_topic_has_the_committed_records_in_their_order(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, name: str, tmp_path: Path
) -> None:
    fill(source, admin, name)
    path = exported(source, name, tmp_path / "topic.jsonl.zst")
    rows = consumed(source, name, 3, "read_committed")
    beginning, ending = verify_lines(str(path))
    assert sum(each.records for each in ending.totals) == len(rows) > 400
    assert beginning.configs["segment.bytes"] == "1048576"
    assert imported(target.bootstrap_servers, path, name) == len(rows)
    assert content(consumed(target.bootstrap_servers, name, 3, "read_uncommitted")) == content(rows)
    given = {entry.name: entry.value for entry in copies.configs("topic", [name])[0].configs}
    assert (given["segment.bytes"], given["retention.ms"]) == ("1048576", "-1")
    # And back, which may be an Apache Kafka.
    assert imported(source, path, f"{name}-again") == len(rows)
    assert content(consumed(source, f"{name}-again", 3, "read_uncommitted")) == content(rows)


def test_lines_are_those_that_consume_prints(target: LocalBroker, copies: Admin, name: str, tmp_path: Path) -> None:
    fill(target.bootstrap_servers, copies, name, 50)
    path = exported(target.bootstrap_servers, name, tmp_path / "topic.jsonl.zst")
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
        text = stream.read()
    words = [*COMMAND, "consume", name, "--from-beginning", "--exit-at-end", "--json"]
    words += ["--client-config", "isolation.level=read_committed"]
    at = {**environment(), "PYLOG_BOOTSTRAP_SERVERS": target.bootstrap_servers}
    printed = subprocess.run(words, env=at, capture_output=True, check=True, timeout=120).stdout
    assert sorted(text.splitlines()) == sorted(printed.splitlines())
    if shutil.which("zstd") is not None:
        assert subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout == text
    for line in text.splitlines():
        assert json.loads(line)["topic"] == name


@pytest.mark.long  # test_cuts.py
def test_an_export_that_was_cut_anywhere_goes_on_to_the_same_file(
    source: str, admin: Admin, name: str, tmp_path: Path
) -> None:
    fill(source, admin, name)
    path = exported(source, name, tmp_path / "topic.jsonl.zst")
    whole, read = path.read_bytes(), verify_lines(str(path))
    drawn = random.Random(SEED)
    for cut in [0, 5, len(whole) - 1, *(drawn.randrange(len(whole)) for _ in range(ROUNDS))]:
        again = tmp_path / f"{cut}.jsonl.zst"
        part = tmp_path / f"{cut}.jsonl.zst.part"
        part.write_bytes(whole[:cut])
        with pytest.raises(LogError, match="from an export that was cut: go on with --resume"):
            exported(source, name, again)
        exported(source, name, again, resume=True)
        assert not part.exists()
        found = verify_lines(str(again))
        # Frames may end at other records: the records are the same.
        assert [each.records for each in found[1].totals] == [each.records for each in read[1].totals]
        assert records_of(again) == records_of(path)


def test_damage_anywhere_is_found(source: str, admin: Admin, name: str, tmp_path: Path) -> None:
    fill(source, admin, name, 100)
    path = exported(source, name, tmp_path / "topic.jsonl.zst")
    whole = path.read_bytes()
    assert is_lines(str(path))
    drawn = random.Random(SEED)
    harmed, records, unharmed = tmp_path / "harmed", records_of(path), 0
    for _ in range(ROUNDS * 5):
        at = drawn.randrange(len(whole))
        harmed.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << drawn.randrange(8))]) + whole[at + 1 :])
        found = found_by_verify(harmed)
        assert found is None or "cannot be read as an archive" in found
        if found is None:
            # zstandard has bits that mean nothing.
            unharmed += 1
            assert records_of(harmed) == records
    assert unharmed <= ROUNDS
    for cut in [drawn.randrange(len(whole)) for _ in range(ROUNDS)]:
        harmed.write_bytes(whole[:cut])
        with pytest.raises(LogError, match="cannot be read as an archive"):
            verify_lines(str(harmed))
    harmed.write_bytes(whole + b"x")
    with pytest.raises(LogError, match="something follows behind its end"):
        verify_lines(str(harmed))


def test_an_import_that_was_cut_goes_on_and_no_other_topic_is_touched(
    source: str, target: LocalBroker, admin: Admin, copies: Admin, name: str, tmp_path: Path
) -> None:
    fill(source, admin, name)
    servers = target.bootstrap_servers
    path = exported(source, name, tmp_path / "topic.jsonl.zst")
    rows = content(consumed(source, name, 3, "read_committed"))
    copies.create_topic(name, 3)
    with pytest.raises(LogError, match="is there: give another name with --topic, or --resume"):
        imported(servers, path, name)
    # What an import that was killed leaves: the first records of some partitions.
    some = [[row for row in rows if row[0] == number] for number in range(3)]
    with Producer(servers, name) as producer:
        for number, key, value, stamp, headers in [*some[0][:130], *some[1][:1]]:
            producer.send(value, key, partition=number, timestamp_ms=stamp, headers=headers)
    assert imported(servers, path, name, resume=True) == len(rows) - 131
    assert content(consumed(servers, name, 3, "read_uncommitted")) == rows
    assert imported(servers, path, name, resume=True) == 0
    with Producer(servers, name) as producer:
        producer.send(b"somebody else's", partition=2)
    with pytest.raises(LogError, match="has 1 records more than the file"):
        imported(servers, path, name, resume=True)
    copies.create_topic(f"{name}-other", 2)
    with pytest.raises(LogError, match="has 2 partitions and the file 3"):
        imported(servers, path, f"{name}-other", resume=True)


@pytest.mark.long  # the functions: above and below
def test_commands_write_verify_and_import_lines(target: LocalBroker, copies: Admin, name: str, tmp_path: Path) -> None:
    fill(target.bootstrap_servers, copies, name, 50)
    path = tmp_path / "topic.jsonl.zst"

    def pylog(*words: str | Path, code: int = 0) -> str:
        at = {**environment(), "PYLOG_BOOTSTRAP_SERVERS": target.bootstrap_servers}
        done = subprocess.run(
            [*COMMAND, "archive", *map(str, words)], env=at, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    records = len(consumed(target.bootstrap_servers, name, 3, "read_committed"))
    assert pylog("export", name, "-o", path) == f"{path}: {records} records in 3 partitions of topic {name}.\n"
    assert f"{path} is whole: {records} records" in pylog("verify", path)
    said = pylog("import", path, "--topic", f"{name}-copy")
    assert f"Topic {name}-copy is whole: {records} records imported.\n" in said
    assert "retention.ms=123456789012 of the archive is not set" in said
    assert "is there: delete it, or name another file" in pylog("export", name, "-o", path, code=1)
    os.truncate(path, path.stat().st_size - 3)
    assert "cannot be read as an archive" in pylog("verify", path, code=1)
    other = tmp_path / "topic.pylog.zst"
    pylog("export", name, "-o", other)
    assert "--resume is for files of lines" in pylog("import", other, "--topic", f"{name}-c", "--resume", code=2)
