//! OffsetForLeaderEpoch: where an epoch ended, so that a consumer finds out whether what it read was truncated.
//!
//! KIP-101. Version 2 has the leader's epoch (KIP-320); 3 who asks.
use std::sync::Arc;

use super::common::lookup::{is_replica, led};
use crate::call::{Call, Outcome};
use crate::state::topics::Topic;
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};
use pylog_wire::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

/// Looks each partition up by itself.
pub fn handle(call: &Call, request: &OffsetForLeaderEpochRequest) -> Outcome {
    let topics = call.shared.topics.now();
    let results = request.topics.iter().map(|asked| {
        let topic = topics.named(&asked.topic);
        let partitions =
            asked.partitions.iter().map(|partition| end_offset(call, topic, partition, request.replica_id));
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
        Ok((_, log)) => {
            log.epoch_end_offset(asked.leader_epoch).map_or(blank.clone(), |(leader_epoch, end_offset)| {
                EpochEndOffset { leader_epoch, end_offset, ..blank }
            })
        }
    }
}
