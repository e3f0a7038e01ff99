"""Where reading starts and ends, as the user wrote it: a closed set of types, and how they are read from option texts.

-1 (latest) and -2 (earliest) exist only in JSON texts and on the wire; `Specific` keeps them as they were written, because
they mix with plain offsets there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pylog_spark.offsets import TopicPartition

LATEST = -1
EARLIEST = -2


@dataclass(frozen=True)
class Earliest:
    """The first offset that each partition still holds."""


@dataclass(frozen=True)
class Latest:
    """The offset of the next record to come."""


@dataclass(frozen=True)
class Back:
    """This many offsets before the end of each partition, or its first offset when it has fewer."""

    offsets: int


@dataclass(frozen=True)
class Ago:
    """The first record of the last `ms` milliseconds, or the end when there is none."""

    ms: int


#: What a user may write for a whole topic.
Word = Earliest | Latest | Back | Ago


@dataclass(frozen=True)
class Specific:
    """An offset (or `LATEST`, `EARLIEST`) for every partition; for the partitions of `topics`, one word for all of them."""

    offsets: Mapping[TopicPartition, int]
    topics: Mapping[str, Word] = field(default_factory=dict)


@dataclass(frozen=True)
class AtTimestamp:
    """The first record at or after a time, in ms since the epoch.

    Attributes
    ----------
    timestamp_ms : int or None
        One time for all partitions, or None when `by_partition` names them.
    by_partition : mapping
        A time for every partition; `LATEST` and `EARLIEST` mean what they mean in offsets.
    latest_when_missing : bool
        What to do for a partition without such a record: its end, or an error.
    """

    timestamp_ms: int | None
    by_partition: Mapping[TopicPartition, int]
    latest_when_missing: bool


Limit = Earliest | Latest | Back | Ago | Specific | AtTimestamp


class LimitError(ValueError):
    """A text or a set of partitions that cannot be used; the argument is one sentence."""


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """Read ``{"topicA": [0, 1], "topicB": [2]}``, the value of `assign`.

    Raises
    ------
    LimitError
        When the text is something else.
    """
    example = 'for example {"topicA":[0,1],"topicB":[2]}'
    document = _json_object(text, example)
    found: list[TopicPartition] = []
    for topic, numbers in document.items():
        if not isinstance(numbers, list) or not numbers or not all(_is_partition(number) for number in numbers):
            raise LimitError(f"topic {topic!r} must have a list of partition numbers, {example}")
        found.extend(TopicPartition(topic, number) for number in numbers)
    if not found:
        raise LimitError(f"no partition is named, {example}")
    return tuple(sorted(set(found)))


def parse_times(text: str) -> dict[TopicPartition, int]:
    """Read ``{"topicA": {"0": 1700000000000}}``: a time in ms for each partition; -1 is latest, -2 earliest.

    Raises
    ------
    LimitError
        When the text is something else.
    """
    return _per_partition(_topics(text, _example("time in ms")), _example("time in ms"))


def parse_offsets(text: str) -> Limit:
    """Read ``earliest``, ``latest``, ``-10 minutes``, ``-1000 offsets``, or JSON: an offset for each partition or one of
    those words for a whole topic, ``{"topicA":{"0":23,"1":-2},"topicB":"earliest"}``.

    Raises
    ------
    LimitError
        When the text is something else or an offset is below -2.
    """
    if not text.strip().startswith("{"):
        word = _word(text)
        if word is None:
            raise LimitError(
                f"{text!r} is neither earliest, latest, a distance such as '-10 minutes' or '-1000 offsets', nor JSON such "
                'as {"topicA":{"0":23,"1":-2},"topicB":"earliest"}'
            )
        return word
    example = _example("offset, -1 (latest) or -2 (earliest)")
    document = _topics(text, example)
    words: dict[str, Word] = {}
    for topic, said in document.items():
        if isinstance(said, str):
            word = _word(said)
            if word is None:
                raise LimitError(
                    f"topic {topic!r}: {said!r} is neither earliest, latest nor a distance such as '-10 minutes'"
                )
            words[topic] = word
    return Specific(_per_partition({key: said for key, said in document.items() if key not in words}, example), words)


_UNITS_MS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_SHORT = {"ms": "millisecond", "s": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day"}


def _word(text: str) -> Word | None:
    """A word for all partitions; None when the text does not look like one."""
    word = text.strip().lower()
    if word == "earliest":
        return Earliest()
    if word == "latest":
        return Latest()
    found = re.fullmatch(r"([+-]?)\s*(\d+)\s*([a-z]+)", word)
    if found is None:
        return None
    sign, number, unit = found[1], int(found[2]), found[3]
    unit = _SHORT.get(unit, unit.removesuffix("s"))
    if unit not in (*_UNITS_MS, "offset"):
        units = ", ".join(f"{name}s" for name in (*_UNITS_MS, "offset"))
        raise LimitError(f"{text!r} has no unit of {units}")
    if sign != "-":
        raise LimitError(f"{text!r} lies in the future; a distance begins with a minus: '-{number} {found[3]}'")
    return Back(number) if unit == "offset" else Ago(number * _UNITS_MS[unit])


def check_names(limit: Limit, partitions: Iterable[TopicPartition], option: str) -> None:
    """Check that `limit`, when it names partitions or topics, names exactly the assigned ones.

    Raises
    ------
    LimitError
        It names the partitions that are missing or too many.
    """
    topics: Mapping[str, Word] = {}
    if isinstance(limit, Specific):
        named, topics = set(limit.offsets), limit.topics
    elif isinstance(limit, AtTimestamp) and limit.timestamp_ms is None:
        named = set(limit.by_partition)
    else:
        return
    assigned = set(partitions)
    if missing := {partition for partition in assigned - named if partition.topic not in topics}:
        raise LimitError(
            f"{option} must name every partition that is read, and lacks {_list(missing)} (-2 there means earliest, -1 latest)"
        )
    if extra := named - assigned:
        raise LimitError(f"{option} names {_list(extra)}, which this query does not read or the brokers do not have")
    if unread := sorted(topics.keys() - {partition.topic for partition in assigned}):
        raise LimitError(
            f"{option} names the topic {unread[0]!r}, which this query does not read or the brokers do not have"
        )


def _per_partition(document: Mapping[str, Any], example: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in document.items():
        if not isinstance(numbers, dict):
            raise LimitError(f"topic {topic!r} must have an object of partition numbers, {example}")
        for name, said in numbers.items():
            # Spark's connector takes numbers in quotation marks, too.
            number = int(said) if isinstance(said, str) and re.fullmatch(r"-?\d+", said) else said
            if not name.isdecimal() or not isinstance(number, int) or isinstance(number, bool):
                raise LimitError(f"{topic!r}, partition {name!r}: {said!r} cannot be used, {example}")
            partition = TopicPartition(topic, int(name))
            if number < EARLIEST:
                raise LimitError(f"{partition} has {number}; -1 is latest, -2 earliest, nothing is lower")
            found[partition] = number
    return found


def _example(unit: str) -> str:
    return f'for example {{"topicA":{{"0":23,"1":12}}}} with a whole-number {unit} for each partition'


def _list(partitions: Iterable[TopicPartition], most: int = 5) -> str:
    names = [str(partition) for partition in sorted(partitions)]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _is_partition(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _topics(text: str, example: str) -> dict[str, Any]:
    # No topic's name begins with "@": such a key is the part of pylog's own offsets that has the topic ids.
    return {topic: said for topic, said in _json_object(text, example).items() if not topic.startswith("@")}


def _json_object(text: str, example: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise LimitError(f"{text!r} is not JSON, {example}") from None
    if not isinstance(document, dict):
        raise LimitError(f"{text!r} is not a JSON object, {example}")
    return document
