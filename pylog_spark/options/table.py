"""The table of options; what a user may write, and what the documentation says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pylog_spark.offsets import texts
from pylog_spark.offsets.filters import parse_keys, parse_prefixes
from pylog_spark.offsets.limits import parse_offsets, parse_partitions
from pylog_spark.offsets.spans import parse_numbers, parse_times

BATCH = "batch read"
STREAM = "stream read"
WRITE = "write"
READ = (BATCH, STREAM)
ALL = (BATCH, STREAM, WRITE)


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
        "Topics to read: all in whose name this Java regular expression is found (`^` and `$` stand for the name's ends), except the brokers' internal ones. A stream finds new topics.",
    ),
    Option("assign", "JSON", parse_partitions, READ, 'Partitions to read, `{"topicA":[0,1],"topicB":[2]}`.'),
    Option(
        "startingOffsets",
        "earliest, latest, a distance or JSON",
        parse_offsets,
        READ,
        'Where to begin: `earliest` (default in batch), `latest` (default in a new stream; refused in batch), a distance from now or from the end such as `-10 minutes` or `-1000 offsets`, or JSON: an offset for every partition or one of these words for a whole topic, `{"topicA":{"0":23,"1":-2},"topicB":"earliest"}`; -2 is earliest, -1 latest. A restarted stream goes on where it stopped; partitions that appear later begin at earliest.',
    ),
    Option(
        "startingOffsetsByTimestamp",
        "JSON of ms",
        texts.times,
        READ,
        'Where to begin: the first record at or after a time for every partition, `{"topicA":{"0":1000}}`; -2 is earliest, -1 latest. Wins over `startingOffsets`.',
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
        "latest, a distance or JSON",
        parse_offsets,
        (BATCH,),
        "Where to end (exclusive): `latest` (default), a distance such as `-10 minutes` or `-1000 offsets`, or JSON as in `startingOffsets`; -1 is latest.",
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
        "Where to end: before the first record at or after this time; latest when there is none. In a topic that is in no order of time, what stands behind that record is left out though it may be older: `filterTimestamp` looks at each record. Wins over `endingOffsetsByTimestamp`.",
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
        "Wanted number of Spark partitions: large offset ranges are split. Without it each log partition is one (small ones may share, see `minRecordsPerPartition`).",
    ),
    Option(
        "maxRecordsPerPartition",
        "number",
        texts.count,
        READ,
        "Most offsets in one Spark partition: larger ranges are split into equal parts.",
    ),
    Option(
        "minRecordsPerPartition",
        "number",
        texts.count,
        READ,
        "Fewest offsets that are worth a Spark partition of their own: smaller ranges, of whatever log partitions, share one and are read in it one after the other. `minPartitions` and `maxRecordsPerPartition` still hold. Without it each log partition is one in a batch read; in a stream 1000 holds, and with it `minBytesPerPartition`, so that a log partition is one as soon as there is work for it. 1 always gives each its own.",
    ),
    Option(
        "minBytesPerPartition",
        "size",
        texts.size,
        READ,
        "Fewest bytes that are worth a Spark partition of their own: ranges that have as much share none, though they have fewer offsets than `minRecordsPerPartition`, with which this goes. An estimate, by the size that the records of the first new batch have in the log (one partition of each topic is looked at once a minute, compressed batches as they are stored). In a stream without `minRecordsPerPartition` 1048576 holds.",
    ),
    Option(
        "filterPartition",
        "numbers and ranges",
        parse_numbers,
        READ,
        "Read only these partitions of every topic: `0,3,8..12`. The end of a range is exclusive, here and in the other filters, and either side may be left out. All filters that are given must hold.",
    ),
    Option(
        "filterOffset",
        "numbers and ranges",
        parse_numbers,
        READ,
        "Read only these offsets of every partition: `1000..2000,5000..`. What lies between is not fetched, and unlike `startingOffsets` an offset that the log does not hold is no error.",
    ),
    Option(
        "filterTimestamp",
        "times and ranges",
        parse_times,
        READ,
        "Read only records with these timestamps, in ms since 1970 or ISO 8601 with a zone: `2026-01-01T00:00:00Z..2026-01-02T00:00:00Z`. Reading begins at the first record at or after the first time. Timestamps need not be in order, so it goes on to the end of the range all the same; where they are in order, `endingTimestamp` stops earlier.",
    ),
    Option(
        "filterKey",
        "text or JSON array",
        parse_keys,
        READ,
        'Read only records with this key, or with one of several: `["a","b",null,{"hex":"00ff"}]`, where null stands for no key. Other records are left out before a row is built.',
    ),
    Option(
        "filterKeyPrefix",
        "text or JSON array",
        parse_prefixes,
        READ,
        "Read only records whose key begins with this text, or with one of several, as in `filterKey`.",
    ),
    Option(
        "pushdown",
        "boolean",
        texts.boolean,
        (BATCH,),
        "Whether conditions of the query on `topic`, `partition`, `offset`, `timestamp` and `key` (=, <=>, <, <=, >, >=, in, is null, is not null, each against a literal) become filters of the read. Needs Spark 4.1 and its setting `spark.sql.python.filterPushdown.enabled=true`, without which Spark refuses such a read. Load the frame anew for each query: Spark keeps what one query of a loaded frame has pushed, and reads so for the next one too, whatever that one asks for.",
        "false",
    ),
    Option(
        "limit",
        "number",
        texts.count,
        (BATCH,),
        "Most rows of the read in all: the first by topic, partition and offset. One Spark task reads them and fetches no more than it needs, so it suits a look at the data.",
    ),
    Option(
        "isolationLevel",
        "read_committed or read_uncommitted",
        texts.isolation,
        READ,
        "Whether records of aborted transactions are left out and a read ends before the first transaction that is still open. The same as `kafka.isolation.level`; `read_committed` when neither is given, where Spark's Kafka connector reads uncommitted.",
        "",
    ),
    Option(
        "clientRack",
        "name or env:NAME",
        texts.nonempty,
        READ,
        "Where the reading tasks are, as in the brokers' `broker.rack`: with it, brokers whose `replica.selector.class` says so let each task read from a replica in its own rack. `env:NAME` takes the rack from the environment variable NAME of each executor (`spark.executorEnv.NAME`, or set by the cluster manager); where it is not set, the leader is read. The same as `kafka.client.rack`. The driver asks leaders in any case.",
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
        "maxRecordsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Most rows in one micro-batch, reached exactly while there is enough: gaps of compaction, aborted transactions and transaction markers are not counted; what filters leave out is. Batches are looked at a second time for it, by their headers, when the limit could bind. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "maxBytesPerTrigger",
        "size",
        texts.size,
        (STREAM,),
        "Most bytes in one micro-batch, as they are stored (compressed): `64m`, `1g` or a number. Stored batches are taken whole; one that alone is larger is taken alone. Of several limits the one that is reached first holds. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "minOffsetsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Fewest offsets worth a micro-batch: with less, it waits up to `maxTriggerDelay` (the first batch of a run does not wait). Needs Spark 4.2.",
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
        "Accepted for compatibility: pylog reads without a consumer group, so there is nothing to name. `kafka.group.id` names the group in which a stream shows its progress.",
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "ms",
        texts.count,
        READ,
        "How long a task waits for records that the plan promised and for brokers that are away, retries included. Without it `kafka.default.api.timeout.ms`, when that is given, else 120000: `spark.network.timeout`, as in Spark's Kafka connector.",
    ),
    Option(
        "kafka.group.id",
        "name",
        texts.nonempty,
        READ,
        "Consumer group in which a stream shows its progress, so that Kafka's tools and `pylog group describe` show its lag: the offsets of a finished batch are committed there at the next trigger, or at the end of Trigger.AvailableNow; those of the last one before a query is stopped, when it starts again. Never read back (the checkpoint is the truth), never an error; nothing is joined. Give each query its own. Without it nothing is committed.",
    ),
    Option(
        "fetchOffset.numRetries",
        "number",
        texts.number,
        READ,
        "How often the driver asks: while no broker answers, each time for `kafka.default.api.timeout.ms` (60 s), so that it waits for brokers that are away for 3 minutes by default, as Spark's Kafka connector does; and when the brokers show a partition shorter than it was, before it believes that records are lost.",
        "3",
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        "ms",
        texts.number,
        READ,
        "Pause before asking again, see `fetchOffset.numRetries`; the first between two requests within one such time is `kafka.retry.backoff.ms`.",
        "1000",
    ),
    Option("topic", "name", texts.nonempty, (WRITE,), "Topic of all rows; wins over a column `topic`."),
    Option(
        "delivery",
        "exactly-once or at-least-once",
        texts.delivery,
        (WRITE,),
        "`exactly-once`: readers of committed data see each row once, whatever crashes. `at-least-once`: a task that runs twice writes its rows twice; a little cheaper, and for brokers without transactions.",
        "exactly-once",
    ),
    Option(
        "txnAppId",
        "text",
        texts.app_id,
        (WRITE,),
        "Names a batch write, so that it can be repeated: of one name and one `topic`, each `txnVersion` is written once, and none below one that was. Only together with `txnVersion`.",
    ),
    Option(
        "txnVersion",
        "number",
        texts.version,
        (WRITE,),
        "Version of the write that `txnAppId` names, growing from write to write; in `foreachBatch`, the number of the batch.",
    ),
    Option(
        "abandonedAfter",
        "duration",
        texts.timeout,
        (WRITE,),
        "After how long an exactly-once write that is not decided may be ended by others: when all of its open transactions are open for longer, its driver counts as gone. The next batch write, a stream that writes or the driver of a reader that is held back then aborts it; a driver that was only slow fails with `PYLOG_SINK_FENCED`, and none of its rows is there. From one second to a year; `kafka.transaction.timeout.ms` and 5 minutes (20 minutes in all) when it is not given. Give more to a job whose first task is done so long before its last.",
    ),
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
