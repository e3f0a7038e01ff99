//! The settings of one share group as its partitions need them.
pub use pylog_settings::share::{Isolation as IsolationLevel, OffsetReset, Settings};

use pylog_settings::{groups, share};

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

impl From<&share::GroupSettings> for GroupSettings {
    fn from(group: &share::GroupSettings) -> Self {
        Self {
            delivery_count_limit: i16::try_from(group.share_delivery_count_limit).unwrap_or(i16::MAX),
            max_record_locks: group.share_partition_max_record_locks.into(),
            record_lock_ms: group.share_record_lock_duration_ms.into(),
            reset: group.share_auto_offset_reset,
            isolation: group.share_isolation_level,
            renews: group.share_renew_acknowledge_enable,
        }
    }
}

/// Those of a group that set none.
impl From<&Settings> for GroupSettings {
    fn from(broker: &Settings) -> Self {
        Self::from(&share::GroupSettings::of_broker(broker, &groups::Settings::default()))
    }
}
