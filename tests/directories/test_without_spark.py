"""`read_directory`: a stored topic as Arrow, without Spark and without a broker."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import polars as pl
import pytest

from pylog_spark.client import LogError, read_directory
from tests.directories.support import LEVELS, Logs, flip, record_batches


@pytest.fixture
def logs(ours: dict[str, Logs]) -> Logs:
    """A directory after kill -9."""
    return ours["killed"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_stored_topic_is_a_table_with_the_rows_that_a_client_saw(logs: Logs, level: str) -> None:
    table = read_directory(
        logs.path, "transactions", columns=["partition", "offset", "value"], isolation_level=level
    ).read_all()
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == [(row.partition, row.offset, row.value) for row in logs.seen["transactions", level]]


def test_a_part_is_named_by_partitions_offsets_and_times(logs: Logs) -> None:
    rows = [row for row in logs.seen["plain", "read_uncommitted"] if row.partition == 1]
    middle = rows[len(rows) // 2].offset
    part = read_directory(logs.path, "plain", partitions=[1], start=middle, end=middle + 9).read_all()
    assert part["offset"].to_pylist() == list(range(middle, middle + 9))
    since = datetime.fromtimestamp(rows[100].timestamp_ms / 1_000, timezone.utc)
    first = next(row for row in rows if row.timestamp_ms >= rows[100].timestamp_ms)
    late = read_directory(str(logs.path), "plain", partitions=[1], start=since, columns=["offset"]).read_all()
    assert late["offset"].to_pylist() == [row.offset for row in rows if row.offset >= first.offset]


def test_other_libraries_take_it_batch_by_batch(logs: Logs) -> None:
    frame = pl.from_arrow(read_directory(logs.path, "plain", columns=["key", "offset"]))
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == len(logs.seen["plain", "read_uncommitted"])


def test_what_cannot_be_read_is_one_sentence(logs: Logs) -> None:
    for path, topic, more, sentence in (
        ("/nowhere", "plain", {}, "/nowhere is no data directory of a broker"),
        (str(logs.path), "plane", {}, "has no topic 'plane'"),
        (str(logs.path), "plain", {"partitions": [7]}, "has no partition 7: it has 0 to 1"),
        (str(logs.path), "plain", {"start": 10**9}, "has no offset 1000000000"),
        (str(logs.path), "plain", {"columns": ["values"]}, "A record has no column 'values'"),
    ):
        with pytest.raises(LogError, match=sentence):
            read_directory(path, topic, **more)  # type: ignore[arg-type]


def test_damage_is_an_error_or_left_out_with_a_warning(
    ours: dict[str, Logs], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = ours["stopped"].copy(tmp_path)
    file = logs.segments("stamped")[0]
    batch = record_batches(file)[3]
    flip(file, batch.position + 30)
    with pytest.raises(LogError, match=f"stamped-0, offset {batch.base_offset}: ") as refused:
        read_directory(logs.path, "stamped").read_all()
    assert refused.value.kind == "CORRUPT_BATCH"
    left = read_directory(logs.path, "stamped", ignore_corrupt_batches=True).read_all()
    lost = batch.last_offset - batch.base_offset + 1
    assert left.num_rows == len(logs.seen["stamped", "read_committed"]) - lost
    assert f"{batch.size} bytes at position {batch.position}" in caplog.text
