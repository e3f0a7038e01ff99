//! Markers on their way into the partitions of a transaction that ended: into the logs of this broker at once, to the
//! leaders of the others by WriteTxnMarkers.
//!
//! Each partition is tried once; what fails goes back to the machine, which tries again later, wherever the partition is
//! led then. A marker counts when it is acknowledged: as durable as the topic promises, and on all in-sync replicas.
use std::sync::Arc;

use super::commit;
use super::marker_queue::{MarkerQueue, ToSend};
use super::shell::{Coordinator, Sink};
use super::tally::{Tally, is_over};
use super::topic_names::GROUPS_TOPIC;
use super::transactions::Transactions;
use crate::cluster::view::Cluster;
use crate::errors::{is_ours, of_storage};
use crate::state::topics::Topics;
use pylog_coordinator::group::GroupMachine;
use pylog_coordinator::transaction::{MarkersWritten, TransactionMachine, TxnAction};
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_storage::{AppendOptions, Appended, PartitionLog, StorageError, TopicPartition, TxnMarker};
use pylog_wire::ErrorCode;

/// Writes markers.
pub struct MarkerWriter {
    /// This broker.
    pub node_id: i32,
    /// What is served.
    pub topics: Arc<Topics>,
    /// Whether this broker may lead.
    pub cluster: Arc<Cluster>,
    /// Their partitions are written through their machines.
    pub groups: Arc<Coordinator<GroupMachine>>,
    /// The way to other brokers, when there may be some.
    pub marker_queue: Option<Arc<MarkerQueue>>,
}

/// A marker's way into one partition.
enum Written {
    /// It is there, or there is nothing to write it into.
    Done,
    /// It is there when this log has acknowledged it, which was written in this epoch.
    Wait(Arc<PartitionLog>, i32, i64),
    /// Another broker is to write it.
    Remote(i32),
    /// It can be tried again.
    Failed,
}

impl Sink<TransactionMachine> for MarkerWriter {
    fn start(&self, coordinator: &Arc<Transactions>, shard: i32, action: TxnAction) {
        let Some(shard) = coordinator.shard(shard) else { return };
        let marker = TxnMarker {
            producer_id: action.producer_id,
            producer_epoch: action.producer_epoch,
            marker: action.marker,
            coordinator_epoch: shard.leader_epoch,
            transaction_version: action.transaction_version.level(),
        };
        let outcome = MarkersWritten {
            transactional_id: action.transactional_id,
            producer_id: action.producer_id,
            producer_epoch: action.producer_epoch,
            failed: Vec::new(),
        };
        let tally = Tally::begin(coordinator, shard, action.partitions.len() + 1, outcome);
        let mut remote: Vec<ToSend> = Vec::new();
        for partition in action.partitions {
            match self.write(&partition, marker) {
                Written::Done => tally.done(None),
                Written::Failed => tally.done(Some(partition)),
                Written::Wait(log, epoch, offset) => {
                    let (tally, coordinator) = (Arc::clone(&tally), Arc::clone(coordinator));
                    // The thread that moves the high watermark may hold the lock of a group's machine.
                    let done = move |durable: Result<(), StorageError>| {
                        let failed = durable.is_err().then_some(partition);
                        coordinator.later(Box::new(move || tally.done(failed)));
                    };
                    commit::when_acknowledged(&log, epoch, offset, Box::new(done));
                }
                Written::Remote(id) => match remote.iter_mut().find(|to_send| to_send.broker_id == id) {
                    Some(to_send) => to_send.partitions.push(partition),
                    None => remote.push(ToSend {
                        broker_id: id,
                        marker,
                        partitions: vec![partition],
                        tally: Arc::clone(&tally),
                    }),
                },
            }
        }
        match &self.marker_queue {
            Some(queue) => remote.into_iter().for_each(|to_send| queue.send(to_send)),
            None => drop(remote),
        }
        tally.done(None);
    }
}

impl MarkerWriter {
    fn write(&self, partition: &TopicPartition, marker: TxnMarker) -> Written {
        let (topic, number) = (&*partition.topic, partition.partition);
        let image = self.topics.now();
        // A topic that was deleted has no readers who need the marker.
        let Some(partition) = image.named(topic).and_then(|topic| topic.partition(number)) else {
            return Written::Done;
        };
        let (leader, epoch) = (partition.spec.leader, partition.spec.leader_epoch);
        if leader != self.node_id {
            return if leader < 0 { Written::Failed } else { Written::Remote(leader) };
        }
        let (Ok(log), true) = (&partition.log, self.cluster.may_lead()) else { return Written::Failed };
        let appended = match topic == GROUPS_TOPIC {
            true => self.groups.append_marker(number, marker).map(|(_log, appended)| appended),
            false => write_marker(log, epoch, marker),
        };
        match appended {
            Ok(appended) if commit::is_acknowledged(log, appended.last_offset) => Written::Done,
            Ok(appended) => Written::Wait(Arc::clone(log), epoch, appended.last_offset),
            Err(error) if is_over(error) => Written::Done,
            Err(_) => Written::Failed,
        }
    }
}

/// Writes a marker into a partition that is not of an internal topic.
///
/// # Errors
/// The code for the caller.
pub fn write_marker(log: &PartitionLog, leader_epoch: i32, marker: TxnMarker) -> Result<Appended, ErrorCode> {
    log.append_marker(marker, AppendOptions::coordinator(leader_epoch)).map_err(|error| {
        let code = of_storage(&error);
        if is_ours(code) {
            let partition = log.topic_partition();
            warn!(target: COORDINATOR, %partition, "the marker of a transaction could not be written into {partition}: {error}");
        }
        code
    })
}
