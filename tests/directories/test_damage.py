"""Damaged bytes, files that are missing or half written, a broker that died at any step: what is whole is read, the rest is an error or told."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pylog_spark._native import LogDirectory
from pylog_spark.errors import PylogError
from tests.directories.support import LEVELS, Batch, Logs, Row, flip, record_batches, stored
from tests.harness.runs import rounds, seed

#: Bytes of a batch that the checksum of Kafka's format does not cover. Nobody sees a wrong epoch, and a wrong offset only by what stands behind.
FIRST_OFFSET, LEADER_EPOCH = frozenset(range(8)), frozenset(range(12, 16))
TOPICS = ("plain", "stamped", "transactions", "compacted")


@pytest.fixture
def copied(kinds: dict[str, Logs], tmp_path: Path) -> Callable[[str], Logs]:
    """Makes a copy of the directory of each kind in a state, which may be harmed."""
    return lambda state: kinds[state].copy(tmp_path)


def assigned(topic: str, partition: int, start: int, end: int) -> dict[str, str]:
    """The options of a range of one partition."""
    places = {"startingOffsets": start, "endingOffsets": end}
    spans = {name: f'{{"{topic}":{{"{partition}":{offset}}}}}' for name, offset in places.items()}
    return {"assign": f'{{"{topic}":[{partition}]}}', **spans}


def of(rows: list[Row], partition: int) -> list[Row]:
    return [row for row in rows if row.partition == partition]


def without(rows: list[Row], partition: int, lost: list[Batch]) -> list[Row]:
    """What is left of rows when batches of a partition are lost."""
    gone = {offset for batch in lost for offset in range(batch.base_offset, batch.last_offset + 1)}
    return [row for row in rows if row.partition != partition or row.offset not in gone]


def damaged_batch(logs: Logs) -> tuple[Path, Batch, list[Row]]:
    """A batch in the middle of the first file, one byte of which is changed, and the rows of its partition."""
    file = logs.segments("plain")[0]
    whole = record_batches(file)
    batch = whole[len(whole) // 2]
    flip(file, batch.position + batch.size - 3)
    return file, batch, of(logs.seen["plain", "read_committed"], 0)


def test_a_damaged_batch_is_an_error_that_names_file_position_and_offset(copied: Callable[[str], Logs]) -> None:
    logs = copied("stopped")
    file, batch, _ = damaged_batch(logs)
    with pytest.raises(
        PylogError, match=f"plain-0, offset {batch.base_offset}: {batch.size} bytes at position"
    ) as refused:
        stored(logs.path, "plain")
    assert refused.value.condition == "PYLOG_CORRUPT_BATCH"
    assert f"position {batch.position} of {file}" in refused.value.sentence
    assert "ignoreCorruptBatches" in refused.value.sentence


def test_what_lies_before_and_behind_a_damaged_batch_is_read(copied: Callable[[str], Logs]) -> None:
    logs = copied("stopped")
    _, batch, rows = damaged_batch(logs)
    before = assigned("plain", 0, 0, batch.base_offset)
    behind = assigned("plain", 0, batch.last_offset + 1, rows[-1].offset + 1)
    assert stored(logs.path, "plain", **before) == [row for row in rows if row.offset < batch.base_offset]
    assert stored(logs.path, "plain", **behind) == [row for row in rows if row.offset > batch.last_offset]


def test_damage_right_before_the_recovery_point_does_not_end_what_lies_behind(copied: Callable[[str], Logs]) -> None:
    logs = copied("stopped")
    file = logs.segments("plain")[-1]
    whole, rows = record_batches(file), of(logs.seen["plain", "read_committed"], 0)
    before, at = whole[len(whole) // 2 : len(whole) // 2 + 2]
    point = logs.path / "recovery-point-offset-checkpoint"
    point.write_text(f"0\n1\nplain 0 {at.base_offset}\n")
    flip(file, before.position + before.size - 1)
    behind = assigned("plain", 0, at.base_offset, rows[-1].offset + 1)
    assert stored(logs.path, "plain", **behind) == [row for row in rows if row.offset >= at.base_offset]
    with pytest.raises(PylogError, match=f"plain-0, offset {before.base_offset}: "):
        stored(logs.path, "plain")


def test_damage_is_left_out_where_that_is_wanted_and_told(
    copied: Callable[[str], Logs], caplog: pytest.LogCaptureFixture
) -> None:
    logs = copied("stopped")
    file, batch, _ = damaged_batch(logs)
    found = stored(logs.path, "plain", ignoreCorruptBatches="true")
    assert found == without(logs.seen["plain", "read_committed"], 0, [batch])
    (line,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert f"plain-0, offset {batch.base_offset}: {batch.size} bytes at position {batch.position} of {file}" in line
    assert f"the next one begins at offset {batch.last_offset + 1}" in line


def test_a_time_that_is_looked_for_across_damage_is_an_error_and_no_guess(copied: Callable[[str], Logs]) -> None:
    logs = copied("stopped")
    file = logs.segments("stamped")[0]
    whole = record_batches(file)
    batch, behind = whole[2], whole[-1]
    flip(file, batch.position + 16)  # the version of the format: not even a header
    rows = logs.seen["stamped", "read_committed"]
    late = next(row.timestamp_ms for row in rows if row.offset == behind.base_offset)
    with pytest.raises(PylogError, match=f"stamped-0, offset {batch.base_offset}: ") as refused:
        stored(logs.path, "stamped", startingTimestamp=late)
    assert refused.value.condition == "PYLOG_CORRUPT_BATCH"
    found = stored(logs.path, "stamped", startingTimestamp=late, ignoreCorruptBatches="true")
    first = next(row.offset for row in without(rows, 0, [batch]) if row.timestamp_ms >= late)
    assert found == [row for row in rows if row.offset >= first]


def is_seen(batch: Batch, before: bytes, after: bytes, is_last: bool) -> bool:
    """Whether anything shows that a batch is damaged."""
    end = batch.position + batch.size
    both = zip(before[batch.position : end], after[batch.position : end], strict=True)
    changed = {place for place, (one, other) in enumerate(both) if one != other}
    return not changed <= (LEADER_EPOCH | FIRST_OFFSET if is_last else LEADER_EPOCH)


@pytest.mark.parametrize("topic", ["plain", "transactions"])
def test_whatever_bytes_are_damaged_all_other_batches_are_read(copied: Callable[[str], Logs], topic: str) -> None:
    logs = copied("killed")
    chosen = seed("PYLOG_DIRECTORIES_SEED")
    print(f"PYLOG_DIRECTORIES_SEED={chosen}")
    drawn = random.Random(chosen)
    kept = {file: file.read_bytes() for partition in (0, 1) for file in logs.segments(topic, partition)}
    for _ in range(rounds("PYLOG_DIRECTORIES_ROUNDS", 15, 300)):
        file = drawn.choice(list(kept))
        whole = record_batches(file)
        start = drawn.randrange(whole[-1].position + whole[-1].size)
        data = bytearray(kept[file])
        length = min(drawn.choice([1, 8, 100, 5_000, 300_000]), len(data) - start)
        data[start : start + length] = bytes(length) if drawn.random() < 0.5 else drawn.randbytes(length)
        lost = [
            batch
            for batch in whole
            if data[batch.position : batch.position + batch.size]
            != kept[file][batch.position : batch.position + batch.size]
        ]
        partition = int(file.parent.name[-1])
        last = whole[-1] if file == logs.segments(topic, partition)[-1] else None
        if not all(is_seen(batch, kept[file], data, batch is last) for batch in lost):
            continue
        file.write_bytes(data)
        for level in LEVELS:
            found = stored(logs.path, topic, isolationLevel=level, ignoreCorruptBatches="true")
            expected = without(logs.seen[topic, level], partition, lost)
            if level == "read_committed" and any(batch.last_offset > expected[-1].offset for batch in lost):
                # Of a log of which the end is lost nobody knows that a transaction was still open in it.
                found = [row for row in found if row in expected]
            if level == "read_committed" and any(batch.is_control for batch in lost):
                # Nor of a transaction whose marker is lost how it ended.
                assert set(found) <= set(expected), (file.name, start, length)
                continue
            assert found == expected, (file.name, start, length)
        file.write_bytes(kept[file])


@pytest.mark.parametrize("topic", ["plain", "transactions"])
def test_a_log_that_was_cut_anywhere_is_read_to_its_last_whole_batch(
    copied: Callable[[str], Logs], topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    logs = copied("killed")
    file = logs.segments(topic)[-1]
    whole, rows = record_batches(file), of(logs.seen[topic, "read_uncommitted"], 0)
    drawn = random.Random(seed("PYLOG_DIRECTORIES_SEED"))
    at_edges = [
        0,
        1,
        whole[0].size - 1,
        whole[-1].position,
        whole[-1].position + 1,
        whole[-1].position + 60,
        whole[-1].position + whole[-1].size - 1,
    ]
    for size in sorted([*at_edges, *drawn.choices(range(whole[-1].position), k=10)], reverse=True):
        os.truncate(file, size)
        left = [batch for batch in whole if batch.position + batch.size <= size]
        end = left[-1].last_offset + 1 if left else whole[0].base_offset
        caplog.clear()
        found = of(stored(logs.path, topic, isolationLevel="read_uncommitted"), 0)
        assert found == [row for row in rows if row.offset < end]
        torn = size - (left[-1].position + left[-1].size if left else 0)
        warnings = [each.message for each in caplog.records if "no whole batches" in each.message]
        assert len(warnings) == (1 if torn else 0)
        assert all(f"offset {end}: {torn} bytes" in line for line in warnings)


@pytest.mark.parametrize("tail", [bytes(10_000), b"\x07" * 10_000, b"x"])
def test_bytes_behind_the_last_batch_are_told_and_not_read(
    copied: Callable[[str], Logs], tail: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    logs = copied("killed")
    file = logs.segments("stamped")[-1]
    with file.open("ab") as log:
        log.write(tail)
    assert stored(logs.path, "stamped") == logs.seen["stamped", "read_committed"]
    assert f"{len(tail)} bytes at position" in caplog.text
    assert stored(logs.path, "stamped", ignoreCorruptBatches="true") == logs.seen["stamped", "read_committed"]


def test_a_log_that_is_shorter_than_its_broker_had_synced_is_told(
    copied: Callable[[str], Logs], caplog: pytest.LogCaptureFixture
) -> None:
    logs = copied("stopped")
    file, rows = logs.segments("stamped")[-1], logs.seen["stamped", "read_committed"]
    last = record_batches(file)[-1]
    os.truncate(file, last.position)
    assert stored(logs.path, "stamped") == without(rows, 0, [last])
    assert f"synced it up to offset {last.last_offset + 1}; was all of it copied?" in caplog.text


@pytest.mark.parametrize("state", ["running", "killed", "stopped"])
@pytest.mark.parametrize("harm", ["no indexes", "wild indexes", "no checkpoints", "no snapshots"])
def test_without_what_stands_beside_the_log_the_rows_are_the_same(
    copied: Callable[[str], Logs], state: str, harm: str
) -> None:
    logs = copied(state)
    drawn = random.Random(9)
    for path in list(logs.path.rglob("*")):
        if path.suffix in (".index", ".timeindex") and harm == "no indexes":
            path.unlink()
        if path.suffix in (".index", ".timeindex") and harm == "wild indexes":
            path.write_bytes(drawn.randbytes(800))
        if path.parent == logs.path and path.is_file() and harm == "no checkpoints" and path.name != "meta.properties":
            path.unlink()
        if path.suffix == ".snapshot" and harm == "no snapshots":
            path.unlink()
    for topic in TOPICS:
        for level in LEVELS:
            assert stored(logs.path, topic, isolationLevel=level) == logs.seen[topic, level]
    if harm != "wild indexes":  # what they say of times is believed, as by the brokers
        rows = of(logs.seen["plain", "read_uncommitted"], 0)
        for row in rows[:: len(rows) // 20]:
            first = next(other for other in rows if other.timestamp_ms >= row.timestamp_ms)
            ((_, _, offset, _),) = LogDirectory(str(logs.path)).list_offsets([("plain", 0, row.timestamp_ms)])
            assert offset == first.offset


@pytest.mark.parametrize("harm", [b"", b"nonsense", bytes(68)])
def test_an_index_of_aborted_transactions_that_makes_no_sense_is_made_of_the_batches(
    copied: Callable[[str], Logs], harm: bytes
) -> None:
    logs = copied("stopped")
    for partition in (0, 1):
        for file in logs.segments("transactions", partition, "txnindex"):
            file.write_bytes(harm + file.read_bytes()[: -1 if not harm else None])
    assert stored(logs.path, "transactions") == logs.seen["transactions", "read_committed"]


def test_a_broker_that_died_at_any_step_of_a_compaction_leaves_the_same_rows(copied: Callable[[str], Logs]) -> None:
    logs = copied("stopped")
    rows = logs.seen["plain", "read_committed"]
    first, second = logs.segments("plain")[:2]
    merged = first.read_bytes() + second.read_bytes()
    cleaned = first.with_name(f"{first.name}.cleaned")
    cleaned.write_bytes(merged[: len(merged) // 2])
    assert stored(logs.path, "plain") == rows, "a half written segment does not count"
    cleaned.write_bytes(merged)
    swap = cleaned.rename(first.with_name(f"{first.name}.swap"))
    assert stored(logs.path, "plain") == rows, "it counts, and what it replaces does not"
    for number, old in enumerate((second, first)):
        old.rename(old.with_name(f"{old.name}.deleted"))
        assert stored(logs.path, "plain") == rows, number
    swap.rename(first)
    assert stored(logs.path, "plain") == rows, "done"


def test_a_group_of_which_not_all_was_renamed_does_not_count(copied: Callable[[str], Logs]) -> None:
    logs = copied("stopped")
    first, second = logs.segments("plain")[:2]
    shutil.copy(first, f"{first}.cleaned")
    Path(f"{second}.swap").write_bytes(b"half")
    assert stored(logs.path, "plain") == logs.seen["plain", "read_committed"]


def test_a_file_that_is_missing_in_the_middle_is_told(
    copied: Callable[[str], Logs], caplog: pytest.LogCaptureFixture
) -> None:
    logs = copied("stopped")
    files = logs.segments("plain")
    lost = record_batches(files[1])
    files[1].unlink()
    assert stored(logs.path, "plain") == without(logs.seen["plain", "read_committed"], 0, lost)
    assert f"plain-0, offset {lost[0].base_offset}" in caplog.text
    assert "was the topic compacted, or is a file missing?" in caplog.text


def test_records_behind_an_open_transaction_are_not_read_and_that_is_told(
    kinds: dict[str, Logs], caplog: pytest.LogCaptureFixture
) -> None:
    logs = kinds["killed"]
    committed = of(stored(logs.path, "transactions"), 1)
    assert committed == of(logs.seen["transactions", "read_committed"], 1)
    (first,) = [row.offset for row in logs.seen["transactions", "read_uncommitted"] if row.value == b"open"]
    assert f"transactions-1 is read up to offset {first} of {first + 2}" in caplog.text
