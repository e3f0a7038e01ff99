"""Filters by option: how they are written, what they take, what they cut from the planned ranges."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.errors import PylogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.filters import IN, PREFIX, RANGE, BytesTest, RecordFilter, parse_keys, parse_prefixes
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.offsets.spans import BEYOND, EVERY, LOWEST, Spans, parse_numbers, parse_times
from pylog_spark.options import BATCH, STREAM, read_options

BASE = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)

SPAN = st.tuples(st.integers(-20, 20), st.integers(-20, 20))
SPANS = st.lists(SPAN, max_size=6)


def refusal(**given: str) -> str:
    with pytest.raises(PylogError) as caught:
        read_options({**BASE, **given}, BATCH)
    assert caught.value.condition == "PYLOG_INVALID_OPTION"
    return caught.value.sentence


@given(SPANS, SPANS, st.integers(-25, 25))
def test_a_number_is_in_both_sets_exactly_when_it_is_in_each(
    left: list[tuple[int, int]], right: list[tuple[int, int]], number: int
) -> None:
    spans, other = Spans.of(left), Spans.of(right)
    assert (number in spans) == any(low <= number < high for low, high in left)
    assert (number in spans & other) == (number in spans and number in other)
    assert spans & other == other & spans == Spans.of((spans & other).spans)
    assert spans & EVERY == spans


def test_numbers_are_written_one_by_one_or_as_half_open_ranges() -> None:
    assert parse_numbers("7") == Spans.of([(7, 8)])
    assert parse_numbers(" 0, 3 ,8 .. 12,11") == Spans.of([(0, 1), (3, 4), (8, 12)])
    assert parse_numbers("100..") == Spans.of([(100, BEYOND)])
    assert parse_numbers("..5,5..7") == Spans.of([(LOWEST, 7)])


@pytest.mark.parametrize("text", ["", "..", "1,", "-1", "1.5", "a..b", "1..2..3", "٣", "9" * 30])
def test_other_texts_for_numbers_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="must be numbers and ranges such as"):
        parse_numbers(text)


def test_an_empty_range_is_refused_because_it_must_be_a_mistake() -> None:
    assert "filterOffset has the empty range '9..9'; its start must be lower than its end" in refusal(
        filterOffset="1,9..9"
    )


def test_times_are_milliseconds_or_iso_with_a_zone() -> None:
    assert parse_times("1000..2000") == Spans.of([(1000, 2000)])
    assert parse_times("1970-01-01T00:00:01Z..1970-01-01T01:00:02.500+01:00") == Spans.of([(1000, 2500)])
    assert parse_times("1969-12-31T23:59:59.999Z") == Spans.of([(-1, 0)])
    assert parse_times("..1970-01-01T00:00:00z") == Spans.of([(LOWEST, 0)])


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00", "2026-01-01T00:00:00.0005Z", "yesterday", "1.."[:2]])
def test_a_time_without_zone_or_finer_than_a_millisecond_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601 with a zone"):
        parse_times(text)


def test_keys_are_a_text_or_a_json_array() -> None:
    assert parse_keys("a,b") == BytesTest(IN, (b"a,b",))
    assert parse_keys(" ") == BytesTest(IN, (b" ",))
    assert parse_keys('["ä", null, {"hex": "00FF"}]') == BytesTest(IN, ("ä".encode(), None, b"\0\xff"))
    assert parse_prefixes('["a", {"hex": ""}]') == BytesTest(PREFIX, (b"a", b""))


@pytest.mark.parametrize(
    ("option", "text"),
    [("filterKey", "[1]"), ("filterKey", '[{"hex":"0"}]'), ("filterKey", '[{"x":"0"}]'), ("filterKeyPrefix", "[null]")],
)
def test_a_key_of_another_kind_is_refused(option: str, text: str) -> None:
    assert f"The option {option} takes texts" in refusal(**{option: text})


def test_a_key_that_looks_like_json_and_is_none_is_refused() -> None:
    assert "begins with [ and is not a JSON array" in refusal(filterKey="[a")


@given(st.binary(max_size=3), st.lists(st.binary(max_size=2), min_size=1, max_size=3))
def test_keys_are_compared_byte_by_byte(key: bytes, values: list[bytes]) -> None:
    assert BytesTest(IN, tuple(values)).takes(key) == (key in values)
    assert BytesTest(PREFIX, tuple(values)).takes(key) == key.startswith(tuple(values))
    low, high = values[0], values[-1]
    assert BytesTest(RANGE, (low, high)).takes(key) == (low <= key < high)
    assert BytesTest(RANGE, (None, None)).takes(key)


def test_no_key_is_taken_only_where_it_is_named() -> None:
    assert BytesTest(IN, (b"a", None)).takes(None)
    for test in (BytesTest(IN, (b"a",)), BytesTest(PREFIX, (b"",)), BytesTest(RANGE, (None, None))):
        assert not test.takes(None)


def test_partitions_offsets_and_topics_cut_the_ranges() -> None:
    whole = [OffsetRange(A0, 0, 100), OffsetRange(A1, 50, 60), OffsetRange(B0, 0, 10)]
    assert RecordFilter().cut(whole) == whole
    assert RecordFilter(partitions=parse_numbers("1")).cut(whole) == [OffsetRange(A1, 50, 60)]
    assert RecordFilter(topics=(BytesTest(RANGE, (b"b", None)),)).cut(whole) == [OffsetRange(B0, 0, 10)]
    offsets = RecordFilter(offsets=parse_numbers("5..8,55..")).cut(whole)
    assert offsets == [OffsetRange(A0, 5, 8), OffsetRange(A0, 55, 100), OffsetRange(A1, 55, 60), OffsetRange(B0, 5, 8)]
    assert RecordFilter(timestamps=Spans.of([])).cut(whole) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4), SPANS)
def test_a_cut_keeps_exactly_the_offsets_that_are_wanted(
    sizes: list[tuple[int, int]], spans: list[tuple[int, int]]
) -> None:
    whole = [OffsetRange(TopicPartition("t", number), low, high) for number, (low, high) in enumerate(sizes)]
    wanted = Spans.of(spans)
    found = RecordFilter(offsets=wanted).cut(whole)
    kept = [(part.partition, offset) for part in found for offset in range(part.start, part.end)]
    every = [(each.partition, offset) for each in whole for offset in range(each.start, each.end)]
    assert kept == [(partition, offset) for partition, offset in every if offset in wanted]


def test_both_filters_must_hold() -> None:
    record_filter = RecordFilter(parse_numbers("0..2"), parse_numbers("5.."), parse_times("10.."), (parse_keys("a"),))
    other = RecordFilter(parse_numbers("1"), EVERY, parse_times("..20"), (parse_prefixes("b"),))
    both = record_filter & other
    assert (both.partitions, both.offsets) == (parse_numbers("1"), parse_numbers("5.."))
    assert both.native() == {"timestamps": [(10, 19)], "keys": [("in", [b"a"]), ("prefix", [b"b"])]}
    assert both.first_ms == 10


def test_without_filters_the_native_reader_is_given_nothing() -> None:
    assert RecordFilter().native() == {}
    assert RecordFilter().first_ms is None
    assert RecordFilter(timestamps=parse_times("..5")).first_ms is None


def test_options_become_one_filter_in_batch_and_stream() -> None:
    said = {
        "filterPartition": "1",
        "filterOffset": "..9",
        "filterTimestamp": "5..",
        "filterKey": "k",
        "filterKeyPrefix": "p",
    }
    for scope in (BATCH, STREAM):
        options = pickle.loads(pickle.dumps(read_options({**BASE, **said}, scope)))
        assert options.wanted == RecordFilter(
            parse_numbers("1"), parse_numbers("..9"), parse_times("5.."), (parse_keys("k"), parse_prefixes("p"))
        )
    assert read_options(BASE, BATCH).wanted == RecordFilter()


@pytest.mark.parametrize(("option", "text"), [("limit", "5"), ("pushdown", "true")])
def test_a_stream_has_no_limit_and_no_pushdown(option: str, text: str) -> None:
    with pytest.raises(PylogError, match=f"The option {option} has no meaning in a stream read"):
        read_options({**BASE, option: text}, STREAM)


def test_committed_records_are_read_unless_either_name_says_otherwise() -> None:
    def level(**given: Any) -> str:
        return read_options({**BASE, **given}, BATCH).client["isolation.level"]

    assert level() == "read_committed"
    assert level(isolationLevel="READ_UNCOMMITTED") == "read_uncommitted"
    assert level(**{"kafka.isolation.level": "read_uncommitted"}) == "read_uncommitted"
    assert level(isolationLevel="read_committed", **{"kafka.isolation.level": "read_committed"}) == "read_committed"
    assert "must be read_committed or read_uncommitted" in refusal(isolationLevel="serializable")
    sentence = refusal(isolationLevel="read_committed", **{"kafka.isolation.level": "read_uncommitted"})
    assert "say different things; leave one out" in sentence


def test_the_fewest_records_of_a_task_may_not_be_above_the_most() -> None:
    sentence = refusal(minRecordsPerPartition="5", maxRecordsPerPartition="4")
    assert "minRecordsPerPartition (5) must not be above maxRecordsPerPartition (4)" in sentence
