//! What the machines of transactions need of the server: producer ids, markers written into logs; and how the rest of the
//! server asks them about partitions.
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::shell::{Coordinator, Sink};
use super::waiting::Waiting;
use super::{Coordinators, GROUPS_TOPIC};
use crate::coordinator::Caller;
use crate::coordinator::group::GroupMachine;
use crate::coordinator::transaction::{
    MarkersWritten, ProducerIdSource, TransactionMachine, TransactionVersion, TxnAction, TxnEvent, TxnReply,
    TxnRequest,
};
use crate::server::errors::{is_ours, of_storage};
use crate::server::notice::notice;
use crate::server::producer_ids::ProducerIds;
use crate::server::topics::Topics;
use crate::storage::{AppendOptions, Appended, PartitionLog, StorageError, TxnMarker};
use crate::wire::ErrorCode;
use crate::wire::messages::add_partitions_to_txn::AddPartitionsToTxnTransaction;

/// The machines of `__transaction_state`.
pub type Transactions = Coordinator<TransactionMachine>;

impl ProducerIdSource for ProducerIds {
    fn next(&self) -> Result<i64, ErrorCode> {
        Self::next(self).map_err(|error| {
            notice(&format!("no producer id could be reserved: {error}"));
            ErrorCode::KafkaStorageError
        })
    }
}

impl Coordinators {
    /// Asks the coordinator of a transaction whether it holds partitions, or has it take them in. What is asked has
    /// happened when this returns; the answer usually is there, too.
    pub fn ask_for_partitions(
        &self,
        caller: Caller,
        transaction: AddPartitionsToTxnTransaction,
        transaction_version: TransactionVersion,
        patient: bool,
    ) -> Waiting<TxnReply> {
        let transactional_id = transaction.transactional_id.clone();
        let request = TxnRequest::AddPartitions { transaction, transaction_version, patient };
        self.transactions.call(&transactional_id, |ticket| TxnEvent::Asked { ticket, caller, request })
    }
}

/// Writes markers into the logs of this broker.
pub struct MarkerWriter {
    /// What is served.
    pub topics: Arc<Topics>,
    /// Their partitions are written through their machines.
    pub groups: Arc<Coordinator<GroupMachine>>,
}

/// A marker's way into one partition.
enum Written {
    /// It is there, or there is nothing to write it into.
    Done,
    /// It is there when this log is flushed.
    Wait(Arc<PartitionLog>, i64),
    /// It can be tried again.
    Failed,
}

impl Sink<TransactionMachine> for MarkerWriter {
    fn start(&self, coordinator: &Arc<Transactions>, partition: i32, action: TxnAction) {
        let Some(shard) = coordinator.shard(partition) else { return };
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
        let tally = Arc::new(Tally {
            coordinator: Arc::downgrade(coordinator),
            partition,
            open: Mutex::new((action.partitions.len() + 1, outcome)),
        });
        for (topic, number) in action.partitions {
            match self.write(&topic, number, marker) {
                Written::Done => tally.done(None),
                Written::Failed => tally.done(Some((topic, number))),
                Written::Wait(log, offset) => {
                    let tally = Arc::clone(&tally);
                    let done = move |durable: Result<(), StorageError>| {
                        tally.done(durable.is_err().then_some((topic, number)));
                    };
                    log.wait_durable(offset, Box::new(done));
                }
            }
        }
        tally.done(None);
    }
}

impl MarkerWriter {
    fn write(&self, topic: &str, number: i32, marker: TxnMarker) -> Written {
        let picture = self.topics.now();
        // A topic that was deleted has no readers to be told.
        let Some(partition) = picture.named(topic).and_then(|topic| topic.partition(number)) else {
            return Written::Done;
        };
        let Ok(log) = &partition.log else { return Written::Failed };
        let appended = match topic == GROUPS_TOPIC {
            true => self.groups.append_marker(number, marker).map(|(_log, appended)| appended),
            false => write_marker(log, partition.spec.leader_epoch, marker),
        };
        match appended {
            Ok(appended) if log.is_flushed() => Written::Wait(Arc::clone(log), appended.last_offset),
            Ok(_) => Written::Done,
            // A later epoch wrote: the transaction ended there.
            Err(ErrorCode::InvalidProducerEpoch | ErrorCode::TransactionCoordinatorFenced) => Written::Done,
            Err(_) => Written::Failed,
        }
    }
}

/// Writes a marker into a partition that is not of an internal topic.
///
/// # Errors
/// The code for whoever asked.
pub fn write_marker(log: &PartitionLog, leader_epoch: i32, marker: TxnMarker) -> Result<Appended, ErrorCode> {
    log.append_marker(marker, AppendOptions::coordinator(leader_epoch)).map_err(|error| {
        let code = of_storage(&error);
        if is_ours(code) {
            notice(&format!("a transaction's marker could not be written: {error}"));
        }
        code
    })
}

/// Counts the partitions that have their marker; tells the machine when all have, or cannot have it.
struct Tally {
    coordinator: Weak<Transactions>,
    partition: i32,
    open: Mutex<(usize, MarkersWritten)>,
}

impl Tally {
    fn done(&self, failed: Option<(String, i32)>) {
        let outcome = {
            let (left, outcome) = &mut *self.open.lock();
            outcome.failed.extend(failed);
            *left -= 1;
            (*left == 0).then(|| outcome.clone())
        };
        if let (Some(outcome), Some(coordinator)) = (outcome, self.coordinator.upgrade()) {
            coordinator.event(self.partition, TxnEvent::MarkersWritten(outcome));
        }
    }
}
