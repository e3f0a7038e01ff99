"""Every option of ``format("pylog")``, once: name, type, default, where it may stand, and what it means.

The names and meanings are those of Spark's Kafka connector where it has them. Spark gives option names in lower case;
sentences use the spelling below. `read_options` and `write_options` give frozen values, or a `PylogError` that says what
to do. No pyspark here; the table of the documentation is made by `options_table`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pylog_spark.errors import CONDITIONS, PylogError
from pylog_spark.offsets import TopicPartition, texts
from pylog_spark.offsets.limits import (
    EARLIEST,
    LATEST,
    AtTimestamp,
    Earliest,
    Latest,
    Limit,
    LimitError,
    Specific,
    parse_offsets,
    parse_partitions,
)
from pylog_spark.offsets.pattern import PatternError, compile_pattern

BATCH = "batch read"
STREAM = "stream read"
WRITE = "write"
READ = (BATCH, STREAM)
ALL = (BATCH, STREAM, WRITE)


# --- the options -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name, kind, default, doc : str
        As documented; `default` is a text that `parse` reads, or "" for none.
    parse : callable
        From the user's text to a value; raises ValueError with the rest of the sentence "option x ...".
    scopes : tuple of str
        Where the option may stand.
    ignored_in : tuple of str
        Where it is accepted and does nothing, as in Spark's Kafka connector.
    """

    name: str
    kind: str
    parse: Callable[[str], Any]
    scopes: tuple[str, ...]
    doc: str
    default: str = ""
    ignored_in: tuple[str, ...] = ()


OPTIONS: tuple[Option, ...] = (
    Option(
        "kafka.bootstrap.servers",
        "host:port,...",
        texts.nonempty,
        ALL,
        "Brokers to ask first, comma-separated; required. `bootstrap.servers` means the same. Any other `kafka.<name>` is a setting of the client, under Kafka's name.",
    ),
    Option(
        "subscribe",
        "topic,...",
        texts.topics,
        READ,
        "Topics to read, comma-separated. Exactly one of `subscribe`, `subscribePattern` and `assign` is required.",
    ),
    Option(
        "subscribePattern",
        "regular expression",
        texts.pattern,
        READ,
        "Topics to read: all whose whole name matches this Java regular expression, except the brokers' internal ones. A stream finds new topics.",
    ),
    Option("assign", "JSON", parse_partitions, READ, 'Partitions to read, `{"topicA":[0,1],"topicB":[2]}`.'),
    Option(
        "startingOffsets",
        "earliest, latest or JSON",
        parse_offsets,
        READ,
        'Where to begin: `earliest` (default in batch), `latest` (default in a new stream; refused in batch) or an offset for every partition, `{"topicA":{"0":23,"1":-2}}`; -2 is earliest, -1 latest. A restarted stream goes on where it stopped; partitions that appear later begin at earliest.',
    ),
    Option(
        "startingOffsetsByTimestamp",
        "JSON of ms",
        texts.times,
        READ,
        'Where to begin: the first record at or after a time for every partition, `{"topicA":{"0":1000}}`. Wins over `startingOffsets`.',
    ),
    Option(
        "startingTimestamp",
        "ms",
        texts.time_ms,
        READ,
        "Where to begin: the first record at or after this time in every partition. Wins over `startingOffsetsByTimestamp`.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "error or latest",
        texts.strategy,
        READ,
        "What to do with a partition that has no record at or after the starting time: refuse, or begin at its end.",
        "error",
    ),
    Option(
        "endingOffsets",
        "latest or JSON",
        parse_offsets,
        (BATCH,),
        "Where to end (exclusive): `latest` (default) or an offset for every partition; -1 is latest.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        "JSON of ms",
        texts.times,
        (BATCH,),
        "Where to end: before the first record at or after a time for every partition; latest when there is none. Wins over `endingOffsets`.",
    ),
    Option(
        "endingTimestamp",
        "ms",
        texts.time_ms,
        (BATCH,),
        "Where to end: before the first record at or after this time; latest when there is none. Wins over `endingOffsetsByTimestamp`.",
    ),
    Option(
        "failOnDataLoss",
        "boolean",
        texts.boolean,
        READ,
        "Whether records that are gone although the query needed them (retention, a recreated topic) fail it. With false it goes on with what is left.",
        "true",
    ),
    Option(
        "includeHeaders", "boolean", texts.boolean, READ, "Whether the column `headers` is read.", "false", (WRITE,)
    ),
    Option(
        "minPartitions",
        "number",
        texts.count,
        READ,
        "Wanted number of Spark partitions: large offset ranges are split. Without it each log partition is one.",
    ),
    Option(
        "maxRecordsPerPartition",
        "number",
        texts.count,
        READ,
        "Most offsets in one Spark partition: larger ranges are split.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Most offsets in one micro-batch, shared over the partitions by how much each has; one with anything new gets at least one. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "minOffsetsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Fewest offsets worth a micro-batch: with less, it waits up to `maxTriggerDelay`. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "maxTriggerDelay",
        "duration",
        texts.duration_ms,
        (STREAM,),
        "Longest wait for `minOffsetsPerTrigger`.",
        "15m",
        (BATCH,),
    ),
    Option(
        "groupIdPrefix",
        "text",
        texts.nonempty,
        READ,
        "Accepted for compatibility: pylog reads without a consumer group, so there is nothing to name.",
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "ms",
        texts.count,
        READ,
        "How long a task waits for records that the plan promised, retries included; the client setting `kafka.default.api.timeout.ms` (60 s) when absent.",
    ),
    Option(
        "fetchOffset.numRetries",
        "number",
        texts.count,
        READ,
        "Accepted for compatibility: requests are tried again until `kafka.default.api.timeout.ms` has passed.",
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        "ms",
        texts.count,
        READ,
        "Accepted for compatibility: see `kafka.retry.backoff.ms`.",
    ),
    Option("topic", "name", texts.nonempty, (WRITE,), "Topic of all rows; wins over a column `topic`."),
    Option(
        "compression",
        "none, gzip, snappy, lz4 or zstd",
        texts.nonempty,
        (WRITE,),
        "Codec of the written batches, the same as `kafka.compression.type`.",
    ),
    Option(
        "batchBytes",
        "bytes",
        texts.count,
        READ,
        "Size at which a batch handed to Spark is complete; bigger ones cost memory, smaller ones time.",
        "1500000",
    ),
)

_BY_KEY = {option.name.lower(): option for option in OPTIONS}

#: Names that Spark itself puts among the options, or that belong to it.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname"})

#: Names that a user may well try, and why they are refused.
_REFUSED = {
    "path": "reading a log directory without a broker is not built yet; start one (pylog broker) and give kafka.bootstrap.servers",
    "kafka.auto.offset.reset": "use startingOffsets to say where to begin",
    "kafka.enable.auto.commit": "offsets are kept in Spark's checkpoint and never committed; leave it out",
    "kafka.interceptor.classes": "there are no Java classes in this client; leave it out",
    "kafka.key.deserializer": "keys are read as binary; cast the column in Spark",
    "kafka.value.deserializer": "values are read as binary; cast the column in Spark",
    "kafka.key.serializer": "cast the column to string or binary in Spark",
    "kafka.value.serializer": "cast the column to string or binary in Spark",
    "kafka.transactional.id": "exactly-once writing is not built yet; leave it out (writes are at least once)",
}

#: Client settings of the Java client that mean nothing here: accepted, so that a format("kafka") query runs unchanged.
_IGNORED_CLIENT_SETTINGS = frozenset(
    {
        "group.id",
        "max.poll.records",
        "max.poll.interval.ms",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "partitioner.class",
    }
)
_CLIENT_PREFIX = "kafka."


@dataclass(frozen=True)
class Subscription:
    """What to read: exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    def matches(self, topic: str) -> bool:
        """Whether `pattern` matches the whole name."""
        return compile_pattern(self.pattern).fullmatch(topic) is not None


@dataclass(frozen=True)
class ReadOptions:
    """The options of a reading query, checked and typed; plain values, so it can be pickled."""

    subscription: Subscription
    start: Limit
    start_option: str
    end: Limit
    end_option: str
    fail_on_data_loss: bool
    include_headers: bool
    min_partitions: int | None
    max_records: int | None
    max_offsets: int | None
    min_offsets: int | None
    max_delay_ms: int
    batch_bytes: int
    client: Mapping[str, str]


@dataclass(frozen=True)
class WriteOptions:
    """The options of a writing query, checked and typed; plain values, so it can be pickled."""

    topic: str | None
    client: Mapping[str, str]


def check_names(given: Mapping[str, str]) -> None:
    """Check that every option is known, whatever it is used for. What Spark can call before it knows more.

    Raises
    ------
    PylogError
        For an unknown option, with the nearest known name; for a refused one, with the reason.
    """
    for key in given:
        name = key.lower()
        if name in _REFUSED:
            raise PylogError("PYLOG_UNSUPPORTED_OPTION", f"The option {key} is not supported: {_REFUSED[name]}.")
        known = name in _BY_KEY or name in _SPARKS_OWN or name == "bootstrap.servers"
        if not known and not name.startswith(_CLIENT_PREFIX):
            raise PylogError("PYLOG_UNKNOWN_OPTION", f"There is no option {key!r}; {_nearest(name)}.")


def read_options(given: Mapping[str, str], scope: str) -> ReadOptions:
    """Read the options of a query that reads.

    Parameters
    ----------
    given : mapping of str to str
        As Spark delivers them; names in any case.
    scope : str
        `BATCH` or `STREAM`.

    Raises
    ------
    PylogError
        Naming the option and what to do.
    """
    values = _values(given, scope)
    client = _client_settings(given)
    if (wait_ms := values["kafkaConsumer.pollTimeoutMs"]) is not None:
        client.setdefault("default.api.timeout.ms", str(wait_ms))
    start, start_option = _limit(values, "starting", Earliest() if scope == BATCH else Latest())
    end, end_option = _limit(values, "ending", Latest())
    if scope == BATCH:
        _refuse(
            start, Latest, LATEST, start_option, "a batch would be empty; begin at earliest, at offsets or at a time"
        )
        _refuse(end, Earliest, EARLIEST, end_option, "a batch would be empty; end at latest, at offsets or at a time")
    return ReadOptions(
        subscription=_subscription(values),
        start=start,
        start_option=start_option,
        end=end,
        end_option=end_option,
        fail_on_data_loss=values["failOnDataLoss"],
        include_headers=values["includeHeaders"],
        min_partitions=values["minPartitions"],
        max_records=values["maxRecordsPerPartition"],
        **_trigger_limits(values),
        batch_bytes=values["batchBytes"],
        client=client,
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Read the options of a query that writes. Raises `PylogError` as `read_options` does."""
    values = _values(given, WRITE)
    client = _client_settings(given)
    codec = values["compression"]
    if codec is not None and client.setdefault("compression.type", codec) != codec:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options compression ({codec}) and kafka.compression.type ({client['compression.type']}) say "
            "different things; leave one out.",
        )
    return WriteOptions(topic=values["topic"], client=client)


def _values(given: Mapping[str, str], scope: str) -> dict[str, Any]:
    """Give the value of every option of the table by its name; None where there is no text and no default."""
    check_names(given)
    said = {key.lower(): text for key, text in given.items()}
    for key in said:
        option = _BY_KEY.get(key)
        if option and scope not in option.scopes + option.ignored_in:
            where = " or ".join(f"a {name}" for name in option.scopes)
            raise PylogError(
                "PYLOG_INVALID_OPTION",
                f"The option {option.name} has no meaning in a {scope}, only in {where}; leave it out.",
            )
    return {option.name: _value(option, said.get(option.name.lower(), option.default)) for option in OPTIONS}


def _value(option: Option, text: str) -> Any:
    if text == "" and option.default == "":
        return None
    try:
        return option.parse(text)
    except (LimitError, PatternError) as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {option.name} cannot be used: {error}.") from None
    except ValueError as error:
        raise PylogError("PYLOG_INVALID_OPTION", f"The option {option.name} {error}.") from None


def _client_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Give the settings of the native client, which knows their names and values."""
    settings: dict[str, str] = {}
    for key, text in given.items():
        name = key.lower()
        if name == "bootstrap.servers":
            name = _CLIENT_PREFIX + name
        if name.startswith(_CLIENT_PREFIX):
            settings[name.removeprefix(_CLIENT_PREFIX)] = text
    if not settings.get("bootstrap.servers", "").strip():
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            'The option kafka.bootstrap.servers is missing; give the brokers as "host:port[,host:port...]".',
        )
    return {name: text for name, text in settings.items() if name not in _IGNORED_CLIENT_SETTINGS}


def _subscription(values: Mapping[str, Any]) -> Subscription:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if values[name]]
    if len(given) != 1:
        said = "none is given" if not given else f"{' and '.join(given)} are given"
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"Exactly one of the options subscribe, subscribePattern and assign is needed; {said}.",
        )
    return Subscription(
        topics=values["subscribe"] or (),
        pattern=values["subscribePattern"] or "",
        partitions=values["assign"] or (),
    )


def _limit(values: Mapping[str, Any], edge: str, default: Limit) -> tuple[Limit, str]:
    """Give the starting or ending limit and the option it comes from; a time for all wins, then times, then offsets."""
    latest_when_missing = edge == "ending" or values["startingOffsetsByTimestampStrategy"] == "latest"
    if values[f"{edge}Timestamp"] is not None:
        return AtTimestamp(values[f"{edge}Timestamp"], {}, latest_when_missing), f"{edge}Timestamp"
    if values[f"{edge}OffsetsByTimestamp"] is not None:
        times = values[f"{edge}OffsetsByTimestamp"]
        return AtTimestamp(None, times, latest_when_missing), f"{edge}OffsetsByTimestamp"
    return values[f"{edge}Offsets"] or default, f"{edge}Offsets"


def _refuse(limit: Limit, kind: type, number: int, option: str, reason: str) -> None:
    named = isinstance(limit, Specific) and number in limit.offsets.values()
    if isinstance(limit, kind) or named:
        word = "latest" if number == LATEST else "earliest"
        number_text = f" ({number})" if named else ""
        raise PylogError(
            "PYLOG_INVALID_OPTION", f"The option {option} cannot be {word}{number_text} in a batch read: {reason}."
        )


def _trigger_limits(values: Mapping[str, Any]) -> dict[str, Any]:
    most, fewest = values["maxOffsetsPerTrigger"], values["minOffsetsPerTrigger"]
    if most is not None and fewest is not None and fewest > most:
        raise PylogError(
            "PYLOG_INVALID_OPTION", f"minOffsetsPerTrigger ({fewest}) must not be above maxOffsetsPerTrigger ({most})."
        )
    return {"max_offsets": most, "min_offsets": fewest, "max_delay_ms": values["maxTriggerDelay"]}


def _nearest(name: str) -> str:
    known = {option.name.lower(): option.name for option in OPTIONS}
    candidates = {**known, **{key.removeprefix(_CLIENT_PREFIX): full for key, full in known.items()}}
    found = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if found:
        return f"did you mean {candidates[found[0]]}"
    return f"the options are {', '.join(option.name for option in OPTIONS)}, and kafka.* for the client"


def options_table() -> str:
    """Render the options as a Markdown table, for the documentation."""
    lines = ["| option | value | default | in | meaning |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        default = option.default or "none"
        kind = option.kind.replace("|", "\\|")
        lines.append(f"| `{option.name}` | {kind} | {default} | {', '.join(option.scopes)} | {option.doc} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Render ``docs/options.md``. A test keeps the file equal to this; ``python -m pylog_spark.options`` writes it anew."""
    conditions = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in CONDITIONS.items())
    return _PAGE.format(options=options_table(), conditions=conditions)


_PAGE = """# Options of format("pylog")

Names are read in any case. Those that Spark's Kafka connector has too mean the same here. Written by
`python -m pylog_spark.options > docs/options.md` from their declarations.

{options}
## Columns

A read gives `key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT`, and with `includeHeaders` also
`headers ARRAY<STRUCT<key: STRING, value: BINARY>>`. With `.schema("value BINARY")`, or any other choice of these columns
in any order, only those are built, which is faster.

A write takes `value` (STRING or BINARY, required; null is a tombstone), `key` (STRING or BINARY), `topic` (STRING), `partition` (INT),
`timestamp` (TIMESTAMP), `headers`. Other columns are left alone. Rows with a key go where Kafka's own clients would put
them (murmur2), rows without one to one partition after the other, a batch at a time.

## Errors

Each error is a condition and one sentence. Spark shows it after the Python traceback; the setting
`spark.sql.execution.pyspark.udf.hideTraceback.enabled=true` leaves only the sentence of errors in tasks.

| condition | meaning |
|---|---|
{conditions}"""


if __name__ == "__main__":
    print(page(), end="")
