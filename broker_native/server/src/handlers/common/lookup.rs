//! Finding the log that a request names, with the checks every data request makes.
use std::sync::Arc;

use uuid::Uuid;

use crate::authorization::table::Right;
use crate::call::Call;
use crate::cluster::spec::PartitionSpec;
use crate::shared::Shared;
use crate::state::topics::{Partition, Topic};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;

/// The epoch that a client sends when it does not know the leader's.
const NO_EPOCH: i32 = -1;

/// Whether `replica_id` is another live broker that has the partition, too.
pub fn is_replica(shared: &Shared, topic: Option<&Arc<Topic>>, number: i32, replica_id: i32) -> bool {
    let partition = topic.and_then(|topic| topic.partition(number));
    shared.cluster.is_clustered()
        && replica_id != shared.settings.node_id
        && shared.cluster.now().broker(replica_id).is_some()
        && partition.is_some_and(|partition| partition.spec.replicas.contains(&replica_id))
}

/// Whether the client is shown the topic, which is named, or by its id, for its `right`. A topic that is not there is nobody's.
pub fn may_topic(call: &Call, right: &Right, name: &str, id: &Uuid) -> bool {
    if !call.is_guarded() {
        return true;
    }
    if id.is_nil() {
        return call.may(right, name);
    }
    call.shared.topics.now().with_id(id).is_none_or(|topic| call.may(right, &topic.name))
}

/// As [`may_topic`] before something is done with the topic. An id that is not known now is refused: nobody has asked about a topic that is
/// applied before it is done.
///
/// # Errors
/// That of the right, UNKNOWN_TOPIC_ID.
pub fn check_topic(call: &Call, right: &Right, name: &str, id: &Uuid) -> Result<(), ErrorCode> {
    if !call.is_guarded() {
        return Ok(());
    }
    if id.is_nil() {
        return call.check(right, name);
    }
    let image = call.shared.topics.now();
    image.with_id(id).map_or(Err(ErrorCode::UnknownTopicId), |topic| call.check(right, &topic.name))
}

/// The log of partition `number` for a consumer that may read from a follower; else as [`led`].
///
/// # Errors
/// As [`led`].
pub fn readable<'a>(
    shared: &Shared,
    topic: Option<&'a Arc<Topic>>,
    number: i32,
    epoch: i32,
) -> Result<(&'a Arc<Partition>, &'a Arc<PartitionLog>), ErrorCode> {
    let partition = topic.and_then(|topic| topic.partition(number));
    let follows = |spec: &PartitionSpec| {
        let node_id = shared.settings.node_id;
        spec.leader != node_id && spec.replicas.contains(&node_id)
    };
    let Some(partition) = partition.filter(|partition| follows(&partition.spec)) else {
        return led(shared, topic, number, epoch);
    };
    at_epoch(partition, epoch)
}

/// The partition and its log, when `epoch` is that of its leader, or not known.
fn at_epoch(
    partition: &Arc<Partition>,
    epoch: i32,
) -> Result<(&Arc<Partition>, &Arc<PartitionLog>), ErrorCode> {
    match epoch.cmp(&partition.spec.leader_epoch) {
        _ if epoch == NO_EPOCH => {}
        std::cmp::Ordering::Less => return Err(ErrorCode::FencedLeaderEpoch),
        std::cmp::Ordering::Greater => return Err(ErrorCode::UnknownLeaderEpoch),
        std::cmp::Ordering::Equal => {}
    }
    let log = partition.log.as_ref().map_err(|_absent| ErrorCode::KafkaStorageError)?;
    Ok((partition, log))
}

/// The log of partition `number`, if this broker leads it, may lead at all (its lease) and
/// `epoch` (-1: unknown) is that of its leader.
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
    if partition.spec.leader != shared.settings.node_id || !shared.cluster.may_lead() {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    at_epoch(partition, epoch)
}
