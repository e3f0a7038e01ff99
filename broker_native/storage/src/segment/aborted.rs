//! The `.txnindex` of a segment: the transactions whose abort markers lie in it, in Kafka's format, in the order of the
//! markers. The file is made with the first of them.
//!
//! ```text
//! entry: version i16 = 0 | producer_id i64 | first_offset i64 | last_offset i64 | last_stable_offset i64
//! ```
//! `last_offset` is that of the marker and grows from entry to entry. `last_stable_offset` is that of the log once the
//! marker was written: every transaction that ends later begins there or behind, so a search for the transactions that
//! overlap `[from, upto)` begins at the first entry with `last_offset >= from` and ends with the first that has
//! `last_stable_offset >= upto`.
//!
//! An entry is written before its marker, so that no marker that is in the log lacks it; nobody sees it before, since
//! its transaction still holds the last stable offset back. Nothing in the file protects it: its sum is written into the
//! inventory (`inventory`), recovery writes the entries behind the recovery point anew from the batches, and a file that is not what it was is
//! made anew from all batches.
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Result, Segment};
use crate::disk::{DiskFile, OpenMode};
use crate::names::TXN_INDEX_SUFFIX;
use crate::types::AbortedTxn;

const VERSION: i16 = 0;
const ENTRY_BYTES: usize = 34;
/// Entries that are read at once.
const CHUNK_ENTRIES: u64 = 120;

impl AbortedTxn {
    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let fields = [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset];
        let all = VERSION.to_be_bytes().into_iter().chain(fields.into_iter().flat_map(i64::to_be_bytes));
        bytes.iter_mut().zip(all).for_each(|(slot, byte)| *slot = byte);
        bytes
    }

    /// The entry in `bytes`; `None` when no transaction is like that (the zeros of a file that lost its bytes are not).
    fn decode(bytes: &[u8]) -> Option<Self> {
        let version = i16::from_be_bytes(*bytes.first_chunk()?);
        let long = |field: usize| Some(i64::from_be_bytes(*bytes.get(2 + 8 * field..)?.first_chunk()?));
        let (producer_id, first_offset, last_offset) = (long(0)?, long(1)?, long(2)?);
        let txn = Self { producer_id, first_offset, last_offset, last_stable_offset: long(3)? };
        let plausible =
            version == VERSION && producer_id >= 0 && first_offset >= 0 && first_offset < last_offset;
        (plausible && (0..=last_offset + 1).contains(&txn.last_stable_offset)).then_some(txn)
    }
}

impl Segment {
    /// Looks at a `.txnindex` that was found in the directory; `false` when it cannot be right.
    pub fn adopt_aborted(&self) -> Result<bool> {
        self.aborted.exists.store(true, Ordering::Release);
        let len = self.aborted_file()?.len().map_err(|cause| self.failed("read", TXN_INDEX_SUFFIX, cause))?;
        self.aborted.entries.store(len / ENTRY_BYTES as u64, Ordering::Release);
        let found = self.aborted_txns()?;
        self.aborted.sum.store(sum_of(&found), Ordering::Release);
        let whole = len % ENTRY_BYTES as u64 == 0 && found.len() as u64 == len / ENTRY_BYTES as u64;
        Ok(whole
            && found.last().is_none_or(|last| last.last_offset - self.base_offset <= i64::from(i32::MAX)))
    }

    /// Adds an entry, before the marker is written. `true`: the file is new.
    pub fn append_aborted(&self, txn: &AbortedTxn) -> Result<bool> {
        let is_new = !self.aborted.exists.load(Ordering::Acquire);
        let entries = self.aborted.entries.load(Ordering::Acquire);
        let mode = if is_new { OpenMode::Create } else { OpenMode::ReadWrite };
        let entry = txn.encode();
        let written = self.open_aborted(mode)?.write_all_at(&entry, position_of(entries));
        if let Err(cause) = written {
            self.cut_aborted();
            return Err(self.failed("write", TXN_INDEX_SUFFIX, cause));
        }
        self.aborted.exists.store(true, Ordering::Release);
        self.aborted.entries.store(entries + 1, Ordering::Release);
        let before = self.aborted.sum.load(Ordering::Acquire);
        self.aborted.sum_before.store(before, Ordering::Release);
        self.aborted.sum.store(crc32c::crc32c_append(before, &entry), Ordering::Release);
        Ok(is_new)
    }

    /// How many entries there are.
    pub fn aborted_count(&self) -> u64 {
        self.aborted.entries.load(Ordering::Acquire)
    }

    /// CRC-32C of all entries.
    pub fn aborted_sum(&self) -> u32 {
        self.aborted.sum.load(Ordering::Acquire)
    }

    /// CRC-32C of the first `count` entries that the file has now.
    pub fn aborted_sum_of_first(&self, count: u64) -> Result<u32> {
        let mut found = self.aborted_txns()?;
        found.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(sum_of(&found))
    }

    /// Takes the newest entry away: its marker was not written.
    pub fn drop_last_aborted(&self) {
        let entries = self.aborted.entries.load(Ordering::Acquire);
        self.aborted.entries.store(entries.saturating_sub(1), Ordering::Release);
        self.aborted.sum.store(self.aborted.sum_before.load(Ordering::Acquire), Ordering::Release);
        self.cut_aborted();
    }

    /// Cuts the file to its entries. What stays behind them is not read, and overwritten by the next.
    fn cut_aborted(&self) {
        let entries = self.aborted.entries.load(Ordering::Acquire);
        let _ = self.aborted_file().map(|file| file.set_len(position_of(entries)));
    }

    /// All entries, up to the first that cannot be right.
    pub fn aborted_txns(&self) -> Result<Vec<AbortedTxn>> {
        let mut found = Vec::new();
        self.scan_aborted(0, |txn| {
            found.push(txn);
            true
        })?;
        Ok(found)
    }

    /// Makes the file hold exactly these, on the device when that changes it: a process that is killed before its first
    /// checkpoint leaves nothing behind from which the next one could know (power cut, seed 2936). What the file holds of them
    /// already is not written again; whether anything was.
    pub fn replace_aborted(&self, txns: &[AbortedTxn]) -> Result<bool> {
        let held = self.aborted_txns()?;
        let entries = self.aborted.entries.load(Ordering::Acquire);
        self.aborted.sum.store(sum_of(txns), Ordering::Release);
        if held == txns && held.len() as u64 == entries {
            return Ok(false);
        }
        let same = held.iter().zip(txns).take_while(|(a, b)| a == b).count();
        let bytes: Vec<u8> = txns.iter().skip(same).flat_map(AbortedTxn::encode).collect();
        let file = self.open_aborted(OpenMode::Create)?;
        let written = file.write_all_at(&bytes, position_of(same as u64));
        let written = written.and_then(|()| file.set_len(position_of(txns.len() as u64)));
        let written = written.and_then(|()| file.sync_data());
        written.map_err(|cause| self.failed("rebuild", TXN_INDEX_SUFFIX, cause))?;
        self.aborted.exists.store(true, Ordering::Release);
        self.aborted.entries.store(txns.len() as u64, Ordering::Release);
        Ok(true)
    }

    /// Adds to `out` the transactions aborted in this segment that overlap `offsets`; `true` when none of a later segment
    /// can.
    pub fn aborted_in(&self, offsets: &Range<i64>, out: &mut Vec<AbortedTxn>) -> Result<bool> {
        let first = self.first_aborted_from(offsets.start)?;
        let mut done = false;
        self.scan_aborted(first, |txn| {
            if txn.last_offset >= offsets.start && txn.first_offset < offsets.end {
                out.push(txn);
            }
            done = txn.last_stable_offset >= offsets.end;
            !done
        })?;
        Ok(done)
    }

    /// The first entry whose marker lies at `offset` or behind.
    fn first_aborted_from(&self, offset: i64) -> Result<u64> {
        let (mut low, mut high) = (0, self.aborted.entries.load(Ordering::Acquire));
        while high - low > CHUNK_ENTRIES {
            let middle = low + (high - low) / 2;
            let mut before = false;
            self.scan_aborted_to(middle, middle + 1, |txn| {
                before = txn.last_offset < offset;
                false
            })?;
            if before { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Shows `visit` the entries from the `first` on, until it says `false` or one cannot be right.
    fn scan_aborted(&self, first: u64, visit: impl FnMut(AbortedTxn) -> bool) -> Result<()> {
        self.scan_aborted_to(first, self.aborted.entries.load(Ordering::Acquire), visit)
    }

    fn scan_aborted_to(&self, first: u64, end: u64, mut visit: impl FnMut(AbortedTxn) -> bool) -> Result<()> {
        if first >= end {
            return Ok(());
        }
        let file = self.aborted_file()?;
        let mut newest = -1;
        let mut at = first;
        while at < end {
            let count = CHUNK_ENTRIES.min(end - at);
            let mut chunk = vec![0; ENTRY_BYTES * count as usize];
            let read = file.read_exact_at(&mut chunk, position_of(at));
            read.map_err(|cause| self.failed("read", TXN_INDEX_SUFFIX, cause))?;
            for bytes in chunk.chunks_exact(ENTRY_BYTES) {
                let txn = AbortedTxn::decode(bytes).filter(|txn| txn.last_offset > newest);
                let Some(txn) = txn.filter(|txn| txn.last_offset >= self.base_offset) else { return Ok(()) };
                newest = txn.last_offset;
                if !visit(txn) {
                    return Ok(());
                }
            }
            at += count;
        }
        Ok(())
    }

    /// fdatasync of the file, where there is one.
    pub(super) fn sync_aborted(&self) -> Result<()> {
        if !self.aborted.exists.load(Ordering::Acquire) {
            return Ok(());
        }
        let synced = self.aborted_file()?.sync_data();
        synced.map_err(|cause| self.failed("sync", TXN_INDEX_SUFFIX, cause))
    }

    fn aborted_file(&self) -> Result<Arc<dyn DiskFile>> {
        self.open_aborted(OpenMode::ReadWrite)
    }

    fn open_aborted(&self, mode: OpenMode) -> Result<Arc<dyn DiskFile>> {
        let opened = self.aborted.file.get(&self.pool, mode, || self.path_of(TXN_INDEX_SUFFIX));
        opened.map_err(|cause| self.failed("open", TXN_INDEX_SUFFIX, cause))
    }
}

/// The entries of a file that nobody writes; `None` when one cannot be right.
///
/// # Errors
/// Those of reading the file.
pub(crate) fn read_aborted(file: &dyn DiskFile) -> std::io::Result<Option<Vec<AbortedTxn>>> {
    let (len, mut found, mut at) = (file.len()?, Vec::<AbortedTxn>::new(), 0);
    while at < len {
        let mut chunk =
            vec![
                0;
                usize::try_from(len - at).unwrap_or(usize::MAX).min(ENTRY_BYTES * CHUNK_ENTRIES as usize)
            ];
        file.read_exact_at(&mut chunk, at)?;
        for bytes in chunk.chunks(ENTRY_BYTES) {
            let newest = found.last().map_or(-1, |txn| txn.last_offset);
            let txn = (bytes.len() == ENTRY_BYTES).then(|| AbortedTxn::decode(bytes)).flatten();
            let Some(txn) = txn.filter(|txn| txn.last_offset > newest) else { return Ok(None) };
            found.push(txn);
        }
        at += chunk.len() as u64;
    }
    Ok(Some(found))
}

/// CRC-32C of entries.
fn sum_of(txns: &[AbortedTxn]) -> u32 {
    txns.iter().fold(0, |sum, txn| crc32c::crc32c_append(sum, &txn.encode()))
}

/// Bytes before an entry.
fn position_of(entry: u64) -> u64 {
    entry * ENTRY_BYTES as u64
}
