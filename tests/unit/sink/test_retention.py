"""When rows are too old for their topic, and how that is said."""

import pyarrow as pa
import pytest

from pylog_spark.sink.retention import Oldest, warning

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
WEEK = {"retention.ms": str(7 * DAY_MS), "cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}


def batch(stamps: list[int | None], unit: str = "us", **columns: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"timestamp": pa.array(stamps, pa.timestamp(unit, "UTC")), **columns})


def test_the_oldest_time_of_all_batches_is_kept_in_ms() -> None:
    oldest = Oldest("t")
    for stamps in ([5_000_000, None, 3_000_999], [None], [9_000_000]):
        given = batch(stamps)
        assert oldest.seen(given) is given
    assert oldest.times_ms == {"t": 3_000}


def test_rows_that_name_their_topic_are_looked_at_by_topic() -> None:
    oldest = Oldest(None)
    oldest.seen(batch([5_000, 3_000, 4_000], "ms", topic=["a", "b", "a"]))
    assert oldest.times_ms == {"a": 4_000, "b": 3_000}


def test_without_the_column_nothing_is_looked_at() -> None:
    oldest = Oldest("t")
    oldest.seen(pa.record_batch({"value": ["x"]}))
    assert oldest.times_ms == {}


def test_the_warning_says_how_old_what_deletes_and_what_to_set() -> None:
    sentence = warning("t", NOW_MS, NOW_MS - 8 * DAY_MS, WEEK)
    assert sentence is not None
    assert "2023-11-06 22:13:20+00:00" in sentence
    assert "retention.ms of 604800000 (7 days)" in sentence
    assert "pylog config alter topic t --set retention.ms=-1" in sentence


@pytest.mark.parametrize(
    "settings",
    [
        {**WEEK, "retention.ms": "-1"},
        {**WEEK, "retention.ms": str(9 * DAY_MS)},
        {**WEEK, "cleanup.policy": "compact"},
        {**WEEK, "message.timestamp.type": "LogAppendTime"},
        {},
    ],
)
def test_there_is_no_warning_of_a_topic_that_keeps_the_rows(settings: dict[str, str]) -> None:
    assert warning("t", NOW_MS, NOW_MS - 8 * DAY_MS, settings) is None


def test_a_topic_that_compacts_and_deletes_deletes() -> None:
    assert warning("t", NOW_MS, NOW_MS - 8 * DAY_MS, {**WEEK, "cleanup.policy": "compact,delete"}) is not None
