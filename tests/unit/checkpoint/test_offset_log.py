"""Spark's offset log, in both formats: what is read is written back byte for byte, and only the partitions that move change."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.checkpoint.offset_log import OffsetEntry, OffsetLogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position

_ABOUT = '{"batchWatermarkMs":7000,"batchTimestampMs":1795683108019,"conf":{"spark.sql.shuffle.partitions":"1"}}'
_PYLOG = json.dumps(Position({TopicPartition("a", 0): 5, TopicPartition("a", 10): 7}, {"a": "id"}).to_document())
_CONNECTOR = '{"b":{"1":3,"0":2}}'
_RATE = '{"offset":10,"timestamp":2000}'
_BY_NUMBER = "\n".join(["v1", _ABOUT, _PYLOG, _CONNECTOR, _RATE, "-"])
_BY_NAME = "\n".join(["v2", _ABOUT, f"left:{_PYLOG}", f"right:{_CONNECTOR}", f"2:{_RATE}"])


@pytest.mark.parametrize("text", [_BY_NUMBER, _BY_NAME])
def test_an_entry_is_written_as_it_was_read(text: str) -> None:
    assert OffsetEntry.of_text(text).text() == text


def test_sources_go_by_their_number_or_by_their_name() -> None:
    assert list(OffsetEntry.of_text(_BY_NUMBER).sources) == ["0", "1", "2", "3"]
    assert list(OffsetEntry.of_text(_BY_NAME).sources) == ["left", "right", "2"]


def test_positions_are_those_of_pylog_and_of_the_kafka_connector_and_of_nothing_else() -> None:
    positions = OffsetEntry.of_text(_BY_NUMBER).positions()
    assert positions == {
        "0": Position({TopicPartition("a", 0): 5, TopicPartition("a", 10): 7}, {"a": "id"}),
        "1": Position({TopicPartition("b", 0): 2, TopicPartition("b", 1): 3}),
    }


def test_times_are_those_of_the_query() -> None:
    entry = OffsetEntry.of_text(_BY_NUMBER)
    assert (entry.watermark_ms, entry.timestamp_ms) == (7_000, 1_795_683_108_019)


@given(st.dictionaries(st.sampled_from([0, 10]), st.integers(0, 2**63 - 1)))
def test_only_what_moves_changes_and_it_is_written_as_its_source_writes_it(moves: dict[int, int]) -> None:
    before = OffsetEntry.of_text(_BY_NAME)
    after = before.moved({"left": {TopicPartition("a", partition): offset for partition, offset in moves.items()}})
    expected = {0: 5, 10: 7} | moves
    position = Position({TopicPartition("a", number): offset for number, offset in expected.items()}, {"a": "id"})
    assert after.sources["left"] == json.dumps(position.to_document())
    assert {**after.sources, "left": ""} == {**before.sources, "left": ""}
    assert after.about == before.about


def test_offsets_of_the_connector_are_written_without_spaces() -> None:
    after = OffsetEntry.of_text(_BY_NAME).moved({"right": {TopicPartition("b", 1): 9}})
    assert after.sources["right"] == '{"b":{"1":9,"0":2}}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("v3\n{}", "begins with 'v3'; known are the formats v1 and v2 of Spark's offset log"),
        ("", "begins with ''; known are the formats v1 and v2 of Spark's offset log"),
        ("v1", "has no line about the query"),
        ("v1\n[]\n-", "has no line about the query"),
    ],
)
def test_what_spark_did_not_write_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(OffsetLogError) as refused:
        OffsetEntry.of_text(text)
    assert str(refused.value) == sentence
