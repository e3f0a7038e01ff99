"""The situations that must be refused, and what each side calls them: the one table of condition names.

A refusal of the connector is known by a pattern of its message (its older checks have no condition names), one of pylog by its
condition. `SPARK` stands where Spark itself refuses before either is asked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FLAGS = re.IGNORECASE | re.DOTALL
_OPTION = "PYLOG_INVALID_OPTION"
_SCHEMA = "PYLOG_INVALID_SCHEMA"


class Refusal(NamedTuple):
    """The pattern of the connector's message and that of pylog's: a condition, or words of Spark's own refusal."""

    connector: str
    pylog: str


REFUSALS: dict[str, Refusal] = {
    # What is read
    "no subscription": Refusal("One of the following options must be specified", _OPTION),
    "two subscriptions": Refusal("Only one of the following options can be specified", _OPTION),
    "an empty subscription": Refusal("No topic|Pattern to subscribe is empty", _OPTION),
    "no brokers are named": Refusal("'kafka.bootstrap.servers' must be specified", _OPTION),
    "an unknown topic": Refusal("UnknownTopicOrPartition|not present in metadata", "PYLOG_UNKNOWN_TOPIC"),
    # Where it begins and ends
    "JSON that is none": Refusal(r'Expected e\.g\. \{"topicA":', _OPTION),
    "a time that is none": Refusal("Expected a single long value", _OPTION),
    "a strategy that is none": Refusal("No value found for 'EARLIEST'", _OPTION),
    "a batch that begins at latest": Refusal("can't be latest for batch", _OPTION),
    "a batch that ends at earliest": Refusal("can't be earliest for batch", _OPTION),
    "a stream with an end": Refusal("Ending (offset|timestamp) not valid in streaming", _OPTION),
    "starts that do not match": Refusal(
        "specified for Kafka start offsets don't match|must specify all TopicPartitions", _OPTION
    ),
    "times that do not match": Refusal("specified for Kafka timestamp based start offsets don't match", _OPTION),
    "ends that do not match the starts": Refusal("should have the same topic-partitions", _OPTION),
    "a start behind the end": Refusal(
        "specified start (offset|timestamp) .*? is greater than the end", "PYLOG_START_AFTER_END"
    ),
    "a start behind the log": Refusal(
        "resolved start offset .*? is greater than", "PYLOG_START_AFTER_END|PYLOG_OFFSET_OUT_OF_RANGE"
    ),
    "no record at or after the starting time": Refusal(
        "No offset matched from request", "PYLOG_NO_OFFSET_FOR_TIMESTAMP"
    ),
    # Numbers and settings
    "fewest above most": Refusal("minOffsetPerTrigger.*? is higher than the maxOffsetsPerTrigger", _OPTION),
    "a number that is none": Refusal("For input string", _OPTION),
    "a number that is not positive": Refusal("must be positive", _OPTION),
    "an isolation level that is none": Refusal("IsolationLevel.*?SOME|Invalid value some", _OPTION),
    "a client setting that is Spark's own": Refusal("is not supported", "PYLOG_UNSUPPORTED_OPTION"),
    # Records that are gone
    "a log shorter than what was read": Refusal(
        "may have been lost.*?offset was changed", "PYLOG_LOG_TRUNCATED|PYLOG_TOPIC_RECREATED"
    ),
    "a log shorter than the start": Refusal("may have been lost.*?offset was changed", "PYLOG_OFFSET_OUT_OF_RANGE"),
    "a topic that was deleted": Refusal("may have been lost.*?have been deleted", "PYLOG_TOPIC_DELETED"),
    "a new partition that lost its beginning": Refusal("may have been lost.*?starts from", "PYLOG_DATA_LOSS"),
    "records that aged out": Refusal(
        "may have been lost|Cannot fetch|OffsetOutOfRange", "PYLOG_DATA_LOSS|PYLOG_OFFSET_OUT_OF_RANGE"
    ),
    "partitions lost during AvailableNow": Refusal(
        "have been lost during running query with Trigger.AvailableNow",
        "PYLOG_AVAILABLE_NOW_LOST|PYLOG_TOPIC_RECREATED",
    ),
    "offsets lost during AvailableNow": Refusal(
        "report available offset which is less than end offset",
        "PYLOG_AVAILABLE_NOW_TRUNCATED|PYLOG_TOPIC_RECREATED",
    ),
    # Writing
    "a frame without value": Refusal("Required attribute 'value' not found", _SCHEMA),
    "no topic to write to": Refusal("topic option required when no 'topic' attribute is present", _SCHEMA),
    "a row without a topic": Refusal("contains a null topic", "PYLOG_.*"),
    "a column of a wrong type": Refusal(r"must be a\(n\)", _SCHEMA),
    "an unknown partition to write to": Refusal("Partition 7 of topic .*? is not", "PYLOG_.*"),
    "save mode overwrite": Refusal("Save mode Overwrite not allowed", "PYLOG_UNSUPPORTED_MODE"),
    "save mode ignore": Refusal("Save mode Ignore not allowed", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
}


def words_of(text: str, situation: str) -> str:
    """The words of the connector's message by which a situation is known."""
    found = re.search(REFUSALS[situation].connector, text, _FLAGS)
    assert found is not None, f"nothing of {situation!r} in: {text[:3000]}"
    return " ".join(found.group().split())


def conditions_in(text: str, connector: bool) -> set[str]:
    """The situations that a message speaks of."""
    if connector:
        return {name for name, refusal in REFUSALS.items() if re.search(refusal.connector, text, _FLAGS)}
    found = re.findall(r"PylogError: \[(\w+)\]", text)
    said = found[-1] if found else text[:200]
    return {name for name, refusal in REFUSALS.items() if re.search(refusal.pylog, said)}
