"""What cannot be meant is refused on all ways, each by its own name (`refusals`); what the connector takes, pylog takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.compare import Ways
from tests.parity.ways import Query, Way, outcome, stream

#: name -> (situation, where: b batch, s stream, options). JSON options are dictionaries; None takes an option away.
OPTIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nothing subscribed": ("no subscription", "bs", {"subscribe": None}),
    "name and pattern": ("two subscriptions", "s", {"subscribePattern": "t.*"}),
    "name and partitions": ("two subscriptions", "b", {"assign": {"t": [0]}}),
    "empty assign": ("an empty subscription", "s", {"subscribe": None, "assign": ""}),
    "empty subscribe": ("an empty subscription", "b", {"subscribe": ""}),
    "only commas": ("an empty subscription", "s", {"subscribe": " , "}),
    "empty pattern": ("an empty subscription", "b", {"subscribe": None, "subscribePattern": " "}),
    "assign no JSON": ("JSON that is none", "s", {"subscribe": None, "assign": "{t}"}),
    "offsets no JSON": ("JSON that is none", "b", {"startingOffsets": "first"}),
    "offsets a list": ("JSON that is none", "s", {"startingOffsets": {"t": [0, 1]}}),
    "times no JSON": ("JSON that is none", "b", {"startingOffsetsByTimestamp": "yesterday"}),
    "a time that is none": ("a time that is none", "s", {"startingTimestamp": "yesterday"}),
    "an ending time that is none": ("a time that is none", "b", {"endingTimestamp": "tomorrow"}),
    "a strategy that is none": ("a strategy that is none", "b", {"startingOffsetsByTimestampStrategy": "earliest"}),
    "start of a batch latest": ("a batch that begins at latest", "b", {"startingOffsets": "latest"}),
    "start of a batch -1": ("a batch that begins at latest", "b", {"startingOffsets": {"t": {"0": -1, "1": 0}}}),
    "end earliest": ("a batch that ends at earliest", "b", {"endingOffsets": "earliest"}),
    "end -2": ("a batch that ends at earliest", "b", {"endingOffsets": {"t": {"0": -2, "1": 0}}}),
    "an end of a stream": ("a stream with an end", "s", {"endingOffsets": "latest"}),
    "ending times of a stream": ("a stream with an end", "s", {"endingOffsetsByTimestamp": {"t": {"0": 1000, "1": 1}}}),
    "fewest above most": ("fewest above most", "s", {"minOffsetsPerTrigger": "20", "maxOffsetsPerTrigger": "15"}),
    "minPartitions a": ("a number that is none", "s", {"minPartitions": "a"}),
    "minPartitions 1.0": ("a number that is none", "b", {"minPartitions": "1.0"}),
    "minPartitions 0": ("a number that is not positive", "s", {"minPartitions": "0"}),
    "minPartitions -1": ("a number that is not positive", "b", {"minPartitions": "-1"}),
    "maxRecordsPerPartition 0": ("a number that is not positive", "s", {"maxRecordsPerPartition": "0"}),
    "no brokers": ("no brokers are named", "b", {"kafka.bootstrap.servers": None}),
    "an isolation level that is none": ("an isolation level that is none", "bs", {"kafka.isolation.level": "some"}),
    "a topic that is not there": ("an unknown topic", "bs", {"subscribe": "nowhere"}),
    "starts that lack a partition": ("starts that do not match", "bs", {"startingOffsets": {"t": {"0": 0}}}),
    "starts that name too many": (
        "starts that do not match",
        "bs",
        {"startingOffsets": {"t": {"0": 0, "1": 0, "2": 0}}},
    ),
    "starts of another topic": ("starts that do not match", "bs", {"startingOffsets": {"u": {"0": 0}}}),
    "times that lack a partition": ("times that do not match", "bs", {"startingOffsetsByTimestamp": {"t": {"0": 0}}}),
    "times that name too many": (
        "times that do not match",
        "bs",
        {"startingOffsetsByTimestamp": {"t": {"0": 0, "1": 0, "2": 0}}},
    ),
    "ends that lack a partition": (
        "ends that do not match the starts",
        "b",
        {"startingOffsets": {"t": {"0": 0, "1": 0}}, "endingOffsets": {"t": {"0": 1}}},
    ),
    "a start behind the end": (
        "a start behind the end",
        "b",
        {"startingOffsets": {"t": {"0": 2, "1": 0}}, "endingOffsets": {"t": {"0": 1, "1": 0}}},
    ),
    "a start behind the end of a topic": (
        "a start behind the log",
        "b",
        {"startingOffsets": {"t": {"0": 9, "1": 0}}, "endingOffsetsByTimestamp": {"t": {"0": 2**60, "1": 1}}},
    ),
    "a starting time behind the ending time": (
        "a start behind the end",
        "b",
        {"startingOffsetsByTimestamp": {"t": {"0": 2, "1": 2}}, "endingOffsetsByTimestamp": {"t": {"0": 1, "1": 1}}},
    ),
    **{
        f"{name}={text}": ("a client setting that is Spark's own", "s", {name: text})
        for name, text in (
            ("kafka.auto.offset.reset", "none"),
            ("kafka.auto.offset.reset", "earliest"),
            ("kafka.enable.auto.commit", "true"),
            ("kafka.interceptor.classes", "a.B"),
            ("kafka.key.deserializer", "a.B"),
            ("kafka.value.deserializer", "a.B"),
        )
    },
}


def given(way: Way, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a case; the topic ``t`` is subscribed to unless they say otherwise."""
    made = {name: way.json(value) if isinstance(value, dict) else value for name, value in options.items()}
    return {"subscribe": way.name(), "kafka.bootstrap.servers": way.servers, **made}


@pytest.fixture(scope="module")
def shared(make_ways: Callable[[Any], Any]) -> Any:
    """Ways with a topic of two records in the first of two partitions, for tests that only read."""

    def fill(way: Way) -> None:
        way.topic("t", 2)
        way.put("t", ["a", "b"])

    return make_ways(fill)


@pytest.fixture
def filled(shared: Any, compare: Callable[[Any], Ways]) -> Ways:
    """The shared ways, for one test."""
    return compare(shared)


#: Cases that ask the connector in every run.
@pytest.mark.long  # pylog's own words: tests/unit/spark/test_datasource.py, tests/reading/test_refusals.py
@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_cannot_be_meant_are_refused(filled: Ways, case: str) -> None:
    situation, places, options = OPTIONS[case]

    def scenario(place: str) -> Any:
        def run(way: Way) -> None:
            reader = way.spark.read if place == "b" else way.spark.readStream
            said = {name: text for name, text in given(way, options).items() if text is not None}
            frame = reader.format(way.format).options(**said).load()
            if place == "b":
                frame.collect()
            else:
                Query(way, way.folder / case).run(frame)

        return run

    for place in places:
        filled.refused(situation, scenario(place))


@pytest.mark.parametrize(
    ("difference", "options"),
    [
        ("unknown options", {"startingOfsets": "earliest"}),
        ("unknown client settings", {"kafka.no.such.setting": "1"}),
    ],
)
def test_names_that_nobody_knows_are_refused(ways: Ways, difference: str, options: dict[str, str]) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a"])
        return outcome(lambda: len(way.read(**options)), "did you mean|setting")

    assert ways.differ(difference, scenario) == (1, "refused")


def test_the_end_of_a_stream_by_one_time_is_refused(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a"])
        return outcome(
            lambda: sum(batch.input_rows for batch in stream(way, startingOffsets="earliest", endingTimestamp="1")),
            "endingTimestamp",
        )

    assert ways.differ("endingTimestamp in a stream", scenario) == (1, "refused")


def test_a_partition_that_is_not_there_is_refused(filled: Ways) -> None:
    def scenario(way: Way) -> object:
        assign = way.json({"t": [0, 9]})
        return outcome(lambda: len(way.read(assign=assign)), "PYLOG_UNKNOWN_TOPIC")

    assert filled.differ("a partition of assign that does not exist", scenario) == (2, "refused")


def test_a_schema_of_the_users_chooses_columns(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a"])
        reader = way.reader().schema("value binary, offset bigint")
        return outcome(lambda: [tuple(row) for row in reader.load().collect()], "schema")

    connector, pylog = ways.differ("user schema", scenario)
    assert (connector, pylog) == ("refused", [(b"a", 0)])


#: Options of the connector that change no row of a small read; all of them must be taken.
HARMLESS: dict[str, str] = {
    "groupIdPrefix": "mine",
    "kafka.group.id": "mine",
    "kafkaConsumer.pollTimeoutMs": "5000",
    "fetchOffset.numRetries": "2",
    "fetchOffset.retryIntervalMs": "5",
    "maxTriggerDelay": "1m",
    "maxOffsetsPerTrigger": "5",
    "minOffsetsPerTrigger": "1",
    "failOnDataLoss": "FALSE",
    "kafka.client.id": "mine",
    "kafka.fetch.min.bytes": "1",
    "kafka.fetch.max.wait.ms": "100",
    "kafka.fetch.max.bytes": "1000000",
    "kafka.max.partition.fetch.bytes": "100000",
    "kafka.max.poll.records": "10",
    "kafka.max.poll.interval.ms": "300000",
    "kafka.session.timeout.ms": "30000",
    "kafka.heartbeat.interval.ms": "3000",
    "kafka.request.timeout.ms": "20000",
    "kafka.default.api.timeout.ms": "20000",
    "kafka.metadata.max.age.ms": "1000",
    "kafka.receive.buffer.bytes": "65536",
    "kafka.send.buffer.bytes": "65536",
    "kafka.reconnect.backoff.ms": "50",
    "kafka.retry.backoff.ms": "50",
    "kafka.check.crcs": "true",
    "kafka.client.rack": "a",
    "kafka.security.protocol": "PLAINTEXT",
    "kafka.isolation.level": "read_committed",
    "kafka.connections.max.idle.ms": "60000",
    "kafka.allow.auto.create.topics": "false",
    "kafka.client.dns.lookup": "use_all_dns_ips",
}


def test_every_other_option_is_taken(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a"])
        way.read(**HARMLESS)
        for name, text in HARMLESS.items():
            way.reader(**{name: text}).load().schema  # noqa: B018 - options are looked at when the frame is made
        return sum(batch.input_rows for batch in stream(way, startingOffsets="earliest", **HARMLESS))

    assert ways.same(scenario) == 1
