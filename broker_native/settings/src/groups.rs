//! Settings of brokers about groups and their offsets.
use crate::declare::settings;

settings! {
    /// What the coordinator of groups reads.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        /// How often a member of a group of the consumer protocol (KIP-848) is to send a heartbeat.
        "group.consumer.heartbeat.interval.ms" INT group_consumer_heartbeat_interval_ms: i32 = 5_000, at_least(1);
        /// Most members of a group of the consumer protocol.
        "group.consumer.max.size" INT group_consumer_max_size: i32 = i32::MAX, at_least(1);
        /// A member of a group of the consumer protocol that sends no heartbeat for this long is removed.
        "group.consumer.session.timeout.ms" INT group_consumer_session_timeout_ms: i32 = 45_000, at_least(1);
        /// Roughly the most memory for the groups that this broker coordinates: their members, their offsets with the
        /// texts beside them, and what share groups do with records. When it is used up, new members are refused with
        /// GROUP_MAX_SIZE_REACHED and new offsets with INVALID_COMMIT_OFFSET_SIZE; members that have joined go on. Only
        /// pylog has this setting.
        "group.coordinator.max.bytes" LONG group_coordinator_max_bytes: usize = /* 512 MiB */ 512 << 20, at_least(1);
        /// How long an empty group of the classic protocol waits for more members before its first rebalance.
        "group.initial.rebalance.delay.ms" INT group_initial_rebalance_delay_ms: i32 = 3_000, at_least(0);
        /// Longest session timeout that a member of the classic protocol may ask for.
        "group.max.session.timeout.ms" INT group_max_session_timeout_ms: i32 = /* 30 minutes */ 1_800_000,
            at_least(1);
        /// Most members of a group of the classic protocol.
        "group.max.size" INT group_max_size: i32 = i32::MAX, at_least(1);
        /// Shortest session timeout that a member of the classic protocol may ask for.
        "group.min.session.timeout.ms" INT group_min_session_timeout_ms: i32 = 6_000, at_least(1);
        /// How often a member of a share group is to send a heartbeat.
        "group.share.heartbeat.interval.ms" INT group_share_heartbeat_interval_ms: i32 = 5_000, at_least(1);
        /// Most members of a share group.
        "group.share.max.size" INT group_share_max_size: i32 = 200, between(1, 1000);
        /// A member of a share group that sends no heartbeat for this long is removed.
        "group.share.session.timeout.ms" INT group_share_session_timeout_ms: i32 = 45_000, at_least(1);
        /// Longest text (metadata) that may be committed beside an offset.
        "offset.metadata.max.bytes" INT offset_metadata_max_bytes: i32 = 4096, at_least(0), high();
        /// How often the coordinator looks for expired offsets.
        "offsets.retention.check.interval.ms" LONG offsets_retention_check_interval_ms: i64 = /* 10 minutes */ 600_000,
            at_least(1),
            high();
        /// How long offsets are kept after their group has lost its last member, or after no member is subscribed to
        /// their topic any more.
        "offsets.retention.minutes" INT offsets_retention_minutes: i64 = /* 7 days */ 7 * 24 * 60, at_least(1), high();
    }
}

impl Settings {
    /// How long offsets of a group without members are kept.
    pub fn offsets_retention_ms(&self) -> i64 {
        self.offsets_retention_minutes.saturating_mul(60_000)
    }
}
