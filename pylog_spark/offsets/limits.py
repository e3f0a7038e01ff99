"""Where to start and where to end, as the user says it: a closed set of types, and their parsing from option texts.

-1 (latest) and -2 (earliest) exist only in JSON texts and on the wire; `Specific` keeps them as they were written, because
they mix with plain offsets there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
class Specific:
    """An offset (or `LATEST`, `EARLIEST`) for every partition."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class AtTimestamp:
    """The first record at or after a time, in ms since the epoch.

    Attributes
    ----------
    timestamp_ms : int or None
        One time for all partitions, or None when `by_partition` names them.
    by_partition : mapping
        A time for every partition.
    latest_when_missing : bool
        What to do for a partition without such a record: its end, or an error.
    """

    timestamp_ms: int | None
    by_partition: Mapping[TopicPartition, int]
    latest_when_missing: bool


Limit = Earliest | Latest | Specific | AtTimestamp


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


def parse_per_partition(text: str, unit: str) -> dict[TopicPartition, int]:
    """Read ``{"topicA": {"0": 23, "1": -1}}``: an offset or a time for each partition.

    Parameters
    ----------
    text : str
        The value of the option.
    unit : str
        What the numbers are, for the sentence: ``offset`` or ``timestamp in ms``.

    Raises
    ------
    LimitError
        When the text is something else.
    """
    example = f'for example {{"topicA":{{"0":23,"1":12}}}} with a whole-number {unit} for each partition'
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json_object(text, example).items():
        if topic.startswith("@"):  # the part of pylog's own offset JSON that names topic ids
            continue
        if not isinstance(numbers, dict):
            raise LimitError(f"topic {topic!r} must have an object of partition numbers, {example}")
        for name, number in numbers.items():
            if not name.isdecimal() or not isinstance(number, int) or isinstance(number, bool):
                raise LimitError(f"{topic!r}, partition {name!r}: {number!r} cannot be used, {example}")
            found[TopicPartition(topic, int(name))] = number
    return found


def parse_offsets(text: str) -> Limit:
    """Read ``earliest``, ``latest`` or offsets as JSON.

    Raises
    ------
    LimitError
        When the text is something else or an offset is below -2.
    """
    word = text.strip().lower()
    if word == "earliest":
        return Earliest()
    if word == "latest":
        return Latest()
    if not text.strip().startswith("{"):
        raise LimitError(f'{text!r} is neither earliest, latest nor JSON such as {{"topicA":{{"0":23,"1":-2}}}}')
    offsets = parse_per_partition(text, "offset, -1 (latest) or -2 (earliest)")
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise LimitError(f"{partition} has the offset {offset}; -1 is latest, -2 earliest, nothing is lower")
    return Specific(offsets)


def check_names(limit: Limit, partitions: Iterable[TopicPartition], option: str) -> None:
    """Check that `limit`, when it names partitions, names exactly the assigned ones.

    Raises
    ------
    LimitError
        Naming the partitions that are missing or too many.
    """
    if isinstance(limit, Specific):
        named = set(limit.offsets)
    elif isinstance(limit, AtTimestamp) and limit.timestamp_ms is None:
        named = set(limit.by_partition)
    else:
        return
    assigned = set(partitions)
    if missing := assigned - named:
        raise LimitError(
            f"{option} must name every partition that is read, and lacks {_list(missing)}"
            " (-2 there means earliest, -1 latest, except in timestamps)"
        )
    if extra := named - assigned:
        raise LimitError(f"{option} names {_list(extra)}, which this query does not read or the brokers do not have")


def _list(partitions: Iterable[TopicPartition], most: int = 5) -> str:
    names = [str(partition) for partition in sorted(partitions)]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _is_partition(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _json_object(text: str, example: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise LimitError(f"{text!r} is not JSON, {example}") from None
    if not isinstance(document, dict):
        raise LimitError(f"{text!r} is not a JSON object, {example}")
    return document
