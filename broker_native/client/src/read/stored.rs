//! Whole batches in memory, as an archive keeps them: where they may be parted, which transactions end among them, their times.
use std::collections::{BTreeMap, BTreeSet};

use super::feed::Aborted;
use crate::error::{ClientError, Result, kind};
use pylog_record::control::{Marker, end_txn};
use pylog_record::header::BatchHeader;
use pylog_record::{Codec, batches};
use pylog_storage::first_record::first_record;

/// Neighbouring batches among many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where it ends among the bytes.
    pub end: usize,
    /// First offset of the first batch.
    pub first: i64,
    /// One past the last offset of the last batch.
    pub next: i64,
    /// How many batches it has.
    pub batches: usize,
    /// How many records, markers of transactions among them.
    pub records: i64,
    /// Largest timestamp that the headers say.
    pub max_timestamp: i64,
}

impl Run {
    fn of(header: &BatchHeader, end: usize, next: i64) -> Self {
        let records = i64::from(header.records_count);
        Self {
            end,
            first: header.base_offset,
            next,
            batches: 1,
            records,
            max_timestamp: header.max_timestamp,
        }
    }

    fn add(&mut self, other: &Self) {
        (self.end, self.next) = (other.end, other.next);
        self.batches += other.batches;
        self.records += other.records;
        self.max_timestamp = self.max_timestamp.max(other.max_timestamp);
    }
}

/// What stands in batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Where they may be parted.
    pub runs: Vec<Run>,
    /// The aborted transactions whose marker is among them.
    pub aborted: Vec<Aborted>,
    /// The transactions that are open at the end: producer -> first offset.
    pub open: BTreeMap<i64, i64>,
    /// Leader epochs with the first offset of each.
    pub epochs: Vec<(i32, i64)>,
    /// Names of the codecs.
    pub codecs: BTreeSet<&'static str>,
}

impl Survey {
    /// Takes what the batch says of transactions and leaders.
    fn note(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<()> {
        self.codecs.extend(Codec::from_attributes(header.attributes).map(Codec::name));
        let epoch = header.partition_leader_epoch;
        if epoch >= 0 && self.epochs.last().is_none_or(|(last, _)| *last != epoch) {
            self.epochs.push((epoch, header.base_offset));
        }
        if header.ends_mirror() {
            self.open.clear();
        } else if header.is_control() {
            let ended = end_txn(&(*header, batch)).map_err(|bad| ClientError::damaged(&bad))?;
            let first = ended.and_then(|_| self.open.remove(&header.producer_id));
            if let (Some(first), Some(Marker::Abort)) = (first, ended.map(|ended| ended.marker)) {
                self.aborted.push((header.producer_id, first, header.last_offset()));
            }
        } else if header.has_records_of_transaction() {
            self.open.entry(header.producer_id).or_insert(header.base_offset);
        }
        Ok(())
    }
}

/// Looks at whole batches, each with its checksum. Runs have at most `most` bytes, or one larger batch; `open` are the transactions that
/// were open before.
///
/// # Errors
/// `CORRUPT_BATCH` for bytes that are no whole batch, and for batches whose offsets do not follow.
pub fn survey(bytes: &[u8], most: usize, open: BTreeMap<i64, i64>) -> Result<Survey> {
    let mut found = Survey { open, ..Survey::default() };
    let (mut begin, mut at, mut expected) = (0, 0, 0);
    for batch in batches(bytes) {
        let (header, whole) = batch.map_err(|bad| ClientError::damaged(&bad))?;
        header.verify_crc(whole).map_err(|bad| ClientError::damaged(&bad))?;
        let (first, last) = (header.base_offset, header.last_offset());
        let next = last.checked_add(1).filter(|_| first >= expected && last >= first);
        let next = next.ok_or_else(|| unordered(first))?;
        (at, expected) = (at + whole.len(), next);
        found.note(&header, whole)?;
        let run = Run::of(&header, at, next);
        match found.runs.last_mut().filter(|_| at - begin <= most) {
            Some(before) => before.add(&run),
            None => {
                begin = at - whole.len();
                found.runs.push(run);
            }
        }
    }
    if at != bytes.len() {
        let message = format!("{} bytes behind offset {expected} are no whole batch", bytes.len() - at);
        return Err(ClientError::fatal(kind::CORRUPT_BATCH, message));
    }
    Ok(found)
}

/// Offset and timestamp of the first record among whole batches from `from` on with a timestamp of `timestamp_ms` or later.
///
/// # Errors
/// `CORRUPT_BATCH` for bytes that are no whole batch.
pub fn first_at(bytes: &[u8], timestamp_ms: i64, from: i64) -> Result<Option<(i64, i64)>> {
    for batch in batches(bytes) {
        let (header, whole) = batch.map_err(|bad| ClientError::damaged(&bad))?;
        if header.is_control() || header.max_timestamp < timestamp_ms || header.last_offset() < from {
            continue;
        }
        if let Some(found) = first_record(&header, whole, timestamp_ms, from) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn unordered(first: i64) -> ClientError {
    ClientError::fatal(kind::CORRUPT_BATCH, format!("the batch of offset {first} is not where it belongs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_record::builder::BatchBuilder;
    use pylog_record::compression::Codec;
    use pylog_record::control::{EndTxn, end_txn_batch};

    /// A batch of `records` records from `offset` on.
    fn batch(offset: i64, records: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        (0..records).for_each(|_| builder.append(1_000, None, Some(&[7; 100]), &[]).unwrap());
        let mut bytes = builder.finish(Codec::None).unwrap();
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes
    }

    #[test]
    fn a_run_has_the_bytes_allowed_or_one_batch_and_says_what_is_in_it() {
        let (small, large) = (batch(3, 1), batch(10, 30));
        let bytes = [&small[..], &batch(4, 2), &large, &batch(50, 1)].concat();
        let two = small.len() + batch(4, 2).len();
        let found = survey(&bytes, two, BTreeMap::new()).unwrap().runs;
        let first = Run { end: two, first: 3, next: 6, batches: 2, records: 3, max_timestamp: 1_000 };
        let second = Run {
            end: two + large.len(),
            first: 10,
            next: 40,
            batches: 1,
            records: 30,
            max_timestamp: 1_000,
        };
        let third =
            Run { end: bytes.len(), first: 50, next: 51, batches: 1, records: 1, max_timestamp: 1_000 };
        assert_eq!(found, [first, second, third]);
        assert_eq!(survey(&bytes, usize::MAX, BTreeMap::new()).unwrap().runs.len(), 1);
        assert_eq!(survey(&[], 1, BTreeMap::new()), Ok(Survey::default()));
    }

    #[test]
    fn what_is_cut_damaged_or_not_in_order_is_an_error() {
        let bytes = [batch(3, 2), batch(5, 1)].concat();
        let fails = |bytes: &[u8]| {
            survey(bytes, usize::MAX, BTreeMap::new()).unwrap_err().kind == kind::CORRUPT_BATCH
        };
        assert!((1..bytes.len()).filter(|&end| end != batch(3, 2).len()).all(|end| fails(&bytes[..end])));
        // The checksum covers what is behind it.
        let (crc, second) = (17, batch(3, 2).len());
        let is_covered = |at: &usize| !(second..second + crc).contains(at);
        assert!((crc..bytes.len()).filter(is_covered).all(|at| {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fails(&damaged)
        }));
        assert!(fails(&[batch(3, 2), batch(4, 1)].concat()));
    }

    /// A batch of a transaction of `producer`.
    fn of_transaction(producer: i64, offset: i64) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.set_producer(producer, 0, 0);
        builder.set_transactional(true);
        builder.append(1_000, None, Some(&[7; 100]), &[]).unwrap();
        placed(builder.finish(Codec::None).unwrap(), offset)
    }

    fn end(producer: i64, marker: Marker, offset: i64) -> Vec<u8> {
        placed(end_txn_batch(producer, 0, EndTxn { marker, coordinator_epoch: 0 }, 1_000).unwrap(), offset)
    }

    fn placed(mut bytes: Vec<u8>, offset: i64) -> Vec<u8> {
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes
    }

    #[test]
    fn transactions_are_followed_over_several_pieces() {
        let first =
            [of_transaction(1, 0), of_transaction(2, 1), of_transaction(1, 2), end(1, Marker::Abort, 3)];
        let found = survey(&first.concat(), usize::MAX, BTreeMap::new()).unwrap();
        assert_eq!((found.aborted, found.open.clone()), (vec![(1, 0, 3)], BTreeMap::from([(2, 1)])));
        let second = [
            of_transaction(1, 4),
            end(2, Marker::Abort, 5),
            end(1, Marker::Commit, 6),
            end(3, Marker::Abort, 7),
        ];
        let found = survey(&second.concat(), usize::MAX, found.open).unwrap();
        assert_eq!((found.aborted, found.open), (vec![(2, 1, 5)], BTreeMap::new()));
    }

    #[test]
    fn the_first_record_of_a_time_is_found_behind_an_offset() {
        let bytes = [batch(3, 2), batch(5, 2)].concat();
        let found = |time, from| first_at(&bytes, time, from).unwrap();
        assert_eq!(found(1_000, 0), Some((3, 1_000)));
        assert_eq!(found(1_000, 4), Some((4, 1_000)));
        assert_eq!(found(7, 5), Some((5, 1_000)));
        assert_eq!((found(1_001, 0), found(0, 7)), (None, None));
    }
}
