//! Which partitions have an ISR to be stored. `upkeep/alter_partition` takes them from here.
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use pylog_replica::progress::{Proposal, ProposalOutcome};
use pylog_storage::TopicPartition;

/// Most partitions in one question.
const BATCH_MAX: usize = 1_000;

/// One partition in one epoch of its leader, which is here.
pub trait Proposer: Send + Sync {
    /// The topic.
    fn topic(&self) -> &str;
    /// The partition's number.
    fn partition(&self) -> i32;
    /// The epoch in which this broker leads.
    fn leader_epoch(&self) -> i32;
    /// The ISR that is to be stored.
    fn proposal(&self) -> Option<Proposal>;
    /// What came of the proposal that was made on `partition_epoch`; whether it is to be sent again.
    fn answered(self: Arc<Self>, partition_epoch: i32, answer: ProposalOutcome) -> bool;
}

/// The partitions that have something to propose.
#[derive(Default)]
pub struct Proposals {
    waiting: Mutex<Vec<Arc<dyn Proposer>>>,
    wake: Notify,
}

impl Proposals {
    /// `proposer` has a proposal.
    pub fn add(&self, proposer: Arc<dyn Proposer>) {
        self.waiting.lock().push(proposer);
        self.wake.notify_one();
    }

    /// What is to be stored, of at most [`BATCH_MAX`] partitions.
    pub fn take(&self) -> Vec<(Arc<dyn Proposer>, Proposal)> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(BATCH_MAX);
        let taken: Vec<_> = waiting.drain(..count).collect();
        drop(waiting);
        let mut seen = HashSet::with_capacity(taken.len());
        let first = |proposer: &Arc<dyn Proposer>| {
            seen.insert(TopicPartition::new(proposer.topic(), proposer.partition()))
        };
        let each: Vec<_> = taken.into_iter().filter(first).collect();
        each.into_iter()
            .filter_map(|proposer| proposer.proposal().map(|proposal| (proposer, proposal)))
            .collect()
    }

    /// Waits until there is one.
    pub async fn some(&self) {
        while self.waiting.lock().is_empty() {
            self.wake.notified().await;
        }
    }
}
