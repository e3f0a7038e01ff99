//! The current leader, for producers that asked the wrong broker (KIP-951).
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::find::TOPIC_IDS_FROM;
use crate::call::Call;
use crate::handlers::common::brokers::{BrokerEndpoint, Brokers};
use crate::state::replication::leader_state::LeaderState;
use crate::state::watch::Watch;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceResponse;
use pylog_wire::messages::produce::{LeaderIdAndEpoch, NodeEndpoint};

/// From this version on the answer names the current leader.
const LEADER_KNOWN_FROM: i16 = 10;
/// The log stops being a leader's a moment before the next leader is known: how long to wait for that.
const MOMENT: Duration = Duration::from_secs(1);

/// Waits until the next leader is known, when the log has just stopped being a leader's.
pub async fn next_leader(call: &Call, leader_state: &Arc<LeaderState>) {
    let watch = Watch::over(vec![Arc::clone(&leader_state.log_starts)]);
    let known = async {
        while call.shared.topics.is_current(leader_state) {
            watch.woken().await;
        }
    };
    // Not in time: the client asks for the leader.
    let _ = tokio::time::timeout(MOMENT, known).await;
}

/// Adds the leaders of the partitions that this broker does not lead.
pub fn add_current_leaders(call: &Call, response: &mut ProduceResponse) {
    let is_not_leader = |error_code: i16| error_code == ErrorCode::NotLeaderOrFollower.code();
    let mut each = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    if call.version < LEADER_KNOWN_FROM || !each.any(|partition| is_not_leader(partition.error_code)) {
        return;
    }
    let topics = call.shared.topics.now();
    let mut leaders = BTreeSet::new();
    for topic_response in &mut response.responses {
        let topic = match call.version >= TOPIC_IDS_FROM {
            true => topics.with_id(&topic_response.topic_id),
            false => topics.named(&topic_response.name),
        };
        for refused in
            topic_response.partition_responses.iter_mut().filter(|refused| is_not_leader(refused.error_code))
        {
            let Some(partition) = topic.and_then(|topic| topic.partition(refused.index)) else { continue };
            let (leader_id, leader_epoch) = (partition.spec.leader, partition.spec.leader_epoch);
            // It may not lead now, and knows of nobody else.
            if leader_id == call.shared.settings.node_id {
                continue;
            }
            refused.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
            leaders.insert(leader_id);
        }
    }
    let brokers = Brokers::of(call);
    let endpoint = |BrokerEndpoint { id, host, port, rack }| NodeEndpoint { node_id: id, host, port, rack };
    response.node_endpoints = leaders.into_iter().filter_map(|id| brokers.find(id)).map(endpoint).collect();
}
