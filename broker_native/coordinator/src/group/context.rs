//! What one step of a group works with.
use std::sync::Arc;

pub use pylog_settings::groups::Settings;
use uuid::Uuid;

use super::requests::GroupReply;
use crate::{Effects, Room, Timers};

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
