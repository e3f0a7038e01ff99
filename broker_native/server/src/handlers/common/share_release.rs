//! What a member holds is given back when its session ends.
use super::share_call::{ask, refresh};
use crate::share_groups::sessions::{SessionPartitions, ShareSessionKey};
use crate::shared::Shared;
use pylog_coordinator::share::{ShareKey, ShareRequest};

/// How many partitions are handled before other requests get a turn.
const AT_ONCE: usize = 100;

/// Gives back what the member holds of these partitions. Done when it is written down, or cannot be: the locks are over either way.
pub async fn release(shared: &Shared, session: &ShareSessionKey, partitions: &SessionPartitions) {
    let mut left = partitions.iter();
    loop {
        let these: Vec<_> = left.by_ref().take(AT_ONCE).copied().collect();
        let some = these.iter().map(|(topic_id, partition)| {
            let (group_id, member_id) = (session.group_id.clone(), session.member_id.clone());
            let key = ShareKey { group_id, topic_id: *topic_id, partition: *partition };
            ask(shared, key, ShareRequest::Release { member_id })
        });
        let some: Vec<_> = some.collect();
        if some.is_empty() {
            return;
        }
        for waiting in some {
            let _ = waiting.await;
        }
        // What nobody reads takes no memory.
        refresh(shared, &session.group_id, these.iter());
        tokio::task::yield_now().await;
    }
}

/// The connection is no more, and with it its sessions. Not when the broker stops: its end is no failure of members, and what they hold is
/// available after the start with the count that it had.
pub async fn disconnected(shared: &Shared, connection: u64) {
    if shared.shutdown.is_given() {
        return;
    }
    for (session, partitions) in shared.share_groups.sessions.disconnected(connection) {
        release(shared, &session, &partitions).await;
    }
}
