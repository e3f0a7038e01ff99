//! What a partition remembers of its idempotent producers: a pure state machine, no disk, no clock.
//!
//! Per producer id the last [`REMEMBERED_BATCHES`] batches are kept, so that a batch sent again after a lost answer is
//! answered with its first offset and not written twice (KIP-98; Kafka's `ProducerStateManager`). A batch is first
//! [`ProducerStates::check`]ed, then written, then [`ProducerStates::apply`]ed; recovery only applies.
//!
//! Not here: transactions (first offsets, markers). Not thread-safe: the log's append lock guards it.
use std::collections::{HashMap, VecDeque};

use crate::record::header::BatchHeader;

/// Batches remembered per producer: what a client may have in flight (`max.in.flight.requests.per.connection`).
pub const REMEMBERED_BATCHES: usize = 5;
/// The producer id of a batch that is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;

/// One batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducedBatch {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Last offset minus first offset.
    pub offset_delta: i32,
    /// Largest timestamp, milliseconds since the epoch.
    pub timestamp: i64,
}

impl ProducedBatch {
    /// Offset of the first record.
    pub fn base_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }

    fn first_sequence(&self) -> i32 {
        add_sequence(self.last_sequence, -i64::from(self.offset_delta))
    }
}

/// What is known of one producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The newest epoch seen.
    pub epoch: i16,
    /// Oldest first, at most [`REMEMBERED_BATCHES`].
    pub batches: VecDeque<ProducedBatch>,
    /// Milliseconds since the epoch; what expiry looks at.
    pub last_timestamp: i64,
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one (or not idempotent at all).
    Append,
    /// It was written before.
    Duplicate(ProducedBatch),
}

/// Why a batch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceError {
    /// Records before this batch are missing, or an unknown older one came again.
    OutOfOrder {
        /// Sequence of the batch's first record.
        found: i32,
        /// The sequence that would fit.
        expected: i32,
    },
    /// A newer instance of the producer has written here.
    StaleEpoch {
        /// The batch's epoch.
        found: i16,
        /// The newest epoch seen.
        current: i16,
    },
}

/// All idempotent producers of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerStates {
    producers: HashMap<i64, ProducerEntry>,
}

impl ProducerStates {
    /// No producer is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `header` may be appended now. Changes nothing.
    ///
    /// An unknown producer may start with any sequence: its earlier records can have been deleted by retention.
    ///
    /// # Errors
    /// [`SequenceError`].
    pub fn check(&self, header: &BatchHeader) -> Result<Verdict, SequenceError> {
        let Some(entry) = self.entry_of(header) else {
            return Ok(Verdict::Append);
        };
        if header.producer_epoch < entry.epoch {
            return Err(SequenceError::StaleEpoch { found: header.producer_epoch, current: entry.epoch });
        }
        let found = header.base_sequence;
        if header.producer_epoch > entry.epoch {
            let fits = found == 0;
            return if fits {
                Ok(Verdict::Append)
            } else {
                Err(SequenceError::OutOfOrder { found, expected: 0 })
            };
        }
        let last = add_sequence(found, header.last_offset_delta.into());
        let known = entry.batches.iter().find(|b| b.first_sequence() == found && b.last_sequence == last);
        if let Some(duplicate) = known {
            return Ok(Verdict::Duplicate(*duplicate));
        }
        match entry.batches.back().map(|b| add_sequence(b.last_sequence, 1)) {
            Some(expected) if expected != found => Err(SequenceError::OutOfOrder { found, expected }),
            _ => Ok(Verdict::Append),
        }
    }

    /// Remembers a written batch whose `base_offset` is final.
    pub fn apply(&mut self, header: &BatchHeader) {
        if header.producer_id == NO_PRODUCER_ID || header.is_control() {
            return;
        }
        let batch = ProducedBatch {
            last_sequence: add_sequence(header.base_sequence, header.last_offset_delta.into()),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        };
        let entry = self.producers.entry(header.producer_id).or_insert_with(|| ProducerEntry {
            epoch: header.producer_epoch,
            batches: VecDeque::with_capacity(REMEMBERED_BATCHES),
            last_timestamp: header.max_timestamp,
        });
        if header.producer_epoch != entry.epoch {
            entry.batches.clear();
            entry.epoch = header.producer_epoch;
        }
        if entry.batches.len() == REMEMBERED_BATCHES {
            entry.batches.pop_front();
        }
        entry.batches.push_back(batch);
        entry.last_timestamp = header.max_timestamp;
    }

    /// Forgets producers that wrote nothing for more than `max_idle_ms` (`producer.id.expiration.ms`); says how many.
    pub fn expire(&mut self, now_ms: i64, max_idle_ms: i64) -> usize {
        let before = self.producers.len();
        self.producers.retain(|_, entry| now_ms.saturating_sub(entry.last_timestamp) <= max_idle_ms);
        before - self.producers.len()
    }

    /// Forgets producers whose newest record is before `log_start_offset`.
    pub fn truncate_head(&mut self, log_start_offset: i64) {
        self.producers
            .retain(|_, entry| entry.batches.back().is_some_and(|b| b.last_offset >= log_start_offset));
    }

    /// Puts a producer back as a snapshot has it.
    pub fn restore(&mut self, producer_id: i64, entry: ProducerEntry) {
        self.producers.insert(producer_id, entry);
    }

    /// Producer ids and what is known of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &ProducerEntry)> {
        self.producers.iter().map(|(id, entry)| (*id, entry))
    }

    /// Producers known.
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    fn entry_of(&self, header: &BatchHeader) -> Option<&ProducerEntry> {
        if header.producer_id == NO_PRODUCER_ID { None } else { self.producers.get(&header.producer_id) }
    }
}

/// Sequences count from 0 to `i32::MAX` and start again at 0.
fn add_sequence(sequence: i32, by: i64) -> i32 {
    let wrapped = (i64::from(sequence) + by).rem_euclid(i64::from(i32::MAX) + 1);
    wrapped as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of `count` records by `producer_id` 7.
    fn batch(epoch: i16, first_sequence: i32, count: i32, base_offset: i64) -> BatchHeader {
        BatchHeader {
            base_offset,
            batch_length: 100,
            partition_leader_epoch: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp: 1_000,
            max_timestamp: 1_000 + base_offset,
            producer_id: 7,
            producer_epoch: epoch,
            base_sequence: first_sequence,
            records_count: count,
        }
    }

    fn after(batches: &[BatchHeader]) -> ProducerStates {
        let mut states = ProducerStates::new();
        for header in batches {
            assert_eq!(states.check(header), Ok(Verdict::Append));
            states.apply(header);
        }
        states
    }

    #[test]
    fn a_batch_sent_again_is_answered_with_its_first_offset() {
        let states = after(&[batch(0, 0, 10, 0), batch(0, 10, 5, 40)]);
        let Ok(Verdict::Duplicate(first)) = states.check(&batch(0, 0, 10, 99)) else {
            panic!("not a duplicate")
        };
        assert_eq!((first.base_offset(), first.last_offset), (0, 9));
        let Ok(Verdict::Duplicate(second)) = states.check(&batch(0, 10, 5, 99)) else {
            panic!("not a duplicate")
        };
        assert_eq!((second.base_offset(), second.last_offset), (40, 44));
    }

    #[test]
    fn a_gap_and_a_part_of_an_old_batch_are_out_of_order() {
        let states = after(&[batch(0, 0, 10, 0)]);
        assert_eq!(
            states.check(&batch(0, 11, 1, 0)),
            Err(SequenceError::OutOfOrder { found: 11, expected: 10 })
        );
        assert_eq!(
            states.check(&batch(0, 0, 9, 0)),
            Err(SequenceError::OutOfOrder { found: 0, expected: 10 })
        );
    }

    #[test]
    fn only_the_last_five_batches_are_remembered() {
        let states = after(&(0..6).map(|n| batch(0, n, 1, n.into())).collect::<Vec<_>>());
        assert!(matches!(states.check(&batch(0, 1, 1, 0)), Ok(Verdict::Duplicate(_))));
        assert_eq!(
            states.check(&batch(0, 0, 1, 0)),
            Err(SequenceError::OutOfOrder { found: 0, expected: 6 })
        );
    }

    #[test]
    fn a_new_epoch_starts_at_sequence_zero_and_fences_the_old_one() {
        let mut states = after(&[batch(3, 0, 4, 0)]);
        assert_eq!(
            states.check(&batch(4, 4, 1, 4)),
            Err(SequenceError::OutOfOrder { found: 4, expected: 0 })
        );
        assert_eq!(states.check(&batch(4, 0, 1, 4)), Ok(Verdict::Append));
        states.apply(&batch(4, 0, 1, 4));
        assert_eq!(states.check(&batch(3, 4, 1, 5)), Err(SequenceError::StaleEpoch { found: 3, current: 4 }));
    }

    #[test]
    fn sequences_go_on_at_zero_after_the_largest_int() {
        let states = after(&[batch(0, i32::MAX - 1, 3, 0)]);
        assert_eq!(states.check(&batch(0, 1, 1, 3)), Ok(Verdict::Append));
        assert!(matches!(states.check(&batch(0, i32::MAX - 1, 3, 3)), Ok(Verdict::Duplicate(_))));
    }

    #[test]
    fn an_unknown_producer_may_start_anywhere_and_plain_batches_leave_no_trace() {
        let plain = BatchHeader { producer_id: NO_PRODUCER_ID, ..batch(-1, -1, 5, 0) };
        assert!(after(&[plain, plain]).is_empty());
        assert_eq!(after(&[batch(0, 500, 1, 0)]).len(), 1);
    }

    #[test]
    fn idle_producers_and_those_behind_the_log_start_are_forgotten() {
        let mut states = after(&[batch(0, 0, 1, 50)]);
        assert_eq!(states.expire(1_050 + 10, 10), 0);
        assert_eq!(states.clone().expire(1_050 + 11, 10), 1);
        states.truncate_head(50);
        assert_eq!(states.len(), 1);
        states.truncate_head(51);
        assert!(states.is_empty());
    }
}
