"""Every broker and topic setting, declared once: Kafka's name, type, default, valid range, importance and doc.

Only what is implemented is here, or what changes nothing and is shown because Kafka's tools look for it (its doc then says
so). An unknown name is refused with the nearest known one. Nothing here reads a file or starts anything.

A topic setting that is not given falls back to its broker settings in the order of its `synonyms` (Kafka's table:
ServerTopicConfigSynonyms), then to its default. The defaults are Kafka 4.4's.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pylog_spark.broker.setting import (
    INT_MAX,
    LONG_MAX,
    ConfigError,
    OneOf,
    Range,
    Setting,
    Synonym,
    Type,
    Value,
    at_least,
)

_SECOND_MS = 1_000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_WEEK_HOURS = 7 * 24
_MIB = 1024 * 1024

_CLEANUP = OneOf(("delete", "compact"))
_PART = Range(0, 1)
_ONLY_PRODUCER = OneOf(("producer",), "the broker keeps batches as the producer compressed them")
_TIMESTAMP_TYPES = OneOf(("CreateTime", "LogAppendTime"))
_DURABILITY = OneOf(("page-cache", "flushed"))
_FACTOR = Range(1, 2**15 - 1)
_RACK_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_THROTTLED = "Replicas that are throttled, as PARTITION:BROKER,PARTITION:BROKER or * for all; empty: none."


def _log(
    name: str,
    kind: Type,
    default: Value,
    doc: str,
    broker: tuple[Synonym | str, ...],
    valid: Range | OneOf | None = None,
) -> Setting:
    """Declare a topic setting that the log itself reads; `broker` names its fallbacks."""
    synonyms = tuple(Synonym(name) if isinstance(name, str) else name for name in broker)
    return Setting(
        name, kind, default, doc, valid=valid, dynamic=True, native=name.replace(".", "_"), synonyms=synonyms
    )


TOPIC_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "cleanup.policy", Type.LIST, ("delete",),
        "What happens to old records. delete: whole segments are removed by retention.ms and retention.bytes. compact: of each "
        "key the last record is kept. compact,delete: both.",
        valid=_CLEANUP, dynamic=True, native="cleanup_policy", synonyms=(Synonym("log.cleanup.policy"),),
    ),
    Setting(
        "compression.type", Type.STRING, "producer",
        "How record batches are compressed on disk. producer: as the producer sent them.",
        valid=_ONLY_PRODUCER, dynamic=True, native="compression_type", synonyms=(Synonym("compression.type"),),
    ),
    _log("delete.retention.ms", Type.LONG, 24 * _HOUR_MS,
         "How long compaction keeps tombstones and transaction markers after the first cleaning that met them; a reader that "
         "takes longer than this from the start to the end may miss a deletion.",
         ("log.cleaner.delete.retention.ms",), at_least(0)),
    _log("durability", Type.STRING, "page-cache",
         "When a record is acknowledged and visible. page-cache: once written to the page cache (survives a kill of the broker). "
         "flushed: once fdatasync has returned (survives power loss). A setting of pylog, not of Kafka.",
         ("log.durability",), _DURABILITY),
    _log("file.delete.delay.ms", Type.LONG, _MINUTE_MS,
         "How long a deleted segment's file stays on disk before it is unlinked.",
         ("log.segment.delete.delay.ms",), at_least(0)),
    _log("flush.messages", Type.LONG, LONG_MAX,
         "Sync the log after this many records. 1 syncs after every batch.",
         ("log.flush.interval.messages",), at_least(1)),
    _log("flush.ms", Type.LONG, LONG_MAX,
         "Sync the log when its oldest unsynced record is this old.",
         ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"), at_least(0)),
    Setting("follower.replication.throttled.replicas", Type.LIST, (),
            f"{_THROTTLED} They fetch at most follower.replication.throttled.rate bytes a second.",
            dynamic=True, native="follower_replication_throttled_replicas"),
    _log("index.interval.bytes", Type.INT, 4096,
         "Bytes of log between two entries of the offset index.", ("log.index.interval.bytes",), at_least(0)),
    Setting("leader.replication.throttled.replicas", Type.LIST, (),
            f"{_THROTTLED} Leaders send at most leader.replication.throttled.rate bytes a second to them.",
            dynamic=True, native="leader_replication_throttled_replicas"),
    _log("max.compaction.lag.ms", Type.LONG, LONG_MAX,
         "Records older than this are compacted even when little of the log is dirty.",
         ("log.cleaner.max.compaction.lag.ms",), at_least(1)),
    _log("max.message.bytes", Type.INT, _MIB + 12,
         "Largest record batch accepted (as sent, so after compression).", ("message.max.bytes",), at_least(0)),
    _log("message.timestamp.after.max.ms", Type.LONG, _HOUR_MS,
         "A record whose timestamp is further than this in the future is refused (CreateTime only).",
         ("log.message.timestamp.after.max.ms",), at_least(0)),
    _log("message.timestamp.before.max.ms", Type.LONG, LONG_MAX,
         "A record whose timestamp is further than this in the past is refused (CreateTime only).",
         ("log.message.timestamp.before.max.ms",), at_least(0)),
    _log("message.timestamp.type", Type.STRING, "CreateTime",
         "Which time a record carries: the producer's (CreateTime) or the broker's at append (LogAppendTime).",
         ("log.message.timestamp.type",), _TIMESTAMP_TYPES),
    _log("min.cleanable.dirty.ratio", Type.DOUBLE, 0.5,
         "A log is compacted once more than this part of it was written since the last time.",
         ("log.cleaner.min.cleanable.ratio",), _PART),
    _log("min.compaction.lag.ms", Type.LONG, 0,
         "Records younger than this are not compacted.", ("log.cleaner.min.compaction.lag.ms",), at_least(0)),
    Setting(
        "min.insync.replicas", Type.INT, 1,
        "Replicas that must be in sync for acks=all to be taken, and for the high watermark to move.",
        valid=at_least(1), dynamic=True, native="min_insync_replicas", synonyms=(Synonym("min.insync.replicas"),),
    ),
    _log("preallocate", Type.BOOLEAN, False,
         "Reserve a new segment's whole size on disk when it is created.", ("log.preallocate",)),
    _log("retention.bytes", Type.LONG, -1,
         "Old segments are deleted while a partition is larger than this. -1: no limit.", ("log.retention.bytes",), at_least(-1)),
    _log("retention.ms", Type.LONG, _WEEK_HOURS * _HOUR_MS,
         "Segments whose newest record is older than this are deleted. -1: kept for ever.",
         ("log.retention.ms", Synonym("log.retention.minutes", _MINUTE_MS), Synonym("log.retention.hours", _HOUR_MS)), at_least(-1)),
    _log("segment.bytes", Type.INT, 1024 * _MIB,
         "A new segment is begun when the current one would grow past this.", ("log.segment.bytes",), at_least(14)),
    _log("segment.index.bytes", Type.INT, 10 * _MIB,
         "Largest size of a segment's offset index; a full index begins a new segment.", ("log.index.size.max.bytes",), at_least(4)),
    _log("segment.jitter.ms", Type.LONG, 0,
         "Random time, up to this, taken off segment.ms so that partitions do not roll at once.",
         ("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", _HOUR_MS)), at_least(0)),
    _log("segment.ms", Type.LONG, _WEEK_HOURS * _HOUR_MS,
         "A new segment is begun when the current one is this old.",
         ("log.roll.ms", Synonym("log.roll.hours", _HOUR_MS)), at_least(1)),
    Setting(
        "unclean.leader.election.enable", Type.BOOLEAN, False,
        "Whether a replica that is behind may become leader when no other one is left. Acknowledged records are lost then.",
        dynamic=True, synonyms=(Synonym("unclean.leader.election.enable"),),
    ),
)  # fmt: skip


def _server(
    name: str, kind: Type, default: Value, doc: str, importance: str = "medium", valid: Range | OneOf | None = None
) -> Setting:
    """Declare a broker setting that the native server reads, under its name with underscores."""
    return Setting(name, kind, default, doc, importance, valid, native=name.replace(".", "_"))


def _group_bound(name: str, default: int, valid: Range) -> Setting:
    """Declare the smallest or largest value of a setting that a share group has of its own."""
    side, group = name.split(".", 1)
    word = "Smallest" if side == "min" else "Largest"
    return Setting(
        f"group.share.{name}",
        Type.INT,
        default,
        f"{word} share.{group} that a share group may have of its own.",
        valid=valid,
    )


def _fallback(name: str, kind: Type, default: Value, topic: str, valid: Range | OneOf | None = None) -> Setting:
    """Declare a broker setting that only serves as default of the topic setting `topic`.

    As in Kafka those that give a time in a larger unit, or by a detour, are fixed at the broker's start.
    """
    dynamic = not name.endswith((".hours", ".minutes", ".scheduler.interval.ms"))
    return Setting(
        name, kind, default, f"Default of {topic} for topics that do not set it.", "high", valid, dynamic=dynamic
    )


BROKER_SETTINGS: tuple[Setting, ...] = (
    _server("add.partitions.to.txn.retry.backoff.max.ms", Type.INT, 100,
            "A produced batch that begins a transaction waits this long for the end of the one before.", valid=at_least(0)),
    Setting("advertised.listeners", Type.STRING, None,
            "Address that clients are given, as PLAINTEXT://HOST:PORT. Not set: the address the client itself dialled.", "high"),
    _server("auto.create.topics.enable", Type.BOOLEAN, True,
            "Create a topic when a client that allows it asks for one that does not exist.", "high"),
    Setting("auto.leader.rebalance.enable", Type.BOOLEAN, True,
            "Whether the controller gives leadership back to the first replica of each partition.", "high"),
    Setting("broker.rack", Type.STRING, None,
            "Where this broker stands. The replicas of a partition are spread over racks, and consumers with the same client.rack "
            "may read from it.", native="rack"),
    Setting("compression.type", Type.STRING, "producer", "Default of compression.type for topics that do not set it.", "high",
            _ONLY_PRODUCER, dynamic=True),
    _server("connections.max.idle.ms", Type.LONG, 10 * _MINUTE_MS,
            "A connection without a request for this long is closed. -1: never.", valid=at_least(-1)),
    Setting("controlled.shutdown.enable", Type.BOOLEAN, True,
            "Whether a broker that is stopped moves its leadership to others first."),
    Setting("default.replication.factor", Type.INT, 1, "Replication factor of topics created without one.", valid=_FACTOR),
    Setting("delete.topic.enable", Type.BOOLEAN, True, "Whether clients may delete topics.", "high"),
    Setting("describe.configs.max.resources", Type.INT, 2_000,
            "Most topics and brokers that one DescribeConfigs request describes; the others of it are refused with POLICY_VIOLATION. Only "
            "pylog has this setting.", valid=at_least(1)),
    _server("fetch.max.bytes", Type.INT, 55 * _MIB, "Most bytes one fetch answer carries.", valid=at_least(1024)),
    _server("fetch.wait.max.partitions", Type.INT, 500_000,
            "Most partitions of consumers' fetches that wait for records, all together; one client address has at most half. A fetch "
            "that finds no room is answered at once, and its client asked to wait by itself. Only pylog has this setting.",
            valid=at_least(2)),
    Setting("follower.replication.throttled.rate", Type.LONG, LONG_MAX,
            "Most bytes a second that this broker fetches of throttled replicas (follower.replication.throttled.replicas).",
            valid=at_least(0), dynamic=True, native="follower_replication_throttled_rate"),
    _server("group.consumer.heartbeat.interval.ms", Type.INT, 5 * _SECOND_MS,
            "How often a member of a group of the consumer protocol (KIP-848) is asked to report.", valid=at_least(1)),
    _server("group.consumer.max.size", Type.INT, INT_MAX, "Most members of a group of the consumer protocol.",
            valid=at_least(1)),
    _server("group.consumer.session.timeout.ms", Type.INT, 45 * _SECOND_MS,
            "A member of a group of the consumer protocol that does not report for this long is removed.", valid=at_least(1)),
    _server("group.coordinator.max.bytes", Type.LONG, 512 * _MIB,
            "Most memory for the groups that this broker coordinates: their members, offsets and texts, and what share groups do with "
            "records, about. When it is used up, "
            "new members are refused with GROUP_MAX_SIZE_REACHED and new offsets with INVALID_COMMIT_OFFSET_SIZE; who is there "
            "already goes on. Only pylog has this setting.", valid=at_least(1)),
    _server("group.initial.rebalance.delay.ms", Type.INT, 3 * _SECOND_MS,
            "How long an empty group of the classic protocol waits for more members before its first rebalance.",
            valid=at_least(0)),
    _server("group.max.session.timeout.ms", Type.INT, 30 * _MINUTE_MS,
            "Longest session timeout that a member of the classic protocol may ask for.", valid=at_least(1)),
    _server("group.max.size", Type.INT, INT_MAX, "Most members of a group of the classic protocol.", valid=at_least(1)),
    _server("group.min.session.timeout.ms", Type.INT, 6 * _SECOND_MS,
            "Shortest session timeout that a member of the classic protocol may ask for.", valid=at_least(1)),
    _server("group.share.delivery.count.limit", Type.INT, 5,
            "A record that was delivered to members of a share group (KIP-932) this often and not accepted is not delivered again.",
            valid=Range(2, 10)),
    _server("group.share.heartbeat.interval.ms", Type.INT, 5 * _SECOND_MS,
            "How often a member of a share group is asked to report.", valid=at_least(1)),
    _group_bound("max.delivery.count.limit", 10, Range(5, 25)),
    _group_bound("max.heartbeat.interval.ms", 15 * _SECOND_MS, at_least(1)),
    _group_bound("max.partition.max.record.locks", 4_000, Range(2_000, 10_000)),
    _group_bound("max.record.lock.duration.ms", _MINUTE_MS, Range(30 * _SECOND_MS, 3_600 * _SECOND_MS)),
    _group_bound("max.session.timeout.ms", _MINUTE_MS, at_least(1)),
    _server("group.share.max.share.sessions", Type.INT, 2_000,
            "Most share sessions, which is one for each member that reads here; one client address has half of them at most. Who "
            "finds no room is refused with SHARE_SESSION_LIMIT_REACHED.", valid=at_least(1)),
    _server("group.share.max.size", Type.INT, 200, "Most members of a share group.", valid=Range(1, 1_000)),
    _group_bound("min.delivery.count.limit", 2, Range(2, 5)),
    _group_bound("min.heartbeat.interval.ms", 5 * _SECOND_MS, at_least(1)),
    _group_bound("min.partition.max.record.locks", 100, Range(100, 2_000)),
    _group_bound("min.record.lock.duration.ms", 15 * _SECOND_MS, Range(_SECOND_MS, 30 * _SECOND_MS)),
    _group_bound("min.session.timeout.ms", 45 * _SECOND_MS, at_least(1)),
    _server("group.share.partition.max.record.locks", Type.INT, 2_000,
            "Most records of a partition that are delivered to a share group and not done with.", valid=Range(100, 10_000)),
    _server("group.share.record.lock.duration.ms", Type.INT, 30 * _SECOND_MS,
            "How long a member of a share group may keep a record before it is delivered to another one.",
            valid=Range(1_000, 3_600_000)),
    _server("group.share.session.timeout.ms", Type.INT, 45 * _SECOND_MS,
            "A member of a share group that does not report for this long is removed.", valid=at_least(1)),
    Setting("inter.broker.protocol.version", Type.STRING, "3.9-IV0",
            "Fixed. Changes nothing; user interfaces read it to know that configurations can be edited.",
            valid=OneOf(("3.9-IV0",))),
    Setting("leader.imbalance.check.interval.seconds", Type.LONG, 300,
            "How often the controller looks whether leadership is to be given back.", "high", at_least(1)),
    Setting("leader.imbalance.per.broker.percentage", Type.INT, 10,
            "Leadership is given back to a broker that does not lead more than this part of the partitions it is the first "
            "replica of.", "high", at_least(0)),
    Setting("leader.replication.throttled.rate", Type.LONG, LONG_MAX,
            "Most bytes a second that this broker sends to throttled replicas (leader.replication.throttled.replicas).",
            valid=at_least(0), dynamic=True, native="leader_replication_throttled_rate"),
    Setting("listeners", Type.STRING, "PLAINTEXT://127.0.0.1:9092",
            "Address to listen on, as PLAINTEXT://HOST:PORT; port 0 takes a free one. The command line's --listen wins.", "high"),
    Setting("log.cleaner.backoff.ms", Type.LONG, 15 * _SECOND_MS,
            "How long the cleaner waits before it looks again when no log was to be compacted.", valid=at_least(0), dynamic=True,
            native="log_cleaner_backoff_ms"),
    _server("log.cleaner.dedupe.buffer.size", Type.LONG, 128 * _MIB,
            "Most memory for the keys of the logs that are being compacted, all threads together; 24 bytes a key. It is taken "
            "only as far as needed, and given back.", valid=at_least(0)),
    _fallback("log.cleaner.delete.retention.ms", Type.LONG, 24 * _HOUR_MS, "delete.retention.ms", at_least(0)),
    _server("log.cleaner.enable", Type.BOOLEAN, True,
            "Whether logs with cleanup.policy=compact are compacted. Without it they only grow."),
    Setting("log.cleaner.internal.roll.bytes", Type.LONG, _MIB,
            "A new segment of an internal topic is begun, so that the one before can be compacted, when it is as large as this and "
            "larger than all before it: what is written again and again does not grow to segment.bytes first. Only pylog has this "
            "setting.", valid=at_least(1)),
    _server("log.cleaner.io.buffer.load.factor", Type.DOUBLE, 0.9,
            "How full the memory for keys may get; the fuller, the more often two keys meet.", valid=_PART),
    _server("log.cleaner.io.buffer.size", Type.INT, 512 * 1024,
            "Memory to read and write what is being compacted, all threads together; more only for a larger batch.",
            valid=at_least(0)),
    _server("log.cleaner.io.max.bytes.per.second", Type.DOUBLE, sys.float_info.max,
            "Most bytes that compaction reads and writes in a second, all threads together.", valid=at_least(1)),
    _fallback("log.cleaner.max.compaction.lag.ms", Type.LONG, LONG_MAX, "max.compaction.lag.ms", at_least(1)),
    _fallback("log.cleaner.min.cleanable.ratio", Type.DOUBLE, 0.5, "min.cleanable.dirty.ratio", _PART),
    _fallback("log.cleaner.min.compaction.lag.ms", Type.LONG, 0, "min.compaction.lag.ms", at_least(0)),
    _server("log.cleaner.threads", Type.INT, 1, "Threads that compact; each works on one log.", valid=Range(0, 256)),
    _fallback("log.cleanup.policy", Type.LIST, ("delete",), "cleanup.policy", _CLEANUP),
    Setting("log.dirs", Type.STRING, None, "The data directory (one). The command line's --data-dir wins.", "high",
            aliases=("log.dir",)),
    _fallback("log.durability", Type.STRING, "page-cache", "durability", _DURABILITY),
    _fallback("log.flush.interval.messages", Type.LONG, LONG_MAX, "flush.messages", at_least(1)),
    _fallback("log.flush.interval.ms", Type.LONG, None, "flush.ms (log.flush.scheduler.interval.ms when not set)", at_least(0)),
    _server("log.flush.offset.checkpoint.interval.ms", Type.INT, _MINUTE_MS,
            "How often the recovery points are written down; recovery after a kill starts there.", "high", at_least(0)),
    _fallback("log.flush.scheduler.interval.ms", Type.LONG, LONG_MAX, "flush.ms", at_least(1)),
    _fallback("log.index.interval.bytes", Type.INT, 4096, "index.interval.bytes", at_least(0)),
    _fallback("log.index.size.max.bytes", Type.INT, 10 * _MIB, "segment.index.bytes", at_least(4)),
    _fallback("log.message.timestamp.after.max.ms", Type.LONG, _HOUR_MS, "message.timestamp.after.max.ms", at_least(0)),
    _fallback("log.message.timestamp.before.max.ms", Type.LONG, LONG_MAX, "message.timestamp.before.max.ms", at_least(0)),
    _fallback("log.message.timestamp.type", Type.STRING, "CreateTime", "message.timestamp.type", _TIMESTAMP_TYPES),
    _fallback("log.preallocate", Type.BOOLEAN, False, "preallocate"),
    _server("log.recovery.kept.bytes", Type.LONG, 1024 * _MIB,
            "Most bytes of each partition that are kept, as .cut files beside its log, when recovery after a kill or a loss of power "
            "cuts them from it. 0 keeps nothing.", valid=at_least(0)),
    _fallback("log.retention.bytes", Type.LONG, -1, "retention.bytes", at_least(-1)),
    _server("log.retention.check.interval.ms", Type.LONG, 5 * _MINUTE_MS,
            "How often segments are checked against retention.", valid=at_least(1)),
    _fallback("log.retention.hours", Type.INT, _WEEK_HOURS, "retention.ms, in hours"),
    _fallback("log.retention.minutes", Type.INT, None, "retention.ms, in minutes; wins over log.retention.hours"),
    _fallback("log.retention.ms", Type.LONG, None, "retention.ms; wins over log.retention.minutes", at_least(-1)),
    _fallback("log.roll.hours", Type.INT, _WEEK_HOURS, "segment.ms, in hours", at_least(1)),
    _fallback("log.roll.jitter.hours", Type.INT, 0, "segment.jitter.ms, in hours", at_least(0)),
    _fallback("log.roll.jitter.ms", Type.LONG, None, "segment.jitter.ms; wins over log.roll.jitter.hours", at_least(0)),
    _fallback("log.roll.ms", Type.LONG, None, "segment.ms; wins over log.roll.hours", at_least(1)),
    _fallback("log.segment.bytes", Type.INT, 1024 * _MIB, "segment.bytes", at_least(14)),
    _fallback("log.segment.delete.delay.ms", Type.LONG, _MINUTE_MS, "file.delete.delay.ms", at_least(0)),
    _server("max.connections", Type.INT, INT_MAX, "Most open connections; more are closed at once.", valid=at_least(0)),
    _server("max.incremental.fetch.session.cache.slots", Type.INT, 1000,
            "Most fetch sessions. Consumers without one name all their partitions in every fetch.", valid=at_least(0)),
    _fallback("message.max.bytes", Type.INT, _MIB + 12, "max.message.bytes", at_least(0)),
    Setting("min.insync.replicas", Type.INT, 1, "Default of min.insync.replicas for topics that do not set it; "
            "the same at all brokers of a cluster.", "high", at_least(1), dynamic=True),
    _server("node.id", Type.INT, 1, "Number of this broker, its own in the cluster.", "high", at_least(0)),
    _server("num.io.threads", Type.INT, 8,
            "Threads for requests that take long: that look up offsets by time, bring compressed batches that open to much, or "
            "sync files. One client address has at most half of them; all other requests need none.", "high", at_least(1)),
    _server("num.network.threads", Type.INT, 2, "Threads that serve requests.", "high", Range(1, 256)),
    Setting("num.partitions", Type.INT, 1, "Partitions of a topic created without a number.", valid=at_least(1)),
    _server("num.recovery.threads.per.data.dir", Type.INT, 2, "Threads that open and recover logs at the start.", "high",
            Range(1, 256)),
    _server("num.replica.fetchers", Type.INT, 1, "Threads that fetch from each leader.", "high", Range(1, 256)),
    _server("offset.metadata.max.bytes", Type.INT, 4096, "Longest text that may be committed beside an offset.", "high",
            at_least(0)),
    _server("offsets.retention.check.interval.ms", Type.LONG, 10 * _MINUTE_MS,
            "How often expired offsets are looked for.", "high", at_least(1)),
    _server("offsets.retention.minutes", Type.INT, _WEEK_HOURS * 60,
            "Offsets of a group without members, or that no member is subscribed to, are forgotten after this long.", "high",
            at_least(1)),
    Setting("offsets.topic.num.partitions", Type.INT, 50, "Partitions of __consumer_offsets; counts when it is made.", "high",
            at_least(1)),
    Setting("offsets.topic.replication.factor", Type.INT, 3,
            "Replication factor of __consumer_offsets, and of __pylog_sink; counts when they are made. They are made when so many "
            "brokers are registered. A broker without a cluster makes one replica.", "high", _FACTOR),
    Setting("offsets.topic.segment.bytes", Type.INT, 100 * _MIB,
            "segment.bytes of __consumer_offsets; counts when it is made.", "high", at_least(14)),
    _server("producer.id.expiration.ms", Type.INT, 24 * _HOUR_MS,
            "An idempotent producer that wrote nothing for this long is forgotten; after 10 minutes already, when the end of a "
            "transaction raised its epoch: nothing but that is remembered of it.", "low", at_least(1)),
    _server("producer.id.max.count", Type.INT, 100_000,
            "Most idempotent producers that a partition remembers. Of more, those that wrote longest ago are forgotten as if "
            "producer.id.expiration.ms were over, but none with an open transaction. Only pylog has this setting.",
            valid=at_least(100)),
    _server("queued.max.request.bytes", Type.LONG, 256 * _MIB,
            "Most bytes of requests that are being received or answered at once, all connections together; a request counts as it "
            "arrives, and until its answer is there; of a produced batch, until it is in the log. One client address has at most half of "
            "them, but for one request.", valid=at_least(1)),
    _server("queued.max.response.bytes", Type.LONG, 512 * _MIB,
            "Most bytes that large requests (of thousands of partitions or topics) and those about topics and settings take while they are "
            "answered, and large answers until clients have read them, all connections together; records that lie in files do not count. "
            "One client address has at most half of them, and one request: a larger one closes its connection, or is refused with "
            "POLICY_VIOLATION. Answers that wait because all are taken may have a quarter as much in addition. Only pylog has this setting.",
            valid=at_least(1)),
    _server("replica.fetch.backoff.ms", Type.INT, _SECOND_MS, "A fetcher whose leader did not answer waits so long.",
            valid=at_least(0)),
    _server("replica.fetch.max.bytes", Type.INT, _MIB, "Most bytes of one partition in a follower's fetch.", valid=at_least(0)),
    _server("replica.fetch.response.max.bytes", Type.INT, 10 * _MIB, "Most bytes of a follower's fetch.", valid=at_least(0)),
    _server("replica.fetch.wait.max.ms", Type.INT, 500, "A follower's fetch waits so long for records.", "high", at_least(0)),
    _server("replica.high.watermark.checkpoint.interval.ms", Type.LONG, 5 * _SECOND_MS,
            "How often high watermarks are written down.", "high", at_least(1)),
    _server("replica.lag.time.max.ms", Type.LONG, 30 * _SECOND_MS,
            "A follower that was not at the end of its leader's log for so long leaves the ISR.", "high", at_least(1)),
    Setting("replica.selector.class", Type.STRING, None,
            "Which replica a consumer is sent to. Not set: the leader. The other value is Kafka's selector that "
            "prefers a replica in the consumer's rack.", valid=OneOf((_RACK_SELECTOR,)), native="replica_selector_class"),
    _server("replica.socket.timeout.ms", Type.INT, 30 * _SECOND_MS, "A request between brokers is given up after so long.",
            "high", at_least(1)),
    _server("reserved.file.descriptors", Type.INT, 128,
            "So many file descriptors are left to logs, other brokers and ZooKeeper: a connection that would take one of them is "
            "closed at once. Never more than half of those that the process may have (ulimit -n). Only pylog has this setting.",
            valid=at_least(0)),
    Setting("share.coordinator.state.topic.min.isr", Type.INT, 2,
            "min.insync.replicas of __share_group_state, at most its replication factor; counts when it is made.", "high",
            at_least(1)),
    Setting("share.coordinator.state.topic.num.partitions", Type.INT, 50,
            "Partitions of __share_group_state; counts when it is made.", "high", at_least(1)),
    Setting("share.coordinator.state.topic.replication.factor", Type.INT, 3,
            "Replication factor of __share_group_state; counts when it is made. It is made when so many brokers are registered. A broker "
            "without a cluster makes one replica.", "high", _FACTOR),
    Setting("share.coordinator.state.topic.segment.bytes", Type.INT, 100 * _MIB,
            "segment.bytes of __share_group_state; counts when it is made.", "high", at_least(14)),
    _server("socket.request.max.bytes", Type.INT, 100 * _MIB, "Largest request accepted.", "high", at_least(1)),
    _server("socket.request.receive.timeout.ms", Type.INT, 30 * _SECOND_MS,
            "A connection whose request is not there so long after its first bytes is closed; as long as Kafka's clients wait "
            "for an answer (request.timeout.ms). Only pylog has this setting.", valid=at_least(1)),
    _server("transaction.abort.timed.out.transaction.cleanup.interval.ms", Type.INT, 10 * _SECOND_MS,
            "Timeouts of transactions are exact; but after a start, an overdue one can still be ended by its producer for this long.",
            "low", at_least(1)),
    _server("transaction.coordinator.max.bytes", Type.LONG, 256 * _MIB,
            "Most memory for the transactional ids that this broker coordinates, about. When it is used up, new ids are refused with "
            "POLICY_VIOLATION; known ones go on, and may use as much again for the partitions of their transactions. Only pylog has "
            "this setting.", valid=at_least(1)),
    _server("transaction.max.timeout.ms", Type.INT, 15 * _MINUTE_MS,
            "Longest transaction timeout that a producer may ask for. A prepared transaction, which has none, is named in the broker's "
            "log when it is open for longer.", "high", at_least(1)),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", Type.INT, _HOUR_MS,
            "Changes nothing: transactional ids are forgotten on time (transactional.id.expiration.ms). Shown for Kafka's tools.",
            "low", valid=at_least(1)),
    Setting("transaction.state.log.min.isr", Type.INT, 2,
            "min.insync.replicas of __transaction_state, at most its replication factor; counts when it is made.", "high",
            at_least(1)),
    Setting("transaction.state.log.num.partitions", Type.INT, 50,
            "Partitions of __transaction_state; counts when it is made.", "high", at_least(1)),
    Setting("transaction.state.log.replication.factor", Type.INT, 3,
            "Replication factor of __transaction_state; counts when it is made. It is made when so many brokers are registered. A broker "
            "without a cluster makes one replica.", "high", _FACTOR),
    Setting("transaction.state.log.segment.bytes", Type.INT, 100 * _MIB,
            "segment.bytes of __transaction_state; counts when it is made.", "high", at_least(14)),
    _server("transaction.two.phase.commit.enable", Type.BOOLEAN, True,
            "Whether producers may prepare transactions (KIP-939): they never time out, and a restarted producer can end them. "
            "Off by default in Kafka, where every producer would need a permission for it; on here, because a Spark write is "
            "exactly once only when no transaction of its tasks can time out between the driver's decision and its commit.",
            "low"),
    _server("transactional.id.expiration.ms", Type.INT, _WEEK_HOURS * _HOUR_MS,
            "A transactional id without a transaction that nobody used for this long is forgotten.", "high", at_least(1)),
    _server("transactional.id.single.use.expiration.ms", Type.INT, 10 * _MINUTE_MS,
            "The same for ids that begin with `pylog-once.`: each is of one attempt of one Spark task and never used again. "
            "Only pylog has this setting. Never longer than transactional.id.expiration.ms.", "low", at_least(1)),
    Setting("unclean.leader.election.enable", Type.BOOLEAN, False,
            "Default of unclean.leader.election.enable for topics that do not set it.", "high", dynamic=True),
    Setting("zookeeper.connect", Type.STRING, None,
            "The ZooKeeper of the cluster, as HOST:PORT,HOST:PORT/chroot. Not set: this broker is alone and keeps its own documents.",
            "high"),
    Setting("zookeeper.connection.timeout.ms", Type.INT, None,
            "How long to wait for ZooKeeper at the start. Not set: as long as zookeeper.session.timeout.ms.", "high", at_least(1)),
    Setting("zookeeper.session.timeout.ms", Type.INT, 18 * _SECOND_MS,
            "A broker that ZooKeeper did not hear of for so long is dead for the cluster, and leads nothing from a little earlier on.",
            "high", at_least(1)),
)  # fmt: skip

TOPIC: Mapping[str, Setting] = {setting.name: setting for setting in TOPIC_SETTINGS}
BROKER: Mapping[str, Setting] = {setting.name: setting for setting in BROKER_SETTINGS}
_ALIASES = {alias: setting for setting in BROKER_SETTINGS for alias in setting.aliases} | {
    "broker.id": BROKER["node.id"]
}


def find(settings: Mapping[str, Setting], name: str) -> Setting:
    """The setting called `name` (aliases count).

    Raises
    ------
    ConfigError
        With the nearest known name when there is none.
    """
    setting = settings.get(name) or (_ALIASES.get(name) if settings is BROKER else None)
    if setting is not None:
        return setting
    import difflib  # 6 ms, and only needed for a refusal

    kind = "broker" if settings is BROKER else "topic" if settings is TOPIC else "group"
    near = difflib.get_close_matches(name, list(settings), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}" if near else f"the known ones are {', '.join(settings)}"
    raise ConfigError(f"{name} is not a {kind} setting of pylog: {hint}.")


def parse(settings: Mapping[str, Setting], given: Iterable[tuple[str, str]]) -> dict[str, Value]:
    """Parse (name, text) pairs; of the same name the last one wins. Raises `ConfigError` at the first refused one."""
    parsed: dict[str, Value] = {}
    for name, text in given:
        setting = find(settings, name)
        parsed[setting.name] = setting.parse(text)
    return parsed


def keyword_settings(keywords: Mapping[str, object]) -> list[tuple[str, str]]:
    """Turn Python keywords (``num_partitions=4, log_preallocate=True``) into (Kafka name, text) pairs."""
    pairs = []
    for name, value in keywords.items():
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        pairs.append((name.replace("_", "."), text.lower() if isinstance(value, bool) else text))
    return pairs


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings of one broker: what was given at the start, and what AlterConfigs changed since (wins)."""

    given: Mapping[str, Value]
    dynamic: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        for layer in (self.dynamic, self.given):
            if name in layer:
                return layer[name]
        return BROKER[name].default

    def number(self, name: str) -> int:
        """The value of a whole-number setting."""
        value = self[name]
        if not isinstance(value, int):
            raise ConfigError(f"{name} has no value: give one with --config {name}=NUMBER.")
        return value

    def text(self, name: str) -> str | None:
        """The value of a text setting, None when not set."""
        value = self[name]
        return None if value is None else str(value)

    def is_given(self, name: str) -> bool:
        """Whether somebody set it, at the start or later."""
        return name in self.dynamic or name in self.given


def broker_config(given: Iterable[tuple[str, str]] = ()) -> BrokerConfig:
    """Parse the broker's settings. Raises `ConfigError`."""
    return BrokerConfig(parse(BROKER, given), {})


def topic_value(broker: BrokerConfig, setting: Setting, overrides: Mapping[str, Value]) -> Value:
    """What holds for a topic: its own value, else the first broker setting that is set, else the default."""
    if setting.name in overrides:
        return overrides[setting.name]
    for synonym in setting.synonyms:
        value = broker[synonym.name] if broker.is_given(synonym.name) else None
        if value is not None:
            return value * synonym.factor if isinstance(value, int) and value > 0 and synonym.factor > 1 else value
    return setting.default


def log_config(broker: BrokerConfig, overrides: Mapping[str, Value]) -> dict[str, Any]:
    """The native log configuration of one topic: every field of LogConfig (Rust, storage), resolved."""
    resolved: dict[str, Any] = {}
    for setting in TOPIC_SETTINGS:
        if setting.native:
            value = topic_value(broker, setting, overrides)
            resolved[setting.native] = ",".join(value) if isinstance(value, tuple) else value
    return resolved


def native_settings(broker: BrokerConfig, cluster_id: str) -> str:
    """The JSON that `NativeBroker` is made with: settings marked native, cluster id and advertised address.

    `advertised_host` and `advertised_port` are null when each client is given the address that it dialled.
    """
    host, port = None, None
    advertised = broker.text("advertised.listeners")
    if advertised is not None:
        host, port = parse_listener("advertised.listeners", advertised)
    fields: dict[str, Any] = {setting.native: broker[setting.name] for setting in BROKER_SETTINGS if setting.native}
    given = {"cluster_id": cluster_id, "advertised_host": host, "advertised_port": port}
    return json.dumps({**fields, **given, "clustered": broker.text("zookeeper.connect") is not None})


def parse_listener(name: str, text: str) -> tuple[str, int]:
    """Split ``HOST:PORT`` or ``PLAINTEXT://HOST:PORT`` (IPv6 in brackets). `name` is what the error calls it.

    Raises
    ------
    ConfigError
        For several listeners, another protocol, a missing or impossible port.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        scheme, rest = "PLAINTEXT", text.strip()
    host, colon, port = rest.rpartition(":")
    if (
        "," in rest
        or scheme.upper() != "PLAINTEXT"
        or not colon
        or not (port.isascii() and port.isdigit())
        or int(port) > 65535
    ):
        raise ConfigError(f"{name}={text} is refused: it must be one address as HOST:PORT or PLAINTEXT://HOST:PORT.")
    return host.strip("[]"), int(port)
