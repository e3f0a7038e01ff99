//! Who fetches, and what it may see: consumers what is committed, followers everything; a follower's fetch says how far it is.
use crate::authorization::table::{FETCH_REPLICA, FETCH_TOPIC};
use crate::call::Call;
use crate::fetch_sessions::{FetchSessions, Position};
use crate::handlers::common::lookup::{led, readable};
use crate::state::replication::leader_state::{FetchedFrom, LeaderState};
use crate::state::replication::nearest;
use crate::state::topics::{Partition, Topic};
use pylog_replica::throttle;
use pylog_storage::{PartitionLog, ReadUpTo};
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchRequest;
use std::sync::Arc;

/// From this version on a consumer may read from a follower.
const FOLLOWERS_FROM: i16 = 11;
const READ_COMMITTED: i8 = 1;

/// Who fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchReader {
    /// A client.
    Consumer {
        /// Whether it wants no record of an open or aborted transaction.
        committed: bool,
        /// Whether it may read from a follower.
        from_followers: bool,
        /// The consumer's rack.
        rack: String,
    },
    /// Another broker, which copies.
    Replica {
        /// Its number.
        id: i32,
        /// Of its registration.
        epoch: i64,
    },
}

impl FetchReader {
    /// Who sent the request. Only a live broker, with the epoch of its registration, is a replica: a follower's fetch moves
    /// the high watermark.
    ///
    /// # Errors
    /// CLUSTER_AUTHORIZATION_FAILED; STALE_BROKER_EPOCH when one of the two does not know of a registration yet.
    pub fn of(call: &Call, request: &FetchRequest) -> Result<Self, ErrorCode> {
        let id = request.replica_id.max(request.replica_state.replica_id);
        if id < 0 {
            return Ok(Self::Consumer {
                committed: request.isolation_level == READ_COMMITTED,
                from_followers: call.version >= FOLLOWERS_FROM,
                rack: request.rack_id.clone(),
            });
        }
        call.check_cluster(&FETCH_REPLICA)?;
        let (cluster, epoch) = (&call.shared.cluster, request.replica_state.replica_epoch);
        if !cluster.is_clustered() || id == call.shared.settings.node_id {
            return Err(ErrorCode::ClusterAuthorizationFailed);
        }
        match cluster.now().broker(id) {
            None => Err(ErrorCode::ClusterAuthorizationFailed),
            Some(broker) if broker.epoch != epoch => Err(ErrorCode::StaleBrokerEpoch),
            Some(_) => Ok(Self::Replica { id, epoch }),
        }
    }

    /// Whether it may read the topic. A replica was asked for its right already.
    ///
    /// # Errors
    /// TOPIC_AUTHORIZATION_FAILED.
    pub fn check(&self, call: &Call, name: &str) -> Result<(), ErrorCode> {
        match self {
            Self::Consumer { .. } => call.check(&FETCH_TOPIC, name),
            Self::Replica { .. } => Ok(()),
        }
    }

    /// The partition that it may read.
    ///
    /// # Errors
    /// As [`led`]; NOT_LEADER_OR_FOLLOWER for a broker that is no replica of it; FENCED_LEADER_EPOCH for one that does not say
    /// in which epoch it follows.
    pub fn find<'a>(
        &self,
        call: &Call,
        topic: Option<&'a Arc<Topic>>,
        position: &Position,
    ) -> Result<(&'a Arc<Partition>, &'a Arc<PartitionLog>), ErrorCode> {
        let (shared, number, epoch) = (&*call.shared, position.partition, position.leader_epoch);
        match self {
            Self::Consumer { from_followers: true, .. } => readable(shared, topic, number, epoch),
            Self::Consumer { .. } => led(shared, topic, number, epoch),
            Self::Replica { id, .. } => {
                let (partition, log) = led(shared, topic, number, epoch)?;
                match (partition.leader_state.is_some() && partition.spec.replicas.contains(id), epoch < 0) {
                    (false, _) => Err(ErrorCode::NotLeaderOrFollower),
                    (true, true) => Err(ErrorCode::FencedLeaderEpoch),
                    (true, false) => Ok((partition, log)),
                }
            }
        }
    }

    /// What it may see.
    pub fn upto(&self) -> ReadUpTo {
        match self {
            Self::Consumer { committed: true, .. } => ReadUpTo::LastStable,
            Self::Consumer { .. } => ReadUpTo::HighWatermark,
            Self::Replica { .. } => ReadUpTo::LogEnd,
        }
    }

    /// Whether it wants to know of aborted transactions.
    pub fn is_committed(&self) -> bool {
        self.upto() == ReadUpTo::LastStable
    }

    /// Whether it is another broker.
    pub fn is_replica(&self) -> bool {
        matches!(self, Self::Replica { .. })
    }

    /// Where its sessions are.
    pub fn sessions<'a>(&self, call: &'a Call) -> &'a FetchSessions {
        match self {
            Self::Consumer { .. } => &call.shared.fetch_sessions,
            Self::Replica { .. } => &call.shared.replica_sessions,
        }
    }

    /// Notes how far a follower is, whose log equals the leader's up to there.
    pub fn note(&self, leader_state: Option<&Arc<LeaderState>>, log: &PartitionLog, position: &Position) {
        let (Self::Replica { id, epoch }, Some(leader_state)) = (self, leader_state) else { return };
        let offsets = log.offsets();
        if (offsets.log_start_offset..=offsets.log_end_offset).contains(&position.offset) {
            leader_state.fetched(FetchedFrom {
                id: *id,
                broker_epoch: *epoch,
                offset: position.offset,
                log_start_offset: position.log_start_offset,
            });
        }
    }

    /// The replica that a consumer should read from instead, when there is one.
    pub fn better(&self, call: &Call, leader_state: Option<&Arc<LeaderState>>, offset: i64) -> Option<i32> {
        let (Self::Consumer { rack, .. }, Some(leader_state)) = (self, leader_state) else { return None };
        let settings = &call.shared.settings;
        if rack.is_empty() || settings.replica_selector_class.as_deref() != Some(nearest::RACK_AWARE) {
            return None;
        }
        let view = call.shared.cluster.now();
        nearest::nearest(&leader_state.in_sync(), &view, settings.rack.as_deref(), rack, offset)
    }

    /// Whether the records of this partition count towards `leader.replication.throttled.rate` when this reader gets them.
    pub fn is_throttled(&self, call: &Call, partition: &Partition, log: &PartitionLog) -> bool {
        let (Self::Replica { id, .. }, true) = (self, call.shared.replication.throttle.is_on()) else {
            return false;
        };
        let config = log.config();
        let list = &config.leader_replication_throttled_replicas;
        !list.is_empty()
            && !partition.spec.isr.contains(id)
            && throttle::names(list, partition.spec.partition, call.shared.settings.node_id)
    }
}
