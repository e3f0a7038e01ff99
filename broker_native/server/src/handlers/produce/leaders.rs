//! Who leads instead, for producers that asked the wrong broker (KIP-951).
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::find::TOPIC_IDS_FROM;
use crate::call::Call;
use crate::handlers::common::brokers::{Brokers, Known};
use crate::state::replication::leading::Leading;
use crate::state::watch::Watch;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceResponse;
use pylog_wire::messages::produce::{LeaderIdAndEpoch, NodeEndpoint};

/// From this version on a producer is told.
const LEADER_TOLD_FROM: i16 = 10;
/// The log gives up its role a moment before the next leader is served.
const MOMENT: Duration = Duration::from_secs(1);

/// Waits for the moment in which the next leader is known, when a log was just told that it is not one any more.
pub async fn next_leader(call: &Call, leading: &Arc<Leading>) {
    let watch = Watch::over(vec![Arc::clone(&leading.log_starts)]);
    let known = async {
        while call.shared.topics.is_current(leading) {
            watch.woken().await;
        }
    };
    // Not in time: the client asks for the leader.
    let _ = tokio::time::timeout(MOMENT, known).await;
}

/// Adds the leaders of the partitions that this broker does not lead.
pub fn tell_leaders(call: &Call, response: &mut ProduceResponse) {
    let is_elsewhere = |error_code: i16| error_code == ErrorCode::NotLeaderOrFollower.code();
    let mut each = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    if call.version < LEADER_TOLD_FROM || !each.any(|one| is_elsewhere(one.error_code)) {
        return;
    }
    let topics = call.shared.topics.now();
    let mut leaders = BTreeSet::new();
    for told in &mut response.responses {
        let topic = match call.version >= TOPIC_IDS_FROM {
            true => topics.with_id(&told.topic_id),
            false => topics.named(&told.name),
        };
        for one in told.partition_responses.iter_mut().filter(|one| is_elsewhere(one.error_code)) {
            let Some(partition) = topic.and_then(|topic| topic.partition(one.index)) else { continue };
            let (leader_id, leader_epoch) = (partition.spec.leader, partition.spec.leader_epoch);
            // It may not lead now, and knows of nobody else.
            if leader_id == call.shared.settings.node_id {
                continue;
            }
            one.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
            leaders.insert(leader_id);
        }
    }
    let brokers = Brokers::of(call);
    let endpoint = |Known { id, host, port, rack }| NodeEndpoint { node_id: id, host, port, rack };
    response.node_endpoints = leaders.into_iter().filter_map(|id| brokers.find(id)).map(endpoint).collect();
}
