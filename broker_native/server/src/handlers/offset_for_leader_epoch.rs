//! OffsetForLeaderEpoch: where an epoch ended, so that a consumer finds out whether what it read was truncated.
//!
//! KIP-101. Version 2 has the leader's epoch (KIP-320); 3 who asks.
use std::sync::Arc;

use super::common::lookup::{is_replica, led};
use crate::authorization::table::{
    OFFSET_FOR_LEADER_EPOCH_CLUSTER, OFFSET_FOR_LEADER_EPOCH_REPLICA, OFFSET_FOR_LEADER_EPOCH_TOPIC,
};
use crate::call::{Call, Outcome};
use crate::state::topics::{Partition, Topic};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};
use pylog_wire::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

/// Looks each partition up by itself.
pub fn handle(call: &Call, request: &OffsetForLeaderEpochRequest) -> Outcome {
    let topics = call.shared.topics.now();
    let acts_as_broker = call.may_cluster(&OFFSET_FOR_LEADER_EPOCH_CLUSTER);
    // Refused for the same want of a right; asked again so that it is written to the log.
    let may_copy =
        request.replica_id < 0 || acts_as_broker || call.may_cluster(&OFFSET_FOR_LEADER_EPOCH_REPLICA);
    let results = request.topics.iter().map(|asked| {
        let topic = topics.named(&asked.topic);
        let allowed = match may_copy {
            false => Err(OFFSET_FOR_LEADER_EPOCH_REPLICA.error()),
            true if acts_as_broker => Ok(()),
            true => call.check(&OFFSET_FOR_LEADER_EPOCH_TOPIC, &asked.topic),
        };
        let partitions = asked.partitions.iter().map(|partition| match allowed {
            Ok(()) => end_offset(call, topic, partition, request.replica_id),
            Err(error) => EpochEndOffset {
                error_code: error.code(),
                partition: partition.partition,
                ..Default::default()
            },
        });
        OffsetForLeaderTopicResult { topic: asked.topic.clone(), partitions: partitions.collect() }
    });
    Outcome::Now(
        call.answer(&OffsetForLeaderEpochResponse { topics: results.collect(), ..Default::default() }),
    )
}

fn end_offset(
    call: &Call,
    topic: Option<&Arc<Topic>>,
    asked: &OffsetForLeaderPartition,
    replica_id: i32,
) -> EpochEndOffset {
    let blank = EpochEndOffset { partition: asked.partition, ..Default::default() };
    if replica_id >= 0 && !is_replica(&call.shared, topic, asked.partition, replica_id) {
        return EpochEndOffset { error_code: ErrorCode::ClusterAuthorizationFailed.code(), ..blank };
    }
    match led(&call.shared, topic, asked.partition, asked.current_leader_epoch) {
        Err(error) => EpochEndOffset { error_code: error.code(), ..blank },
        // Unknown epochs are answered as -1, -1.
        Ok((partition, log)) => match found(call, partition, log, asked.leader_epoch, replica_id) {
            Ok(Some((leader_epoch, end_offset))) => EpochEndOffset { leader_epoch, end_offset, ..blank },
            Ok(None) => blank,
            Err(error) => EpochEndOffset { error_code: error.code(), ..blank },
        },
    }
}

/// The largest epoch up to `epoch` and where it ends: where clients may read the archive, of records that are there, too.
///
/// # Errors
/// KAFKA_STORAGE_ERROR: what the archive has decides, and is not known yet. It may be asked again.
fn found(
    call: &Call,
    partition: &Partition,
    log: &PartitionLog,
    epoch: i32,
    replica_id: i32,
) -> Result<Option<(i32, i64)>, ErrorCode> {
    let here = log.epoch_end_offset(epoch);
    if replica_id >= 0 || !log.config().remote_storage_enable {
        return Ok(here);
    }
    let (archives, spec) = (&call.shared.archives, &partition.spec);
    let start = log.offsets().log_start_offset;
    // It ended before all that is here.
    let older = here.filter(|(_, end)| start > 0 && *end <= start);
    match (archives.of(log.topic_id(), spec.partition, spec.leader_epoch), older) {
        (Some(archived), Some((_, end))) => {
            let found = archived.epoch_end(epoch);
            Ok(found.or_else(|| Some((archived.epoch_up_to(epoch)?, end))).or(older))
        }
        (None, Some(_)) => {
            archives.miss();
            Err(ErrorCode::KafkaStorageError)
        }
        (_, None) => Ok(here),
    }
}
