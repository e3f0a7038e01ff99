//! Settings of topics, which are those of their logs.
use serde_json::Value;

use crate::declare::settings;
use crate::setting::{Valid, hours, minutes, same};
use crate::typed::{Typed, words};

/// The value of `local.retention.ms` and `local.retention.bytes` that stands for that of `retention.ms` and `retention.bytes`.
const AS_RETENTION: i64 = -2;

words! {
    /// When a record is acknowledged and visible, and what it then survives.
    pub enum Durability {
        /// Written to the page cache: survives a kill of the broker, not a loss of power.
        PageCache = "page-cache",
        /// fdatasync has returned: survives a loss of power.
        Flushed = "flushed",
    }
}

words! {
    /// Whose timestamps a batch keeps.
    pub enum TimestampType {
        /// The producer's.
        CreateTime = "CreateTime",
        /// The broker's, at append.
        LogAppendTime = "LogAppendTime",
    }
}

/// What happens to old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Whole segments are removed by time and size.
    pub delete: bool,
    /// The last record of each key is kept.
    pub compact: bool,
}

impl Typed for CleanupPolicy {
    const VALID: Valid = Valid::OneOf { words: &["delete", "compact"], why: "" };

    fn of(value: &Value) -> Option<Self> {
        let words: Vec<&str> = value.as_str()?.split(',').map(str::trim).collect();
        Some(Self { delete: words.contains(&"delete"), compact: words.contains(&"compact") })
    }

    fn value(&self) -> Value {
        match (self.compact, self.delete) {
            (true, true) => "compact,delete",
            (true, false) => "compact",
            (false, true) => "delete",
            (false, false) => "",
        }
        .into()
    }
}

/// Names, of which each is there once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl Typed for Names {
    const VALID: Valid = Valid::Any;

    fn of(value: &Value) -> Option<Self> {
        let mut names: Vec<String> = value
            .as_str()?
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names.dedup();
        Some(Self(names))
    }

    fn value(&self) -> Value {
        self.0.join(",").into()
    }
}

settings! {
    /// Settings of one topic's logs. Fields ending in `_ms` are milliseconds, in `_bytes` bytes; -1 is "no limit" where
    /// Kafka says so.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LogConfig {
        /// What happens to old records. delete: whole segments are removed by retention.ms and retention.bytes. compact:
        /// of each key the last record is kept. compact,delete: both.
        "cleanup.policy" LIST cleanup_policy: CleanupPolicy = CleanupPolicy { delete: true, compact: false },
            of_broker("log.cleanup.policy");
        /// How record batches are compressed on disk. producer: as the producer sent them.
        "compression.type" STRING compression_type: String = "producer".to_owned(),
            of_broker("compression.type"),
            one_of(&["producer"], "the broker keeps batches as the producer compressed them");
        /// Whether the broker refuses records whose key does not begin with the id of a schema that the schema registry has in the
        /// subject TOPIC-key, as Confluent's serializers write it. Records without a key pass. The brokers need --schema-registry.
        "confluent.key.schema.validation" BOOLEAN key_schema_validation: bool = false;
        /// The same for values, and the subject TOPIC-value. Records without a value pass, which compaction takes for deletions.
        "confluent.value.schema.validation" BOOLEAN value_schema_validation: bool = false;
        /// How long compaction keeps tombstones and transaction markers after the first time that it met them. A reader
        /// that takes longer than this from the start of the log to its end may miss a deletion.
        "delete.retention.ms" LONG delete_retention_ms: i64 = /* 1 day */ 86_400_000,
            of_broker("log.cleaner.delete.retention.ms"),
            at_least(0);
        /// When a record is acknowledged and visible. page-cache: once it is written to the page cache (survives a kill
        /// of the broker). flushed: once fdatasync has returned (survives power loss). Only pylog has this setting.
        "durability" STRING durability: Durability = Durability::PageCache, of_broker("log.durability");
        /// How long a deleted segment's file stays on disk before it is unlinked.
        "file.delete.delay.ms" LONG file_delete_delay_ms: i64 = /* 1 minute */ 60_000,
            of_broker("log.segment.delete.delay.ms"),
            at_least(0);
        /// The log is flushed to disk after this many records. 1 flushes after every batch.
        "flush.messages" LONG flush_messages: i64 = i64::MAX, of_broker("log.flush.interval.messages"), at_least(1);
        /// The log is flushed to disk when its oldest record that is not flushed yet is this old.
        "flush.ms" LONG flush_ms: i64 = i64::MAX,
            falls_back_to(&[same("log.flush.interval.ms"), same("log.flush.scheduler.interval.ms")]),
            at_least(0);
        /// The followers' replicas that are throttled, as PARTITION:BROKER,PARTITION:BROKER, or * for all. Empty: none.
        /// They fetch at most follower.replication.throttled.rate bytes a second.
        "follower.replication.throttled.replicas" LIST follower_replication_throttled_replicas: String =
            String::new();
        /// Bytes of log between two entries of the offset index.
        "index.interval.bytes" INT index_interval_bytes: i64 = 4096,
            of_broker("log.index.interval.bytes"),
            at_least(0);
        /// The replicas that leaders throttle, as PARTITION:BROKER,PARTITION:BROKER, or * for all. Empty: none. Leaders
        /// send them at most leader.replication.throttled.rate bytes a second.
        "leader.replication.throttled.replicas" LIST leader_replication_throttled_replicas: String = String::new();
        /// Of a topic with remote.storage.enable, the broker's oldest segments are deleted while a partition is larger there
        /// than this, once they are archived. -2: as retention.bytes. -1: no limit.
        "local.retention.bytes" LONG local_retention_bytes: i64 = AS_RETENTION,
            of_broker("log.local.retention.bytes"),
            at_least(-2);
        /// Of a topic with remote.storage.enable, segments whose newest record is older than this are deleted from the broker's
        /// disk, once they are archived. -2: as retention.ms. -1: kept for ever.
        "local.retention.ms" LONG local_retention_ms: i64 = AS_RETENTION,
            of_broker("log.local.retention.ms"),
            at_least(-2);
        /// Longest time that a record stays uncompacted, even when little of the log is new
        /// (min.cleanable.dirty.ratio).
        "max.compaction.lag.ms" LONG max_compaction_lag_ms: i64 = i64::MAX,
            of_broker("log.cleaner.max.compaction.lag.ms"),
            at_least(1);
        /// Largest record batch in bytes that is accepted, after compression.
        "max.message.bytes" INT max_message_bytes: i64 = 1_048_588, of_broker("message.max.bytes"), at_least(0);
        /// A record whose timestamp is further than this in the future is refused. Only with
        /// message.timestamp.type=CreateTime.
        "message.timestamp.after.max.ms" LONG message_timestamp_after_max_ms: i64 =
            /* 1 hour, as Kafka since 4.0 */ 3_600_000,
            of_broker("log.message.timestamp.after.max.ms"),
            at_least(0);
        /// A record whose timestamp is further than this in the past is refused. Only with
        /// message.timestamp.type=CreateTime.
        "message.timestamp.before.max.ms" LONG message_timestamp_before_max_ms: i64 = i64::MAX,
            of_broker("log.message.timestamp.before.max.ms"),
            at_least(0);
        /// The timestamp that a record carries: the producer's (CreateTime) or the time at which the broker appended it
        /// (LogAppendTime).
        "message.timestamp.type" STRING message_timestamp_type: TimestampType = TimestampType::CreateTime,
            of_broker("log.message.timestamp.type");
        /// A log is compacted once more than this part of it was written since the last compaction.
        "min.cleanable.dirty.ratio" DOUBLE min_cleanable_dirty_ratio: f64 = 0.5,
            of_broker("log.cleaner.min.cleanable.ratio"),
            between(0, 1);
        /// A record younger than this is not compacted.
        "min.compaction.lag.ms" LONG min_compaction_lag_ms: i64 = 0,
            of_broker("log.cleaner.min.compaction.lag.ms"),
            at_least(0);
        /// The id of the cluster that this topic is a copy of, or empty: then it is a topic as any other. A mirror alone writes to
        /// it, with the offsets of that cluster, until 'pylog mirror promote' ends that. It can be set when the topic is created
        /// and not later. Only pylog has this setting.
        "mirror.source" STRING mirror_source: String = String::new();
        /// Replicas that must be in sync: with fewer, writes with acks=all are refused, and the high watermark does not
        /// move.
        "min.insync.replicas" INT min_insync_replicas: usize = 1,
            falls_back_to(&[same("min.insync.replicas")]),
            at_least(1);
        /// Whether the whole size of a new segment is reserved on disk when it is created.
        "preallocate" BOOLEAN preallocate: bool = false, of_broker("log.preallocate");
        /// Whether brokers stop copying the topic to the archive. What is there is read on; local.retention.ms and local.retention.bytes do
        /// not count any more, and must be -2 or equal to retention.ms and retention.bytes, by which the broker's segments and the
        /// archive's are deleted, copied or not.
        "remote.log.copy.disable" BOOLEAN remote_log_copy_disable: bool = false;
        /// Whether brokers copy closed segments to the archive (archive.url), and delete them from their own disks only then:
        /// local.retention.ms and local.retention.bytes say when. retention.ms and retention.bytes hold for the archive. Not for
        /// compacted topics.
        "remote.storage.enable" BOOLEAN remote_storage_enable: bool = false;
        /// A partition's oldest segments are deleted while it is larger than this. -1: no limit.
        "retention.bytes" LONG retention_bytes: i64 = -1, of_broker("log.retention.bytes"), at_least(-1);
        /// Segments whose newest record is older than this are deleted. -1: kept for ever.
        "retention.ms" LONG retention_ms: i64 = /* 7 days */ 604_800_000,
            falls_back_to(&[same("log.retention.ms"), minutes("log.retention.minutes"), hours("log.retention.hours")]),
            at_least(-1);
        /// Consumer groups, separated by commas, whose records retention keeps: what one of them has not committed is not deleted by
        /// retention.ms and retention.bytes, nor in the archive, up to the limits of retention.until.checkpointed.max.ms and .bytes. A group
        /// without an offset needs all. A query of Spark is one by its kafka.group.id. Whoever sets it needs the right DESCRIBE on the groups. Only pylog has this setting.
        "retention.until.checkpointed" LIST retention_until_checkpointed: Names = Names::default();
        /// Beyond this size of the log its oldest segments are deleted although groups of retention.until.checkpointed have not read them.
        /// -1: no limit. Only pylog has this setting.
        "retention.until.checkpointed.max.bytes" LONG retention_until_checkpointed_max_bytes: i64 =
            /* 10 GiB */ 10 << 30,
            at_least(-1);
        /// Segments whose newest record is older than this are deleted although groups of retention.until.checkpointed have not read
        /// them. -1: no limit. Only pylog has this setting.
        "retention.until.checkpointed.max.ms" LONG retention_until_checkpointed_max_ms: i64 =
            /* 30 days */ 2_592_000_000,
            at_least(-1);
        /// Who named schema.validation.dead.letter.topic, and the address they did it from. Brokers with an authorizer put it down, whatever a client says of it,
        /// and write dead letters while these may write to that topic. Only pylog has this setting.
        "schema.validation.dead.letter.owner" STRING dead_letter_owner: String = String::new();
        /// Where records go that confluent.key.schema.validation or confluent.value.schema.validation refuses: the name of a topic, in
        /// which each has headers that say where it was to go and what is wrong with it. The others of its batch are written. Empty: the batch
        /// is refused as a whole. Whoever sets it needs the right WRITE on that topic, whose name does not begin with an underscore. Only pylog has this setting.
        "schema.validation.dead.letter.topic" STRING dead_letter_topic: String = String::new();
        /// A new segment is begun when the current one would grow larger than this.
        "segment.bytes" INT segment_bytes: i64 = /* 1 GiB */ 1 << 30, of_broker("log.segment.bytes"), at_least(14);
        /// Largest size of a segment's offset index; a full index begins a new segment.
        "segment.index.bytes" INT segment_index_bytes: i64 = /* 10 MiB */ 10 << 20,
            of_broker("log.index.size.max.bytes"),
            at_least(4);
        /// Up to this much time, chosen at random, is taken off segment.ms, so that partitions do not begin new
        /// segments at the same moment.
        "segment.jitter.ms" LONG segment_jitter_ms: i64 = 0,
            falls_back_to(&[same("log.roll.jitter.ms"), hours("log.roll.jitter.hours")]),
            at_least(0);
        /// A new segment is begun when the current one is this old.
        "segment.ms" LONG segment_ms: i64 = /* 7 days */ 604_800_000,
            falls_back_to(&[same("log.roll.ms"), hours("log.roll.hours")]),
            at_least(1);
    }
    beside {
        /// Roll when the segment that is appended to is as large and larger than all before it, so that what is written again and
        /// again is compacted early. Of compacted logs; set for internal topics only (`log.cleaner.internal.roll.bytes`).
        compaction_roll_bytes: u64 = i64::MAX.unsigned_abs();
    }
    without_field {
        /// Whether a replica that is not in sync may become leader when no other one is left. Records that were
        /// acknowledged are then lost.
        "unclean.leader.election.enable" BOOLEAN = false, of_broker("unclean.leader.election.enable");
    }
}

impl LogConfig {
    /// How long a broker keeps segments in milliseconds, -1 for ever; and whether that is [`LogConfig::local_retention_ms`].
    pub fn kept_ms(&self) -> (i64, bool) {
        self.local(self.local_retention_ms, self.retention_ms)
    }

    /// How many bytes of segments a broker keeps, -1 for all; and whether that is [`LogConfig::local_retention_bytes`].
    pub fn kept_bytes(&self) -> (i64, bool) {
        self.local(self.local_retention_bytes, self.retention_bytes)
    }

    /// Whether retention keeps what groups have not committed.
    pub fn keeps_for_groups(&self) -> bool {
        !self.retention_until_checkpointed.0.is_empty()
    }

    /// Whether segments are copied to the archive, and deleted here only then.
    pub fn copies_to_archive(&self) -> bool {
        self.remote_storage_enable && !self.remote_log_copy_disable
    }

    fn local(&self, own: i64, whole: i64) -> (i64, bool) {
        match self.copies_to_archive() && own != AS_RETENTION {
            true => (own, true),
            false => (whole, false),
        }
    }

    /// When a segment is rolled by age: a compacted log must close its segments in time for `max_compaction_lag_ms`.
    pub fn max_segment_ms(&self) -> i64 {
        let lag_counts = self.cleanup_policy.compact && self.max_compaction_lag_ms > 0;
        if lag_counts { self.segment_ms.min(self.max_compaction_lag_ms) } else { self.segment_ms }
    }
}
