//! What one step of a group works with.
use std::sync::Arc;

use uuid::Uuid;

use super::requests::GroupReply;
use crate::{Effects, Room, Timers};

/// The broker's settings about groups; the names are Kafka's, in snake_case.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Shortest session time-out that a classic member may ask for.
    pub group_min_session_timeout_ms: i32,
    /// Longest session time-out that a classic member may ask for.
    pub group_max_session_timeout_ms: i32,
    /// How long an empty classic group waits for more members before its first rebalance.
    pub group_initial_rebalance_delay_ms: i32,
    /// Most members of a classic group.
    pub group_max_size: i32,
    /// Session time-out of a KIP-848 member.
    pub group_consumer_session_timeout_ms: i32,
    /// How often a KIP-848 member is told to report.
    pub group_consumer_heartbeat_interval_ms: i32,
    /// Most members of a KIP-848 group.
    pub group_consumer_max_size: i32,
    /// Session time-out of a member of a share group.
    pub group_share_session_timeout_ms: i32,
    /// How often a member of a share group is told to report.
    pub group_share_heartbeat_interval_ms: i32,
    /// Most members of a share group.
    pub group_share_max_size: i32,
    /// Most bytes of all groups of a broker in memory.
    pub group_coordinator_max_bytes: usize,
    /// Largest metadata text beside an offset.
    pub offset_metadata_max_bytes: i32,
    /// How long offsets of a group without members are kept. Given in minutes.
    #[serde(rename = "offsets_retention_minutes", deserialize_with = "from_minutes")]
    pub offsets_retention_ms: i64,
    /// How often expired offsets are looked for.
    pub offsets_retention_check_interval_ms: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: /* 30 minutes */ 1_800_000,
            group_initial_rebalance_delay_ms: 3_000,
            group_max_size: i32::MAX,
            group_consumer_session_timeout_ms: 45_000,
            group_consumer_heartbeat_interval_ms: 5_000,
            group_consumer_max_size: i32::MAX,
            group_share_session_timeout_ms: 45_000,
            group_share_heartbeat_interval_ms: 5_000,
            group_share_max_size: 200,
            group_coordinator_max_bytes: /* 512 MiB */ 512 << 20,
            offset_metadata_max_bytes: 4096,
            offsets_retention_ms: /* 7 days */ 604_800_000,
            offsets_retention_check_interval_ms: /* 10 minutes */ 600_000,
        }
    }
}

/// Milliseconds of a number of minutes.
fn from_minutes<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let minutes: i64 = serde::Deserialize::deserialize(from)?;
    Ok(minutes.saturating_mul(60_000))
}

/// The topics of the cluster, as server-side assignment needs them.
pub trait TopicsView: Send + Sync + 'static {
    /// Changes whenever a topic or a partition comes or goes.
    fn version(&self) -> u64;
    /// Id and number of partitions.
    fn topic(&self, name: &str) -> Option<(Uuid, i32)>;
    /// Name and number of partitions.
    fn topic_with_id(&self, id: &Uuid) -> Option<(String, i32)>;
    /// All names; those that clients should hide are left out.
    fn names(&self) -> Vec<String>;
}

/// What has a deadline. A group's own timers are namespaced by its id; `member_id` is empty for the group's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerKey {
    /// Which group; empty for the machine's own.
    pub group_id: String,
    /// Which member; empty for the group's own.
    pub member_id: String,
    /// What for: each kind of group has its own words.
    pub purpose: &'static str,
}

/// What one step of one group works with.
pub struct GroupContext<'a> {
    /// The group.
    pub group_id: &'a str,
    /// Milliseconds since the epoch, for what is written down.
    pub now_ms: i64,
    /// Now by the clock of `timers`.
    pub steady_ms: i64,
    /// The broker's settings.
    pub settings: &'a Settings,
    /// Room for what is to stay.
    pub room: &'a Room,
    /// Topics now.
    pub topics: &'a Arc<dyn TopicsView>,
    /// Deadlines of all groups of the machine.
    pub timers: &'a mut Timers<TimerKey>,
    /// What is to be done.
    pub effects: &'a mut Effects<GroupReply, std::convert::Infallible>,
}

impl GroupContext<'_> {
    /// Sets a deadline `after_ms` from now.
    pub fn set_timer(&mut self, member_id: &str, purpose: &'static str, after_ms: i64) {
        self.timers.set(self.key(member_id, purpose), self.steady_ms.saturating_add(after_ms));
    }

    /// Forgets a deadline.
    pub fn cancel_timer(&mut self, member_id: &str, purpose: &'static str) {
        self.timers.cancel(&self.key(member_id, purpose));
    }

    fn key(&self, member_id: &str, purpose: &'static str) -> TimerKey {
        TimerKey { group_id: self.group_id.to_owned(), member_id: member_id.to_owned(), purpose }
    }
}
