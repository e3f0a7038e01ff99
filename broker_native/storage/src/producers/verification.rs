//! What keeps a late batch out of a transaction it does not belong to.
//!
//! Before the first batch of a transaction is appended to a partition, the transaction coordinator is asked whether the
//! transaction holds that partition. Before it answers, the transaction may end and another begin; its answer is then
//! about the wrong one. So a question has a number that is void after each marker and each transactional batch of the
//! producer, and an answer counts only while its number is valid (KIP-890).
//!
//! Batches of one producer that wait at the same time share the number, and the smallest of their sequences goes first.
use std::collections::HashMap;

use super::VerifiedBatch;
use crate::types::Verification;
use pylog_record::header::BatchHeader;

/// Most producers with open questions in one partition. Beyond it all questions are void: their batches are refused, and their
/// producers ask again.
const MAX_PENDING: usize = 100_000;

/// One producer's open question.
#[derive(Debug, Clone, Copy)]
struct PendingVerification {
    number: u64,
    epoch: i16,
    lowest_sequence: i32,
    epoch_bumps: bool,
    asked_ms: i64,
}

/// The open questions of one partition.
#[derive(Debug, Default)]
pub(crate) struct Verifications {
    pending: HashMap<i64, PendingVerification>,
    last_number: u64,
}

impl Verifications {
    /// The number of the producer's question about a batch.
    pub fn begin(
        &mut self,
        producer_id: i64,
        epoch: i16,
        sequence: i32,
        epoch_bumps: bool,
        now_ms: i64,
    ) -> Verification {
        if self.pending.len() >= MAX_PENDING && !self.pending.contains_key(&producer_id) {
            self.pending.clear();
        }
        let number = self.last_number + 1;
        let pending = self.pending.entry(producer_id).or_insert(PendingVerification {
            number,
            epoch,
            lowest_sequence: sequence,
            epoch_bumps,
            asked_ms: now_ms,
        });
        if pending.number == number {
            self.last_number = number;
        } else if epoch > pending.epoch {
            (pending.epoch, pending.lowest_sequence) = (epoch, sequence);
        } else if epoch == pending.epoch {
            pending.lowest_sequence = pending.lowest_sequence.min(sequence);
        }
        Verification(pending.number)
    }

    /// What is known for a batch that comes with `verified`.
    pub fn claim(&self, header: &BatchHeader, verified: Option<Verification>) -> VerifiedBatch {
        let Some(pending) = self.pending.get(&header.producer_id) else { return VerifiedBatch::default() };
        VerifiedBatch {
            verified: verified == Some(Verification(pending.number)),
            lowest_sequence: Some(pending.lowest_sequence),
            epoch_bumps: pending.epoch_bumps,
        }
    }

    /// A transactional batch or a marker of the producer is in the log: answers that are under way count no more.
    pub fn end(&mut self, producer_id: i64) {
        self.pending.remove(&producer_id);
    }

    /// This broker does not lead any more: no answer counts.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// Forgets questions from before `before_ms` whose answers did not come back.
    pub fn expire(&mut self, before_ms: i64) {
        self.pending.retain(|_, pending| pending.asked_ms >= before_ms);
    }
}
