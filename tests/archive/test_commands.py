"""`pylog archive` as processes: what they print, and that exports and imports that are killed go on."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from pylog_spark.archive.checking import verify
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests.archive.support import batches_of, behind_the_end, without_epochs
from tests.harness import runs
from tests.harness.waiting import until
from tests.mirror.support import ends, environment, raw_batches, write

KILLS = runs.rounds("PYLOG_ARCHIVE_KILLS", 1, 30)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")
COMMAND = (sys.executable, "-m", "pylog_spark", "archive")
LARGE = "large"
_LARGE_BYTES = 40 << 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A pylog with a topic of two partitions that takes a moment to export, and to import."""
    drawn = random.Random(1)
    with LocalBroker(tmp_path_factory.mktemp("source")) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topic(LARGE, 2)
        with Producer(running.bootstrap_servers, LARGE) as producer:
            for number in range(_LARGE_BYTES // 10_000):
                producer.send(drawn.randbytes(10_000), partition=number % 2)
        yield running


def pylog(broker: LocalBroker, *words: str | Path, code: int = 0) -> tuple[str, str]:
    """Run `pylog archive` with words; what it printed to both outputs."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)], env=_with(broker), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def killed(broker: LocalBroker, after_s: float, *words: str | Path) -> bool:
    """Run `pylog archive` and kill it after a time; whether it was still running."""
    with subprocess.Popen([*COMMAND, *map(str, words)], env=_with(broker), stderr=subprocess.DEVNULL) as running:
        try:
            running.wait(after_s)
        except subprocess.TimeoutExpired:
            running.kill()
    return running.returncode < 0


def killed_once(broker: LocalBroker, after_s: float, undo: Callable[[], object], *words: str | Path) -> None:
    """Run `pylog archive` and kill it, sooner each time it had ended before that and was undone."""
    while not killed(broker, after_s, *words):
        undo()
        after_s /= 2


def _with(broker: LocalBroker) -> dict[str, str]:
    return {**environment(), "PYLOG_BOOTSTRAP_SERVERS": broker.bootstrap_servers}


def test_a_topic_goes_into_a_file_and_back_and_the_commands_say_how_much(broker: LocalBroker, tmp_path: Path) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("orders", 2, config={"retention.ms": "3600000"})
    write(broker.bootstrap_servers, "orders", (f"{number}" for number in range(1_000)))
    path = tmp_path / "orders.pylog.zst"
    said, _ = pylog(broker, "export", "orders", "-o", path)
    assert said == f"{path}: 1000 records in 2 partitions of topic orders.\n"
    said, whole = pylog(broker, "verify", path)
    assert [line.split()[0] for line in said.splitlines()] == ["TOPIC", "orders", "orders"]
    assert whole == f"{path} is whole: 1000 records in 2 partitions of topic orders.\n"
    document = json.loads(pylog(broker, "verify", path, "--json")[0])
    assert document["begin"]["configs"] == {"retention.ms": "3600000"}
    assert sum(each["records"] for each in document["end"]["totals"]) == 1_000
    said, notes = pylog(broker, "import", path, "--topic", "again")
    assert said.startswith("Topic again is whole: ")
    assert notes == (
        "topic again keeps all records: retention.ms=3600000 of the archive is not set; 'pylog config alter topic again' sets it.\n"
    )
    assert ends(broker.bootstrap_servers, "again", 2) == behind_the_end(ends(broker.bootstrap_servers, "orders", 2))


def test_what_cannot_be_done_is_one_sentence(broker: LocalBroker, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"no archive at all")
    for sentence, words in (
        ("Topic 'nothing' does not exist", ["export", "nothing", "-o", tmp_path / "new"]),
        ("is there: delete it, or name another file.", ["export", LARGE, "-o", other]),
        ("No such file or directory", ["export", LARGE, "-o", tmp_path / "no" / "folder"]),
        ("cannot be read as an archive", ["verify", other]),
        ("cannot be read as an archive", ["import", other]),
    ):
        said, error = pylog(broker, *words, code=1)
        assert (said, error.count("\n")) == ("", 1), error
        assert sentence in error
    assert os.listdir(tmp_path) == ["other"], "nothing is left behind"


@pytest.mark.long  # test_store.py
def test_copies_into_an_archive_that_are_killed_go_on(broker: LocalBroker, tmp_path: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    servers = broker.bootstrap_servers
    behind = ends(servers, LARGE, 2)
    wanted = [raw_batches(servers, LARGE, number, 0, end) for number, end in enumerate(behind)]
    words = ["copy", LARGE, "--segment-bytes", "4000000", "--to"]
    began = time.monotonic()
    said, _ = pylog(broker, *words, tmp_path / "whole")
    takes_s = time.monotonic() - began
    assert said.startswith(f"{LARGE}: {_LARGE_BYTES // 10_000} records in ")
    for turn in range(KILLS):
        url = tmp_path / f"{turn}"
        killed_once(broker, drawn.uniform(0.2, 1) * takes_s, partial(shutil.rmtree, url), *words, url)
        while killed(broker, drawn.uniform(0.2, 1) * takes_s, *words, url):
            pass
        log = ArchiveLog(str(url))
        for number, end in enumerate(behind):
            assert without_epochs(b"".join(log.pieces(LARGE, number, 0, end))) == wanted[number]


def test_a_copy_that_goes_on_copies_what_comes_and_says_what_fails_until_it_is_stopped(
    broker: LocalBroker, tmp_path: Path
) -> None:
    servers, url, log = broker.bootstrap_servers, tmp_path / "archive", tmp_path / "log"
    with Admin(servers) as admin:
        admin.create_topic("coming", 1)
    words = [*COMMAND, "copy", "coming", "--to", str(url), "--every", "0.2"]
    with log.open("w") as out, subprocess.Popen(words, env=_with(broker), stdout=out, stderr=out) as running:
        try:
            until(lambda: "coming: 0 records in 0 segments" in log.read_text(), log.read_text)
            write(servers, "coming", ["one", "two"])
            until(lambda: "coming: 2 records in 1 segment of" in log.read_text(), log.read_text)
            with Admin(servers) as admin:
                admin.alter_configs("topic", "coming", {"cleanup.policy": "compact"})
            until(
                lambda: re.search(r"is compacted.*; this is tried again in 0\.2 s\.\n", log.read_text()), log.read_text
            )
            with Admin(servers) as admin:
                admin.alter_configs("topic", "coming", {"cleanup.policy": "delete"})
            write(servers, "coming", ["three"])
            until(lambda: "coming: 1 record in 1 segment of" in log.read_text(), log.read_text)
            running.terminate()
            assert running.wait(30) == 0, log.read_text()
        finally:
            running.kill()
    assert ArchiveLog(str(url)).manifest("coming", 0).end == 3


@pytest.mark.long  # test_cuts.py
def test_exports_and_imports_that_are_killed_go_on(broker: LocalBroker, tmp_path: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    servers = broker.bootstrap_servers
    behind = ends(servers, LARGE, 2)
    wanted = [raw_batches(servers, LARGE, number, 0, end) for number, end in enumerate(behind)]
    began, whole = time.monotonic(), tmp_path / "whole"
    pylog(broker, "export", LARGE, "-o", whole)
    takes_s = time.monotonic() - began
    _, ending = verify(str(whole))
    with Admin(servers) as admin:
        for turn in range(KILLS):
            path, name = tmp_path / f"{turn}", f"restored-{turn}"
            exported = ("export", LARGE, "-o", path, "--resume")
            killed_once(broker, drawn.uniform(0.2, 1) * takes_s, path.unlink, *exported)
            # A file that is not whole has no name yet.
            while not path.exists():
                killed(broker, drawn.uniform(0.2, 1) * takes_s, *exported)
            assert verify(str(path))[1] == ending
            assert [batches_of(path, number) for number in range(2)] == wanted
            imported = ("import", path, "--topic", name)
            killed_once(broker, drawn.uniform(0.2, 1) * takes_s, partial(admin.delete_topics, [name]), *imported)
            while killed(broker, drawn.uniform(0.2, 1) * takes_s, *imported):
                pass
            assert [raw_batches(servers, name, number, 0, end) for number, end in enumerate(behind)] == wanted
            # The end of the copy may stand there twice, when that was killed.
            assert all(found > end for found, end in zip(ends(servers, name, 2), behind, strict=True))
            path.unlink()
            admin.delete_topics([name])


@pytest.mark.long  # tests/archive/test_store.py
def test_an_archive_is_listed_and_verified(broker: LocalBroker, tmp_path: Path) -> None:
    url = tmp_path / "archive"
    pylog(broker, "copy", LARGE, "--to", url)
    rows = [line.split() for line in pylog(broker, "list", url)[0].splitlines()]
    assert rows[0] == ["TOPIC", "PARTITION", "START", "STABLE", "END", "SEGMENTS", "BYTES"]
    assert [(row[0], row[1], row[2], row[4]) for row in rows[1:]] == [
        (LARGE, number, "0", str(_LARGE_BYTES // 20_000)) for number in "01"
    ]
    (listed,) = json.loads(pylog(broker, "list", url, "--topic", LARGE, "--json")[0])["partitions"][:1]
    assert listed["topic"] == LARGE
    assert f"Read {_LARGE_BYTES // 10_000} records; nothing to report." in pylog(broker, "verify", url)[1]
    harmed = max(url.rglob("*.pylog.zst"), key=lambda path: path.stat().st_size)
    content = bytearray(harmed.read_bytes())
    content[len(content) // 2] ^= 0xFF
    harmed.write_bytes(content)
    assert "is damaged" in pylog(broker, "verify", url, code=1)[1]
    assert "is no archive" in pylog(broker, "list", tmp_path, code=1)[1]
    assert "is neither a file nor an archive" in pylog(broker, "verify", tmp_path / "nowhere", code=1)[1]
