//! What the log remembers of producers: the last batches of each, to answer a batch that is sent again with its first
//! offset and to refuse one that leaves a gap; its epoch, to refuse one that was fenced; and its open transaction.
//!
//! Sequences count records, from 0, and continue at 0 behind `i32::MAX`. The rules are those of Kafka 4.4:
//!
//! | batch or marker | answer |
//! |---|---|
//! | one of the last five batches again | its first offset; an older one is a gap |
//! | the same, of a transaction that has ended | UNKNOWN_PRODUCER_ID (Kafka: its first offset, see [`Producers::check_sequence`]) |
//! | of an unknown producer (expired, or its records removed) | any sequence, unless the transaction's epoch is bumped at each end: then 0 |
//! | of a smaller epoch | INVALID_PRODUCER_EPOCH |
//! | of a larger epoch, or behind a marker that raised the epoch | sequence 0, or OUT_OF_ORDER_SEQUENCE_NUMBER |
//! | transactional, without an open transaction | must be verified ([`verification`]), or be sent again |
//! | not transactional, with an open transaction | INVALID_TXN_STATE |
//! | a marker of a smaller epoch; from transaction version 2 on also of the same | INVALID_PRODUCER_EPOCH |
//! | the same marker again, transaction version 2 | written again, ends nothing |
//! | a marker of an older coordinator | TRANSACTION_COORDINATOR_FENCED |
//! | the end of a mirror (pylog's own) | all are forgotten: they were another cluster's |
//!
//! `snapshot` is how the state survives restarts, `verification` what guards the first batch of a transaction.
mod snapshot;
pub(super) mod verification;

use std::collections::{BTreeSet, HashMap};

use super::error::{StorageError, TopicPartition};
use super::types::{AbortedTxn, Origin, ProducerInfo, TxnMarker};
use pylog_record::control::{EndTxn, Marker};
use pylog_record::header::BatchHeader;

/// Batches remembered for each producer; idempotent clients have at most as many in flight.
pub const BATCHES_PER_PRODUCER: usize = 5;

/// The sequence of a batch without one, and of a producer without a batch.
const NO_SEQUENCE: i32 = -1;
/// No coordinator has written a marker yet.
const NO_COORDINATOR_EPOCH: i32 = -1;
/// No transaction is open.
const NO_OFFSET: i64 = -1;
/// How long a producer is remembered of which nothing but the epoch is known.
const ENDED_IDLE_MS: i64 = 10 * 60_000;
/// Since this transaction version each end of a transaction bumps the producer's epoch.
const EPOCH_BUMPS_FROM: i16 = 2;

/// The last that the log holds of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastRecord {
    /// Its epoch.
    pub epoch: i16,
    /// Offset of its last record; `None` when only a marker names it.
    pub offset: Option<i64>,
}

/// One batch that is in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Batch {
    last_sequence: i32,
    offset_delta: i32,
    last_offset: i64,
    /// Milliseconds since the epoch.
    timestamp: i64,
}

impl Batch {
    /// The answer to a batch with the same sequences.
    fn answer(
        self,
        producer: &Producer,
        header: &BatchHeader,
        at: &TopicPartition,
    ) -> Result<SequenceCheck, StorageError> {
        let (open_from, last_offset) = (producer.txn_first_offset, self.last_offset);
        if header.is_transactional() && (open_from < 0 || last_offset < open_from) {
            let (at, producer_id) = (at.clone(), header.producer_id);
            return Err(StorageError::SequencesOfEndedTxn { at, producer_id, found: header.base_sequence });
        }
        let base_offset = last_offset - i64::from(self.offset_delta);
        Ok(SequenceCheck::Duplicate { base_offset, last_offset, timestamp_ms: self.timestamp })
    }
}

/// One producer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Producer {
    epoch: i16,
    coordinator_epoch: i32,
    /// First offset of its open transaction, -1 for none.
    txn_first_offset: i64,
    /// Timestamp of its last batch or marker, milliseconds since the epoch.
    last_timestamp: i64,
    /// When it wrote last, by this machine's clock; milliseconds since the epoch.
    seen_ms: i64,
    batches: [Batch; BATCHES_PER_PRODUCER],
    count: usize,
}

impl Producer {
    fn new(epoch: i16, seen_ms: i64) -> Self {
        Self {
            epoch,
            coordinator_epoch: NO_COORDINATOR_EPOCH,
            txn_first_offset: NO_OFFSET,
            last_timestamp: -1,
            seen_ms,
            batches: Default::default(),
            count: 0,
        }
    }

    fn known(&self) -> impl DoubleEndedIterator<Item = &Batch> {
        self.batches.iter().take(self.count)
    }

    fn last_sequence(&self) -> i32 {
        self.known().next_back().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn remember(&mut self, batch: Batch) {
        if self.count == BATCHES_PER_PRODUCER {
            self.batches.rotate_left(1);
            self.count -= 1;
        }
        if let Some(slot) = self.batches.get_mut(self.count) {
            *slot = batch;
            self.count += 1;
        }
    }

    /// A new epoch forgets the sequences of the one before.
    fn begin_epoch(&mut self, epoch: i16) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.count = 0;
        }
    }
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceCheck {
    /// Append it.
    New,
    /// It is in the log already, at these offsets, with this timestamp.
    Duplicate { base_offset: i64, last_offset: i64, timestamp_ms: i64 },
}

/// What the coordinator has answered about the transaction that a batch may begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VerifiedBatch {
    /// The coordinator was asked after the last marker, and knows the transaction.
    pub verified: bool,
    /// Smallest sequence of the batches that wait for the coordinator's answer, with this one; a larger one must not go
    /// first, or the smaller could never be written.
    pub lowest_sequence: Option<i32>,
    /// Each end of the transaction bumps the epoch, so a producer that is not known begins at sequence 0.
    pub epoch_bumps: bool,
}

/// A transaction that a marker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndedTxn {
    pub marker: Marker,
    /// Its entry in the index, where it was aborted.
    pub txn: AbortedTxn,
}

impl EndedTxn {
    /// Its entry for the index of aborted transactions.
    pub fn aborted(&self) -> Option<AbortedTxn> {
        (self.marker == Marker::Abort).then_some(self.txn)
    }
}

/// The producers of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Producers {
    known: HashMap<i64, Producer>,
    /// First offsets of the open transactions.
    open: BTreeSet<i64>,
}

impl Producers {
    /// What to do with a batch, before it has an offset.
    ///
    /// No producer waits for a batch of a transaction that has ended. One that seems to send such a batch again has other records under
    /// the same sequences: librdkafka gives the sequences of records that it takes for not written (their leader went away while they
    /// waited for replicas) to the next transaction's once it has aborted theirs. If the answer is "it is there", as Kafka's, it
    /// commits records that nobody has; if it is "not known", it aborts and goes on with a new epoch (KIP-360).
    ///
    /// # Errors
    /// [`StorageError::InvalidProducerEpoch`], [`StorageError::OutOfOrderSequence`], [`StorageError::InvalidTxnState`],
    /// [`StorageError::Unverified`], [`StorageError::SequencesOfEndedTxn`].
    pub fn check_sequence(
        &self,
        header: &BatchHeader,
        origin: Origin,
        claim: VerifiedBatch,
        at: &TopicPartition,
    ) -> Result<SequenceCheck, StorageError> {
        let producer_id = header.producer_id;
        if producer_id < 0 {
            return Ok(SequenceCheck::New);
        }
        let producer = self.known.get(&producer_id);
        if let (Some(producer), Origin::Client) = (producer, origin)
            && let Some(known) = known_as(producer, header)
        {
            return known.answer(producer, header, at);
        }
        if let Some(current) = producer.map(|p| p.epoch).filter(|current| header.producer_epoch < *current) {
            return Err(fenced(at, producer_id, header.producer_epoch, current));
        }
        let state = |reason| StorageError::InvalidTxnState { at: at.clone(), producer_id, reason };
        let open = producer.filter(|p| p.txn_first_offset >= 0);
        let goes_on = open.is_some_and(|p| p.epoch == header.producer_epoch);
        if origin == Origin::Client {
            if header.is_transactional() && !goes_on && !claim.verified {
                return Err(StorageError::Unverified { at: at.clone(), producer_id });
            }
            if let Some(expected) = expected_sequence(producer, header, claim) {
                let found = header.base_sequence;
                return Err(StorageError::OutOfOrderSequence {
                    at: at.clone(),
                    producer_id,
                    found,
                    expected,
                });
            }
        }
        if open.is_some() && !header.is_transactional() {
            return Err(state("a batch outside the transaction that is open"));
        }
        Ok(SequenceCheck::New)
    }

    /// Whether a marker may be written.
    ///
    /// # Errors
    /// [`StorageError::InvalidProducerEpoch`], [`StorageError::TransactionCoordinatorFenced`].
    pub fn check_marker(&self, marker: &TxnMarker, at: &TopicPartition) -> Result<(), StorageError> {
        let Some(producer) = self.known.get(&marker.producer_id) else { return Ok(()) };
        let (found, current) = (marker.producer_epoch, producer.epoch);
        let bumps = marker.transaction_version >= EPOCH_BUMPS_FROM;
        // Sent again by a coordinator that saw no answer; or the epoch can grow no more.
        let again = found == current && (producer.txn_first_offset < 0 || found == i16::MAX);
        if found < current || bumps && found == current && !again {
            return Err(fenced(at, marker.producer_id, found, current));
        }
        if marker.coordinator_epoch < producer.coordinator_epoch {
            let (producer_id, found) = (marker.producer_id, marker.coordinator_epoch);
            let (at, current) = (at.clone(), producer.coordinator_epoch);
            return Err(StorageError::TransactionCoordinatorFenced { at, producer_id, found, current });
        }
        Ok(())
    }

    /// The transaction that a marker of the producer at `offset` ends; `None` when none is open.
    pub fn ended_by(&self, producer_id: i64, marker: Marker, offset: i64) -> Option<EndedTxn> {
        let first_offset = self.txn_first_offset(producer_id)?;
        let next_open = self.open.iter().find(|other| **other != first_offset);
        let last_stable_offset = next_open.map_or(offset + 1, |first| *first);
        let txn = AbortedTxn { producer_id, first_offset, last_offset: offset, last_stable_offset };
        Some(EndedTxn { marker, txn })
    }

    /// Takes note of a batch that is in the log; its offsets are set. `end` is what a control batch says; without it a
    /// control batch is none of a transaction, and nothing is noted. Gives the transaction that it ended.
    pub fn note(&mut self, header: &BatchHeader, end: Option<EndTxn>, now_ms: i64) -> Option<EndedTxn> {
        if header.ends_mirror() {
            *self = Self::default();
        }
        if header.producer_id < 0 || header.is_control() && end.is_none() {
            return None;
        }
        let ended = end.and_then(|end| self.ended_by(header.producer_id, end.marker, header.base_offset));
        let epoch = header.producer_epoch;
        let producer = self.known.entry(header.producer_id).or_insert_with(|| Producer::new(epoch, now_ms));
        producer.begin_epoch(epoch);
        producer.seen_ms = now_ms;
        producer.last_timestamp = header.max_timestamp;
        if let Some(end) = end {
            producer.coordinator_epoch = end.coordinator_epoch;
            producer.txn_first_offset = NO_OFFSET;
            if let Some(ended) = ended {
                self.open.remove(&ended.txn.first_offset);
            }
            return ended;
        }
        if header.has_records_of_transaction() && producer.txn_first_offset < 0 {
            producer.txn_first_offset = header.base_offset;
            self.open.insert(header.base_offset);
        }
        producer.remember(Batch {
            last_sequence: last_sequence(header),
            offset_delta: header.last_offset_delta,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
        });
        None
    }

    /// First offset of the producer's open transaction.
    pub fn txn_first_offset(&self, producer_id: i64) -> Option<i64> {
        self.known.get(&producer_id).map(|producer| producer.txn_first_offset).filter(|first| *first >= 0)
    }

    /// The producer's epoch; `None` when it is not known.
    pub fn epoch(&self, producer_id: i64) -> Option<i16> {
        self.known.get(&producer_id).map(|producer| producer.epoch)
    }

    /// Epoch and last record of each.
    pub fn last_records(&self) -> HashMap<i64, LastRecord> {
        let last = |p: &Producer| LastRecord {
            epoch: p.epoch,
            offset: p.known().next_back().map(|b| b.last_offset),
        };
        self.known.iter().map(|(id, producer)| (*id, last(producer))).collect()
    }

    /// First offset of the oldest open transaction.
    pub fn first_open_offset(&self) -> Option<i64> {
        self.open.first().copied()
    }

    /// All of them, by id.
    pub fn infos(&self) -> Vec<ProducerInfo> {
        let info = |(id, producer): (&i64, &Producer)| ProducerInfo {
            producer_id: *id,
            producer_epoch: producer.epoch,
            last_sequence: producer.last_sequence(),
            last_timestamp: producer.last_timestamp,
            coordinator_epoch: producer.coordinator_epoch,
            txn_first_offset: Some(producer.txn_first_offset).filter(|first| *first >= 0),
        };
        let mut infos: Vec<_> = self.known.iter().map(info).collect();
        infos.sort_unstable_by_key(|info| info.producer_id);
        infos
    }

    /// Keeps at most `most` producers. Of more, those that wrote longest ago are forgotten, as if they had expired: a tenth at
    /// once, so that it is seldom done, but none with an open transaction. Gives how many were forgotten.
    pub fn bound(&mut self, most: usize) -> usize {
        let before = self.known.len();
        if before <= most {
            return 0;
        }
        let idle = self.known.iter().filter(|(_, producer)| producer.txn_first_offset < 0);
        let mut idle: Vec<_> = idle.map(|(id, producer)| (producer.seen_ms, *id)).collect();
        let count = (before - most + most / 10).min(idle.len());
        if count < idle.len() {
            idle.select_nth_unstable(count);
        }
        for (_, id) in idle.iter().take(count) {
            self.known.remove(id);
        }
        count
    }

    /// Forgets producers that wrote nothing for `idle_ms` and have no open transaction; sooner those of which only the epoch
    /// is known, because the end of a transaction raised it: the coordinator recognises an older one as well, and each task of a
    /// Spark write leaves one behind.
    pub fn expire(&mut self, now_ms: i64, idle_ms: i64) {
        let since = |idle_ms: i64| now_ms.saturating_sub(idle_ms);
        let (before_ms, ended_before_ms) = (since(idle_ms), since(idle_ms.min(ENDED_IDLE_MS)));
        self.known.retain(|_, p| {
            let before_ms = if p.count == 0 { ended_before_ms } else { before_ms };
            p.txn_first_offset >= 0 || p.seen_ms >= before_ms
        });
    }
}

/// The batch in the log that has the same sequences.
fn known_as<'a>(producer: &'a Producer, header: &BatchHeader) -> Option<&'a Batch> {
    let last_sequence = last_sequence(header);
    let same = |b: &&Batch| b.last_sequence == last_sequence && b.offset_delta == header.last_offset_delta;
    producer.known().find(same).filter(|_| header.producer_epoch == producer.epoch)
}

/// The sequence that was due instead of that of the batch; `None` when that may be written. Its epoch is not smaller
/// than that of the producer.
fn expected_sequence(producer: Option<&Producer>, header: &BatchHeader, claim: VerifiedBatch) -> Option<i32> {
    let found = header.base_sequence;
    if claim.epoch_bumps && found != 0 && producer.is_none_or(|p| p.count == 0) {
        return Some(0);
    }
    if let Some(lowest) = claim.lowest_sequence.filter(|lowest| found > *lowest) {
        return Some(lowest);
    }
    let producer = producer?;
    let expected = match producer.known().next_back() {
        Some(last) if header.producer_epoch == producer.epoch => sequence_after(last.last_sequence, 1),
        _ => 0,
    };
    (found != expected).then_some(expected)
}

fn fenced(at: &TopicPartition, producer_id: i64, found: i16, current: i16) -> StorageError {
    StorageError::InvalidProducerEpoch { at: at.clone(), producer_id, found, current }
}

/// Sequence of the batch's last record; -1 for one without sequences.
fn last_sequence(header: &BatchHeader) -> i32 {
    if header.base_sequence < 0 {
        return NO_SEQUENCE;
    }
    sequence_after(header.base_sequence, header.last_offset_delta)
}

/// The sequence `by` records after `sequence`.
fn sequence_after(sequence: i32, by: i32) -> i32 {
    ((i64::from(sequence) + i64::from(by)) & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests;
