//! Settings of a log and of a data directory. Names and defaults are Kafka's (snake_case of its topic settings).
//!
//! The broker declares each setting for users; here are only the values the engine works with.
use serde::{Deserialize, Serialize};

/// When a record is acknowledged and visible, and what it then survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Written to the page cache: survives a kill of the broker, not a loss of power.
    #[default]
    PageCache,
    /// fdatasync has returned: survives a loss of power.
    Flushed,
}

/// Whose timestamps a batch keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimestampType {
    /// The producer's.
    #[default]
    CreateTime,
    /// The broker's, at append.
    LogAppendTime,
}

/// What happens to old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CleanupPolicy {
    /// Whole segments are removed by time and size.
    pub delete: bool,
    /// The last record of each key is kept, see `cleaner`.
    pub compact: bool,
}

impl Default for CleanupPolicy {
    fn default() -> Self {
        Self { delete: true, compact: false }
    }
}

impl TryFrom<String> for CleanupPolicy {
    type Error = String;

    fn try_from(list: String) -> Result<Self, String> {
        let mut policy = Self { delete: false, compact: false };
        for word in list.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word {
                "delete" => policy.delete = true,
                "compact" => policy.compact = true,
                _ => return Err(format!("cleanup_policy {word:?} is neither delete nor compact")),
            }
        }
        Ok(policy)
    }
}

impl From<CleanupPolicy> for String {
    fn from(policy: CleanupPolicy) -> Self {
        match (policy.compact, policy.delete) {
            (true, true) => "compact,delete",
            (true, false) => "compact",
            (false, true) => "delete",
            (false, false) => "",
        }
        .into()
    }
}

/// Settings of one topic's logs. Fields ending in `_ms` are milliseconds, in `_bytes` bytes; -1 is "no limit" where
/// Kafka says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogConfig {
    /// Roll before a segment's `.log` grows larger.
    pub segment_bytes: i64,
    /// Roll when the first batch of the segment is older.
    pub segment_ms: i64,
    /// Up to this much is taken off `segment_ms`, so that not all partitions roll at once.
    pub segment_jitter_ms: i64,
    /// Roll when an index file would grow larger.
    pub segment_index_bytes: i64,
    /// An index entry about every so many bytes.
    pub index_interval_bytes: i64,
    /// Remove segments whose newest record is older; -1 never.
    pub retention_ms: i64,
    /// Remove the oldest segments while the log is larger; -1 never.
    pub retention_bytes: i64,
    /// Largest batch.
    pub max_message_bytes: i64,
    /// Whose timestamps count.
    pub message_timestamp_type: TimestampType,
    /// How far in the past a producer's timestamp may lie.
    pub message_timestamp_before_max_ms: i64,
    /// How far in the future a producer's timestamp may lie.
    pub message_timestamp_after_max_ms: i64,
    /// fdatasync at the latest after so many records.
    pub flush_messages: i64,
    /// fdatasync at the latest after so long.
    pub flush_ms: i64,
    /// Reserve a segment's blocks when it is made.
    pub preallocate: bool,
    /// When a record is acknowledged.
    pub durability: Durability,
    /// How long a removed segment's files stay for readers that know their names.
    pub file_delete_delay_ms: i64,
    /// What happens to old records.
    pub cleanup_policy: CleanupPolicy,
    /// "producer": batches stay as they were sent. Others are not implemented.
    pub compression_type: String,
    /// Roll when the segment that is appended to is as large and larger than all before it, so that what is written again and again
    /// is compacted early. Of compacted logs; set for internal topics only.
    pub compaction_roll_bytes: u64,
    /// A log is compacted when more than this part of it (0 to 1) is dirty.
    pub min_cleanable_dirty_ratio: f64,
    /// Younger records are not compacted.
    pub min_compaction_lag_ms: i64,
    /// Dirty records that are older are compacted whatever the ratio.
    pub max_compaction_lag_ms: i64,
    /// How long tombstones and transaction markers stay for readers once compaction could remove them.
    pub delete_retention_ms: i64,
    /// Replicas that must be in sync for acks=all to be taken, and for the high watermark to move.
    pub min_insync_replicas: usize,
    /// Followers to which leaders send with a limit: `*`, or `partition:broker,...`.
    pub leader_replication_throttled_replicas: String,
    /// Followers that fetch with a limit: `*`, or `partition:broker,...`.
    pub follower_replication_throttled_replicas: String,
}

impl LogConfig {
    /// When a segment is rolled by age: a compacted log must close its segments in time for `max_compaction_lag_ms`.
    pub(super) fn max_segment_ms(&self) -> i64 {
        let lag_counts = self.cleanup_policy.compact && self.max_compaction_lag_ms > 0;
        if lag_counts { self.segment_ms.min(self.max_compaction_lag_ms) } else { self.segment_ms }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: /* 1 GiB */ 1 << 30,
            segment_ms: /* 7 days */ 604_800_000,
            segment_jitter_ms: 0,
            segment_index_bytes: /* 10 MiB */ 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: /* 7 days */ 604_800_000,
            retention_bytes: -1,
            max_message_bytes: 1_048_588,
            message_timestamp_type: TimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: /* 1 hour, as Kafka since 4.0 */ 3_600_000,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            preallocate: false,
            durability: Durability::PageCache,
            file_delete_delay_ms: /* 1 minute */ 60_000,
            cleanup_policy: CleanupPolicy::default(),
            compression_type: "producer".into(),
            compaction_roll_bytes: u64::MAX,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: /* 1 day */ 86_400_000,
            min_insync_replicas: 1,
            leader_replication_throttled_replicas: String::new(),
            follower_replication_throttled_replicas: String::new(),
        }
    }
}

/// Settings of a data directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManagerConfig {
    /// This broker.
    pub node_id: i32,
    /// Empty: what `meta.properties` says, or a new one.
    pub cluster_id: String,
    /// Written into the clean-stop marker.
    pub broker_epoch: i64,
    /// Threads that run fdatasync for `durability=flushed`, started when the first is needed.
    /// 0: whoever waits runs it (for simulations).
    pub flush_threads: usize,
    /// Most files of segments kept open; more are opened again when used.
    pub max_open_files: usize,
    /// A producer that wrote nothing for so long is forgotten.
    pub producer_id_expiration_ms: i64,
    /// Most producers that a partition remembers.
    pub producer_id_max_count: usize,
    /// How long written bytes may stay unflushed in page-cache logs; bounds what a restart scans.
    pub checkpoint_interval_ms: i64,
    /// How often retention is applied at most; 0: whenever maintenance runs.
    pub retention_check_interval_ms: i64,
    /// How often the high watermarks of logs with other replicas are written down.
    pub replica_high_watermark_checkpoint_interval_ms: i64,
    /// Most bytes of each partition that are kept beside its log when recovery cuts them from it.
    pub recovery_kept_bytes: u64,
}

impl Default for ManagerConfig {
    fn default() -> Self {
        Self {
            node_id: 1,
            cluster_id: String::new(),
            broker_epoch: -1,
            flush_threads: 4,
            max_open_files: 512,
            producer_id_expiration_ms: /* 1 day */ 86_400_000,
            producer_id_max_count: 100_000,
            checkpoint_interval_ms: /* 1 minute */ 60_000,
            retention_check_interval_ms: 0,
            replica_high_watermark_checkpoint_interval_ms: /* 5 s */ 5_000,
            recovery_kept_bytes: /* 1 GiB */ 1 << 30,
        }
    }
}
