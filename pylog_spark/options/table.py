"""The table of options: what a user may write, and what the documentation says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pylog_spark.offsets import texts
from pylog_spark.offsets.filters import parse_keys, parse_prefixes
from pylog_spark.offsets.limits import parse_offsets, parse_partitions
from pylog_spark.offsets.spans import parse_numbers, parse_times
from pylog_spark.typed import formats

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
        As the documentation shows them; `default` is a text that `parse` reads, or "" for none.
    parse : callable
        Turns the user's text into a value; raises ValueError with the rest of the sentence "The option x ...".
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
        "Brokers to ask first, comma-separated; required but with `path`. `bootstrap.servers` means the same. Any other `kafka.<name>` is a setting of the client, under Kafka's name.",
    ),
    Option(
        "subscribe",
        "topic,...",
        texts.topics,
        READ,
        "Topics to read, comma-separated. Exactly one of `subscribe`, `subscribePattern` and `assign` is required; with `path` none need be given.",
    ),
    Option(
        "subscribePattern",
        "regular expression",
        texts.pattern,
        READ,
        "Topics to read: all in whose name this Java regular expression is found (`^` and `$` stand for the name's beginning and end), except the brokers' internal ones. A stream also reads matching topics that are created later.",
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
        "What to do with a partition that has no record at or after the starting time: `error` fails the query, `latest` begins at the partition's end.",
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
        "Where to end: before the first record at or after this time; latest when there is none. In a topic whose records are not in the order of their timestamps, all behind that record are left out, older ones too; `filterTimestamp` looks at each record. Wins over `endingOffsetsByTimestamp`.",
    ),
    Option(
        "failOnDataLoss",
        "boolean",
        texts.boolean,
        READ,
        "Whether the query fails when records that it needed are gone (by retention, or because their topic was deleted and created again). With false it goes on with what is left.",
        "true",
    ),
    Option(
        "includeHeaders", "boolean", texts.boolean, READ, "Whether the column `headers` is read.", "false", (WRITE,)
    ),
    Option(
        "valueFormat",
        "json, avro, protobuf or a serializer",
        formats.one_format,
        ALL,
        "What values are ([typed columns](typed.md)). `json`: objects, whose fields become columns; `avro`: records of Avro, `protobuf`: messages, likewise; `string`, `long`, `integer`, `short`, `float` or `double`: what Kafka's serializer of this name writes, in the column `value`. A write makes them in the same way: with `json`, `avro` and `protobuf` of all columns that are not the record's own. Default: `binary`, the bytes as they are.",
    ),
    Option(
        "keyFormat",
        "json, avro, protobuf or a serializer",
        formats.one_format,
        ALL,
        "What keys are, as in `valueFormat`. The fields of a key of JSON, Avro or Protobuf are parts of the column `key`.",
    ),
    Option(
        "valueSchema",
        "DDL, Avro schema or @file",
        formats.schema_text,
        ALL,
        "The fields of values that have some, or the path of a file on the driver that says them. With `json` in DDL, such as `id bigint, name string`, for reads whose `.schema()` does not name the columns: they then give all these fields and all columns of the record. With `avro` an Avro schema: what values are read as, or written with. With `protobuf` the file's descriptors, or these in Base64 ([how](typed.md#protobuf)).",
    ),
    Option(
        "keySchema", "DDL, Avro schema or @file", formats.schema_text, ALL, "The fields of keys, as in `valueSchema`."
    ),
    Option(
        "valueMessage",
        "name",
        texts.nonempty,
        ALL,
        "The message that values are, with `protobuf`: its full name, or the last part of it where only one message has that. By `valueSubject`, default: the first message of the schema.",
    ),
    Option("keyMessage", "name", texts.nonempty, ALL, "The message that keys are, as in `valueMessage`."),
    Option(
        "schemaIdPrefix",
        "boolean",
        texts.boolean,
        READ,
        "Whether messages of `protobuf` begin as Confluent's serializers write them: with the id of a schema and the message's place in it. The id is not looked up, for which `schema.registry.url` is there instead. A record that is another message does not parse.",
        "false",
    ),
    Option(
        "valueSubject",
        "text",
        texts.nonempty,
        ALL,
        "The subject of the schema registry whose newest schema takes the place of `valueSchema`, with `avro` and `protobuf`. In a write with `valueSchema`: the subject under which that is registered; default: the topic's name and `-value`.",
    ),
    Option("keySubject", "text", texts.nonempty, ALL, "The same of keys; default: the topic's name and `-key`."),
    Option(
        "schema.registry.url",
        "http://host:port,...",
        texts.nonempty,
        ALL,
        "Where the schema registry is with whose ids keys and values of `avro` and `protobuf` begin, in Confluent's way ([typed columns](typed.md#schemas-of-a-registry)). Without it they are datums and messages alone. Any other `schema.registry.<name>` is a setting of its client, under Confluent's name.",
    ),
    Option(
        "recordPrefix",
        "text",
        texts.nonempty,
        ALL,
        "What is put before the names of the record's own columns where keys or values have a format, so that fields of the value may have those names: with `record_` the columns are `record_key`, `record_topic` and so on.",
    ),
    Option(
        "mode",
        "PERMISSIVE, DROPMALFORMED or FAILFAST",
        formats.one_mode,
        READ,
        "What becomes of a record whose key or value does not parse as its format says. `PERMISSIVE` (default): what does not parse is null, and a column `_corrupt_record STRING`, if `.schema()` names it, has the text. `DROPMALFORMED`: the record is left out. `FAILFAST`: the query fails.",
    ),
    Option(
        "badRecordsTopic",
        "name",
        texts.nonempty,
        READ,
        "Topic for records whose key or value does not parse ([how](typed.md#records-that-do-not-parse)): each is written there once, its key the position that it was read from, whatever Spark repeats. It must exist, or the brokers must create topics. With every `mode` but `FAILFAST`. Needs brokers with transactions.",
    ),
    Option(
        "minPartitions",
        "number",
        texts.count,
        READ,
        "Wanted number of Spark partitions: large offset ranges are split until there are about so many. Without it each log partition is one Spark partition (small ones may share one, see `minRecordsPerPartition`).",
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
        "Fewest offsets that are worth a Spark partition of their own. Smaller ranges, also of different topics and log partitions, share one, in which they are read one after the other. `minPartitions` and `maxRecordsPerPartition` still hold. Default in a batch read: each log partition is one Spark partition. Default in a stream: 1000, together with the default of `minBytesPerPartition`. With 1 each log partition always is one Spark partition.",
    ),
    Option(
        "minBytesPerPartition",
        "size",
        texts.size,
        READ,
        "Fewest bytes that are worth a Spark partition of their own: a range with as many bytes shares none, even with fewer offsets than `minRecordsPerPartition`. In a batch read it needs that option. Bytes are estimated by the stored size (compressed, where batches are) of the records in the first new batch; one partition of each topic is looked at, once a minute. Default in a stream without `minRecordsPerPartition`: 1048576.",
    ),
    Option(
        "prefetchMaxBytes",
        "size",
        texts.size_or_none,
        (STREAM,),
        "Micro-batches of no more bytes (as Arrow data) are read by the driver and handed to one Spark task that needs no Python worker, which takes Spark less time; larger ones are read by the tasks, in as many Spark partitions as the options above say. 0: the tasks always read. Where the driver cannot read soon, or this version of Spark does not take its rows, the tasks read as well. Default: 2097152, and 0 with `minPartitions`, `maxRecordsPerPartition` or `minRecordsPerPartition`, which say how rows are spread over tasks.",
        ignored_in=(BATCH,),
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
        "Read only these offsets of every partition: `1000..2000,5000..`. Offsets between the ranges are not fetched. Unlike in `startingOffsets`, an offset that the log does not have is no error.",
    ),
    Option(
        "filterTimestamp",
        "times and ranges",
        parse_times,
        READ,
        "Read only records with these timestamps, in ms since 1970 or ISO 8601 with a zone: `2026-01-01T00:00:00Z..2026-01-02T00:00:00Z`. Reading begins at the first record at or after the first time. It does not stop at the last time, because timestamps need not be in order; where they are, `endingTimestamp` ends a batch read earlier.",
    ),
    Option(
        "filterKey",
        "text or JSON array",
        parse_keys,
        READ,
        'Read only records with this key, or with one of several: `["a","b",null,{"hex":"00ff"}]`, where null stands for no key. Other records are left out before rows are built.',
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
        "Whether conditions of the query on `topic`, `partition`, `offset`, `timestamp` and `key` (=, <=>, <, <=, >, >=, in, is null, is not null, each against a literal) become filters of the read, and in a typed read those on decoded columns, also prefixes of texts. Needs Spark 4.1 and its setting `spark.sql.python.filterPushdown.enabled=true`, without which Spark refuses such a read. Call `load()` anew for each query: Spark keeps the conditions that the first query of a loaded frame has pushed down, and applies them to the next ones too.",
        "false",
    ),
    Option(
        "limit",
        "number",
        texts.count,
        (BATCH,),
        "Most rows of the whole read: the first ones by topic, partition and offset. One Spark task reads them and fetches no more than it needs, so it suits a look at the data.",
    ),
    Option(
        "isolationLevel",
        "read_committed or read_uncommitted",
        texts.isolation,
        READ,
        "Which records of transactions are read. `read_committed`: only those of committed transactions, and a partition ends before its first open transaction. `read_uncommitted`: all of them. The same as `kafka.isolation.level`. When neither is given `read_committed`; Spark's Kafka connector then reads uncommitted.",
        "",
    ),
    Option(
        "path",
        "directory",
        texts.directory,
        (BATCH,),
        "A data directory of a broker, pylog's or Apache Kafka's, that is read without it ([directories](directories.md)), or the folder or URL of an archive ([archives](archive.md#an-archive-that-grows)); `load(directory)` means the same. No option for brokers may stand beside it. Without `subscribe`, `subscribePattern` and `assign` all topics in it are read but the brokers' internal ones. Every executor must see it under this path.",
    ),
    Option(
        "archive",
        "directory",
        texts.directory,
        READ,
        "An archive of the brokers' topics ([archives](archive.md#history-and-the-newest-records-in-one-read)): what they do not have any more is read there, as if they had it. A batch reads all that is archived there and asks brokers for the rest; a stream reads there what brokers do not have, and backlogs of a segment and more. Every executor must be able to open it.",
    ),
    Option(
        "archiveReads",
        "auto or never",
        texts.auto_or_never,
        READ,
        "Whether tasks read what brokers have archived themselves ([archives](archive.md#brokers-that-archive-by-themselves)) in the archive, and not through the brokers. `auto`: what the brokers do not have on their own disks any more, where the driver may ask for their settings (the right DescribeConfigs of the cluster) and `archive.url` can be opened; a task that cannot open it asks the brokers, with a warning. `never`: through the brokers. The rows are the same.",
        "auto",
    ),
    Option(
        "cut",
        "name",
        texts.nonempty,
        (BATCH,),
        "With `path`, of an archive: the cut that is read ([archives](archive.md#cuts)); its topic and its ranges are all that there is then.",
    ),
    Option(
        "maxBytesPerPartition",
        "size",
        texts.size,
        (BATCH,),
        "With `path`: how many bytes of a log a Spark task reads at most, estimated by the sizes of its files. Default: 134217728, Spark's own for files.",
    ),
    Option(
        "ignoreCorruptBatches",
        "boolean",
        texts.boolean,
        (BATCH,),
        "With `path`: whether bytes that are no whole record batch are left out, each time with a warning that says where and how many, and reading goes on behind them. With false they fail the read, and a log whose broker was killed ends where its broker would cut it.",
        "false",
    ),
    Option(
        "localReads",
        "auto or never",
        texts.auto_or_never,
        READ,
        "Whether tasks read records from a broker's own files where they see its data directory, which they find out by a secret in it. `auto`: where that is so, and over the network everywhere else; which records are read is decided by the broker each time. `never`: over the network. The files' permissions must let the executors' user read them.",
        "auto",
    ),
    Option(
        "clientRack",
        "name or env:NAME",
        texts.nonempty,
        READ,
        "The rack that the reading tasks are in, as in the brokers' `broker.rack`. Brokers whose `replica.selector.class` is set then let each task read from a replica in its own rack. `env:NAME` takes the rack from the environment variable NAME of each executor (`spark.executorEnv.NAME`, or set by the cluster manager); where it is not set, the leader is read. A NAME without the word RACK or ZONE, as in NODE_RACK, must be listed in PYLOG_ALLOWED_VARIABLES ([why](security-clients.md#what-a-query-may-name)). The same as `kafka.client.rack`. The driver always asks leaders.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Most offsets in one micro-batch, shared over the partitions in proportion to their new offsets; each partition with new offsets gets at least one. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "maxRecordsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Most rows in one micro-batch, met exactly while there are enough. Gaps of compaction, aborted transactions and transaction markers are not counted; records that filters leave out are. When the limit could be reached, the headers of the batches are read a second time for it. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "maxBytesPerTrigger",
        "size",
        texts.size,
        (STREAM,),
        "Most bytes in one micro-batch, as they are stored (compressed): `64m`, `1g` or a number. Stored batches are taken whole; one that is larger than the limit is taken alone. Of several limits the one that is reached first holds. Needs Spark 4.2.",
        "",
        (BATCH,),
    ),
    Option(
        "minOffsetsPerTrigger",
        "number",
        texts.count,
        (STREAM,),
        "Fewest offsets worth a micro-batch: while there are fewer, it waits up to `maxTriggerDelay` (the first batch of a run does not wait). Needs Spark 4.2.",
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
        "How long a task waits for the records of its offset range, and for brokers that do not answer, retries included. Default: `kafka.default.api.timeout.ms` when that is given, else 120000, which is Spark's `spark.network.timeout`, as in Spark's Kafka connector.",
    ),
    Option(
        "kafka.group.id",
        "name",
        texts.nonempty,
        READ,
        "Consumer group in which a stream shows its progress, so that Kafka's tools and `pylog group describe` show its lag. The offsets of a finished batch are committed there at the next trigger, or at the end of Trigger.AvailableNow; those of the last batch before a query is stopped, when it starts again. They are never read back (the checkpoint counts), a commit that fails is no error of the query, and the query does not join the group. Give each query a group of its own. Without this option nothing is committed.",
    ),
    Option(
        "fetchOffset.numRetries",
        "number",
        texts.number,
        READ,
        "How often the driver tries to ask for offsets. While no broker answers, each try takes `kafka.default.api.timeout.ms` (60 s), so by default it waits 3 minutes for brokers, as Spark's Kafka connector does. When a partition seems shorter than it was, it asks this often before it believes that records are lost.",
        "3",
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        "ms",
        texts.number,
        READ,
        "Pause between the tries of `fetchOffset.numRetries`. Within one try, the first pause between two requests is `kafka.retry.backoff.ms`.",
        "1000",
    ),
    Option("topic", "name", texts.nonempty, (WRITE,), "Topic of all rows; wins over a column `topic`."),
    Option(
        "delivery",
        "exactly-once or at-least-once",
        texts.delivery,
        (WRITE,),
        "`exactly-once`: readers of committed data see each row once, whatever crashes. `at-least-once`: a task that runs twice writes its rows twice; it is a little cheaper, and works with brokers that have no transactions.",
        "exactly-once",
    ),
    Option(
        "txnAppId",
        "text",
        texts.app_id,
        (WRITE,),
        "Names a batch write, so that repeating it writes nothing twice: for one `txnAppId` and one `topic`, each `txnVersion` is written once, and none that is lower than one already written. Only together with `txnVersion`.",
    ),
    Option(
        "txnVersion",
        "number",
        texts.version,
        (WRITE,),
        "Version of the write that `txnAppId` names; it grows from write to write. In `foreachBatch` it is the number of the batch.",
    ),
    Option(
        "whenWritten",
        "skip or error",
        texts.skip_or_error,
        (WRITE,),
        "What becomes of a batch write whose `txnVersion`, or a later one, was written before: `skip` leaves its rows out, with a warning; `error` fails with `PYLOG_ALREADY_WRITTEN`. Only together with `txnAppId`.",
        "skip",
    ),
    Option(
        "ledger",
        "name",
        texts.ledger,
        (WRITE,),
        "Where an exactly-once write keeps its decisions: in the topic `__pylog_sink.NAME`, with transactional ids that begin with `pylog-once.NAME:` and `pylog-sink.NAME:`. A team with a ledger of its own, and ACLs for these names, is decided for by nobody else ([ACLs](security-clients.md#what-a-job-must-be-allowed)). The same for all runs of a query. Default: the one topic `__pylog_sink`, whose writers have to trust each other.",
    ),
    Option(
        "abandonedAfter",
        "duration",
        texts.timeout,
        (WRITE,),
        "After how long an exactly-once write that is not decided counts as abandoned: when all of its open transactions have been open for longer, its driver counts as dead. The next batch write, a stream that writes, or the driver of a reader that waits for the write's end then aborts it. A driver that was only slow fails with `PYLOG_SINK_FENCED`, and none of its rows is there. From one second to a year. Default: `kafka.transaction.timeout.ms` and 5 minutes more (20 minutes in all). Give more to a job whose first task ends so long before its last.",
    ),
    Option(
        "auditTopic",
        "name",
        texts.nonempty,
        (WRITE,),
        "Topic in which the write says how many rows it has written to which topic in which window of their timestamps, for `pylog audit` and `pylog_spark.audit` to compare with the log. In the same transaction as the rows, so a task that runs twice counts once. Without this option nothing is counted.",
    ),
    Option(
        "auditWindow",
        "duration",
        texts.timeout,
        (WRITE,),
        "Length of the windows of `auditTopic`, from one second to a year; they begin at multiples of it since 1970. Default: 10 minutes.",
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
        "Size in bytes at which a batch of rows is handed to Spark. Larger ones need more memory, smaller ones more time.",
        "1500000",
    ),
)
