"""Exports and imports that are cut anywhere go on, and files that are damaged anywhere are called so."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.archive.checking import ArchiveReader, verify
from pylog_spark.archive.container import members
from pylog_spark.archive.restoring import RestoreOptions, restore
from pylog_spark.client import Admin, Producer
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.support import batches_of, behind_the_end, exported, restored
from tests.harness import runs
from tests.mirror.support import ends, raw_batches, write, write_in_transactions

CUTS = runs.rounds("PYLOG_ARCHIVE_CUTS", 25, 400)
DAMAGES = runs.rounds("PYLOG_ARCHIVE_DAMAGES", 60, 2_000)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")
TOPIC = "archived"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A pylog with a topic of two partitions."""
    with LocalBroker(tmp_path_factory.mktemp("source")) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topic(TOPIC, 2)
        for _ in range(30):
            write(running.bootstrap_servers, TOPIC, (f"{number:050}" for number in range(40)))
        write_in_transactions(running.bootstrap_servers, TOPIC, "some", 4)
        yield running


@pytest.fixture(scope="module")
def whole(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of the topic that was not cut."""
    with Admin(broker.bootstrap_servers) as admin:
        return exported(admin, TOPIC, tmp_path_factory.mktemp("whole") / "topic.pylog.zst")


def test_an_export_that_was_cut_anywhere_goes_on(broker: LocalBroker, whole: Path, tmp_path: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    content = whole.read_bytes()
    edges = [member.end for member in members(str(whole))]
    assert len(edges) > 15
    cuts = [0, 1, *edges, *(drawn.randrange(len(content)) for _ in range(CUTS))]
    with Admin(broker.bootstrap_servers) as admin:
        for cut in cuts:
            path = tmp_path / f"{cut}.pylog.zst"
            path.with_name(f"{path.name}.part").write_bytes(content[:cut])
            with pytest.raises(LogError, match="--resume"):
                exported(admin, TOPIC, path)
            exported(admin, TOPIC, path, resume=True)
            assert not path.with_name(f"{path.name}.part").exists()
            if cut >= edges[1]:
                assert path.read_bytes() == content, f"cut at {cut}"
            else:
                # When it began is said anew.
                assert [batches_of(path, number) for number in range(2)] == [
                    batches_of(whole, number) for number in range(2)
                ]
            path.unlink()


def test_an_export_does_not_go_on_with_another_topic_of_that_name(broker: LocalBroker, tmp_path: Path) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("again", 1)
        path = exported(admin, "again", tmp_path / "again.pylog.zst")
        path.rename(path.with_name(f"{path.name}.part"))
        admin.delete_topics(["again"])
        admin.create_topic("again", 1)
        with pytest.raises(LogError, match="another topic again"):
            exported(admin, "again", path, resume=True)


class Cut(Exception):
    """The import ends here, as by a kill."""


def test_an_import_that_was_cut_anywhere_goes_on_and_nobody_else_writes_before(
    broker: LocalBroker, whole: Path
) -> None:
    servers = broker.bootstrap_servers
    until = ends(servers, TOPIC, 2)
    wanted = [raw_batches(servers, TOPIC, number, 0, end) for number, end in enumerate(until)]
    steps = sum(".log" in member.name for member in members(str(whole)))
    with Admin(servers) as admin:
        for step in range(1, steps + 1):
            name, left = f"restored-{step}", [step]

            def report(_done: int, _whole: int, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] == 0:
                    raise Cut

            with pytest.raises(Cut):
                restore(admin, ArchiveReader(str(whole)), RestoreOptions(name), print, report)
            with pytest.raises(LogError, match="pylog archive import"), Producer(servers, name) as producer:
                producer.send(b"from somebody else", partition=0)
            restored(admin, whole, name)
            found = [raw_batches(servers, name, number, 0, end) for number, end in enumerate(until)]
            assert found == wanted, f"cut after {step} segments"
            assert ends(servers, name, 2) == behind_the_end(until)


def test_an_archive_that_was_cut_or_damaged_is_called_so_or_has_all_that_was_in_it(whole: Path, tmp_path: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    content = whole.read_bytes()
    right = verify(str(whole))
    path = tmp_path / "damaged.pylog.zst"
    sentences = []
    for turn in range(DAMAGES):
        damaged = bytearray(content)
        at = drawn.randrange(len(content))
        if turn % 3 == 0:
            del damaged[at:]
        elif turn % 3 == 1:
            damaged[at] ^= 1 << drawn.randrange(8)
        else:
            damaged[at:at] = drawn.randbytes(drawn.randrange(1, 40))
        path.write_bytes(damaged)
        try:
            assert verify(str(path)) == right, f"damage {turn}"
        except LogError as error:
            sentences.append(error.sentence)
    assert len(sentences) > DAMAGES * 0.9
    assert [sentence for sentence in sentences if str(path) not in sentence] == []


@pytest.mark.parametrize("content", [b"", b"no archive", bytes(100), b"\x28\xb5\x2f\xfd" + bytes(40)])
def test_another_file_is_refused_in_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(LogError, match=r"cannot be read as an archive: .*\.$"):
        verify(str(path))
