//! The leader of a log now. The log's listeners for appends and failures live as long as the log, and find the present leader here.
use std::sync::Arc;

use parking_lot::RwLock;

use super::leader_state::LeaderState;
use crate::state::watch::Watchers;
use pylog_storage::FailureListener;

/// The leader of a log on this broker, if there is one; replaced with each leader epoch.
#[derive(Default)]
pub struct LeaderSlot(RwLock<Option<Arc<LeaderState>>>);

impl LeaderSlot {
    /// The leader now.
    pub fn now(&self) -> Option<Arc<LeaderState>> {
        self.0.read().clone()
    }

    /// Sets the leader.
    pub fn take(&self, leader_state: Option<Arc<LeaderState>>) {
        *self.0.write() = leader_state;
    }
}

/// What a log with other replicas calls after each append.
pub fn on_append(leader_slot: &Arc<LeaderSlot>, appended: &Arc<Watchers>) -> Arc<dyn Fn(i64) + Send + Sync> {
    // A weak reference: the leader's state refers to the log, so a strong one here would be a cycle.
    let (leader_slot, appended) = (Arc::downgrade(leader_slot), Arc::clone(appended));
    Arc::new(move |replicated_end| {
        appended.wake();
        if let Some(leader_state) = leader_slot.upgrade().and_then(|leader_slot| leader_slot.now()) {
            leader_state.appended(replicated_end);
        }
    })
}

/// What a log with other replicas calls when it cannot write.
pub fn on_failure(leader_slot: &Arc<LeaderSlot>) -> FailureListener {
    let leader_slot = Arc::downgrade(leader_slot);
    Arc::new(move |why| {
        if let Some(leader_state) = leader_slot.upgrade().and_then(|leader_slot| leader_slot.now()) {
            leader_state.cannot_write(why);
        }
    })
}
