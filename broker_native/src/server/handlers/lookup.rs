//! Finding the log that a request names, with the checks every data request makes.
use std::sync::Arc;

use crate::server::shared::Shared;
use crate::server::topics::{Partition, Topic};
use crate::storage::PartitionLog;
use crate::wire::ErrorCode;

/// The epoch that a client sends when it does not know the leader's.
const NO_EPOCH: i32 = -1;

/// The log of partition `number`, if this broker leads it and `epoch` (-1: unknown) is that of its leader.
///
/// # Errors
/// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
/// KAFKA_STORAGE_ERROR when the partition is offline.
pub fn led<'a>(
    shared: &Shared,
    topic: Option<&'a Arc<Topic>>,
    number: i32,
    epoch: i32,
) -> Result<(&'a Arc<Partition>, &'a Arc<PartitionLog>), ErrorCode> {
    let partition =
        topic.and_then(|topic| topic.partition(number)).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if partition.spec.leader != shared.settings.node_id {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    match epoch.cmp(&partition.spec.leader_epoch) {
        _ if epoch == NO_EPOCH => {}
        std::cmp::Ordering::Less => return Err(ErrorCode::FencedLeaderEpoch),
        std::cmp::Ordering::Greater => return Err(ErrorCode::UnknownLeaderEpoch),
        std::cmp::Ordering::Equal => {}
    }
    let log = partition.log.as_ref().map_err(|_offline| ErrorCode::KafkaStorageError)?;
    Ok((partition, log))
}
