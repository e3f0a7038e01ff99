//! How a transaction ends: by its producer, by its time-out, by a newer producer; and the markers that say so.
//!
//! An end is repeated when its answer was lost. With version 2 the epoch separates a repetition from the end of the next
//! transaction: a producer that repeats still has the epoch before. With older versions state and result are all there is to go by.
use super::machine::{MARKER_RETRY_MS, Purpose, TransactionMachine, TxnEffects};
use super::metadata::{LAST_EPOCH, NO_ID, NONE, ProducerIdentity, TxnMetadata};
use super::requests::{MarkersWritten, TransactionVersion, TxnAction};
use super::state::TxnState;
use pylog_record::TopicPartition;
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{EndTxnRequest, EndTxnResponse};

/// From this version of EndTxn on the producer speaks transaction version 2.
const EPOCH_BUMPED_FROM: i16 = 5;

/// What the end of a transaction is answered that has not begun yet. Java's producer may ask for it before its batches leave: it looks
/// whether any wait, and takes the request from its queue, in two steps. Asked again it has sent them. Kafka's answers there,
/// PRODUCER_FENCED and INVALID_TXN_STATE, end the producer.
const TOO_EARLY: ErrorCode = ErrorCode::ConcurrentTransactions;

/// What an end that is asked for means.
#[derive(Debug, PartialEq, Eq)]
enum EndDecision {
    /// It is decided now.
    Decide,
    /// It was decided and carried out before.
    Repeated,
}

impl TransactionMachine {
    pub(super) fn end_txn(
        &mut self,
        request: &EndTxnRequest,
        version: i16,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) -> EndTxnResponse {
        match self.try_end(request, version, now_ms, effects) {
            Ok(ProducerIdentity { id, epoch }) => {
                EndTxnResponse { producer_id: id, producer_epoch: epoch, ..Default::default() }
            }
            Err(error) => EndTxnResponse {
                error_code: error.code(),
                producer_id: NO_ID,
                producer_epoch: NONE,
                ..Default::default()
            },
        }
    }

    /// Who the producer is from now on.
    fn try_end(
        &mut self,
        request: &EndTxnRequest,
        version: i16,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) -> Result<ProducerIdentity, ErrorCode> {
        if request.transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let metadata = self
            .transactions
            .get_mut(&request.transactional_id)
            .ok_or(ErrorCode::InvalidProducerIdMapping)?;
        let asked = ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch };
        let bumps = version >= EPOCH_BUMPED_FROM;
        let decision = match bumps {
            true => decide_by_epoch(metadata, asked, request.committed)?,
            false => decide_by_state(metadata, asked, request.committed)?,
        };
        if decision == EndDecision::Repeated {
            return Ok(metadata.producer);
        }
        let fresh_id = match bumps && metadata.speaker().is_exhausted() {
            true => Some(self.ids.next()?),
            false => None,
        };
        let end = if request.committed { TxnState::PrepareCommit } else { TxnState::PrepareAbort };
        let version = if bumps { TransactionVersion::V2 } else { TransactionVersion::V0 };
        metadata.prepare(end, version, fresh_id, now_ms);
        let successor = metadata.successor();
        self.decided(&request.transactional_id, now_ms, effects);
        Ok(successor)
    }

    /// Aborts the open transaction of a producer that is gone; if it comes back, its epoch is not taken any more.
    pub(super) fn fence(&mut self, transactional_id: &str, now_ms: i64, effects: &mut TxnEffects) {
        let Some(metadata) = self.transactions.get_mut(transactional_id) else { return };
        metadata.prepare(TxnState::PrepareAbort, TransactionVersion::V2, None, now_ms);
        self.decided(transactional_id, now_ms, effects);
    }

    /// Writes the decision down and carries it out.
    fn decided(&mut self, transactional_id: &str, now_ms: i64, effects: &mut TxnEffects) {
        self.changed(transactional_id, effects);
        let without_partitions =
            self.transactions.get(transactional_id).is_some_and(|metadata| metadata.partitions.is_empty());
        if without_partitions {
            self.complete(transactional_id, now_ms, effects);
        } else {
            self.send_markers(transactional_id, effects);
        }
    }

    /// Has markers written into the partitions that lack them.
    pub(super) fn send_markers(&mut self, transactional_id: &str, effects: &mut TxnEffects) {
        let Some(metadata) = self.transactions.get(transactional_id) else { return };
        let partitions = metadata
            .partitions
            .iter()
            .flat_map(|(topic, numbers)| numbers.iter().map(|&number| TopicPartition::new(topic, number)));
        effects.actions.push(TxnAction {
            transactional_id: transactional_id.to_owned(),
            producer_id: metadata.producer.id,
            producer_epoch: metadata.producer.epoch,
            marker: match metadata.state {
                TxnState::PrepareCommit => Marker::Commit,
                _ => Marker::Abort,
            },
            transaction_version: metadata.version,
            partitions: partitions.collect(),
        });
    }

    /// Completes the end, or tries again what failed.
    pub(super) fn markers_written(&mut self, written: MarkersWritten, now_ms: i64, effects: &mut TxnEffects) {
        let Some(metadata) = self.transactions.get_mut(&written.transactional_id) else { return };
        let ended = ProducerIdentity { id: written.producer_id, epoch: written.producer_epoch };
        if !metadata.state.is_ending() || metadata.producer != ended {
            return;
        }
        metadata.partitions.clear();
        for TopicPartition { topic, partition } in written.failed {
            metadata.partitions.entry(topic.to_string()).or_default().insert(partition);
        }
        if metadata.partitions.is_empty() {
            self.complete(&written.transactional_id, now_ms, effects);
        } else {
            self.watch_long_end(&written.transactional_id);
            let key = (written.transactional_id, Purpose::Deadline);
            self.timers.set(key, self.now.steady_ms.saturating_add(MARKER_RETRY_MS));
        }
    }

    fn complete(&mut self, transactional_id: &str, now_ms: i64, effects: &mut TxnEffects) {
        if let Some(metadata) = self.transactions.get_mut(transactional_id) {
            metadata.complete(now_ms);
            self.changed(transactional_id, effects);
            self.end_waiting(transactional_id, now_ms, effects);
        }
    }
}

/// Version 2: the epoch says which transaction is meant.
fn decide_by_epoch(
    metadata: &TxnMetadata,
    asked: ProducerIdentity,
    commit: bool,
) -> Result<EndDecision, ErrorCode> {
    let speaker = metadata.speaker();
    let before = |now: ProducerIdentity| asked.id == now.id && asked.epoch == now.epoch.wrapping_sub(1);
    let before_new_id = |now: ProducerIdentity| {
        asked.id == metadata.previous_id && asked.epoch == LAST_EPOCH && now.epoch == 0
    };
    let ending = metadata.state.is_ending();
    let repeated = match metadata.state {
        TxnState::PrepareCommit | TxnState::PrepareAbort => {
            before(speaker) || metadata.next.is_some_and(|next| before(next) || before_new_id(next))
        }
        TxnState::CompleteCommit | TxnState::CompleteAbort => before(speaker) || before_new_id(speaker),
        _ => false,
    };
    // A producer with the new epoch had its answer: it means its next transaction.
    if ending && asked == metadata.successor() {
        return Err(TOO_EARLY);
    }
    if !repeated && asked.id != speaker.id {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    if !repeated && (ending || asked.epoch != speaker.epoch) {
        return Err(ErrorCode::ProducerFenced);
    }
    match (metadata.state, commit) {
        (TxnState::PrepareCommit | TxnState::PrepareAbort, _) => Err(ErrorCode::ConcurrentTransactions),
        (TxnState::Ongoing, _) => Ok(EndDecision::Decide),
        (TxnState::CompleteCommit, true) | (TxnState::CompleteAbort, false) if repeated => {
            Ok(EndDecision::Repeated)
        }
        // Nothing was written, and nothing is to stay of it.
        (TxnState::Empty | TxnState::CompleteCommit | TxnState::CompleteAbort, false) if !repeated => {
            Ok(EndDecision::Decide)
        }
        (TxnState::Empty | TxnState::CompleteCommit | TxnState::CompleteAbort, true) if !repeated => {
            Err(TOO_EARLY)
        }
        _ => Err(ErrorCode::InvalidTxnState),
    }
}

/// Versions before 2: the epoch is the same from transaction to transaction.
fn decide_by_state(
    metadata: &TxnMetadata,
    asked: ProducerIdentity,
    commit: bool,
) -> Result<EndDecision, ErrorCode> {
    // A producer that kept its transaction speaks as the next one, also while it ends.
    let speaker = metadata.next.unwrap_or(metadata.producer);
    if asked.id != speaker.id {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    if asked.epoch != speaker.epoch {
        return Err(ErrorCode::ProducerFenced);
    }
    match (metadata.state, commit) {
        (TxnState::PrepareCommit | TxnState::PrepareAbort, _) => Err(ErrorCode::ConcurrentTransactions),
        (TxnState::Ongoing, _) => Ok(EndDecision::Decide),
        (TxnState::CompleteCommit, true) | (TxnState::CompleteAbort, false) => Ok(EndDecision::Repeated),
        _ => Err(ErrorCode::InvalidTxnState),
    }
}
