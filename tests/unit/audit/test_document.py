"""The stored form of counts, and how timestamps fall into windows."""

import json
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog_spark.audit.comparing import Difference, compare, why_not
from pylog_spark.audit.counting import count_windows
from pylog_spark.audit.document import AuditRecord, count_in, parse, window_start

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MINUTE = 60_000


@given(st.text(), st.integers(-(10**6), 10**6), st.integers(1, 10**8), st.integers(0, 1 << 50), st.text(max_size=20))
def test_an_audit_record_is_read_as_it_was_written(
    topic: str, number: int, window_ms: int, records: int, producer: str
) -> None:
    record = AuditRecord(topic, number * window_ms, window_ms, records, producer)
    assert parse(record.value) == record


@given(
    st.none()
    | st.binary()
    | st.recursive(st.integers() | st.text() | st.none(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_what_is_no_audit_record_is_none(value: bytes | None) -> None:
    assert parse(value) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": "1"},
        {"topic": None},
        {"records": -1},
        {"records": 1.5},
        {"records": True},
        {"windowMs": 0},
        {"windowStartMs": MINUTE + 1},
        {"windowStartMs": 1 << 60},
        {"producer": 7},
    ],
)
def test_an_audit_record_with_a_field_that_makes_no_sense_is_none(change: dict[str, object]) -> None:
    sound = json.loads(AuditRecord("t", MINUTE, MINUTE, 3, "p").value)
    assert parse(json.dumps(sound).encode()) is not None
    assert parse(json.dumps({**sound, **change}).encode()) is None


def test_short_windows_make_up_longer_ones_and_others_do_not() -> None:
    said = AuditRecord("t", 7 * MINUTE, MINUTE, 3, "p").value
    assert count_in(said, 5 * MINUTE) == ("t", 5 * MINUTE, 3)
    assert count_in(said, MINUTE // 2) is None
    assert count_in(said, 90_000) is None


@settings(deadline=None)  # the first one loads pyarrow's functions
@given(st.lists(st.none() | st.integers(-(10**10), 10**13), max_size=50), st.integers(1, 10**9))
def test_timestamps_are_counted_each_in_its_window(times_ms: list[int | None], window_ms: int) -> None:
    stamps = pa.array([None if ms is None else ms * 1_000 for ms in times_ms], pa.timestamp("us", "UTC"))
    counted = dict(count_windows(stamps, window_ms))
    real = [ms for ms in times_ms if ms is not None]
    assert sum(counted.values()) == len(real)
    for start_ms, count in counted.items():
        begin = EPOCH + timedelta(milliseconds=start_ms)
        end = begin + timedelta(milliseconds=window_ms)
        assert count == sum(begin <= EPOCH + timedelta(milliseconds=ms) < end for ms in real)
        assert start_ms == window_start(start_ms, window_ms)


def test_windows_differ_where_counts_do_and_those_outside_are_left_out() -> None:
    said = {("a", 0): 5, ("a", MINUTE): 5, ("a", 2 * MINUTE): 5, ("b", 0): 1}
    there = {("a", 0): 5, ("a", MINUTE): 4, ("a", 3 * MINUTE): 9, ("b", MINUTE): 2}
    report = compare(said, there, MINUTE, {"b": MINUTE}, 3 * MINUTE)
    assert report.differences == (
        Difference("a", MINUTE, MINUTE, 5, 4),
        Difference("a", 2 * MINUTE, MINUTE, 5, 0),
        Difference("b", MINUTE, MINUTE, 0, 2),
    )
    assert (report.windows, report.records) == (4, 11)


def test_topics_whose_records_change_cannot_be_compared() -> None:
    assert why_not("t", {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}) is None
    assert "compacted" in (why_not("t", {"cleanup.policy": "compact,delete"}) or "")
    assert "LogAppendTime" in (why_not("t", {"message.timestamp.type": "LogAppendTime"}) or "")
