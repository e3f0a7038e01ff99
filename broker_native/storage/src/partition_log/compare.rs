//! A log that is opened, beside what it was at the last clean stop: what cannot be mended is refused, and no file is changed; what
//! can be is, and leaves a line.
use std::path::Path;
use std::sync::Arc;

use super::PartitionLog;
use super::opening::Opening;
use crate::disk::DirEntry;
use crate::error::{Result, StorageError};
use crate::inventory::{AbortedCounts, LogInventory, SegmentInventory, crc_of_first_batch};
use crate::names;
use crate::segment::Segment;

/// A segment, but for its bytes.
fn held_segment(segment: &Segment) -> SegmentInventory {
    SegmentInventory {
        base_offset: segment.base_offset,
        bytes: 0,
        aborted: segment.aborted_count(),
        aborted_sum: Some(segment.aborted_sum()),
    }
}

impl PartitionLog {
    /// How many aborted transactions its segments have.
    pub(crate) fn aborted_counts(&self) -> AbortedCounts {
        let segments = self.segments();
        // Compaction may take the first batch away at any time.
        let first = segments
            .iter()
            .find(|segment| segment.size() > 0 && !segment.has_gaps())
            .map(|segment| segment.base_offset);
        let crc =
            first.and_then(|base_offset| crc_of_first_batch(&*self.shared.disk, &self.dir, base_offset));
        let held = segments.iter().map(|segment| held_segment(segment));
        AbortedCounts::new(&self.at, self.topic_id, held, first.zip(crc))
    }

    /// What the log is, for the next start to compare.
    pub(crate) fn held(&self) -> Result<LogInventory> {
        let segments = self.segments();
        let held = segments.iter().map(|segment| held_segment(segment));
        let offsets = self.offsets();
        let offsets = offsets.log_start_offset..offsets.log_end_offset;
        LogInventory::now(&*self.shared.disk, (&self.at, self.topic_id), &self.dir, offsets, held.collect())
    }
}

impl Opening<'_> {
    /// Refuses a log that is not what the last clean stop left. `entries`: what its directory has, when it is there.
    ///
    /// # Errors
    /// [`StorageError::ChangedWhileStopped`].
    pub fn compare(&mut self, entries: Option<&[DirEntry]>, dir: &Path) -> Result<()> {
        let Some(held) = &self.held else { return Ok(()) };
        let files: Option<Vec<String>> =
            entries.map(|entries| entries.iter().map(|entry| entry.name.clone()).collect());
        let Some((file, what)) = held.difference(&*self.shared.disk, dir, files.as_deref()) else {
            return Ok(());
        };
        self.shared.inventory.refuse(&*self.shared.disk, held.clone())?;
        if files.is_none() {
            // From now on only the list asks for the folder: a partition that is taken out of the list is given up.
            self.shared.update_recovery_points(|points| _ = points.remove(self.at))?;
        }
        let ended = held.log_end.map_or("nobody knows where the log ended".to_owned(), |end| {
            format!("the log ended at offset {end}")
        });
        let inventory = self.shared.inventory.file().to_path_buf();
        let what = format!("{} {what}; {ended}", file.display());
        Err(StorageError::ChangedWhileStopped { at: self.at.clone(), what, inventory })
    }

    /// The log begins where it did, whatever the checkpoint says now.
    pub fn mend_start(&mut self) -> Result<()> {
        let Some(held) = self.held.as_ref().filter(|held| held.log_end.is_some()) else { return Ok(()) };
        let (start, found) = (held.log_start, self.log_start_offset);
        if start != found {
            self.notes.push(format!(
                "{} says that the log begins at offset {found}; at the last stop it began at {start}, which holds",
                names::LOG_START_CHECKPOINT
            ));
            self.shared.update_log_starts(|starts| _ = starts.insert(self.at.clone(), start))?;
            self.log_start_offset = start;
        }
        Ok(())
    }

    /// For after a clean stop: no log begins behind its end then. The checkpoint is wrong, and removing what lies before would
    /// remove everything.
    ///
    /// # Errors
    /// [`StorageError::Malformed`].
    pub fn check_start(&self) -> Result<()> {
        let begins_before = |active: &&Arc<Segment>| active.base_offset < self.log_start_offset;
        let Some(active) = self.segments.last().filter(begins_before) else { return Ok(()) };
        let end = active.find_end().map_err(|error| error.of(self.at))?;
        if self.log_start_offset <= end {
            return Ok(());
        }
        let reason = format!(
            "it says that {} begins at offset {}, but the log ends at {end}",
            self.at, self.log_start_offset
        );
        Err(StorageError::Malformed { file: self.shared.dir.join(names::LOG_START_CHECKPOINT), reason })
    }

    /// Whether the index of aborted transactions of `segment` has not those that it had at the last clean stop, or lacks some that
    /// were known to be on the device before an unclean one.
    pub fn has_other_aborted(&self, segment: &Segment) -> Result<bool> {
        let (base_offset, found) = (segment.base_offset, segment.aborted_count());
        let held = self.held.iter().flat_map(|held| &held.segments);
        if let Some(held) = held.into_iter().find(|held| held.base_offset == base_offset) {
            let same_sum = held.aborted_sum.is_none_or(|sum| sum == segment.aborted_sum());
            return Ok(held.aborted != found || !same_sum);
        }
        let (known, sum) = self.shared.inventory.aborted(self.at, self.topic_id, base_offset);
        let first = if known == 0 { Ok(sum) } else { segment.aborted_sum_of_first(known) };
        Ok(known > found || first.map_err(|error| error.of(self.at))? != sum)
    }
}
