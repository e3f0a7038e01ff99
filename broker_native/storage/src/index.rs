//! The two sparse indexes of a segment, in Kafka's format, all integers big-endian:
//!
//! ```text
//! .index      relative_offset i32 | position i32        (last offset of a batch, where the batch begins)
//! .timeindex  timestamp i64       | relative_offset i32 (largest timestamp so far, last offset of its batch)
//! ```
//! Both columns of both files grow. No checksum protects them and they are not synced with the log: an entry is only a
//! hint that the segment verifies against the log, and a file that is missing, empty or nonsense is rebuilt.
//!
//! The newest entries stay in memory until [`PENDING_ENTRIES`] of them are written at once, so that an append costs one
//! write, not three. The owner holds a lock around each method except [`search`], which reads the file.
use std::io;

use super::disk::DiskFile;

/// Entries that wait in memory; 64 offset entries stand for 256 KiB of log.
pub(super) const PENDING_ENTRIES: usize = 64;
/// Entries that are searched in memory after a binary search by single reads came this near.
const BLOCK_ENTRIES: usize = 256;
/// Bytes of the largest entry.
const MAX_ENTRY_BYTES: usize = 12;

/// One entry of an index.
pub(super) trait IndexEntry: Copy + Default + PartialEq + std::fmt::Debug {
    /// Bytes in the file.
    const BYTES: usize;
    /// Writes it to the start of `out`.
    fn encode(self, out: &mut [u8]);
    /// Reads it from the start of `bytes`; `None` when they are too few.
    fn decode(bytes: &[u8]) -> Option<Self>;
    /// Whether it may stand behind `before`: both columns grow.
    fn follows(self, before: Self) -> bool;
}

/// Last offset of a batch, relative to the segment, and the batch's position in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OffsetEntry {
    pub relative: i32,
    pub position: i32,
}

impl IndexEntry for OffsetEntry {
    const BYTES: usize = 8;

    fn encode(self, out: &mut [u8]) {
        let bytes = (i64::from(self.relative) << 32) | i64::from(self.position);
        out.iter_mut().zip(bytes.to_be_bytes()).for_each(|(slot, byte)| *slot = byte);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let both = i64::from_be_bytes(*bytes.first_chunk()?);
        Some(Self { relative: (both >> 32) as i32, position: both as i32 })
    }

    fn follows(self, before: Self) -> bool {
        self.relative > before.relative && self.position > before.position
    }
}

/// A timestamp in milliseconds since the epoch, and the last offset of the first batch that has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TimeEntry {
    pub timestamp: i64,
    pub relative: i32,
}

impl IndexEntry for TimeEntry {
    const BYTES: usize = 12;

    fn encode(self, out: &mut [u8]) {
        let bytes = self.timestamp.to_be_bytes().into_iter().chain(self.relative.to_be_bytes());
        out.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = byte);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let timestamp = i64::from_be_bytes(*bytes.first_chunk()?);
        let relative = i32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
        Some(Self { timestamp, relative })
    }

    fn follows(self, before: Self) -> bool {
        self.timestamp > before.timestamp && self.relative > before.relative
    }
}

/// The entries of one index file and those that are not in it yet.
#[derive(Debug, Default)]
pub(super) struct SparseIndex<E> {
    /// Entries in the file.
    stored: usize,
    /// Entries behind those.
    pending: Vec<E>,
    last: Option<E>,
}

impl<E: IndexEntry> SparseIndex<E> {
    /// Entries, stored and pending.
    pub fn len(&self) -> usize {
        self.stored + self.pending.len()
    }

    /// Entries in the file.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// The newest entry.
    pub fn last(&self) -> Option<E> {
        self.last
    }

    /// Whether [`SparseIndex::push`] must wait for [`SparseIndex::begin_store`].
    pub fn is_full_of_pending(&self) -> bool {
        self.pending.len() >= PENDING_ENTRIES
    }

    /// Adds an entry; the caller has made sure that it grows.
    pub fn push(&mut self, entry: E) {
        if self.pending.capacity() == 0 {
            self.pending.reserve_exact(PENDING_ENTRIES);
        }
        self.pending.push(entry);
        self.last = Some(entry);
    }

    /// The last pending entry that satisfies `wanted`, which holds for a prefix of all entries; `None` when the file
    /// must be searched.
    pub fn search_pending(&self, wanted: impl Fn(&E) -> bool) -> Option<E> {
        let count = self.pending.partition_point(|entry| wanted(entry));
        count.checked_sub(1).and_then(|i| self.pending.get(i)).copied()
    }

    /// The pending entries as bytes, and where in the file they belong; written with no lock held and then confirmed
    /// by [`SparseIndex::end_store`].
    pub fn begin_store(&self) -> (Vec<u8>, u64) {
        let mut bytes = vec![0; self.pending.len() * E::BYTES];
        for (slot, entry) in bytes.chunks_exact_mut(E::BYTES).zip(&self.pending) {
            entry.encode(slot);
        }
        (bytes, (self.stored * E::BYTES) as u64)
    }

    /// `bytes` of [`SparseIndex::begin_store`] are in the file.
    pub fn end_store(&mut self, bytes: usize) {
        let entries = (bytes / E::BYTES).min(self.pending.len());
        self.pending.drain(..entries);
        self.stored += entries;
    }

    /// Takes the file as it is.
    pub fn adopt(&mut self, stored: usize, last: Option<E>) {
        *self = Self { stored, pending: Vec::new(), last };
    }
}

/// The last of the first `stored` entries of `file` that satisfies `wanted`, which holds for a prefix of them.
///
/// # Errors
/// Those of reading; `UnexpectedEof` when the file is shorter than that.
pub(super) fn search<E: IndexEntry>(
    file: &dyn DiskFile,
    stored: usize,
    wanted: impl Fn(&E) -> bool,
) -> io::Result<Option<E>> {
    // Entries before `low` are wanted, entries from `high` on are not.
    let (mut low, mut high) = (0, stored);
    while high - low > BLOCK_ENTRIES {
        let middle = low + (high - low) / 2;
        if wanted(&read_one(file, middle)?) { low = middle + 1 } else { high = middle }
    }
    // One entry more at the front: it is the answer when none of the block is wanted.
    let first = low.saturating_sub(1);
    let mut block = [0; (BLOCK_ENTRIES + 1) * MAX_ENTRY_BYTES];
    let block = block.get_mut(..(high - first) * E::BYTES).unwrap_or_default();
    file.read_exact_at(block, (first * E::BYTES) as u64)?;
    let entries = block.chunks_exact(E::BYTES).filter_map(E::decode);
    Ok(entries.take_while(|entry| wanted(entry)).last())
}

/// Entry `i` of `file`.
pub(super) fn read_one<E: IndexEntry>(file: &dyn DiskFile, i: usize) -> io::Result<E> {
    let mut bytes = [0; MAX_ENTRY_BYTES];
    let bytes = bytes.get_mut(..E::BYTES).unwrap_or_default();
    file.read_exact_at(bytes, (i * E::BYTES) as u64)?;
    E::decode(bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// All entries of `file` that grow from the front on, at most `limit`; what follows the first that does not is nonsense.
pub(super) fn read_growing<E: IndexEntry>(file: &dyn DiskFile, limit: usize) -> io::Result<Vec<E>> {
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX).min(limit.saturating_mul(E::BYTES));
    let mut bytes = vec![0; len / E::BYTES * E::BYTES];
    file.read_exact_at(&mut bytes, 0)?;
    let mut entries: Vec<E> = Vec::with_capacity(bytes.len() / E::BYTES);
    for entry in bytes.chunks_exact(E::BYTES).filter_map(E::decode) {
        if entries.last().is_some_and(|before| !entry.follows(*before)) {
            break;
        }
        entries.push(entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OpenMode, RealDisk};

    #[test]
    fn a_search_finds_the_last_entry_at_or_before_the_target_at_every_size() {
        let dir = tempfile::tempdir().unwrap();
        for stored in [0, 1, 2, 255, 256, 257, 258, 1_000, 5_000] {
            let file = RealDisk.open(&dir.path().join("i"), OpenMode::CreateEmpty).unwrap();
            let mut index = SparseIndex::default();
            (0..stored).for_each(|i| index.push(OffsetEntry { relative: i * 10, position: i * 100 }));
            let (bytes, position) = index.begin_store();
            file.write_all_at(&bytes, position).unwrap();
            index.end_store(bytes.len());
            assert_eq!((index.stored(), index.len()), (stored as usize, stored as usize));
            for target in (-1..stored * 10 + 5).step_by(if stored > 300 { 97 } else { 1 }) {
                let found = search(&*file, index.stored(), |e: &OffsetEntry| e.relative <= target).unwrap();
                let expected =
                    (target.min((stored - 1) * 10) / 10 * 10..).next().filter(|_| target >= 0 && stored > 0);
                assert_eq!(found.map(|e| e.relative), expected, "target {target} of {stored}");
            }
        }
    }

    #[test]
    fn entries_are_kafkas_bytes() {
        let mut bytes = [0; 12];
        OffsetEntry { relative: 0x0102_0304, position: 0x0506_0708 }.encode(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        TimeEntry { timestamp: 0x0102_0304_0506_0708, relative: 0x090a_0b0c }.encode(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(TimeEntry::decode(&bytes).map(|e| e.relative), Some(0x090a_0b0c));
    }
}
