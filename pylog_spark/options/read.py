"""The options of a query that reads, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pylog_spark.errors import PylogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.filters import RecordFilter
from pylog_spark.offsets.limits import (
    EARLIEST,
    LATEST,
    AtTimestamp,
    Earliest,
    Latest,
    Limit,
    Specific,
    Word,
)
from pylog_spark.offsets.pattern import compile_pattern
from pylog_spark.offsets.spans import EVERY, Spans
from pylog_spark.options.names import SINK_PREFIX, SINK_TOPIC, client_settings, option_values, registry
from pylog_spark.options.secrets import ClientSettings
from pylog_spark.options.table import BATCH, STREAM
from pylog_spark.typed.formats import FAILFAST, Formats, formats

#: How long a task waits for its records unless an option says otherwise: `spark.network.timeout`, which Spark's connector takes.
POLL_TIMEOUT_MS = 120_000
#: Ranges of a micro-batch with fewer offsets share a Spark task unless an option says otherwise. A task takes some 30 ms before its
#: first record; in that time it could read this many records of 1 kB.
STREAM_MIN_RECORDS = 1_000
#: The same for bytes: ranges with fewer share a Spark task.
STREAM_MIN_BYTES = 1024 * 1024
#: The largest micro-batch that the driver reads unless an option says otherwise (`source/prefetch.py`).
PREFETCH_MAX_BYTES = 2 * 1024 * 1024
#: A rack that begins so is the value of an environment variable of the executors.
RACK_VARIABLE = "env:"
#: How many bytes of a directory a task reads unless an option says otherwise: Spark's `spark.sql.files.maxPartitionBytes`.
FILE_BYTES = 128 * 1024 * 1024
#: Options that need a directory, and why.
_ONLY_OF_FILES = {
    "cut": "it names a part of an archive",
    "ignoreCorruptBatches": "brokers serve no damaged bytes",
    "maxBytesPerPartition": "brokers do not say how many bytes a range has; maxRecordsPerPartition and minPartitions split it",
}
#: What a directory is read for when no option says it: the pattern that is found in every name.
_EVERY_TOPIC = "^"


@dataclass(frozen=True)
class Subscription:
    """What to read: exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    def matches(self, topic: str) -> bool:
        """Whether `pattern` is found in the name, which must not be one of the sink's own topics."""
        return (
            topic != SINK_TOPIC
            and not topic.startswith(SINK_PREFIX)
            and compile_pattern(self.pattern).search(topic) is not None
        )

    def includes(self, partition: TopicPartition) -> bool:
        """Whether `partition` is read, if it exists."""
        if self.pattern:
            return self.matches(partition.topic)
        return partition.topic in self.topics or partition in self.partitions


@dataclass(frozen=True)
class ReadOptions:
    """The options of a reading query, checked and typed; plain values, so it can be pickled.

    `client` has the settings of the driver's client, `task_client` those of the tasks, which wait longer.
    """

    subscription: Subscription
    start: Limit
    start_option: str
    end: Limit
    end_option: str
    fail_on_data_loss: bool
    include_headers: bool
    min_partitions: int | None
    max_records: int | None
    min_records: int | None
    min_bytes: int | None
    wanted: RecordFilter
    pushdown: bool
    limit: int | None
    max_offsets: int | None
    min_offsets: int | None
    max_delay_ms: int
    trigger_records: int | None
    trigger_bytes: int | None
    group_id: str | None
    offset_retries: int
    offset_retry_ms: int
    batch_bytes: int
    prefetch_bytes: int
    client: Mapping[str, str]
    task_client: Mapping[str, str]
    rack: str
    local_reads: bool
    archive_reads: bool
    formats: Formats
    bad_topic: str | None
    path: str | None
    archive: str | None
    cut: str | None
    max_bytes: int | None
    skip_damaged: bool


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
    values = option_values(given, scope)
    path = values["path"]
    client = client_settings(given, needs_brokers=path is None)
    _check_path(values, client)
    rack = _rack(values["clientRack"], client.pop("client.rack", None))
    client["isolation.level"] = _isolation(values["isolationLevel"], client.get("isolation.level"))
    start, start_option = _limit(values, "starting", Earliest() if scope == BATCH else Latest())
    end, end_option = _limit(values, "ending", Latest())
    if scope == BATCH:
        _refuse(
            start, Latest, LATEST, start_option, "a batch would be empty; begin at earliest, at offsets or at a time"
        )
        _refuse(end, Earliest, EARLIEST, end_option, "a batch would be empty; end at latest, at offsets or at a time")
        _check_order(start, start_option, end, end_option)
    subscription = _subscription(values, path)
    said = formats(values, registry(given))
    return ReadOptions(
        subscription=subscription,
        start=start,
        start_option=start_option,
        end=end,
        end_option=end_option,
        fail_on_data_loss=values["failOnDataLoss"],
        include_headers=values["includeHeaders"],
        min_partitions=values["minPartitions"],
        **_task_sizes(values, scope),
        wanted=_wanted(values),
        pushdown=values["pushdown"],
        limit=values["limit"],
        **_trigger_limits(values),
        group_id=values["kafka.group.id"],
        offset_retries=values["fetchOffset.numRetries"],
        offset_retry_ms=values["fetchOffset.retryIntervalMs"],
        batch_bytes=values["batchBytes"],
        prefetch_bytes=_prefetch_bytes(values),
        client=client,
        task_client=_of_tasks(client, values["kafkaConsumer.pollTimeoutMs"]),
        rack=rack,
        local_reads=values["localReads"],
        archive_reads=values["archiveReads"],
        formats=said,
        bad_topic=_bad_topic(values, subscription, said),
        path=path,
        archive=values["archive"],
        cut=values["cut"],
        max_bytes=(values["maxBytesPerPartition"] or FILE_BYTES) if path is not None else None,
        skip_damaged=bool(values["ignoreCorruptBatches"]),
    )


def _bad_topic(values: Mapping[str, Any], subscription: Subscription, said: Formats) -> str | None:
    """The topic of `badRecordsTopic`, which is refused where it can have no meaning."""
    topic: str | None = values["badRecordsTopic"]
    if topic is None:
        return None
    read = subscription.matches(topic) if subscription.pattern else topic in subscription.topics
    if read or any(partition.topic == topic for partition in subscription.partitions):
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The option badRecordsTopic is {topic}, which the query reads itself; name another topic.",
        )
    if not said.are_given or said.mode == FAILFAST:
        needed = "a mode other than FAILFAST" if said.are_given else "valueFormat or keyFormat beside it"
        raise PylogError("PYLOG_INVALID_OPTION", f"The option badRecordsTopic needs {needed}; leave it out.")
    return topic


def _of_tasks(client: Mapping[str, str], poll_timeout_ms: int | None) -> ClientSettings:
    if poll_timeout_ms is not None:
        return ClientSettings({**client, "default.api.timeout.ms": str(poll_timeout_ms)})
    return ClientSettings({"default.api.timeout.ms": str(POLL_TIMEOUT_MS), **client})


def _check_path(values: Mapping[str, Any], client: Mapping[str, str]) -> None:
    """Refuse what has no meaning where a directory is read without brokers, and what has one only there."""
    if values["path"] is None:
        for name, reason in _ONLY_OF_FILES.items():
            if values[name]:
                raise PylogError("PYLOG_INVALID_OPTION", f"The option {name} needs the option path: {reason}.")
        return
    of_brokers = [f"kafka.{name}" for name in client if name != "isolation.level"]
    of_brokers += [
        name for name in ("archive", "badRecordsTopic", "kafka.group.id", "clientRack") if values[name] is not None
    ]
    if of_brokers:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options path and {of_brokers[0]} exclude each other: a directory is read without brokers. Leave out "
            f"{of_brokers[0]}, or path to read from the brokers.",
        )


def _subscription(values: Mapping[str, Any], path: str | None) -> Subscription:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if values[name]]
    if path is not None and not given:
        return Subscription(pattern=_EVERY_TOPIC)
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
    """Give the starting or ending limit and the option it comes from: a time for all partitions wins over times of single ones, these over offsets."""
    latest_when_missing = edge == "ending" or values["startingOffsetsByTimestampStrategy"] == "latest"
    if values[f"{edge}Timestamp"] is not None:
        return AtTimestamp(values[f"{edge}Timestamp"], {}, latest_when_missing), f"{edge}Timestamp"
    if values[f"{edge}OffsetsByTimestamp"] is not None:
        times = values[f"{edge}OffsetsByTimestamp"]
        return AtTimestamp(None, times, latest_when_missing), f"{edge}OffsetsByTimestamp"
    return values[f"{edge}Offsets"] or default, f"{edge}Offsets"


def _refuse(limit: Limit, kind: type[Word], number: int, option: str, reason: str) -> None:
    named = isinstance(limit, Specific) and number in limit.offsets.values()
    of_topic = isinstance(limit, Specific) and any(isinstance(word, kind) for word in limit.topics.values())
    if isinstance(limit, kind) or named or of_topic:
        word = "latest" if number == LATEST else "earliest"
        number_text = f" ({number})" if named else ""
        raise PylogError(
            "PYLOG_INVALID_OPTION", f"The option {option} cannot be {word}{number_text} in a batch read: {reason}."
        )


def _check_order(start: Limit, start_option: str, end: Limit, end_option: str) -> None:
    """Refuse a start after the end where both are given as numbers; other limits are compared when their offsets are known."""
    before: Mapping[TopicPartition, int]
    after: Mapping[TopicPartition, int]
    if isinstance(start, Specific) and isinstance(end, Specific):
        before, after = start.offsets, end.offsets
    elif isinstance(start, AtTimestamp) and isinstance(end, AtTimestamp):
        before, after = start.by_partition, end.by_partition
        if start.timestamp_ms is not None and end.timestamp_ms is not None:
            whole = TopicPartition("every partition", 0)
            before, after = {whole: start.timestamp_ms}, {whole: end.timestamp_ms}
    else:
        return
    for partition in sorted(before.keys() & after.keys()):
        first, last = before[partition], after[partition]
        if first > last >= 0:
            place = partition.topic if partition.topic == "every partition" else str(partition)
            raise PylogError(
                "PYLOG_START_AFTER_END",
                f"{start_option} is {first} and {end_option} is {last} for {place}, which is lower; exchange them or "
                "choose a later end.",
            )


def _trigger_limits(values: Mapping[str, Any]) -> dict[str, Any]:
    most, fewest = values["maxOffsetsPerTrigger"], values["minOffsetsPerTrigger"]
    if most is not None and fewest is not None and fewest > most:
        raise PylogError(
            "PYLOG_INVALID_OPTION", f"minOffsetsPerTrigger ({fewest}) must not be above maxOffsetsPerTrigger ({most})."
        )
    return {
        "max_offsets": most,
        "min_offsets": fewest,
        "max_delay_ms": values["maxTriggerDelay"],
        "trigger_records": values["maxRecordsPerTrigger"],
        "trigger_bytes": values["maxBytesPerTrigger"],
    }


def _task_sizes(values: Mapping[str, Any], scope: str) -> dict[str, Any]:
    most, fewest = values["maxRecordsPerPartition"], values["minRecordsPerPartition"]
    if most is not None and fewest is not None and fewest > most:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"minRecordsPerPartition ({fewest}) must not be above maxRecordsPerPartition ({most}).",
        )
    size = values["minBytesPerPartition"]
    if fewest is None and scope == STREAM:
        fewest = STREAM_MIN_RECORDS if most is None else min(most, STREAM_MIN_RECORDS)
        size = STREAM_MIN_BYTES if size is None else size
    if size is not None and fewest is None:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            "The option minBytesPerPartition needs minRecordsPerPartition in a batch read, where ranges share no task without it.",
        )
    return {"max_records": most, "min_records": fewest, "min_bytes": size}


def _prefetch_bytes(values: Mapping[str, Any]) -> int:
    given: int | None = values["prefetchMaxBytes"]
    if given is not None:
        return given
    spread = ("minPartitions", "maxRecordsPerPartition", "minRecordsPerPartition")
    return PREFETCH_MAX_BYTES if all(values[name] is None for name in spread) else 0


def _wanted(values: Mapping[str, Any]) -> RecordFilter:
    def spans(name: str) -> Spans:
        return EVERY if values[name] is None else values[name]

    keys = (values["filterKey"], values["filterKeyPrefix"])
    return RecordFilter(
        partitions=spans("filterPartition"),
        offsets=spans("filterOffset"),
        timestamps=spans("filterTimestamp"),
        keys=tuple(test for test in keys if test is not None),
    )


def _rack(said: str | None, setting: str | None) -> str:
    """The rack of the tasks, by either option: its name, or ``env:`` and the variable that has it; "" when none is given."""
    if said is not None and setting is not None and said != setting:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options clientRack ({said}) and kafka.client.rack ({setting}) say different things; leave one out.",
        )
    rack = (said or setting or "").strip()
    if rack == RACK_VARIABLE:
        raise PylogError(
            "PYLOG_INVALID_OPTION", "The option clientRack is env: without a variable; name one, such as env:RACK."
        )
    return rack


def _isolation(said: str | None, setting: str | None) -> str:
    """The isolation level, by either option; committed records when none is given."""
    if said is not None and setting is not None and said != setting.strip().lower():
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"The options isolationLevel ({said}) and kafka.isolation.level ({setting}) say different things; leave one out.",
        )
    return said or setting or "read_committed"
