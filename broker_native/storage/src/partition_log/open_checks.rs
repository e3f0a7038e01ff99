//! A log that is opened without the list of a clean stop: what its checkpoints and names say must be there.
//!
//! Recovery walks only what lies behind the recovery point. Of what lies before it the ends of the segments are looked at, a few
//! kilobytes of each: every one must reach the next, or records are gone that were on the device.
use std::path::Path;

use super::opening::Opening;
use crate::disk::{DirEntry, not_a_file};
use crate::error::{Result, StorageError};
use crate::inventory::crc_of_first_batch;
use crate::names;
use crate::segment::Bound;

impl Opening<'_> {
    /// Refuses a folder in place of a file of a segment: nothing could be written there later.
    ///
    /// # Errors
    /// [`StorageError::Io`].
    pub fn check_files(&self, entries: &[DirEntry]) -> Result<()> {
        let is_own = |name: &str| {
            names::parse_segment_file(name).is_some_and(|(_, suffix)| {
                names::SEGMENT_SUFFIXES.contains(&suffix) || suffix == names::SNAPSHOT_SUFFIX
            })
        };
        match entries.iter().find(|entry| entry.is_dir && is_own(&entry.name)) {
            Some(entry) => Err(StorageError::io("read", &self.dir.join(&entry.name), &not_a_file())),
            None => Ok(()),
        }
    }

    /// The folder is not there: refused when it was made once. `clean`: the list of the stop before is there, and names what was given up.
    ///
    /// # Errors
    /// [`StorageError::ChangedWhileStopped`].
    pub fn check_missing(&self, dir: &Path, clean: bool) -> Result<()> {
        let Some(flushed) = self.shared.recovery_points.get(self.at).filter(|_| !clean) else {
            return Ok(());
        };
        Err(StorageError::ChangedWhileStopped {
            at: self.at.clone(),
            what: format!("{} is gone; the log reached to offset {flushed} at least", dir.display()),
            inventory: self.shared.dir.join(names::RECOVERY_POINT_CHECKPOINT),
        })
    }

    /// Refuses a log whose first batch is not what it was, in a segment that was on the device.
    ///
    /// # Errors
    /// [`StorageError::ChangedWhileStopped`].
    pub fn check_first(&self) -> Result<()> {
        let Some((base_offset, crc)) = self.shared.inventory.first(self.at, self.topic_id) else {
            return Ok(());
        };
        let Some(segment) = self.segments.iter().find(|segment| segment.base_offset == base_offset) else {
            return Ok(());
        };
        if segment.has_gaps() || self.recovery_point <= base_offset || segment.size() == 0 {
            return Ok(());
        }
        if crc_of_first_batch(&*self.shared.disk, &self.dir, base_offset) == Some(crc) {
            return Ok(());
        }
        let file = segment.path_of(names::LOG_SUFFIX);
        Err(StorageError::ChangedWhileStopped {
            at: self.at.clone(),
            what: format!("{} holds the records of another partition", file.display()),
            inventory: self.shared.inventory.file().to_path_buf(),
        })
    }

    /// Says that the log begins later than it did. A log whose beginning is not written down is one that Apache Kafka's retention
    /// shortened, or has lost its first segments; from now on it is written down.
    pub fn note_later_start(&mut self, first: i64) -> Result<()> {
        let (began, known) = (self.log_start_offset, self.held.is_some());
        if first <= began || known {
            return Ok(());
        }
        self.notes.push(format!(
            "offsets {began} to {first} are gone: the first segment that is there begins at {first}, and {} does not say so",
            names::LOG_START_CHECKPOINT
        ));
        self.shared.update_log_starts(|starts| _ = starts.insert(self.at.clone(), first))
    }

    /// Refuses a log that ends before the recovery point.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`].
    pub fn check_reaches_recovery_point(&self) -> Result<()> {
        let end = self.next_offset.max(self.log_start_offset);
        if end >= self.recovery_point {
            return Ok(());
        }
        let reason =
            format!("the log ends here, but records up to {} were on the device", self.recovery_point);
        let file = self.segments.last().map_or(self.dir.to_path_buf(), |s| s.path_of(names::LOG_SUFFIX));
        Err(StorageError::Corrupt { at: self.at.clone(), offset: end, file, reason })
    }

    /// Refuses a log with a hole in the first `count` of its segments and the one behind them.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`].
    pub fn check_ends(&self, count: usize) -> Result<()> {
        for (segment, next) in self.segments.iter().zip(self.segments.iter().skip(1)).take(count) {
            // Compaction leaves nothing at the end of a segment, or nothing at all.
            if segment.has_gaps() {
                continue;
            }
            let end = segment.find_end().map_err(|error| error.of(self.at))?;
            if end != next.base_offset {
                let reason =
                    format!("the segment ends there, and the next begins at offset {}", next.base_offset);
                let file = segment.path_of(names::LOG_SUFFIX);
                return Err(StorageError::Corrupt { at: self.at.clone(), offset: end, file, reason });
            }
        }
        Ok(())
    }

    /// Says that a folder that was made before has no segment any more.
    pub fn note_no_segment(&mut self) {
        if self.segments.is_empty() && self.held.is_none() {
            let (dir, start) = (self.dir.display(), self.log_start_offset);
            self.notes.push(format!(
                "{dir} has no segment: what was in it is lost, and the log begins at offset {start}"
            ));
        }
    }

    /// Says that the last segment is empty or gone although all before it was never flushed, so that it had something: a segment
    /// is begun for a batch that is written at once. `entries`: what the folder has.
    pub fn note_lost_active(&mut self, entries: &[DirEntry]) {
        let bases = |suffix: &str| {
            let files = entries.iter().filter_map(|entry| names::parse_segment_file(&entry.name));
            files.filter(|(_, found)| *found == suffix).map(|(base, _)| base).max()
        };
        let active = self.segments.last().map_or(-1, |segment| segment.base_offset);
        let newest = bases(names::INDEX_SUFFIX).max(bases(names::TIME_INDEX_SUFFIX));
        let lost = match newest.filter(|newest| *newest > active) {
            Some(base) => Some((base, "is gone")),
            None if self.segments.last().is_some_and(|segment| segment.size() == 0) => {
                Some((active, "is empty"))
            }
            None => None,
        };
        let Some((base, what)) =
            lost.filter(|(base, _)| *base > self.recovery_point.max(self.log_start_offset))
        else {
            return;
        };
        let file = names::segment_file(&self.dir, base, names::LOG_SUFFIX);
        self.notes.push(format!(
            "after an unclean stop {} {what}: what was written from offset {base} on is lost",
            file.display()
        ));
    }

    /// Makes the epochs anew from the batches when their checkpoint is gone.
    pub fn mend_epochs(&mut self) -> Result<()> {
        if self.epochs.latest().is_some() || self.next_offset <= self.log_start_offset {
            return Ok(());
        }
        let epochs = &mut self.epochs;
        for segment in &self.segments {
            let bound = Bound { position: segment.size(), offset: i64::MAX };
            let walked = segment.walk(segment.base_offset, bound, |header, _| {
                epochs.note(header.partition_leader_epoch, header.base_offset);
            });
            walked.map_err(|error| error.of(self.at))?;
        }
        if self.epochs.latest().is_some() {
            let file = self.dir.join(names::LEADER_EPOCH_CHECKPOINT);
            self.notes.push(format!("{} was gone and is made anew from the batches", file.display()));
        }
        Ok(())
    }
}
