//! WriteTxnMarkers: a coordinator on another broker ends transactions in partitions of this broker.
//!
//! KIP-98. Version 2 has the transaction's version (KIP-1228).
use std::time::Duration;

use tokio::sync::oneshot;

use super::common::lookup::led;
use crate::authorization::table::{WRITE_TXN_MARKERS_ALTER, WRITE_TXN_MARKERS_CLUSTER};
use crate::call::{Call, Outcome};
use crate::coordinators::GROUPS_TOPIC;
use crate::coordinators::commit::{is_acknowledged, when_acknowledged};
use crate::coordinators::markers::write_marker;
use crate::errors::of_storage;
use pylog_record::control::Marker;
use pylog_storage::{StorageError, TxnMarker};
use pylog_wire::ErrorCode;
use pylog_wire::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
};
use pylog_wire::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};

/// How long a marker may take to be acknowledged before it has to be sent again; less than the timeout of the broker that asks.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A marker that is written and not acknowledged: which one of the request, of which topic and partition of it.
struct Pending {
    at: (usize, usize, usize),
    acknowledged: oneshot::Receiver<Result<(), StorageError>>,
}

/// Writes each marker; answers when they are as durable as their topics promise and all in-sync replicas have them.
pub fn handle(call: Call, request: WriteTxnMarkersRequest) -> Outcome {
    if !call.may_cluster(&WRITE_TXN_MARKERS_ALTER) && !call.may_cluster(&WRITE_TXN_MARKERS_CLUSTER) {
        let refused = request.markers.iter().map(refusal).collect();
        return Outcome::Now(call.answer(&WriteTxnMarkersResponse { markers: refused }));
    }
    let mut pending = Vec::new();
    let markers = request.markers.iter().enumerate();
    let markers = markers.map(|(at, marker)| write_all(&call, at, marker, &mut pending)).collect();
    let mut response = WriteTxnMarkersResponse { markers };
    if pending.is_empty() {
        return Outcome::Now(call.answer(&response));
    }
    Outcome::later(async move {
        let deadline = tokio::time::Instant::now() + ACKNOWLEDGE_TIMEOUT;
        for waiting in pending {
            let error = match tokio::time::timeout_at(deadline, waiting.acknowledged).await {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(error))) => of_storage(&error),
                Ok(Err(_dropped)) => ErrorCode::NotLeaderOrFollower,
                Err(_elapsed) => ErrorCode::RequestTimedOut,
            };
            let (marker, topic, partition) = waiting.at;
            let slot = response.markers.get_mut(marker).and_then(|result| result.topics.get_mut(topic));
            if let Some(slot) = slot.and_then(|result| result.partitions.get_mut(partition)) {
                slot.error_code = error.code();
            }
        }
        call.answer(&response)
    })
}

/// The answer about a marker of who is no broker.
fn refusal(asked: &WritableTxnMarker) -> WritableTxnMarkerResult {
    let error_code = WRITE_TXN_MARKERS_CLUSTER.error().code();
    let topics = asked.topics.iter().map(|topic| WritableTxnMarkerTopicResult {
        name: topic.name.clone(),
        partitions: topic
            .partition_indexes
            .iter()
            .map(|&partition_index| WritableTxnMarkerPartitionResult { partition_index, error_code })
            .collect(),
    });
    WritableTxnMarkerResult { producer_id: asked.producer_id, topics: topics.collect() }
}

fn write_all(
    call: &Call,
    at: usize,
    asked: &WritableTxnMarker,
    pending: &mut Vec<Pending>,
) -> WritableTxnMarkerResult {
    let marker = TxnMarker {
        producer_id: asked.producer_id,
        producer_epoch: asked.producer_epoch,
        marker: if asked.transaction_result { Marker::Commit } else { Marker::Abort },
        coordinator_epoch: asked.coordinator_epoch,
        transaction_version: asked.transaction_version.into(),
    };
    let mut topics = Vec::with_capacity(asked.topics.len());
    for (topic_at, topic) in asked.topics.iter().enumerate() {
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for (partition_at, &partition_index) in topic.partition_indexes.iter().enumerate() {
            let error = match write(call, &topic.name, partition_index, marker) {
                Ok(None) => ErrorCode::None,
                Ok(Some(acknowledged)) => {
                    pending.push(Pending { at: (at, topic_at, partition_at), acknowledged });
                    ErrorCode::None
                }
                Err(error) => error,
            };
            partitions.push(WritableTxnMarkerPartitionResult { partition_index, error_code: error.code() });
        }
        topics.push(WritableTxnMarkerTopicResult { name: topic.name.clone(), partitions });
    }
    WritableTxnMarkerResult { producer_id: asked.producer_id, topics }
}

type Acknowledged = oneshot::Receiver<Result<(), StorageError>>;

/// Writes one marker; what is given says when it is acknowledged, unless it is already.
fn write(
    call: &Call,
    topic: &str,
    number: i32,
    marker: TxnMarker,
) -> Result<Option<Acknowledged>, ErrorCode> {
    let image = call.shared.topics.now();
    let (partition, log) = led(&call.shared, image.named(topic), number, -1)?;
    let epoch = partition.spec.leader_epoch;
    if partition.leader_state.as_ref().is_some_and(|leader_state| leader_state.is_under_min_isr()) {
        // Written now it would be written again with every attempt.
        return Err(ErrorCode::NotEnoughReplicas);
    }
    let appended = match topic == GROUPS_TOPIC {
        true => call.shared.coordinators.groups.append_marker(number, marker)?.1,
        false => write_marker(log, epoch, marker)?,
    };
    if is_acknowledged(log, appended.last_offset) {
        return Ok(None);
    }
    let (done, acknowledged) = oneshot::channel();
    let notify = move |outcome| {
        // Nobody waits any more when the connection is gone.
        let _ = done.send(outcome);
    };
    when_acknowledged(log, epoch, appended.last_offset, Box::new(notify));
    Ok(Some(acknowledged))
}
