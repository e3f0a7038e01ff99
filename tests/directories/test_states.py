"""A directory gives what a client of its broker saw: of pylog and of Apache Kafka, in use, after kill -9, after a clean stop."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pylog_spark._native import LogDirectory
from tests.directories.support import LEVELS, Logs, Row, stored
from tests.harness.runs import rounds, seed

TOPICS = ("plain", "stamped", "transactions", "compacted")


def rows_of(rows: list[Row], partition: int) -> list[Row]:
    return [row for row in rows if row.partition == partition]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("topic", TOPICS)
def test_a_directory_gives_the_rows_that_a_client_saw(logs: Logs, topic: str, level: str) -> None:
    rows = stored(logs.path, topic, isolationLevel=level)
    assert rows == logs.seen[topic, level]
    assert len(rows) > 30


def test_the_filled_topics_have_what_they_are_meant_to_have(kinds: dict[str, Logs]) -> None:
    logs = kinds["stopped"]
    assert len(logs.segments("plain")) > 2
    committed, every = (logs.seen["transactions", level] for level in LEVELS)
    assert {b"open", b"behind"} <= {row.value for row in every} - {row.value for row in committed}
    assert len(every) - len(committed) > 200, "aborts are hidden"
    assert logs.segments("transactions", suffix="txnindex")
    offsets = [row.offset for row in logs.seen["compacted", "read_uncommitted"]]
    assert offsets[-1] - offsets[0] > 5 * len(offsets), "compaction took most"


def test_any_range_gives_its_part_of_the_rows(logs: Logs) -> None:
    chosen = seed("PYLOG_DIRECTORIES_SEED")
    print(f"PYLOG_DIRECTORIES_SEED={chosen}")
    drawn = random.Random(chosen)
    for _ in range(rounds("PYLOG_DIRECTORIES_ROUNDS", 20, 500)):
        topic, level = drawn.choice(TOPICS), drawn.choice(LEVELS)
        rows = logs.seen[topic, level]
        end = LogDirectory(str(logs.path)).list_offsets([(topic, 0, -1)], level)[0][2]
        first, last = sorted(drawn.choices(range(rows[0].offset, end + 1), k=2))
        spans = {
            name: f'{{"{topic}":{{"0":{place}}}}}'
            for name, place in (("startingOffsets", first), ("endingOffsets", last))
        }
        found = (
            stored(logs.path, topic, assign=f'{{"{topic}":[0]}}', isolationLevel=level, **spans) if first < last else []
        )
        assert found == [row for row in rows_of(rows, 0) if first <= row.offset < last], (topic, level, first, last)


def test_a_time_leads_to_the_record_to_which_it_led_the_client(logs: Logs) -> None:
    chosen = seed("PYLOG_DIRECTORIES_SEED")
    print(f"PYLOG_DIRECTORIES_SEED={chosen}")
    drawn = random.Random(chosen)
    directory = LogDirectory(str(logs.path))
    for topic in TOPICS:
        rows = rows_of(logs.seen[topic, "read_uncommitted"], 0)
        stamps = [row.timestamp_ms for row in rows]
        for wanted in {
            0,
            min(stamps),
            max(stamps),
            max(stamps) + 1,
            *drawn.choices(range(min(stamps), max(stamps) + 1), k=40),
        }:
            ((_, _, offset, stamp),) = directory.list_offsets([(topic, 0, wanted)])
            expected = next((row for row in rows if row.timestamp_ms >= wanted), None)
            if expected is None:
                assert (offset, stamp) == (-1, -1)
            else:
                assert (offset, stamp) == (expected.offset, expected.timestamp_ms), (topic, wanted)


def test_topics_ids_and_internal_ones_are_shown(logs: Logs) -> None:
    directory = LogDirectory(str(logs.path))
    found = {str(topic["name"]): topic for topic in directory.describe_topics(None)}
    assert set(TOPICS) <= found.keys()
    listed = {name: (topic_id, error, numbers) for name, topic_id, _, error, numbers in directory.list_partitions(None)}
    assert listed == {
        name: (topic["topic_id"], None, [each["partition"] for each in topic["partitions"]])
        for name, topic in found.items()
    }
    for name, topic in found.items():
        assert topic["is_internal"] == name.startswith("__")
        metadata = (logs.path / f"{name}-0" / "partition.metadata").read_text()
        assert f"topic_id: {topic['topic_id']}" in metadata.splitlines()


def test_reading_changes_nothing_in_the_directory(logs: Logs) -> None:
    def all_files() -> dict[Path, tuple[int, int]]:
        files = (path for path in logs.path.rglob("*") if path.is_file())
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}

    before = all_files()
    for topic in TOPICS:
        stored(logs.path, topic)
    assert all_files() == before
