//! Markers for partitions that other brokers lead: those for one broker travel together.
//!
//! Up to [`REQUESTS_MAX`] requests are on their way to one broker, so that a partition that is slow to acknowledge does not
//! hold up all others; what comes meanwhile is gathered into the next request.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::tally::{Tally, is_over};
use crate::cluster::peers::Peers;
use crate::upkeep::background::kept_running;
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_record::control::Marker;
use pylog_storage::{TopicPartition, TxnMarker};
use pylog_wire::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerResult, WritableTxnMarkerTopic,
};
use pylog_wire::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};
use pylog_wire::{ApiKey, ErrorCode};

/// Requests on their way to one broker.
const REQUESTS_MAX: usize = 8;
/// Most markers in one request.
const MARKERS_MAX: usize = 500;

/// One transaction's marker for partitions of one broker.
pub struct ToSend {
    /// Who leads them.
    pub broker_id: i32,
    /// What they get.
    pub marker: TxnMarker,
    /// Which.
    pub partitions: Vec<TopicPartition>,
    /// Who counts.
    pub tally: Arc<Tally>,
}

/// A marker that is dropped has failed in the partitions that are left, so their tally is always completed.
impl Drop for ToSend {
    fn drop(&mut self) {
        for partition in self.partitions.drain(..) {
            self.tally.done(Some(partition));
        }
    }
}

/// See the module.
pub struct MarkerQueue {
    peers: Arc<Peers>,
    queues: Mutex<HashMap<i32, Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<ToSend>,
    requests: usize,
}

impl MarkerQueue {
    /// With nothing to send.
    pub fn new(peers: Arc<Peers>) -> Arc<Self> {
        Arc::new(Self { peers, queues: Mutex::default() })
    }

    /// Queues it for sending; its tally is completed in any case.
    pub fn send(self: &Arc<Self>, to_send: ToSend) {
        let Some(runtime) = self.peers.runtime() else { return };
        let id = to_send.broker_id;
        let is_begun = {
            let mut queues = self.queues.lock();
            let queue = queues.entry(id).or_default();
            queue.waiting.push_back(to_send);
            let begins = queue.requests < REQUESTS_MAX;
            queue.requests += usize::from(begins);
            !begins
        };
        if !is_begun {
            let me = Arc::clone(self);
            runtime.spawn(kept_running("the sending of markers", move || Arc::clone(&me).send_all(id)));
        }
    }

    /// Sends until nothing waits.
    async fn send_all(self: Arc<Self>, id: i32) {
        while let Some(batch) = self.next(id) {
            match self.peers.call(id, &request(&batch)).await {
                Ok(answer) => count_written(batch, answer),
                Err(error) => {
                    let count = batch.len();
                    warn!(target: COORDINATOR, peer = id, "{count} transaction markers are sent to broker {id} again: {error}");
                }
            }
        }
    }

    /// The next markers for a broker; `None` ends a sender.
    fn next(&self, id: i32) -> Option<Vec<ToSend>> {
        let mut queues = self.queues.lock();
        let queue = queues.get_mut(&id)?;
        if queue.waiting.is_empty() {
            queue.requests -= 1;
            if queue.requests == 0 {
                queues.remove(&id);
            }
            return None;
        }
        let many = queue.waiting.len().min(MARKERS_MAX);
        Some(queue.waiting.drain(..many).collect())
    }
}

fn request(batch: &[ToSend]) -> WriteTxnMarkersRequest {
    WriteTxnMarkersRequest { markers: batch.iter().map(marker).collect() }
}

fn marker(to_send: &ToSend) -> WritableTxnMarker {
    let mut topics: Vec<WritableTxnMarkerTopic> = Vec::new();
    for TopicPartition { topic, partition } in &to_send.partitions {
        match topics.last_mut() {
            Some(last) if *last.name == **topic => last.partition_indexes.push(*partition),
            _ => topics.push(WritableTxnMarkerTopic {
                name: topic.to_string(),
                partition_indexes: vec![*partition],
            }),
        }
    }
    WritableTxnMarker {
        producer_id: to_send.marker.producer_id,
        producer_epoch: to_send.marker.producer_epoch,
        transaction_result: to_send.marker.marker == Marker::Commit,
        topics,
        coordinator_epoch: to_send.marker.coordinator_epoch,
        transaction_version: i8::try_from(to_send.marker.transaction_version).unwrap_or(i8::MAX),
    }
}

/// Counts each marker's partitions as written or failed; a partition that the answer lacks has failed.
fn count_written(batch: Vec<ToSend>, answer: WriteTxnMarkersResponse) {
    let mut results = answer.markers.into_iter();
    for mut to_send in batch {
        let result = results.next().filter(|result| result.producer_id == to_send.marker.producer_id);
        while let Some(partition) = to_send.partitions.pop() {
            let is_there = result.as_ref().is_some_and(|result| is_written(result, &partition));
            to_send.tally.done((!is_there).then_some(partition));
        }
    }
}

fn is_written(result: &WritableTxnMarkerResult, partition: &TopicPartition) -> bool {
    let topics = result.topics.iter().filter(|topic| *topic.name == *partition.topic);
    let code = topics
        .flat_map(|topic| &topic.partitions)
        .find(|written| written.partition_index == partition.partition)
        .map(|written| written.error_code);
    let error = code.and_then(ErrorCode::from_code).unwrap_or(ErrorCode::UnknownServerError);
    if error != ErrorCode::None && !is_over(error) {
        let api = ApiKey::WriteTxnMarkers.name();
        let why = error.sentence();
        warn!(target: COORDINATOR, %partition, "{api} is sent again to {partition}: {why}");
    }
    error == ErrorCode::None || is_over(error)
}
