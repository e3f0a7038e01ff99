//! What a member holds is given back when its session ends.
use super::share_call::ask;
use crate::coordinator::share::{ShareKey, ShareReply, ShareRequest};
use crate::server::coordinators::Waiting;
use crate::server::share_groups::sessions::{SessionKey, TopicPartition};
use crate::server::shared::Shared;

/// Gives back what the member holds of these partitions.
pub fn release(
    shared: &Shared,
    session: &SessionKey,
    partitions: &[TopicPartition],
) -> Vec<Waiting<ShareReply>> {
    let one = |(topic_id, partition): &TopicPartition| {
        let key = ShareKey { group_id: session.group_id.clone(), topic_id: *topic_id, partition: *partition };
        ask(shared, key, ShareRequest::Release { member_id: session.member_id.clone() })
    };
    partitions.iter().map(one).collect()
}

/// The connection is no more, and with it its sessions.
pub fn disconnected(shared: &Shared, connection: u64) {
    for (session, partitions) in shared.share_groups.sessions.disconnected(connection) {
        // Nobody waits for it.
        drop(release(shared, &session, &partitions));
    }
}
