"""Splitting of offset ranges, sharing of a limit and offsets' JSON against the connector's own classes, which are asked directly (or
were, when their answers were recorded): no record is read, thousands of cases.

Its choice of executors for ranges (preferred locations) has no counterpart: Spark asks a Python source for none.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import pytest

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.limits import LimitError, Specific, parse_offsets, parse_partitions
from pylog_spark.offsets.ranges import OffsetRange, plan
from pylog_spark.offsets.ratelimit import rate_limit
from tests.parity.compare import Ways
from tests.parity.ways import Way

Ranges = list[tuple[int, int, int]]

#: minPartitions, maxRecordsPerPartition, ranges as (topic's number, start, end).
CASES: dict[str, tuple[int | None, int | None, Ranges]] = {
    "no wish": (None, None, [(1, 1, 2)]),
    "no wish, an empty range": (None, None, [(1, 1, 2), (2, 1, 1)]),
    "as many as wanted": (3, None, [(1, 1, 2), (2, 1, 2), (3, 1, 2)]),
    "one to four": (4, None, [(1, 1, 5)]),
    "skewed": (4, None, [(1, 1, 5), (2, 1, 21)]),
    "an empty one and the rest split": (4, None, [(1, 1, 1), (2, 1, 21)]),
    "very skewed": (4, None, [(1, 1, 2), (2, 1, 1001)]),
    "fewer wanted than there are": (1, None, [(1, 1, 5), (2, 1, 21)]),
    "no whole multiple": (3, None, [(1, 1, 11)]),
    "an empty one beside skewed ones": (4, None, [(1, 1, 5), (2, 1, 21), (3, 1, 1)]),
    "never drop offsets": (6, None, [(1, 0, 10), (2, 0, 10), (3, 0, 1)]),
    "no small ones and three large": (9, None, [(1, 0, 10_000), (2, 0, 15_000), (3, 0, 20_000)]),
    "one small one and two large": (6, None, [(1, 0, 500), (2, 0, 12_000), (3, 0, 15_001)]),
    "two small ones and one large": (6, None, [(1, 0, 1), (2, 0, 1), (3, 0, 10_000)]),
    "three of one": (4, None, [(1, 0, 1), (2, 0, 1), (3, 0, 2)]),
    "at most so many": (None, 4, [(1, 0, 4), (2, 0, 5), (3, 0, 11)]),
    "at most, and at least so many pieces": (6, 4, [(1, 0, 4), (2, 0, 5), (3, 0, 11)]),
}


class Connector:
    """The connector's classes, through Spark's own JVM."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._gateway = spark.sparkContext._gateway
        self._package = spark._jvm.org.apache.spark.sql.kafka010

    def plan(self, least: int | None, most: int | None, ranges: Ranges) -> Ranges:
        """What KafkaOffsetRangeCalculator makes of ranges, sorted."""
        options = self._jvm.java.util.HashMap()
        for name, number in (("minPartitions", least), ("maxRecordsPerPartition", most)):
            if number is not None:
                options.put(name, str(number))
        case_insensitive = self._jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options)
        calculator = self._package.KafkaOffsetRangeCalculator.apply(case_insensitive)
        given = self._jvm.java.util.ArrayList()
        for topic, start, end in ranges:
            place = self._jvm.org.apache.kafka.common.TopicPartition(f"t{topic}", 1)
            none = self._jvm.scala.Option.apply(None)
            given.add(self._package.KafkaOffsetRange(place, start, end, none))
        scala = self._jvm.scala.jdk.javaapi.CollectionConverters
        no_executors = scala.asScala(self._jvm.java.util.ArrayList()).toSeq()
        cut = scala.asJava(calculator.getRanges(scala.asScala(given).toSeq(), no_executors))
        return sorted(
            (int(offset_range.topic()[1:]), offset_range.fromOffset(), offset_range.untilOffset())
            for offset_range in cut
        )

    def offsets(self, text: str) -> dict[str, int]:
        """What JsonUtils reads out of offsets. Raises Py4JJavaError."""
        utils = getattr(getattr(self._package, "JsonUtils$"), "MODULE$")
        scala = self._jvm.scala.jdk.javaapi.CollectionConverters
        return {place.toString(): number for place, number in scala.asJava(utils.partitionOffsets(text)).items()}

    def partitions(self, text: str) -> list[str]:
        """What JsonUtils reads out of `assign`, sorted."""
        utils = getattr(getattr(self._package, "JsonUtils$"), "MODULE$")
        return sorted(place.toString() for place in utils.partitions(text))

    def rate_limit(self, limit: int, start: dict[int, int], end: dict[int, int]) -> dict[int, int]:
        """What KafkaMicroBatchStream leaves of a batch of one topic, partitions by number. It offers no public way to ask."""
        empty = self._jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(self._jvm.java.util.HashMap())
        stream = self._package.KafkaMicroBatchStream(None, None, empty, "", None, True)
        (method,) = (method for method in stream.getClass().getDeclaredMethods() if method.getName() == "rateLimit")
        method.setAccessible(True)
        utils = getattr(getattr(self._package, "JsonUtils$"), "MODULE$")
        arguments = self._gateway.new_array(self._jvm.java.lang.Object, 3)
        for place, value in enumerate(
            (limit, *(utils.partitionOffsets(json.dumps({"t": offsets})) for offsets in (start, end)))
        ):
            arguments[place] = value
        document = json.loads(utils.partitionOffsets(method.invoke(stream, arguments)))
        return {int(number): offset for number, offset in document["t"].items()}


class Ours:
    """The same questions to pylog."""

    def plan(self, least: int | None, most: int | None, ranges: Ranges) -> Ranges:
        """What `plan` makes of ranges."""
        given = [OffsetRange(TopicPartition(f"t{topic}", 1), start, end) for topic, start, end in ranges]
        return [
            (int(offset_range.partition.topic[1:]), offset_range.start, offset_range.end)
            for offset_range in plan(given, least, most)
        ]

    def offsets(self, text: str) -> dict[str, int]:
        """What is read out of offsets. Raises LimitError."""
        read = parse_offsets(text)
        assert isinstance(read, Specific)
        return {f"{place.topic}-{place.partition}": number for place, number in read.offsets.items()}

    def partitions(self, text: str) -> list[str]:
        """What is read out of `assign`, sorted."""
        return sorted(f"{place.topic}-{place.partition}" for place in parse_partitions(text))

    def rate_limit(self, limit: int, start: dict[int, int], end: dict[int, int]) -> dict[int, int]:
        """What `rate_limit` leaves of a batch of one topic, partitions by number."""
        first, last = ({TopicPartition("t", number): at for number, at in offsets.items()} for offsets in (start, end))
        return {place.partition: offset for place, offset in rate_limit(limit, first, last).items()}


def asked(way: Way) -> Connector | Ours:
    """Who answers for a way."""
    return Connector(way.spark) if way.is_connector else Ours()


@pytest.mark.parametrize("case", CASES)
def test_ranges_are_split_as_the_connector_splits_them(ways: Ways, case: str) -> None:
    ways.same(lambda way: asked(way).plan(*CASES[case]))


def test_two_hundred_random_plans_are_the_same(ways: Ways) -> None:
    dice = random.Random(28489)
    cases = []
    for _ in range(200):
        sizes = [dice.choice((0, 1, 2, 3, 7, 10, 99, 1_000, 12_345)) for _ in range(dice.randint(1, 6))]
        starts = [dice.randint(0, 50) for _ in sizes]
        ranges = [(topic, start, start + size) for topic, (start, size) in enumerate(zip(starts, sizes, strict=True))]
        cases.append((dice.choice((None, 1, 3, 8, 20)), dice.choice((None, None, 5, 700)), ranges))

    def scenario(way: Way) -> object:
        side = asked(way)
        return [(*case, shortened(side.plan(*case))) for case in cases]

    ways.same(scenario)


def shortened(ranges: Ranges) -> Any:
    """The ranges, or, for the thousands that some plans have: how many, the first, the last and the digest of all."""
    if len(ranges) <= 50:
        return ranges
    digest = hashlib.sha256(json.dumps(ranges).encode()).hexdigest()
    return {"ranges": len(ranges), "first": ranges[0], "last": ranges[-1], "sha256": digest}


def test_four_hundred_random_batches_share_a_limit_alike(ways: Ways) -> None:
    dice = random.Random(26718)
    cases = []
    for _ in range(400):
        count = dice.randint(1, 7)
        start = {number: dice.choice((0, 5, 2**40)) for number in range(count)}
        end = {number: first + dice.choice((0, 1, 2, 3, 10, 11, 33, 101, 99_999)) for number, first in start.items()}
        cases.append((dice.choice((1, 2, 7, 10, 29, 100, 33_333, 2**31, 2**63 - 1)), start, end))

    def scenario(way: Way) -> object:
        side = asked(way)
        seen = [(limit, start, end, side.rate_limit(limit, start, end)) for limit, start, end in cases]
        # Partition numbers are 0, 1, ...: lists say the same.
        assert all([*offsets] == [*range(len(offsets))] for _, *maps in seen for offsets in map(dict.keys, maps))
        return [
            (limit, *([offsets[number] for number in sorted(offsets)] for offsets in maps)) for limit, *maps in seen
        ]

    ways.same(scenario)


@pytest.mark.parametrize(
    "text",
    ['{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}', ' {"a.b_c-d":{"10":9007199254740993}} ', "{}"],
)
def test_offsets_are_read_alike(ways: Ways, text: str) -> None:
    ways.same(lambda way: asked(way).offsets(text.strip() if way.is_connector else text))


@pytest.mark.parametrize(
    "text",
    [
        '{"topicA":"first"}',
        '{"topicA":[0,1]}',
        '{"topicA":{"0":"earliest"}}',
        '"earliest"',
        "not json",
        '{"t":{"x":1}}',
    ],
)
def test_what_is_no_offsets_is_refused_alike(ways: Ways, text: str) -> None:
    def scenario(way: Way) -> object:
        if way.is_connector:
            with pytest.raises(Exception, match=r"Expected|input string|cannot|None"):
                asked(way).offsets(text)
        else:
            with pytest.raises(LimitError):
                asked(way).offsets(text)
        return "refused"

    assert ways.same(scenario) == "refused"


def test_partitions_are_read_alike(ways: Ways) -> None:
    text = '{"topicA":[0,1],"topicB":[4,6]}'
    assert ways.same(lambda way: asked(way).partitions(text)) == ["topicA-0", "topicA-1", "topicB-4", "topicB-6"]
