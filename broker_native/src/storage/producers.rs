//! What the log remembers of idempotent producers: the last batches of each, to answer a batch that is sent again with
//! its first offset and to refuse one that leaves a gap.
//!
//! Sequences count records, from 0, and continue at 0 behind `i32::MAX`. The rules are Kafka's: a larger epoch starts
//! again at sequence 0, a smaller one is fenced, a producer that is not known (expired, or its records removed) may go
//! on at any sequence.
//!
//! State is kept across restarts by `.snapshot` files in Kafka's format, named by the offset they stand for:
//! ```text
//! version i16 = 1 | crc32c u32 of what follows | entries i32 |
//! entry: producer_id i64 | epoch i16 | last_sequence i32 | last_offset i64 | offset_delta i32 | timestamp i64 |
//!        coordinator_epoch i32 | current_txn_first_offset i64
//! ```
//! Kafka keeps the last batch of a producer there. This log writes one entry for each batch it remembers, oldest first:
//! Kafka takes the last of them, this log all, so that a retry is known after a restart, too.
use std::collections::HashMap;

use super::error::{StorageError, TopicPartition};
use crate::record::header::BatchHeader;

/// Batches remembered for each producer; idempotent clients have at most as many in flight.
pub const BATCHES_PER_PRODUCER: usize = 5;

const SNAPSHOT_VERSION: i16 = 1;
const SNAPSHOT_HEADER_BYTES: usize = 10;
const SNAPSHOT_CRC_START: usize = 6;
const SNAPSHOT_ENTRY_BYTES: usize = 46;

/// One batch that is in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Batch {
    last_sequence: i32,
    offset_delta: i32,
    last_offset: i64,
    /// Milliseconds since the epoch.
    timestamp: i64,
}

/// One producer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Producer {
    epoch: i16,
    coordinator_epoch: i32,
    /// First offset of its open transaction, -1 for none.
    txn_first_offset: i64,
    /// When it wrote last, by this machine's clock; milliseconds since the epoch.
    seen_ms: i64,
    batches: [Batch; BATCHES_PER_PRODUCER],
    count: usize,
}

impl Producer {
    fn new(epoch: i16, seen_ms: i64) -> Self {
        Self {
            epoch,
            coordinator_epoch: 0,
            txn_first_offset: -1,
            seen_ms,
            batches: Default::default(),
            count: 0,
        }
    }

    fn known(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter().take(self.count)
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
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Append it.
    New,
    /// It is in the log already, at these offsets.
    Duplicate { base_offset: i64, last_offset: i64 },
}

/// The producers of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Producers(HashMap<i64, Producer>);

impl Producers {
    /// What to do with a batch of a client, before it has an offset.
    ///
    /// # Errors
    /// [`StorageError::InvalidProducerEpoch`], [`StorageError::OutOfOrderSequence`].
    pub fn judge(&self, header: &BatchHeader, at: &TopicPartition) -> Result<Verdict, StorageError> {
        let Some(producer) = self.0.get(&header.producer_id).filter(|_| header.producer_id >= 0) else {
            return Ok(Verdict::New);
        };
        let producer_id = header.producer_id;
        if header.producer_epoch < producer.epoch {
            let (found, current) = (header.producer_epoch, producer.epoch);
            return Err(StorageError::InvalidProducerEpoch { at: at.clone(), producer_id, found, current });
        }
        let gap = |expected| StorageError::OutOfOrderSequence {
            at: at.clone(),
            producer_id,
            found: header.base_sequence,
            expected,
        };
        if header.producer_epoch > producer.epoch {
            return if header.base_sequence == 0 { Ok(Verdict::New) } else { Err(gap(0)) };
        }
        let last_sequence = sequence_after(header.base_sequence, header.last_offset_delta);
        let same =
            |b: &&Batch| b.last_sequence == last_sequence && b.offset_delta == header.last_offset_delta;
        if let Some(batch) = producer.known().find(same) {
            let base_offset = batch.last_offset - i64::from(batch.offset_delta);
            return Ok(Verdict::Duplicate { base_offset, last_offset: batch.last_offset });
        }
        match producer.known().last() {
            Some(last) if header.base_sequence != sequence_after(last.last_sequence, 1) => {
                Err(gap(sequence_after(last.last_sequence, 1)))
            }
            _ => Ok(Verdict::New),
        }
    }

    /// Takes note of a batch that is in the log; its offsets are set.
    pub fn note(&mut self, header: &BatchHeader, now_ms: i64) {
        if header.producer_id < 0 {
            return;
        }
        let epoch = header.producer_epoch;
        let producer = self.0.entry(header.producer_id).or_insert_with(|| Producer::new(epoch, now_ms));
        if epoch != producer.epoch {
            *producer =
                Producer { txn_first_offset: producer.txn_first_offset, ..Producer::new(epoch, now_ms) };
        }
        producer.seen_ms = now_ms;
        if header.is_control() {
            producer.txn_first_offset = -1;
            return;
        }
        if header.is_transactional() && producer.txn_first_offset < 0 {
            producer.txn_first_offset = header.base_offset;
        }
        producer.remember(Batch {
            last_sequence: sequence_after(header.base_sequence, header.last_offset_delta),
            offset_delta: header.last_offset_delta,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
        });
    }

    /// First offset of the oldest open transaction.
    pub fn first_open_offset(&self) -> Option<i64> {
        self.0.values().map(|p| p.txn_first_offset).filter(|first| *first >= 0).min()
    }

    /// Forgets producers that wrote nothing since `before_ms` and have no open transaction.
    pub fn expire(&mut self, before_ms: i64) {
        self.0.retain(|_, p| p.seen_ms >= before_ms || p.txn_first_offset >= 0);
    }

    /// The bytes of a snapshot file.
    pub fn to_snapshot(&self) -> Vec<u8> {
        let mut producers: Vec<_> = self.0.iter().collect();
        producers.sort_unstable_by_key(|(id, _)| **id);
        let nothing = Batch { last_sequence: -1, offset_delta: 0, last_offset: -1, timestamp: -1 };
        let mut body = Vec::new();
        let mut entries = 0_i32;
        for (id, producer) in producers {
            let placeholder = (producer.count == 0).then_some(&nothing);
            for batch in producer.known().chain(placeholder) {
                body.extend_from_slice(&id.to_be_bytes());
                body.extend_from_slice(&producer.epoch.to_be_bytes());
                body.extend_from_slice(&batch.last_sequence.to_be_bytes());
                body.extend_from_slice(&batch.last_offset.to_be_bytes());
                body.extend_from_slice(&batch.offset_delta.to_be_bytes());
                body.extend_from_slice(&batch.timestamp.to_be_bytes());
                body.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
                body.extend_from_slice(&producer.txn_first_offset.to_be_bytes());
                entries += 1;
            }
        }
        let mut bytes = Vec::with_capacity(SNAPSHOT_HEADER_BYTES + body.len());
        bytes.extend_from_slice(&SNAPSHOT_VERSION.to_be_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&entries.to_be_bytes()), &body);
        bytes.extend_from_slice(&crc.to_be_bytes());
        bytes.extend_from_slice(&entries.to_be_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The producers of a snapshot file, seen `now_ms`; `None` when it is damaged.
    pub fn from_snapshot(bytes: &[u8], now_ms: i64) -> Option<Self> {
        let version = i16::from_be_bytes(*bytes.first_chunk()?);
        let crc = u32::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
        let covered = bytes.get(SNAPSHOT_CRC_START..)?;
        let entries = i32::from_be_bytes(*covered.first_chunk()?);
        let body = bytes.get(SNAPSHOT_HEADER_BYTES..)?;
        let fits = usize::try_from(entries).ok()?.checked_mul(SNAPSHOT_ENTRY_BYTES) == Some(body.len());
        if version != SNAPSHOT_VERSION || crc32c::crc32c(covered) != crc || !fits {
            return None;
        }
        let mut producers = Self::default();
        for entry in body.chunks_exact(SNAPSHOT_ENTRY_BYTES) {
            producers.restore(entry, now_ms)?;
        }
        Some(producers)
    }

    fn restore(&mut self, entry: &[u8], now_ms: i64) -> Option<()> {
        let long = |at: usize| Some(i64::from_be_bytes(*entry.get(at..)?.first_chunk()?));
        let int = |at: usize| Some(i32::from_be_bytes(*entry.get(at..)?.first_chunk()?));
        let epoch = i16::from_be_bytes(*entry.get(8..)?.first_chunk()?);
        let producer = self.0.entry(long(0)?).or_insert_with(|| Producer::new(epoch, now_ms));
        producer.epoch = epoch;
        producer.coordinator_epoch = int(34)?;
        producer.txn_first_offset = long(38)?;
        let batch = Batch {
            last_sequence: int(10)?,
            last_offset: long(14)?,
            offset_delta: int(22)?,
            timestamp: long(26)?,
        };
        if batch.last_offset >= 0 {
            producer.remember(batch);
        }
        Some(())
    }
}

/// The sequence `by` records after `sequence`.
fn sequence_after(sequence: i32, by: i32) -> i32 {
    ((i64::from(sequence) + i64::from(by)) & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(id: i64, epoch: i16, base_sequence: i32, records: i32, base_offset: i64) -> BatchHeader {
        BatchHeader {
            base_offset,
            batch_length: 100,
            partition_leader_epoch: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: records - 1,
            base_timestamp: 0,
            max_timestamp: 7,
            producer_id: id,
            producer_epoch: epoch,
            base_sequence,
            records_count: records,
        }
    }

    fn judge(producers: &Producers, header: BatchHeader) -> Result<Verdict, StorageError> {
        producers.judge(&header, &TopicPartition::new("t", 0))
    }

    #[test]
    fn each_of_the_last_five_batches_is_answered_with_its_first_offsets() {
        let mut producers = Producers::default();
        (0..7).for_each(|i| producers.note(&batch(9, 0, i * 10, 10, i64::from(i) * 10 + 100), 0));
        for i in 2..7 {
            let first = i64::from(i) * 10 + 100;
            let expected = Verdict::Duplicate { base_offset: first, last_offset: first + 9 };
            assert_eq!(judge(&producers, batch(9, 0, i * 10, 10, 0)).unwrap(), expected);
        }
        assert!(judge(&producers, batch(9, 0, 10, 10, 0)).is_err(), "older than five batches");
        assert_eq!(judge(&producers, batch(9, 0, 70, 3, 0)).unwrap(), Verdict::New);
    }

    #[test]
    fn a_gap_an_old_epoch_and_a_new_epoch_not_at_zero_are_refused() {
        let mut producers = Producers::default();
        assert_eq!(judge(&producers, batch(1, 0, 55, 1, 0)).unwrap(), Verdict::New, "an unknown producer");
        producers.note(&batch(1, 3, 0, 4, 0), 0);
        let gap = judge(&producers, batch(1, 3, 5, 1, 0));
        assert!(
            matches!(gap, Err(StorageError::OutOfOrderSequence { expected: 4, found: 5, .. })),
            "{gap:?}"
        );
        let old = judge(&producers, batch(1, 2, 4, 1, 0));
        assert!(
            matches!(old, Err(StorageError::InvalidProducerEpoch { found: 2, current: 3, .. })),
            "{old:?}"
        );
        assert!(matches!(
            judge(&producers, batch(1, 4, 4, 1, 0)),
            Err(StorageError::OutOfOrderSequence { .. })
        ));
        assert_eq!(judge(&producers, batch(1, 4, 0, 1, 0)).unwrap(), Verdict::New);
    }

    #[test]
    fn sequences_continue_at_zero_behind_the_largest() {
        let mut producers = Producers::default();
        producers.note(&batch(1, 0, i32::MAX - 1, 3, 0), 0);
        assert_eq!(judge(&producers, batch(1, 0, 1, 1, 0)).unwrap(), Verdict::New);
        assert!(judge(&producers, batch(1, 0, 2, 1, 0)).is_err());
    }

    #[test]
    fn a_snapshot_keeps_five_batches_of_each_producer() {
        let mut producers = Producers::default();
        (0..9).for_each(|i| producers.note(&batch(i64::from(i % 2), 0, i / 2, 1, i.into()), 5));
        let bytes = producers.to_snapshot();
        assert_eq!(Producers::from_snapshot(&bytes, 5), Some(producers));
    }

    #[test]
    fn a_damaged_snapshot_is_refused_at_every_byte() {
        let mut producers = Producers::default();
        producers.note(&batch(1, 0, 0, 1, 0), 0);
        let bytes = producers.to_snapshot();
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x10;
            assert_eq!(Producers::from_snapshot(&damaged, 0), None, "byte {i}");
            assert_eq!(Producers::from_snapshot(&bytes[..i], 0), None, "cut at {i}");
        }
    }

    #[test]
    fn an_idle_producer_expires_but_not_with_an_open_transaction() {
        let mut producers = Producers::default();
        producers.note(&batch(1, 0, 0, 1, 0), 10);
        producers.note(&BatchHeader { attributes: 0x10, ..batch(2, 0, 0, 1, 1) }, 10);
        assert_eq!(producers.first_open_offset(), Some(1));
        producers.expire(11);
        assert_eq!(producers.0.keys().collect::<Vec<_>>(), [&2]);
    }
}
