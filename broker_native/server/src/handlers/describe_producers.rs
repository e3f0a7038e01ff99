//! DescribeProducers: who writes to a partition, and since which offset its transaction is open. How tools find a
//! transaction that nobody ends.
//!
//! KIP-664.
use std::sync::Arc;

use super::common::lookup::led;
use super::metadata::is_legal;
use crate::authorization::table::DESCRIBE_PRODUCERS_TOPIC;
use crate::call::{Call, Outcome};
use crate::state::topics::Topic;
use pylog_storage::ProducerInfo;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_producers::{PartitionResponse, ProducerState, TopicResponse};
use pylog_wire::messages::{DescribeProducersRequest, DescribeProducersResponse};

/// Stands for "no open transaction".
const NO_OFFSET: i64 = -1;
/// The epoch of a request that names none.
const NO_EPOCH: i32 = -1;

/// Looks into each partition by itself.
pub fn handle(call: &Call, request: &DescribeProducersRequest) -> Outcome {
    let topics = call.shared.topics.now();
    let described = request.topics.iter().map(|asked| {
        let topic = topics.named(&asked.name);
        let allowed = match is_legal(&asked.name) {
            true => call.check(&DESCRIBE_PRODUCERS_TOPIC, &asked.name),
            false => Err(ErrorCode::InvalidTopicException),
        };
        let partitions = asked.partition_indexes.iter().map(|number| match allowed {
            Ok(()) => described(call, topic, *number),
            Err(error) => error_response(*number, error),
        });
        TopicResponse { name: asked.name.clone(), partitions: partitions.collect() }
    });
    Outcome::Now(
        call.answer(&DescribeProducersResponse { topics: described.collect(), ..Default::default() }),
    )
}

fn described(call: &Call, topic: Option<&Arc<Topic>>, partition_index: i32) -> PartitionResponse {
    match led(&call.shared, topic, partition_index, NO_EPOCH) {
        Ok((_, log)) => {
            let active_producers = log.producers().iter().map(state).collect();
            PartitionResponse { partition_index, active_producers, ..Default::default() }
        }
        Err(error) => error_response(partition_index, error),
    }
}

fn error_response(partition_index: i32, error: ErrorCode) -> PartitionResponse {
    let error_message = Some(error.sentence().to_owned());
    PartitionResponse { partition_index, error_code: error.code(), error_message, ..Default::default() }
}

fn state(info: &ProducerInfo) -> ProducerState {
    ProducerState {
        producer_id: info.producer_id,
        producer_epoch: info.producer_epoch.into(),
        last_sequence: info.last_sequence,
        last_timestamp: info.last_timestamp,
        coordinator_epoch: info.coordinator_epoch,
        current_txn_start_offset: info.txn_first_offset.unwrap_or(NO_OFFSET),
    }
}
