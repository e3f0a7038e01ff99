//! Which partitions of a transaction that ended have their marker, whether this broker or another one writes it.
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::shard::Shard;
use super::transactions::Transactions;
use pylog_coordinator::transaction::{MarkersWritten, TransactionMachine, TxnEvent};
use pylog_storage::TopicPartition;
use pylog_wire::ErrorCode;

/// Whether a later epoch, of the producer or of its coordinator, wrote there: the transaction has ended without us.
pub fn is_over(error: ErrorCode) -> bool {
    matches!(error, ErrorCode::InvalidProducerEpoch | ErrorCode::TransactionCoordinatorFenced)
}

/// Counts the partitions that have their marker; reports to the machine when every partition has it or has failed.
pub struct Tally {
    coordinator: Weak<Transactions>,
    shard: Arc<Shard<TransactionMachine>>,
    /// The machine that began this. One that was loaded since has sent markers of its own, and must not count these.
    life: u64,
    open: Mutex<(usize, MarkersWritten)>,
}

impl Tally {
    /// `open` times [`Tally::done`] is to be called; what failed is added to `outcome`.
    pub fn begin(
        coordinator: &Arc<Transactions>,
        shard: Arc<Shard<TransactionMachine>>,
        open: usize,
        outcome: MarkersWritten,
    ) -> Arc<Self> {
        Arc::new(Self {
            coordinator: Arc::downgrade(coordinator),
            life: shard.life(),
            shard,
            open: Mutex::new((open, outcome)),
        })
    }

    /// One partition is done, or is to be tried again.
    pub fn done(&self, failed: Option<TopicPartition>) {
        let outcome = {
            let (left, outcome) = &mut *self.open.lock();
            outcome.failed.extend(failed);
            *left -= 1;
            (*left == 0).then(|| outcome.clone())
        };
        if let (Some(outcome), Some(coordinator)) = (outcome, self.coordinator.upgrade()) {
            coordinator.outcome(&self.shard, self.life, TxnEvent::MarkersWritten(outcome));
        }
    }
}
