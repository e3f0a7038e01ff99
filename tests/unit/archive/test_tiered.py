"""What a broker decides about its archive: pure functions, and the cache of what it reads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pylog_spark.archive.store.manifest import Manifest, StoredSegment
from pylog_spark.archive.tiered.broker import Partition
from pylog_spark.archive.tiered.copier import start_to_keep
from pylog_spark.archive.tiered.known import common_end, epochs_of
from pylog_spark.archive.tiered.reader import Cache


def manifest(
    *segments: tuple[int, int, int], epochs: tuple[tuple[tuple[int, int], ...], ...] = (), start: int = 0
) -> Manifest:
    """One with segments of a first offset, the next one, and the largest timestamp; each has 100 bytes of batches."""
    found = tuple(
        StoredSegment(
            str(first), first, behind, 50, 0, 100, 1, behind - first, newest, epochs=epochs[number] if epochs else ()
        )
        for number, (first, behind, newest) in enumerate(segments)
    )
    return Manifest("t", "id", 0, start, found)


def partition(
    retention_ms: int = -1,
    retention_bytes: int = -1,
    bytes_here: int = 0,
    needed: tuple[int, int, int] | None = None,
    start: int = 20,
    closed_until: int | None = 30,
) -> Partition:
    return Partition("t", "id", 0, 3, start, closed_until, bytes_here, retention_ms, retention_bytes, needed, True)


THREE = manifest((0, 10, 100), (10, 20, 900), (20, 30, 200))


@pytest.mark.parametrize(
    ("at", "start"),
    [
        (partition(), 0),
        (partition(retention_ms=500), 10),
        (partition(retention_ms=50), 30),
        (partition(retention_bytes=300), 0),
        (partition(retention_bytes=299), 0),
        (partition(retention_bytes=200), 10),
        (partition(retention_bytes=200, bytes_here=150), 20),
        (partition(retention_bytes=0, bytes_here=150), 30),
        (partition(retention_ms=500, retention_bytes=100), 20),
        (partition(start=31), 0),
        (partition(start=30, closed_until=None), 0),
        (partition(start=31, closed_until=None), 30),
    ],
)
def test_only_a_run_of_segments_from_the_front_goes_by_time_and_size(at: Partition, start: int) -> None:
    assert start_to_keep(at, THREE, 1_000) == start


@pytest.mark.parametrize(
    ("needed", "start"),
    [
        ((0, -1, -1), 0),
        ((15, -1, -1), 10),
        ((20, -1, -1), 20),
        ((1_000, -1, -1), 30),
        ((0, 500, -1), 10),
        ((0, -1, 200), 10),
        ((25, -1, 200), 20),
        ((0, 0, -1), 30),
    ],
)
def test_what_groups_need_stays_up_to_the_limits_of_that(needed: tuple[int, int, int], start: int) -> None:
    assert start_to_keep(partition(retention_ms=50, needed=needed), THREE, 1_000) == start
    assert start_to_keep(partition(needed=needed), THREE, 1_000) == 0


def test_what_was_deleted_already_is_not_counted_again() -> None:
    shorter = THREE.without_before(12)
    assert start_to_keep(partition(), shorter, 1_000) == 12
    assert start_to_keep(partition(retention_bytes=200), shorter, 1_000) == 12
    assert start_to_keep(partition(retention_bytes=100), shorter, 1_000) == 20


def test_where_all_was_deleted_the_archive_begins_with_what_comes() -> None:
    empty = THREE.without_before(30)
    assert (empty.start, empty.end) == (30, 30)
    (added,) = manifest((45, 50, 1)).segments
    assert (empty.with_segment(added, {}).start, empty.with_segment(added, {}).end) == (45, 50)


#: Epoch 1 from 0 on, 2 from 8 on, 4 from 25 on.
EPOCHS = manifest((0, 10, 1), (10, 20, 1), (20, 30, 1), epochs=(((1, 0), (2, 8)), ((2, 10),), ((2, 20), (4, 25))))


def known(*entries: tuple[int, int], end: int) -> dict[int, tuple[int, int] | None]:
    """What a log with these epochs answers about each epoch, as `LeaderEpochs::end_offset` does."""
    answers: dict[int, tuple[int, int] | None] = {}
    for asked in range(7):
        behind = [entry for entry in entries if entry[0] > asked]
        before = [entry for entry in entries if entry[0] <= asked]
        if not entries or asked > entries[-1][0]:
            answers[asked] = None
        elif not before:
            answers[asked] = (asked, entries[0][1])
        else:
            answers[asked] = (before[-1][0], behind[0][1] if behind else end)
    return answers


@pytest.mark.parametrize(
    ("log", "end"),
    [
        (known((1, 0), (2, 8), (4, 25), end=40), 30),
        (known((4, 28), end=40), 30),
        (known((5, 35), end=40), 30),
        (known((1, 0), (2, 8), (4, 25), end=27), 27),
        (known((1, 0), (2, 8), (5, 22), end=40), 22),
        (known((1, 0), (3, 6), end=40), 6),
        (known(end=0), 0),
    ],
)
def test_an_archive_and_a_log_are_one_history_up_to_where_their_leader_epochs_part(
    log: dict[int, tuple[int, int] | None], end: int
) -> None:
    assert epochs_of(EPOCHS) == [(1, 0), (2, 8), (4, 25)]
    assert common_end(EPOCHS, log.__getitem__) == end


def test_an_archive_with_nothing_in_it_fits_every_log() -> None:
    assert common_end(manifest(), known(end=0).__getitem__) == 0


def test_of_many_who_want_the_same_one_reads_and_what_was_used_longest_ago_goes() -> None:
    reads: list[str] = []
    let_go = threading.Event()
    cache: Cache[str, bytes] = Cache(100, len)

    def read(key: str, size: int) -> bytes:
        reads.append(key)
        assert let_go.wait(30)
        return key.encode() * size

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(cache.get, "a", lambda: read("a", 40)) for _ in range(8)]
        let_go.set()
        assert {answer.result(30) for answer in answers} == {b"a" * 40}
    assert reads == ["a"]
    cache.get("b", lambda: read("b", 40))
    cache.get("a", lambda: read("a", 40))
    cache.get("c", lambda: read("c", 40))
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)
    assert cache.get("large", lambda: read("large", 101)) == b"large" * 101
    assert ("large" in cache, "a" in cache) == (False, True)


def test_who_waits_for_a_read_that_fails_gets_its_error_and_the_next_one_reads_again() -> None:
    cache: Cache[str, bytes] = Cache(100, len)

    def fail() -> bytes:
        raise OSError("the store is gone")

    with pytest.raises(OSError, match="the store is gone"):
        cache.get("a", fail)
    assert cache.get("a", lambda: b"back") == b"back"
