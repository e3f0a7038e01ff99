//! The broker's settings about share groups, and those that a group may have of its own.
use serde::Deserialize;

/// The broker's settings; the names are Kafka's, in snake_case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Most deliveries of a record.
    pub group_share_delivery_count_limit: i32,
    /// Most records of a share partition in flight.
    pub group_share_partition_max_record_locks: i32,
    /// How long a member may keep a record.
    pub group_share_record_lock_duration_ms: i32,
    /// Most share sessions of a broker.
    pub group_share_max_share_sessions: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            group_share_delivery_count_limit: 5,
            group_share_partition_max_record_locks: 2_000,
            group_share_record_lock_duration_ms: /* 30 s */ 30_000,
            group_share_max_share_sessions: 2_000,
        }
    }
}

/// Where a share partition begins that nobody has read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OffsetReset {
    /// At the log's start.
    Earliest,
    /// At its end.
    #[default]
    Latest,
    /// At the first record that is not older than so many milliseconds.
    ByDuration(i64),
}

/// Which records of transactions are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    /// All.
    #[default]
    ReadUncommitted,
    /// Of those that were committed.
    ReadCommitted,
}

/// The settings of one group: its own, or the broker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSettings {
    /// Most deliveries of a record.
    pub delivery_count_limit: i16,
    /// Most records of a share partition in flight.
    pub max_record_locks: i64,
    /// How long a member may keep a record.
    pub record_lock_ms: i64,
    /// Where a share partition begins.
    pub reset: OffsetReset,
    /// Which records of transactions are delivered.
    pub isolation: IsolationLevel,
    /// Whether locks may be renewed.
    pub renews: bool,
}

impl From<&Settings> for GroupSettings {
    fn from(broker: &Settings) -> Self {
        Self {
            delivery_count_limit: i16::try_from(broker.group_share_delivery_count_limit).unwrap_or(i16::MAX),
            max_record_locks: broker.group_share_partition_max_record_locks.into(),
            record_lock_ms: broker.group_share_record_lock_duration_ms.into(),
            reset: OffsetReset::default(),
            isolation: IsolationLevel::default(),
            renews: true,
        }
    }
}
