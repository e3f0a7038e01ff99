//! What a follower gives up: the end of its log that the leader does not have, or all of it.
//!
//! | step | on the device afterwards | after a loss of power before the next |
//! |---|---|---|
//! | recovery point, high watermark, cleaner checkpoint lowered | what is given up need not be there | the log as it was |
//! | the new segment made, `.cleaned`; epochs written | what is kept has its epochs; those behind stand in the batches | the log as it was |
//! | the segment that is cut, synced; the later ones renamed, last first | a prefix that is not shorter than what is kept | such a prefix |
//! | the new segment renamed; names synced | what is kept | what is kept |
//!
//! Nothing is appended before the last step. New batches go into a segment of their own: no byte of a file that a reader
//! may still hold is ever written anew, and a late reader finds the end of the file. What needs space comes before what
//! cuts: a full device leaves the log as it was.
use std::path::Path;
use std::sync::Arc;

use super::mark::Mark;
use super::role::Role;
use super::view::{Shortened, View};
use super::writing::Writing;
use super::{PartitionLog, Writer};
use crate::checkpoint::PartitionOffsets;
use crate::disk::{DirEntry, Disk, OpenMode};
use crate::error::{Result, StorageError};
use crate::files::SyncWhen;
use crate::names;
use crate::producers::Producers;
use crate::segment::{Named, Segment, SegmentError, SegmentSettings};

/// The part of the log that a truncation keeps.
struct KeptPart {
    /// The last batch boundary that stays.
    end: Mark,
    /// First readable offset.
    start: i64,
    producers: Producers,
    /// Where the snapshot stands that they were made of.
    snapshot: i64,
}

impl KeptPart {
    /// Whether no record is left.
    fn is_empty(&self) -> bool {
        self.end.offset == self.start
    }

    /// How many segments of `view` stay, in whole or in part.
    fn segments_of(&self, view: &View) -> usize {
        let stays = |segment: &&Arc<Segment>| {
            let at_begin = segment.base_offset == self.end.segment && self.end.position == 0;
            segment.base_offset <= self.end.segment && !at_begin
        };
        if self.is_empty() { 0 } else { view.segments.iter().take_while(stays).count() }
    }

    /// Whether a segment that stays loses its end.
    fn is_cut(&self, segment: &Segment) -> bool {
        segment.base_offset == self.end.segment && segment.size() > self.end.position
    }
}

impl PartitionLog {
    /// Gives up the batches that reach beyond `offset`, on the device when this returns; gives the new end of the log.
    /// Epochs that begin there are forgotten, and the high watermark goes down with it when it was above. Nothing is cut
    /// when the log ends before. An `offset` before the log's start is [`PartitionLog::restart_at`].
    ///
    /// # Errors
    /// [`StorageError::NotFollower`]; [`StorageError::DiskFull`] and [`StorageError::Io`], after which the log is as it was;
    /// [`StorageError::Poisoned`] when something was cut, and only a restart finds out what.
    pub fn truncate_to(&self, offset: i64) -> Result<i64> {
        let _shortening = self.work.shortening.lock();
        let _swapping = self.work.swapping.lock();
        let _flushing = self.flush.lock();
        let mut writer = self.following()?;
        let view = self.view.now();
        if offset >= view.end.offset {
            self.forget_empty_epochs(&mut writer);
            return Ok(view.end.offset);
        }
        if offset < view.log_start_offset {
            self.start_anew(&mut writer, &view, offset)?;
            return Ok(offset);
        }
        let end = self.last_end(&view, offset)?;
        if end.offset < view.log_start_offset {
            // The batch that the log's start lies in goes.
            self.start_anew(&mut writer, &view, view.log_start_offset)?;
            return Ok(view.log_start_offset);
        }
        let (snapshot, producers) = self.producers_at(&view, end)?;
        let kept = KeptPart { end, start: view.log_start_offset, producers, snapshot };
        self.shorten(&mut writer, &view, kept)?;
        Ok(end.offset)
    }

    /// Gives up everything: the log is empty and begins at `offset`, on the device when this returns.
    ///
    /// # Errors
    /// Those of [`PartitionLog::truncate_to`].
    pub fn restart_at(&self, offset: i64) -> Result<()> {
        let _shortening = self.work.shortening.lock();
        let _swapping = self.work.swapping.lock();
        let _flushing = self.flush.lock();
        let mut writer = self.following()?;
        let view = self.view.now();
        self.start_anew(&mut writer, &view, offset)
    }

    /// An empty log begins at `offset`, where that of the cluster does that it is a copy of. Gives where the log ends: at `offset`, unless
    /// it is not empty or ends behind.
    ///
    /// # Errors
    /// Those of [`PartitionLog::truncate_to`]; [`StorageError::NotLeader`].
    pub(super) fn begin_mirror_at(&self, offset: i64, leader_epoch: i32) -> Result<i64> {
        let _shortening = self.work.shortening.lock();
        let _swapping = self.work.swapping.lock();
        let _flushing = self.flush.lock();
        let mut writer = self.writing();
        self.refuse_unusable(&writer)?;
        let epoch = self.epoch_to_write(&writer, leader_epoch)?;
        let view = self.view.now();
        if view.log_start_offset < view.end.offset || offset <= view.end.offset {
            return Ok(view.end.offset);
        }
        self.start_anew(&mut writer, &view, offset)?;
        self.note_epoch(&mut writer, epoch, offset);
        Ok(offset)
    }

    fn following(&self) -> Result<Writing<'_>> {
        let writer = self.writing();
        self.refuse_unusable(&writer)?;
        if writer.role == Role::Follower { Ok(writer) } else { Err(self.not_follower()) }
    }

    fn start_anew(&self, writer: &mut Writer, view: &View, offset: i64) -> Result<()> {
        let end = Mark { offset, segment: offset, position: 0 };
        let kept = KeptPart { end, start: offset, producers: Producers::default(), snapshot: -1 };
        self.shorten(writer, view, kept)
    }

    /// Leaves `kept` of the log. The caller holds all locks that a truncation takes.
    fn shorten(&self, writer: &mut Writer, view: &View, kept: KeptPart) -> Result<()> {
        self.lower_checkpoints(&kept)?;
        let count = kept.segments_of(view);
        let active = self.prepare(view, count, &kept)?;
        // From here on a failure leaves something that only a start can put in order.
        let segments = self.cut(view, count, &kept, &active);
        let mut segments = segments.map_err(|error| self.poison_by_any(error))?;
        let active = Arc::new(active);
        segments.push(active.clone());
        self.show_shortened(writer, segments, active, kept);
        Ok(())
    }

    /// Goes on with what a truncation left.
    fn show_shortened(
        &self,
        writer: &mut Writer,
        segments: Vec<Arc<Segment>>,
        active: Arc<Segment>,
        kept: KeptPart,
    ) {
        let is_empty = kept.is_empty();
        let end = Mark { segment: kept.end.offset, position: 0, ..kept.end };
        writer.active = active;
        writer.next_offset = end.offset;
        writer.producers = kept.producers;
        writer.verifications.clear();
        writer.unflushed_records = 0;
        writer.noted_epoch = self.epochs.lock().latest().unwrap_or(-1);
        *self.flush.snapshot_offset() = kept.snapshot;
        self.flush.written(kept.end.segment.min(end.offset), self.shared.clock.now_ms());
        self.view.shorten(Shortened {
            segments,
            log_start_offset: kept.start,
            end,
            is_empty,
            first_open_offset: writer.producers.first_open_offset(),
        });
    }

    /// Takes back what was promised about what is given up. What is flushed first in memory: others write it down.
    fn lower_checkpoints(&self, kept: &KeptPart) -> Result<()> {
        let (end, shared) = (kept.end.offset, &self.shared);
        self.flush.lower(end);
        let lower = |offsets: &mut PartitionOffsets| {
            offsets.entry(self.at.clone()).and_modify(|offset| *offset = end.min(*offset));
        };
        shared.update_recovery_points(lower)?;
        shared.update_high_watermarks(lower)?;
        shared.update_cleaner_offsets(lower)?;
        if kept.start != self.view.log_start_offset() {
            shared.update_log_starts(|starts| _ = starts.insert(self.at.clone(), kept.start))?;
        }
        Ok(())
    }

    /// Does all that needs space, and changes nothing of the log: after an error it goes on as it was. Gives the segment
    /// that will be appended to.
    fn prepare(&self, view: &View, count: usize, kept: &KeptPart) -> Result<Segment> {
        let last = count.checked_sub(1).and_then(|last| view.segments.get(last));
        let stored = last.filter(|last| kept.is_cut(last)).map_or(Ok(()), |last| last.retire(false));
        stored.map_err(|error| self.poison_unless_it_passes(error))?;
        let (pool, settings) = (&self.shared.pool, self.segment_settings());
        let now_ms = self.shared.clock.now_ms();
        let made = Segment::create_aside(pool, &self.dir, kept.end.offset, settings, now_ms);
        let active = made.map_err(|error| self.wrong(error))?;
        let mut epochs = self.epochs.lock();
        let mut fewer = epochs.clone();
        fewer.truncate(if kept.is_empty() { i64::MIN } else { kept.end.offset });
        if let Err(error) = fewer.store(&*self.shared.disk, &self.dir, SyncWhen::Now, &self.at) {
            self.discard(&active);
            return Err(error);
        }
        *epochs = fewer;
        Ok(active)
    }

    /// Cuts the last of the first `count` segments, takes those behind away and puts `active` in their place; gives those
    /// that stay.
    fn cut(&self, view: &View, count: usize, kept: &KeptPart, active: &Segment) -> Result<Vec<Arc<Segment>>> {
        let wrong = |error: SegmentError| error.of(&self.at);
        let sync = || {
            let synced = self.shared.disk.sync_dir(&self.dir);
            synced.map_err(|cause| SegmentError::Io { action: "sync", file: self.dir.to_path_buf(), cause })
        };
        let (keep, give_up) = view.segments.split_at(count);
        let mut segments = keep.to_vec();
        if let Some(last) = segments.last_mut().filter(|last| kept.is_cut(last)) {
            *last = Arc::new(last.cut_to(kept.end.bound(), self.segment_settings()).map_err(wrong)?);
        }
        for segment in give_up.iter().rev() {
            segment.rename_to(Named::Deleted, sync).map_err(wrong)?;
        }
        self.remove_snapshots_behind(if kept.is_empty() { -1 } else { kept.end.offset })?;
        active.rename_to(Named::Live, sync).map_err(wrong)?;
        sync().map_err(wrong)?;
        let delay_ms = self.config().file_delete_delay_ms;
        for segment in give_up {
            segment.paths().into_iter().for_each(|path| self.shared.bury(path, false, delay_ms));
            segment.close();
        }
        Ok(segments)
    }

    fn segment_settings(&self) -> SegmentSettings {
        SegmentSettings::of(&self.config(), self.was_compacted())
    }

    fn remove_snapshots_behind(&self, offset: i64) -> Result<()> {
        for at in self.snapshots()?.into_iter().filter(|at| *at > offset) {
            let path = names::segment_file(&self.dir, at, names::SNAPSHOT_SUFFIX);
            let removed = self.shared.disk.remove_file(&path);
            removed.map_err(|cause| StorageError::io("remove", &path, &cause))?;
        }
        Ok(())
    }
}

/// A killed process may have cut and renamed files in `dir` that the device still has as they were. What was seen here
/// once must not come back behind new batches (power cut, seed 207).
pub(super) fn finish_truncation(disk: &dyn Disk, dir: &Path, entries: &[DirEntry]) -> Result<()> {
    let any = |suffix| entries.iter().any(|entry| entry.name.ends_with(suffix));
    let interrupted = any(names::CLEANED_SUFFIX);
    if !interrupted && !any(names::DELETED_SUFFIX) {
        return Ok(());
    }
    let is_log = |name: &str| names::parse_segment_file(name).is_some_and(|(_, s)| s == names::LOG_SUFFIX);
    for entry in entries.iter().filter(|entry| interrupted && is_log(&entry.name)) {
        let path = dir.join(&entry.name);
        let synced = disk.open(&path, OpenMode::ReadWrite).and_then(|file| file.sync_data());
        synced.map_err(|cause| StorageError::io("sync", &path, &cause))?;
    }
    disk.sync_dir(dir).map_err(|cause| StorageError::io("sync", dir, &cause))
}
