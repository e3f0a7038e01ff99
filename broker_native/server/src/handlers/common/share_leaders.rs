//! The current leader, for members of share groups that asked the wrong broker.
use std::collections::BTreeSet;

use uuid::Uuid;

use super::brokers::{BrokerEndpoint, Brokers};
use crate::call::Call;
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::{LeaderIdAndEpoch, NodeEndpoint};

/// Collects who leads.
pub struct CurrentLeaders<'a> {
    call: &'a Call,
    ids: BTreeSet<i32>,
}

impl<'a> CurrentLeaders<'a> {
    /// Nobody yet.
    pub fn of(call: &'a Call) -> Self {
        Self { call, ids: BTreeSet::new() }
    }

    /// Who leads the partition, when `error` says that this broker does not, and another one is known to.
    pub fn current_leader(&mut self, topic_id: &Uuid, number: i32, error: ErrorCode) -> LeaderIdAndEpoch {
        let nobody = LeaderIdAndEpoch::default();
        if error != ErrorCode::NotLeaderOrFollower {
            return nobody;
        }
        let image = self.call.shared.topics.now();
        let Some(partition) = image.with_id(topic_id).and_then(|topic| topic.partition(number)) else {
            return nobody;
        };
        let (leader_id, leader_epoch) = (partition.spec.leader, partition.spec.leader_epoch);
        // It may not lead now, and knows of nobody else.
        if leader_id == self.call.shared.settings.node_id {
            return nobody;
        }
        self.ids.insert(leader_id);
        LeaderIdAndEpoch { leader_id, leader_epoch }
    }

    /// The addresses of the leaders that were named.
    pub fn endpoints(self) -> Vec<NodeEndpoint> {
        let brokers = Brokers::of(self.call);
        let endpoint =
            |BrokerEndpoint { id, host, port, rack }| NodeEndpoint { node_id: id, host, port, rack };
        self.ids.into_iter().filter_map(|id| brokers.find(id)).map(endpoint).collect()
    }
}
