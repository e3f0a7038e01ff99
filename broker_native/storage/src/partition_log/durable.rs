//! Durability: flush, group commit, poison.
//!
//! A flush syncs all that is written. For `durability=flushed` it then calls the producers that wait; in a log that is alone it
//! moves the high watermark, in one with other replicas it calls the listener that counts what they have.
//! When a sync fails, it is unknown which bytes reached the device, and a second try would report success for pages the
//! kernel has given up on (ATC 20, "Can applications recover from fsync failures?"). So the first failure poisons the
//! log: producers that wait get the error, every later append is refused, and only recovery at the next start makes the log
//! usable again. Records that were acknowledged before stay readable.
use std::sync::Weak;

use super::PartitionLog;
use super::failure::FailureListener;
use super::flush_state::FlushNeed;
use super::mark::Mark;
use super::role::Role;
use crate::error::{Result, StorageError};
use crate::files::SyncWhen;
use crate::flusher::{Flushable, delay_of};
use crate::identity::write_topic_id;
use crate::segment::SegmentError;
use pylog_log::error;
use pylog_log::loggers::STORAGE;

impl PartitionLog {
    /// fdatasync of everything written so far.
    ///
    /// # Errors
    /// [`StorageError::Poisoned`] when it failed, now or before.
    pub fn sync(&self) -> Result<()> {
        self.flush(false)
    }

    pub(super) fn ask_for_flush(&self, need: FlushNeed) {
        if need != FlushNeed::None && !self.schedule(need) && !self.is_flushed() {
            // flush.messages of a page-cache log without flusher threads.
            self.flush_as_scheduled();
        }
    }

    /// `false` when there is no flusher: the caller must flush.
    pub(super) fn schedule(&self, need: FlushNeed) -> bool {
        let delay_ms = match need {
            FlushNeed::None => return true,
            FlushNeed::Now => 0,
            FlushNeed::AfterMs(ms) => ms,
        };
        // A flush that is queued for later does not stand in for one that is due now.
        let queued = self.flush.set_scheduled();
        if queued && need != FlushNeed::Now {
            return true;
        }
        if queued && self.config().flush_ms == i64::MAX {
            return true;
        }
        let me: Weak<dyn Flushable> = self.me.clone();
        let taken = self.shared.flusher.schedule(me, delay_of(delay_ms));
        if !taken {
            self.flush.clear_scheduled();
        }
        taken
    }

    /// What a flusher thread does. Producers that wait, and the next append, get its error.
    pub(super) fn flush_as_scheduled(&self) {
        // Before the look at the log's end: an append after that look queues the next flush.
        self.flush.clear_scheduled();
        if let Err(error) = self.flush(false) {
            self.waiters.fail(&error);
        }
    }

    /// Syncs all that is written; with `indexes` the active segment's index files, too.
    pub(super) fn flush(&self, indexes: bool) -> Result<()> {
        let (before, end) = {
            let _flushing = self.flush.lock();
            if let Some(error) = self.poisoned() {
                return Err(error);
            }
            (self.flush.flushed(), self.flush_locked(indexes)?)
        };
        if self.is_flushed() {
            self.acknowledge(before, end);
        }
        Ok(())
    }

    /// All before `end` is as durable as the topic promises, all before `before` was so already.
    pub(super) fn acknowledge(&self, before: i64, end: Mark) {
        match self.advance_high_watermark(end) {
            Role::Alone => {}
            Role::Follower => self.waiters.complete(end.offset, i64::MIN),
            Role::Leader => {
                self.waiters.complete(end.offset, i64::MIN);
                if end.offset > before {
                    self.listeners.appended(end.offset);
                }
            }
        }
    }

    fn flush_locked(&self, indexes: bool) -> Result<Mark> {
        let unsynced_indexes_from = self.flush.unsynced_indexes_from();
        let (segments, end) = self.view.segments_and_end();
        let flushed = self.flush.flushed();
        let stale_indexes =
            unsynced_indexes_from < end.segment || indexes && unsynced_indexes_from <= end.segment;
        if flushed == end.offset && !stale_indexes && !self.flush.has_unsynced_names() {
            return Ok(end);
        }
        let holds = segments.partition_point(|s| s.base_offset <= flushed).saturating_sub(1);
        let stale = segments.partition_point(|s| s.base_offset < unsynced_indexes_from);
        for segment in segments.iter().skip(holds.min(stale)) {
            let ended = segment.base_offset != end.segment;
            match segment.sync(indexes || ended) {
                // Retention was faster.
                Err(error) if ended && error.is_missing() => {}
                synced => synced.map_err(|error| self.poison_unless_it_passes(error))?,
            }
        }
        self.sync_names()?;
        self.flush.advance(end.offset);
        // Appends go on meanwhile: the active segment's indexes count as stale until the next time.
        self.flush.synced_indexes(unsynced_indexes_from, end.segment);
        Ok(end)
    }

    /// Makes file names, the topic id and the epoch checkpoint durable.
    fn sync_names(&self) -> Result<()> {
        let disk = &*self.shared.disk;
        if self.flush.take_unsynced_topic_id() {
            let written = write_topic_id(disk, &self.dir, self.topic_id, SyncWhen::Now, &self.at);
            written.map_err(|e| self.poison_by(e))?;
        }
        {
            let mut epochs = self.epochs.lock();
            if epochs.is_behind() {
                epochs.store(disk, &self.dir, SyncWhen::Now, &self.at).map_err(|e| self.poison_by(e))?;
            }
        }
        if self.flush.take_unsynced_names() {
            let synced = disk.sync_dir(&self.dir);
            synced.map_err(|e| self.poison_by(StorageError::io("sync", &self.dir, &e)))?;
        }
        self.shared.sync_names().map_err(|e| self.poison_by(e))
    }

    /// The error of a poisoned log.
    pub(super) fn poisoned(&self) -> Option<StorageError> {
        let reason = self.failure.reason()?.to_owned();
        Some(StorageError::Poisoned { at: self.at.clone(), reason })
    }

    pub(super) fn poisoned_now(&self) -> StorageError {
        let reason = self.failure.reason().unwrap_or_default().to_owned();
        StorageError::Poisoned { at: self.at.clone(), reason }
    }

    /// Refuses everything new from now on. The first reason stays.
    pub(super) fn poison(&self, reason: String) {
        let at = &self.at;
        if !self.failure.is_set() {
            error!(target: STORAGE, partition = %at, "{at} takes no records until the broker is started again: {reason}");
        }
        self.failure.report(&reason);
        self.failure.set(reason);
    }

    /// Sets the listener for failures: it is called when the log could not write, until it is poisoned or deleted. The first
    /// one stays.
    pub fn on_failure(&self, listener: FailureListener) {
        self.failure.set_listener(listener);
    }

    pub(super) fn poison_by(&self, error: StorageError) -> StorageError {
        if !error.passes() {
            self.poison(error.to_string());
            return self.poisoned_now();
        }
        if matches!(error, StorageError::DiskFull { .. }) {
            self.failure.report(&error.to_string());
        }
        error
    }

    /// A want of space or of descriptors leaves the log usable, unless a sync reports it; everything else poisons.
    pub(super) fn poison_unless_it_passes(&self, error: SegmentError) -> StorageError {
        let sync = matches!(error, SegmentError::Io { action: "sync", .. });
        let passes = error.want().is_some() && !sync;
        let error = error.of(&self.at);
        if passes {
            return self.poison_by(error);
        }
        self.poison(error.to_string());
        self.poisoned_now()
    }
}

impl Flushable for PartitionLog {
    fn flush_when_due(&self) {
        self.flush_as_scheduled();
    }

    fn flush_panicked(&self) {
        self.panicked();
    }
}
