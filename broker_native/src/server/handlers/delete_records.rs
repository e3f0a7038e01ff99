//! DeleteRecords: moves the first readable offset of partitions forward.
use super::lookup::led;
use crate::server::dispatch::{Call, Outcome};
use crate::server::errors::of_storage;
use crate::server::topics::Topic;
use crate::wire::ErrorCode;
use crate::wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use crate::wire::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use std::sync::Arc;

/// Tells clients that there is no low watermark.
const NO_WATERMARK: i64 = -1;

/// Moves each partition by itself.
pub fn handle(call: &Call, request: &DeleteRecordsRequest) -> Outcome {
    let topics = call.shared.topics.now();
    let results = request.topics.iter().map(|asked| {
        let topic = topics.named(&asked.name);
        let partitions = asked.partitions.iter().map(|one| result(one, delete(call, topic, one)));
        DeleteRecordsTopicResult { name: asked.name.clone(), partitions: partitions.collect() }
    });
    Outcome::Now(call.answer(&DeleteRecordsResponse { topics: results.collect(), ..Default::default() }))
}

fn delete(call: &Call, topic: Option<&Arc<Topic>>, asked: &DeleteRecordsPartition) -> Result<i64, ErrorCode> {
    let (_, log) = led(&call.shared, topic, asked.partition_index, -1)?;
    if topic.is_some_and(|topic| topic.internal) {
        return Err(ErrorCode::InvalidTopicException);
    }
    if !log.config().cleanup_policy.delete {
        // What is compacted only may not be cut off: a key's last value could be in it.
        return Err(ErrorCode::PolicyViolation);
    }
    log.delete_records_before(asked.offset).map_err(|error| of_storage(&error))
}

fn result(asked: &DeleteRecordsPartition, outcome: Result<i64, ErrorCode>) -> DeleteRecordsPartitionResult {
    DeleteRecordsPartitionResult {
        partition_index: asked.partition_index,
        low_watermark: *outcome.as_ref().unwrap_or(&NO_WATERMARK),
        error_code: outcome.err().unwrap_or(ErrorCode::None).code(),
    }
}
