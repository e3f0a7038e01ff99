//! Settings of brokers about share groups, and those that a group may have of its own.
use serde_json::Value;

use crate::declare::settings;
use crate::groups;
use crate::setting::{Valid, same};
use crate::typed::{Typed, words};

words! {
    /// Which records of transactions are read.
    pub enum Isolation {
        /// All below the high watermark.
        ReadUncommitted = "read_uncommitted",
        /// Those that were committed, up to the last stable offset.
        ReadCommitted = "read_committed",
    }
}

/// Where a share partition begins that nobody has read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the log's start.
    Earliest,
    /// At its end.
    Latest,
    /// At the first record that is not older than so many milliseconds.
    ByDuration(i64),
}

/// The duration comes as `{"by_duration_ms": 1000}`: Python reads what users write.
impl Typed for OffsetReset {
    const VALID: Valid = Valid::Form("offset-reset");

    fn of(value: &Value) -> Option<Self> {
        match value.as_str() {
            Some("earliest") => Some(Self::Earliest),
            Some("latest") => Some(Self::Latest),
            Some(_) => None,
            None => value.get("by_duration_ms")?.as_i64().map(Self::ByDuration),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Earliest => "earliest".into(),
            Self::Latest => "latest".into(),
            Self::ByDuration(ms) => serde_json::json!({ "by_duration_ms": ms }),
        }
    }
}

settings! {
    /// What the leader of share partitions reads.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        /// How often a record is delivered to members of a share group (KIP-932). A record that none of them has
        /// accepted by then is not delivered again.
        "group.share.delivery.count.limit" INT group_share_delivery_count_limit: i32 = 5, between(2, 10);
        /// Most share sessions at this broker; each member that reads from it has one. One client address has at most
        /// half of them. A member beyond is refused with SHARE_SESSION_LIMIT_REACHED.
        "group.share.max.share.sessions" INT group_share_max_share_sessions: usize = 2_000, at_least(1);
        /// Most records of one partition that a share group may have in delivery: handed to members, and not yet
        /// acknowledged.
        "group.share.partition.max.record.locks" INT group_share_partition_max_record_locks: i32 = 2_000,
            between(100, 10000);
        /// How long a member of a share group may keep a record without acknowledging it. Then it is delivered to
        /// another member.
        "group.share.record.lock.duration.ms" INT group_share_record_lock_duration_ms: i32 = /* 30 s */ 30_000,
            between(1000, 3600000);
    }
    without_field {
        /// Largest share.delivery.count.limit that a share group may have of its own.
        "group.share.max.delivery.count.limit" INT = 10, between(5, 25);
        /// Largest share.heartbeat.interval.ms that a share group may have of its own.
        "group.share.max.heartbeat.interval.ms" INT = 15_000, at_least(1);
        /// Largest share.partition.max.record.locks that a share group may have of its own.
        "group.share.max.partition.max.record.locks" INT = 4_000, between(2000, 10000);
        /// Largest share.record.lock.duration.ms that a share group may have of its own.
        "group.share.max.record.lock.duration.ms" INT = 60_000, between(30000, 3600000);
        /// Largest share.session.timeout.ms that a share group may have of its own.
        "group.share.max.session.timeout.ms" INT = 60_000, at_least(1);
        /// Smallest share.delivery.count.limit that a share group may have of its own.
        "group.share.min.delivery.count.limit" INT = 2, between(2, 5);
        /// Smallest share.heartbeat.interval.ms that a share group may have of its own.
        "group.share.min.heartbeat.interval.ms" INT = 5_000, at_least(1);
        /// Smallest share.partition.max.record.locks that a share group may have of its own.
        "group.share.min.partition.max.record.locks" INT = 100, between(100, 2000);
        /// Smallest share.record.lock.duration.ms that a share group may have of its own.
        "group.share.min.record.lock.duration.ms" INT = 15_000, between(1000, 30000);
        /// Smallest share.session.timeout.ms that a share group may have of its own.
        "group.share.min.session.timeout.ms" INT = 45_000, at_least(1);
    }
}

settings! {
    /// The settings of one share group: its own, or the broker's.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GroupSettings {
        /// Where a share group begins with a partition that it has not read yet. by_duration: at the first record that is
        /// not older than the duration.
        "share.auto.offset.reset" STRING share_auto_offset_reset: OffsetReset = OffsetReset::Latest;
        /// How often a record is delivered. One that no member has accepted by then is not delivered again.
        "share.delivery.count.limit" INT share_delivery_count_limit: i32 =
            Settings::default().group_share_delivery_count_limit,
            between(2, 25), falls_back_to(&[same("group.share.delivery.count.limit")]);
        /// How often a member is to send a heartbeat.
        "share.heartbeat.interval.ms" INT share_heartbeat_interval_ms: i32 =
            groups::Settings::default().group_share_heartbeat_interval_ms,
            at_least(1), falls_back_to(&[same("group.share.heartbeat.interval.ms")]);
        /// Which records of transactions are delivered. read_uncommitted: all of them, also before they are committed
        /// or when they are aborted. read_committed: committed ones only.
        "share.isolation.level" STRING share_isolation_level: Isolation = Isolation::ReadUncommitted;
        /// Most records of one partition that may be in delivery: handed to members, and not yet acknowledged.
        "share.partition.max.record.locks" INT share_partition_max_record_locks: i32 =
            Settings::default().group_share_partition_max_record_locks,
            between(100, 10_000), falls_back_to(&[same("group.share.partition.max.record.locks")]);
        /// How long a member may keep a record without acknowledging it. Then it is delivered to another member.
        "share.record.lock.duration.ms" INT share_record_lock_duration_ms: i32 =
            Settings::default().group_share_record_lock_duration_ms,
            between(1_000, 3_600_000), falls_back_to(&[same("group.share.record.lock.duration.ms")]);
        /// Whether a member may ask for more time for a record that it keeps.
        "share.renew.acknowledge.enable" BOOLEAN share_renew_acknowledge_enable: bool = true;
        /// A member that sends no heartbeat for this long is removed.
        "share.session.timeout.ms" INT share_session_timeout_ms: i32 =
            groups::Settings::default().group_share_session_timeout_ms,
            at_least(1), falls_back_to(&[same("group.share.session.timeout.ms")]);
    }
}

impl GroupSettings {
    /// Those of a group that set none.
    pub fn of_broker(shares: &Settings, groups: &groups::Settings) -> Self {
        Self {
            share_delivery_count_limit: shares.group_share_delivery_count_limit,
            share_heartbeat_interval_ms: groups.group_share_heartbeat_interval_ms,
            share_partition_max_record_locks: shares.group_share_partition_max_record_locks,
            share_record_lock_duration_ms: shares.group_share_record_lock_duration_ms,
            share_session_timeout_ms: groups.group_share_session_timeout_ms,
            ..Self::default()
        }
    }
}
