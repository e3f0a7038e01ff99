//! What stays of a batch. Pure: bytes in, bytes out.
//!
//! | what | stays |
//! |---|---|
//! | a record behind all that the map knows | yes |
//! | a record whose key stands again further on | no |
//! | a record without a key | no: compaction has no use for it |
//! | a tombstone | until the batch's delete horizon, which is set when a cleaning first keeps it |
//! | a record of an aborted transaction | no |
//! | a marker whose transaction has no batch left | until the delete horizon, as a tombstone |
//! | the last batch of a producer that is known, and the last of all that is cleaned | at least its header |
//! | a batch whose records cannot be read, for whatever a producer sent | as it is |
use std::collections::HashMap;

use super::offset_map::OffsetMap;
use super::transactions::Transactions;
use crate::producers::LastRecord;
use crate::types::AbortedTxn;
use pylog_record::batches::body;
use pylog_record::compression::{Codec, decompress_into};
use pylog_record::control::marker;
use pylog_record::header::{BatchError, BatchHeader};
use pylog_record::reader::{RecordRef, records};
use pylog_record::rewrite::{filter, rewrite, without_records};

/// Largest decompressed batch that is looked into.
const MAX_BATCH_BYTES: usize = /* 256 MiB */ 256 << 20;
/// A buffer of decompressed records that grew beyond is not kept for the next batch.
const SCRATCH_BYTES: usize = /* 4 MiB */ 4 << 20;

/// What holds for all batches of one cleaning.
pub(super) struct Rules<'a> {
    /// Last offset of each key.
    pub map: &'a OffsetMap,
    /// Up to which offset the map knows.
    pub latest_offset: i64,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// The producers that the log knows.
    pub producers: HashMap<i64, LastRecord>,
}

impl Rules<'_> {
    fn keeps(&self, record: &RecordRef<'_>, horizon_ms: Option<i64>) -> bool {
        if record.offset > self.latest_offset {
            return true;
        }
        let Some(key) = record.key else { return false };
        let is_last = self.map.get(key).is_none_or(|last| record.offset >= last);
        is_last && (record.value.is_some() || horizon_ms.is_none_or(|ms| self.now_ms < ms))
    }

    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        let known = self.producers.get(&header.producer_id).filter(|_| header.producer_id >= 0);
        known.is_some_and(|last| match last.offset {
            Some(offset) => header.last_offset() == offset,
            None => header.is_control() && header.producer_epoch == last.epoch,
        })
    }
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The header of what was written; `None`: nothing.
    pub header: Option<BatchHeader>,
    /// Records that went.
    pub removed: u64,
    /// The `.txnindex` entry that the batch, a marker, still needs.
    pub aborted: Option<AbortedTxn>,
}

/// Buffers of one thread, used again for each batch.
#[derive(Default)]
pub(super) struct Scratch {
    opened: Vec<u8>,
    kept: Vec<u8>,
}

impl Scratch {
    /// The records of a batch, decompressed; an error when they cannot be.
    fn open<'a>(&'a mut self, header: &BatchHeader, batch: &'a [u8]) -> Result<&'a [u8], BatchError> {
        let codec = Codec::from_attributes(header.attributes)?;
        if codec == Codec::None || header.records_count == 0 {
            return Ok(body(batch));
        }
        decompress_into(codec, body(batch), MAX_BATCH_BYTES, &mut self.opened)?;
        Ok(&self.opened)
    }

    fn shrink(&mut self) {
        for buffer in [&mut self.opened, &mut self.kept] {
            if buffer.capacity() > SCRATCH_BYTES {
                *buffer = Vec::new();
            }
        }
    }

    /// Puts the keys of a batch from `from_offset` on into `map`; gives the first offset that did not fit. A batch whose
    /// records cannot be read has no keys.
    pub fn index(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        from_offset: i64,
        map: &mut OffsetMap,
    ) -> Option<i64> {
        let whole = self.open(header, batch).ok()?;
        // A batch that cannot be read to its end stays whole, so none of its keys counts.
        if records(whole, header).any(|record| record.is_err()) {
            return None;
        }
        let mut keyed = records(whole, header).flatten().filter(|record| record.offset >= from_offset);
        let unfit = keyed.find(|record| record.key.is_some_and(|key| !map.put(key, record.offset)));
        let unfit = unfit.map(|record| record.offset);
        self.shrink();
        unfit
    }
}

/// Appends what stays of `batch` to `out`. `last`: nothing behind it is cleaned, so it stays to show
/// where the cleaned part ends.
pub(super) fn clean(
    rules: &Rules<'_>,
    transactions: &mut Transactions,
    scratch: &mut Scratch,
    (header, batch): (&BatchHeader, &[u8]),
    last: bool,
    out: &mut Vec<u8>,
) -> Result<Outcome, BatchError> {
    let horizon = header.delete_horizon_ms();
    let (discard, unused_marker, aborted) = if header.is_control() {
        let used = transactions.control(header, marker(&(*header, batch)).ok().flatten());
        (used.done && horizon.is_some_and(|ms| ms <= rules.now_ms), used.done, used.aborted)
    } else {
        (transactions.data(header), false, None)
    };
    let all = header.records_count.unsigned_abs().into();
    let keep_header = last || rules.is_last_of_producer(header);
    if discard || header.records_count == 0 {
        let header = keep_header.then(|| without_records(header, out));
        return Ok(Outcome { header, removed: all, aborted });
    }
    let as_it_is = |out: &mut Vec<u8>| {
        out.extend_from_slice(batch);
        Ok(Outcome { header: Some(*header), removed: 0, aborted })
    };
    let mut kept = std::mem::take(&mut scratch.kept);
    let seen = scratch.open(header, batch).and_then(|whole| {
        filter(header, whole, &mut kept, |record| header.is_control() || rules.keeps(record, horizon))
    });
    let Ok(seen) = seen else { return as_it_is(out) };
    let sets_horizon = horizon.is_none() && (unused_marker || !header.is_control() && seen.tombstones);
    let outcome = if seen.kept == 0 {
        let header = keep_header.then(|| without_records(header, out));
        Ok(Outcome { header, removed: all, aborted })
    } else if seen.dropped == 0 && !sets_horizon {
        as_it_is(out)
    } else {
        let horizon_ms = sets_horizon.then(|| rules.now_ms.saturating_add(rules.delete_retention_ms.max(0)));
        let written = rewrite(header, &kept, &seen, horizon_ms, out)?;
        Ok(Outcome { header: Some(written), removed: seen.dropped.unsigned_abs().into(), aborted })
    };
    scratch.kept = kept;
    scratch.shrink();
    outcome
}
