//! One segment takes the place of others, as in Apache Kafka, safe against a loss of power at each step:
//!
//! | step | files | after a loss of power before the next |
//! |---|---|---|
//! | the new segment is written and synced | `.cleaned` | removed: nothing happened |
//! | renamed, names synced | `.swap` | **done**: the start removes what it covers and renames it |
//! | the old ones renamed, names synced | `.deleted` | as above |
//! | the new one renamed, names synced | no suffix | as ever |
//!
//! What is removed at the start is all from the first to the last offset of the new segment. An old one behind that, of
//! which nothing was left, may come back: it is compacted again, since the checkpoint still says so.
//!
//! A failure behind the first step leaves names that only a start can put in order, so it poisons the log.
//!
//! Readers keep their look at the old segments: these stay readable under their new names until `file.delete.delay.ms`
//! has passed, and a reader that comes too late even then looks again.
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::PartitionLog;
use crate::disk::{DirEntry, Disk, OpenMode};
use crate::error::{Result, StorageError};
use crate::names;
use crate::producers::LastRecord;
use crate::segment::{Named, Segment, SegmentError, SegmentSettings, end_of};
use crate::types::AbortedTxn;

impl PartitionLog {
    /// All segments; the last one is appended to.
    pub(crate) fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        self.view.segments()
    }

    /// Whether the log was compacted once: offsets may be missing in it, whatever its settings say now.
    pub(super) fn was_compacted(&self) -> bool {
        self.shared.cleaner_offsets.get(&self.at).is_some()
    }

    /// The log's clock, milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.shared.clock.now_ms()
    }

    /// A segment's error as this log's.
    pub(crate) fn wrong(&self, error: SegmentError) -> StorageError {
        error.of(&self.at)
    }

    /// Whether the log takes no more changes: closed, removed or poisoned.
    pub(crate) fn is_unusable(&self) -> bool {
        self.is_poisoned() || self.writing().closed
    }

    /// The last that the log holds of each producer that it knows.
    pub(crate) fn last_records(&self) -> HashMap<i64, LastRecord> {
        self.writing().producers.last_records()
    }

    /// Transactions with records in `[from, to)` that were aborted.
    pub(crate) fn aborted_between(&self, from: i64, to: i64) -> Result<Vec<AbortedTxn>> {
        self.look(|view| self.aborted_in(view, from..to))
    }

    /// Transactions with records in `segment` that were aborted.
    pub(crate) fn aborted_of(&self, segment: &Segment) -> Result<Vec<AbortedTxn>> {
        let segments = self.segments();
        let next = segments.iter().find(|s| s.base_offset > segment.base_offset);
        self.aborted_between(segment.base_offset, next.map_or(i64::MAX, |next| next.base_offset))
    }

    /// A segment for compaction to fill, which no reader sees.
    pub(crate) fn create_cleaned(&self, base_offset: i64) -> Result<Segment> {
        let settings = SegmentSettings::of(&self.config(), true);
        let made = Segment::create_cleaned(&self.shared.pool, &self.dir, base_offset, settings);
        made.map_err(|error| self.wrong(error))
    }

    /// Removes a segment of [`PartitionLog::create_cleaned`] that is of no use. Files that stay do no harm.
    pub(crate) fn discard(&self, cleaned: &Segment) {
        cleaned.close();
        for path in cleaned.paths() {
            let _ = self.shared.disk.remove_file(&path);
        }
    }

    /// Lets `cleaned` take the place of `old`, a run of segments; `false` when they are no longer there or the log is
    /// no longer in use.
    pub(crate) fn replace_segments(
        &self,
        old: &[Arc<Segment>],
        cleaned: Segment,
        aborted: &[AbortedTxn],
    ) -> Result<bool> {
        let whole = cleaned.retire(false);
        let whole = whole.and_then(|()| cleaned.replace_aborted(aborted)).and_then(|_| cleaned.sync(true));
        if let Err(error) = whole {
            self.discard(&cleaned);
            return Err(self.wrong(error));
        }
        let _swapping = self.work.swapping.lock();
        let Some(next_base) = self.next_base(old).filter(|_| !self.is_unusable()) else {
            self.discard(&cleaned);
            return Ok(false);
        };
        let cleaned = Arc::new(cleaned);
        let renamed = self.swap_names(old, &cleaned);
        renamed.map_err(|error| self.poison_by_any(error))?;
        self.view.replace_segments(old, &cleaned, next_base);
        let delay_ms = self.config().file_delete_delay_ms;
        for segment in old {
            for path in segment.paths() {
                self.shared.bury(path, false, delay_ms);
            }
            segment.close();
        }
        Ok(true)
    }

    fn swap_names(&self, old: &[Arc<Segment>], cleaned: &Segment) -> Result<()> {
        let sync = || {
            let synced = self.shared.disk.sync_dir(&self.dir);
            synced.map_err(|cause| SegmentError::Io { action: "sync", file: self.dir.to_path_buf(), cause })
        };
        let renamed = (|| {
            cleaned.rename_to(Named::Swap, sync)?;
            sync()?;
            for segment in old.iter().rev() {
                segment.rename_to(Named::Deleted, sync)?;
            }
            sync()?;
            cleaned.rename_to(Named::Live, sync)?;
            sync()
        })();
        renamed.map_err(|error| self.wrong(error))
    }

    /// Names are in an order that only a start understands.
    pub(super) fn poison_by_any(&self, error: StorageError) -> StorageError {
        self.poison(error.to_string());
        self.poisoned_now()
    }

    /// Where the segment behind `old` begins; `None` when the log does not hold them any more.
    fn next_base(&self, old: &[Arc<Segment>]) -> Option<i64> {
        let view = self.view.now();
        let first = view.segments.iter().position(|s| old.first().is_some_and(|o| Arc::ptr_eq(s, o)))?;
        let held = view.segments.get(first..first + old.len())?;
        let same = held.iter().zip(old).all(|(held, old)| Arc::ptr_eq(held, old));
        view.segments.get(first + old.len()).filter(|_| same).map(|next| next.base_offset)
    }
}

/// Gives a `.swap` file another name that no compaction of this log can have left; gives the names that are then there.
pub(super) fn set_swaps_aside(
    disk: &dyn Disk,
    dir: &Path,
    mut entries: Vec<DirEntry>,
    notes: &mut Vec<String>,
) -> Result<Vec<DirEntry>> {
    for entry in entries.iter_mut().filter(|entry| entry.name.ends_with(names::SWAP_SUFFIX)) {
        let from = dir.join(&entry.name);
        let aside = format!("{}{}", entry.name, names::ASIDE_SUFFIX);
        disk.rename(&from, &dir.join(&aside)).map_err(|e| StorageError::io("rename", &from, &e))?;
        notes.push(format!(
            "{} is not of this log, which no compaction left unfinished; it is called {aside} now and is not read",
            from.display()
        ));
        entry.name = aside;
    }
    Ok(entries)
}

/// Ends what a stop interrupted in `dir`, and gives the names that are then there.
pub(super) fn finish_swaps(disk: &dyn Disk, dir: &Path, entries: Vec<DirEntry>) -> Result<Vec<DirEntry>> {
    let is_interim =
        |e: &DirEntry| e.name.ends_with(names::CLEANED_SUFFIX) || e.name.ends_with(names::SWAP_SUFFIX);
    if !entries.iter().any(is_interim) {
        return Ok(entries);
    }
    let swapped_log = format!("{}{}", names::LOG_SUFFIX, names::SWAP_SUFFIX);
    for entry in entries.iter().filter(|entry| is_interim(entry)) {
        match names::parse_segment_file(&entry.name) {
            Some((base_offset, suffix)) if suffix == swapped_log => {
                finish_swap(disk, dir, &entries, base_offset)?;
            }
            _ => {}
        }
    }
    for entry in entries.iter().filter(|entry| is_interim(entry)) {
        // Offset and time index are made anew. One that stays does no harm.
        let _ = disk.remove_file(&dir.join(&entry.name));
    }
    disk.list(dir).map_err(|e| StorageError::io("list", dir, &e))
}

/// Removes what the `.swap` at `base_offset` took the place of, and gives it its name.
fn finish_swap(disk: &dyn Disk, dir: &Path, entries: &[DirEntry], base_offset: i64) -> Result<()> {
    let mut swap = names::segment_file(dir, base_offset, names::LOG_SUFFIX).into_os_string();
    swap.push(names::SWAP_SUFFIX);
    let swap = Path::new(&swap);
    let opened = disk.open(swap, OpenMode::Read);
    let end = opened.and_then(|file| end_of(&*file, base_offset));
    let end = end.map_err(|e| StorageError::io("read", swap, &e))?.max(base_offset + 1);
    for entry in entries {
        let Some((offset, suffix)) = names::parse_segment_file(&entry.name) else { continue };
        if (base_offset..end).contains(&offset) && names::SEGMENT_SUFFIXES.contains(&suffix) {
            let path = dir.join(&entry.name);
            disk.remove_file(&path).map_err(|e| StorageError::io("remove", &path, &e))?;
        }
    }
    let sync = || disk.sync_dir(dir).map_err(|e| StorageError::io("sync", dir, &e));
    sync()?;
    for suffix in [names::TXN_INDEX_SUFFIX, names::LOG_SUFFIX] {
        let live = names::segment_file(dir, base_offset, suffix);
        let mut swap = live.clone().into_os_string();
        swap.push(names::SWAP_SUFFIX);
        let swap = Path::new(&swap);
        match disk.rename(swap, &live) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            renamed => {
                renamed.map_err(|e| StorageError::io("rename", swap, &e))?;
                sync()?;
            }
        }
    }
    Ok(())
}
