"""The offset document in Spark's checkpoint: Spark compares its JSON text, so equal positions must give equal text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position, PositionError

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b-1", "C.d"]), st.integers(0, 200))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 2**62), max_size=20)


def test_the_document_reads_as_documented() -> None:
    position = Position({TopicPartition("t", 10): 1, TopicPartition("t", 9): 2, TopicPartition("a", 0): 3}, {"t": "id"})
    assert json.dumps(position.to_document()) == (
        '{"@pylog": {"topic_ids": {"t": "id"}, "version": 1}, "a": {"0": 3}, "t": {"9": 2, "10": 1}}'
    )


@given(OFFSETS, st.randoms())
def test_equal_positions_give_equal_text_whatever_the_order(offsets: dict[TopicPartition, int], random: object) -> None:
    items = list(offsets.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    text = json.dumps(Position(offsets, {"a": "1", "b-1": "2"}).to_document())
    assert json.dumps(Position(dict(items), {"b-1": "2", "a": "1"}).to_document()) == text


@given(OFFSETS)
def test_a_position_survives_the_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    topics = {partition.topic for partition in offsets}
    position = Position(offsets, dict.fromkeys(topics, "id"))
    assert Position.from_document(json.loads(json.dumps(position.to_document()))) == position


def test_the_offsets_of_sparks_kafka_connector_are_taken_over() -> None:
    position = Position.from_document(json.loads('{"t":{"1":7,"0":5},"u":{"0":0}}'))
    offsets = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 7, TopicPartition("u", 0): 0}
    assert position == Position(offsets, {})


@pytest.mark.parametrize(
    "text", ['{"offset": 5}', '{"t": {"a": 5}}', '{"t": {"0": -1}}', '{"t": {"0": true}}', '{"t": 1}']
)
def test_a_checkpoint_of_another_source_is_refused(text: str) -> None:
    with pytest.raises(PositionError, match="neither pylog nor Spark's Kafka connector wrote"):
        Position.from_document(json.loads(text))


def test_a_checkpoint_of_a_later_version_is_refused() -> None:
    with pytest.raises(PositionError, match="upgrade pylog-spark"):
        Position.from_document({"@pylog": {"version": 2, "topic_ids": {}}, "t": {"0": 5}})


def test_a_topic_is_recreated_only_when_both_ids_are_known_and_differ() -> None:
    before = Position({}, {"a": "1", "b": "2", "c": "3", "d": ""})
    after = Position({}, {"a": "1", "b": "9", "d": "4"})
    assert before.recreated(after) == {"b"}
