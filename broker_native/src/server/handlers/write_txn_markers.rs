//! WriteTxnMarkers: a coordinator elsewhere ends transactions in partitions of this broker.
use super::lookup::led;
use crate::record::control::Marker;
use crate::server::coordinators::GROUPS_TOPIC;
use crate::server::coordinators::transactions::write_marker;
use crate::server::dispatch::{Call, Outcome};
use crate::storage::TxnMarker;
use crate::wire::ErrorCode;
use crate::wire::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
};
use crate::wire::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};

/// Writes each marker; answers when they are as durable as their topics promise.
pub fn handle(call: Call, request: WriteTxnMarkersRequest) -> Outcome {
    let mut waits = Vec::new();
    let markers: Vec<_> = request.markers.into_iter().map(|one| write_all(&call, one, &mut waits)).collect();
    let response = WriteTxnMarkersResponse { markers };
    if waits.is_empty() {
        return Outcome::Now(call.answer(&response));
    }
    Outcome::later(async move {
        for durable in waits {
            // A log that fails to sync is poisoned: its next request says so.
            let _ = durable.await;
        }
        call.answer(&response)
    })
}

type Durable = tokio::sync::oneshot::Receiver<()>;

fn write_all(call: &Call, asked: WritableTxnMarker, waits: &mut Vec<Durable>) -> WritableTxnMarkerResult {
    let marker = TxnMarker {
        producer_id: asked.producer_id,
        producer_epoch: asked.producer_epoch,
        marker: if asked.transaction_result { Marker::Commit } else { Marker::Abort },
        coordinator_epoch: asked.coordinator_epoch,
        transaction_version: asked.transaction_version.into(),
    };
    let mut one = |topic: &str, partition_index: i32| {
        let error = write(call, topic, partition_index, marker, waits).err().unwrap_or(ErrorCode::None);
        WritableTxnMarkerPartitionResult { partition_index, error_code: error.code() }
    };
    let topics = asked.topics.into_iter().map(|topic| WritableTxnMarkerTopicResult {
        partitions: topic.partition_indexes.iter().map(|&number| one(&topic.name, number)).collect(),
        name: topic.name,
    });
    WritableTxnMarkerResult { producer_id: asked.producer_id, topics: topics.collect() }
}

fn write(
    call: &Call,
    topic: &str,
    number: i32,
    marker: TxnMarker,
    waits: &mut Vec<Durable>,
) -> Result<(), ErrorCode> {
    let picture = call.shared.topics.now();
    let (partition, log) = led(&call.shared, picture.named(topic), number, -1)?;
    let appended = match topic == GROUPS_TOPIC {
        true => call.shared.coordinators.groups.append_marker(number, marker)?.1,
        false => write_marker(log, partition.spec.leader_epoch, marker)?,
    };
    if log.is_flushed() {
        let (done, durable) = tokio::sync::oneshot::channel();
        let tell = move |_outcome| {
            // Nobody waits any more when the connection is gone.
            let _ = done.send(());
        };
        log.wait_durable(appended.last_offset, Box::new(tell));
        waits.push(durable);
    }
    Ok(())
}
