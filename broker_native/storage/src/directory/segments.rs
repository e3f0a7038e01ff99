//! Which files make up a log.
//!
//! Compaction writes `.cleaned` files, renames them to `.swap`, renames what they replace to `.deleted`, and takes the `.swap`
//! away. A crash, or a look in between, finds any of these: a `.swap` counts, and with it nothing that it covers, unless
//! `.cleaned` files from the same offset on say that not all of its group was renamed (`LogLoader` of Apache Kafka).
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{DirectoryError, Result};
use crate::disk::{Disk, DiskFile, OpenMode, RealDisk};
use crate::index::IndexEntry;
use crate::index::{OffsetEntry, TimeEntry, read_one, search};
use crate::names;
use crate::scan::{Found, Scanner};
use crate::segment::end_of;

/// The names of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentFiles {
    /// Offset in its name.
    pub base_offset: i64,
    dir: PathBuf,
    /// Whether its files still end with `.swap`.
    swap: bool,
}

/// The segments of the partition whose directory this is, by offset.
pub(super) fn segments_in(dir: &Path) -> Result<Vec<SegmentFiles>> {
    let listed = RealDisk.list(dir).map_err(|cause| DirectoryError::io("list", dir, &cause))?;
    let (mut logs, mut swaps, mut cleaned) = (BTreeMap::new(), BTreeMap::new(), i64::MAX);
    for entry in &listed {
        let Some((base_offset, suffix)) = names::parse_segment_file(&entry.name) else { continue };
        let segment = |swap| SegmentFiles { base_offset, dir: dir.to_path_buf(), swap };
        match suffix.strip_prefix(names::LOG_SUFFIX) {
            Some("") => drop(logs.insert(base_offset, segment(false))),
            Some(names::SWAP_SUFFIX) => drop(swaps.insert(base_offset, segment(true))),
            Some(names::CLEANED_SUFFIX) => cleaned = cleaned.min(base_offset),
            _ => {}
        }
    }
    for (base_offset, swap) in swaps.range(..cleaned) {
        let file = swap.open()?;
        let end = end_of(&*file, *base_offset).map_err(|cause| swap.failed(&cause))?;
        logs.retain(|covered, _| !(*base_offset..end.max(base_offset + 1)).contains(covered));
        logs.insert(*base_offset, swap.clone());
    }
    Ok(logs.into_values().collect())
}

impl SegmentFiles {
    /// The file of batches.
    pub fn log(&self) -> PathBuf {
        let log = names::segment_file(&self.dir, self.base_offset, names::LOG_SUFFIX);
        if !self.swap {
            return log;
        }
        let mut name = log.into_os_string();
        name.push(names::SWAP_SUFFIX);
        name.into()
    }

    /// Another of its files, whatever is behind its name.
    pub fn beside(&self, suffix: &str) -> [PathBuf; 2] {
        let plain = names::segment_file(&self.dir, self.base_offset, suffix);
        let mut swap = plain.clone().into_os_string();
        swap.push(names::SWAP_SUFFIX);
        if self.swap { [swap.into(), plain] } else { [plain, swap.into()] }
    }

    /// Opens the file of batches.
    pub fn open(&self) -> Result<Arc<dyn DiskFile>> {
        RealDisk
            .open(&self.log(), OpenMode::Read)
            .map_err(|cause| DirectoryError::io("open", &self.log(), &cause))
    }

    /// Bytes of the file of batches.
    pub fn bytes(&self) -> Result<u64> {
        RealDisk.file_len(&self.log()).map_err(|cause| self.failed(&cause))
    }

    pub fn failed(&self, cause: &io::Error) -> DirectoryError {
        DirectoryError::io("read", &self.log(), cause)
    }

    /// Where a batch begins that is not behind the one with `offset`: as near as the index knows, which is believed when a whole
    /// batch stands where it says.
    pub fn start_near(&self, log: &dyn DiskFile, offset: i64) -> u64 {
        let relative = i32::try_from(offset.saturating_sub(self.base_offset)).unwrap_or(i32::MAX);
        let entry = self.last_entry(names::INDEX_SUFFIX, |entry: &OffsetEntry| entry.relative <= relative);
        let position = entry.and_then(|entry| u64::try_from(entry.position).ok()).unwrap_or(0);
        let Ok(len) = log.len() else { return 0 };
        match Scanner::checked(log, position, len).step() {
            Ok(Found::Batch(header)) if (self.base_offset..=offset).contains(&header.base_offset) => position,
            _ => 0,
        }
    }

    /// Whether its time index says that all its records are older.
    pub fn is_before(&self, timestamp_ms: i64) -> bool {
        self.last_entry(names::TIME_INDEX_SUFFIX, |_: &TimeEntry| true)
            .is_some_and(|last| last.timestamp < timestamp_ms)
    }

    /// The last entry that is `wanted`, which holds for a prefix. The file of a log in use, or of one whose broker was killed, ends
    /// in zeros.
    fn last_entry<E: IndexEntry>(&self, suffix: &str, wanted: impl Fn(&E) -> bool) -> Option<E> {
        let mut open = self.beside(suffix).into_iter();
        let file = open.find_map(|path| RealDisk.open(&path, OpenMode::Read).ok())?;
        let stored = usize::try_from(file.len().ok()?).ok()? / E::BYTES;
        let real = |entry: &E| *entry != E::default();
        if stored == 0 || !real(&read_one(&*file, 0).ok()?) {
            return None;
        }
        search(&*file, stored, |entry| real(entry) && wanted(entry)).ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexEntry;
    use pylog_record::builder::BatchBuilder;
    use pylog_record::compression::Codec;

    /// A batch of one record at `offset`.
    fn batch(offset: i64) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.append(1_000 + offset, None, Some(&[7; 100]), &[]).unwrap();
        let mut bytes = builder.finish(Codec::None).unwrap();
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes
    }

    fn put(dir: &Path, name: &str, offsets: std::ops::Range<i64>) {
        std::fs::write(dir.join(name), offsets.flat_map(batch).collect::<Vec<u8>>()).unwrap();
    }

    fn named(dir: &Path) -> Vec<(i64, bool)> {
        segments_in(dir).unwrap().iter().map(|segment| (segment.base_offset, segment.swap)).collect()
    }

    #[test]
    fn a_segment_that_is_to_take_the_place_of_others_counts_and_they_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        for (base, end) in [(0, 10), (10, 20), (20, 30)] {
            put(dir, &format!("{base:020}.log"), base..end);
        }
        std::fs::write(dir.join("00000000000000000010.log.deleted"), b"old").unwrap();
        std::fs::write(dir.join("leader-epoch-checkpoint"), b"0").unwrap();
        assert_eq!(named(dir), [(0, false), (10, false), (20, false)]);
        put(dir, "00000000000000000000.log.swap", 0..20);
        assert_eq!(named(dir), [(0, true), (20, false)]);
        // Of two segments that take the place of a group one was not renamed yet: nothing of the group counts.
        put(dir, "00000000000000000000.log.cleaned", 0..5);
        assert_eq!(named(dir), [(0, false), (10, false), (20, false)]);
    }

    #[test]
    fn an_index_is_believed_where_a_batch_stands_and_passed_over_where_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        put(dir, "00000000000000000100.log", 100..140);
        let segment = segments_in(dir).unwrap().remove(0);
        let (file, size) = (segment.open().unwrap(), batch(0).len());
        let index = |entries: &[(i32, usize)], zeros: usize| {
            let mut bytes = vec![0; entries.len() * OffsetEntry::BYTES + zeros];
            for (slot, (relative, position)) in bytes.chunks_exact_mut(OffsetEntry::BYTES).zip(entries) {
                OffsetEntry { relative: *relative, position: *position as i32 }.encode(slot);
            }
            std::fs::write(dir.join("00000000000000000100.index"), bytes).unwrap();
        };
        assert_eq!(segment.start_near(&*file, 120), 0, "no index");
        // The file of a log in use is as large as it may become.
        index(&[(9, 9 * size), (19, 19 * size), (29, 29 * size)], 10_000);
        for (offset, at) in
            [(100, 0), (108, 0), (109, 9), (120, 19), (128, 19), (129, 29), (139, 29), (5_000, 29)]
        {
            assert_eq!(segment.start_near(&*file, offset), (at * size) as u64, "offset {offset}");
        }
        index(&[(9, 9 * size), (19, 19 * size + 1)], 0);
        assert_eq!(segment.start_near(&*file, 120), 0, "no batch stands there");
        index(&[(19, 29 * size)], 0);
        assert_eq!(segment.start_near(&*file, 120), 0, "a later batch stands there");
    }
}
