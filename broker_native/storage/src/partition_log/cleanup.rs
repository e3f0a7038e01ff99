//! What shortens a log, and what ends its life in this process: retention, DeleteRecords, snapshots, close, removal.
//!
//! A segment is removed only after the log's new start is on the device ([`Shared::update_log_starts`]): after a loss
//! of power the remaining segments may come back in any combination, and those below the start are then ignored.
//!
//! [`Shared::update_log_starts`]: super::super::shared::Shared::update_log_starts
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::PartitionLog;
use crate::config::LogConfig;
use crate::error::Result;
use crate::files::{SyncWhen, replace};
use crate::names;
use crate::producers::Producers;
use crate::segment::Segment;
use crate::types::RetentionLimit;

/// Snapshots kept: the newest, and older ones for when a loss of power took it.
const SNAPSHOTS_KEPT: usize = 3;

/// A segment as retention sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Aged {
    base_offset: i64,
    size: u64,
    /// Its newest record, milliseconds since the epoch.
    newest_ms: i64,
}

impl PartitionLog {
    /// Makes all before `offset` unreadable, on the device when this returns; -1 is the high watermark. Returns the
    /// first readable offset. Segments that hold nothing else are removed.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`] beyond the high watermark; [`StorageError::DiskFull`] and
    /// [`StorageError::Io`], after which nothing has changed.
    pub fn delete_records_before(&self, offset: i64) -> Result<i64> {
        let _cleaning = self.work.cleaning.lock();
        let offset = self.deletable_before(offset)?;
        if offset > self.offsets().log_start_offset {
            self.refuse_unusable(&self.writing())?;
            self.shared.update_log_starts(|starts| {
                starts.insert(self.at.clone(), offset);
            })?;
            self.move_start(offset);
        }
        Ok(self.offsets().log_start_offset)
    }

    /// The offset before which [`PartitionLog::delete_records_before`] deletes: -1 is the high watermark.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`] beyond the high watermark.
    pub fn deletable_before(&self, offset: i64) -> Result<i64> {
        let high_watermark = self.offsets().high_watermark;
        let offset = if offset == -1 { high_watermark } else { offset };
        match (0..=high_watermark).contains(&offset) {
            true => Ok(offset),
            false => Err(self.out_of_range(offset)),
        }
    }

    /// The offset that retention lets the log begin at, when that is later than now, and why. May roll a segment whose
    /// records are all too old.
    pub(crate) fn retention_start(&self, now_ms: i64) -> Result<Option<(i64, RetentionLimit)>> {
        let config = self.config();
        if !config.cleanup_policy.delete || self.is_poisoned() {
            return Ok(None);
        }
        let (segments, end) = self.view.segments_and_end();
        let mut aged = Vec::with_capacity(segments.len());
        for segment in segments.iter() {
            aged.push(self.aged(segment, end.segment)?);
        }
        let (start, limit) = start_to_keep(&aged, &config, now_ms, end.offset);
        let (start, limit) = match config.keeps_for_groups() && !config.copies_to_archive() {
            true => {
                start_for_groups((start, limit), self.needed_from(), (&aged, &config), now_ms, end.offset)
            }
            false => (start, limit),
        };
        let offsets = self.offsets();
        let start = start.min(offsets.high_watermark).min(self.may_be_removed_until(&config));
        if start <= offsets.log_start_offset {
            return Ok(None);
        }
        if start >= end.segment && end.position > 0 && start >= end.offset {
            let mut writer = self.writing();
            self.refuse_unusable(&writer)?;
            // Another thread may have appended since.
            if writer.next_offset == end.offset {
                self.roll(&mut writer, &config, now_ms)?;
                drop(writer);
                let end = self.view.end();
                if self.offsets().high_watermark == end.offset {
                    return Ok(Some((end.offset, limit)));
                }
            }
        }
        let first_kept = segments.iter().rev().find(|s| s.base_offset <= start).map(|s| s.base_offset);
        Ok(first_kept.filter(|first| *first > offsets.log_start_offset).map(|first| (first, limit)))
    }

    /// The offset before which records may be removed by retention: of a log that is archived, the one behind what the archive has.
    fn may_be_removed_until(&self, config: &LogConfig) -> i64 {
        match config.copies_to_archive() {
            true => self.archived_until.load(Ordering::Acquire),
            false => i64::MAX,
        }
    }

    /// The archive has all of the log before `offset`.
    pub fn set_archived_until(&self, offset: i64) {
        self.archived_until.store(offset, Ordering::Release);
    }

    /// Where groups of `retention.until.checkpointed` are, the one that is farthest behind; 0 until that is known.
    pub fn needed_from(&self) -> i64 {
        self.needed_from.load(Ordering::Acquire)
    }

    /// The groups of `retention.until.checkpointed` have committed all before `offset`.
    pub fn set_needed_from(&self, offset: i64) {
        self.needed_from.store(offset, Ordering::Release);
    }

    /// The offset up to which the log may be archived: its closed segments that are on the device, as far as readers of committed
    /// data see them.
    pub fn closed_until(&self) -> i64 {
        let (view, flushed) = (self.view.now(), self.flush.flushed());
        let closed = view.segments.iter().map(|segment| segment.base_offset).filter(|base| *base <= flushed);
        view.offsets().last_stable_offset.min(closed.max().unwrap_or(view.log_start_offset))
    }

    /// Bytes of the segments that begin at `offset` or behind.
    pub fn bytes_from(&self, offset: i64) -> u64 {
        let segments = self.view.segments();
        segments.iter().filter(|segment| segment.base_offset >= offset).map(|segment| segment.size()).sum()
    }

    /// Closed segments, and their bytes, that the archive does not have as a whole.
    pub fn closed_and_not_archived(&self) -> (u64, u64) {
        let (segments, until) = (self.view.segments(), self.archived_until.load(Ordering::Acquire));
        let closed = segments.iter().zip(segments.iter().skip(1));
        let missing = closed.filter(|(_, next)| next.base_offset > until);
        missing.fold((0, 0), |(count, bytes), (segment, _)| (count + 1, bytes + segment.size()))
    }

    fn aged(&self, segment: &Segment, active_base: i64) -> Result<Aged> {
        let wrong = |error: crate::segment::SegmentError| error.of(&self.at);
        let newest_ms = match segment.max_timestamp().map_err(wrong)? {
            Some((newest, _)) => newest,
            // Compaction left nothing of it.
            None if segment.size() == 0 && segment.base_offset != active_base => i64::MIN,
            None => segment.modified_ms().map_err(wrong)?,
        };
        Ok(Aged { base_offset: segment.base_offset, size: segment.size(), newest_ms })
    }

    /// Lets the log begin at `start`, which is on the device; removes the segments that end before it, and gives their number
    /// and bytes.
    pub(crate) fn move_start(&self, start: i64) -> (usize, u64) {
        let _swapping = self.work.swapping.lock();
        // A log that was truncated since does not begin behind its end.
        let removed = self.view.move_start(start);
        let end = self.offsets().log_end_offset;
        // An epoch that begins at the end has no record yet, and is this leader's.
        self.epochs.lock().clip(start.min(end), i64::MAX);
        let bytes = removed.iter().map(|segment| segment.size()).sum();
        self.bury_segments(&removed);
        (removed.len(), bytes)
    }

    pub(super) fn bury_segments(&self, segments: &[Arc<Segment>]) {
        let delay_ms = self.config().file_delete_delay_ms;
        for segment in segments {
            for path in segment.paths() {
                self.shared.bury_file(&path, delay_ms);
            }
            segment.close();
        }
    }

    /// Begins a new segment when the active one is older than `segment.ms`.
    pub(crate) fn roll_if_old(&self, now_ms: i64) -> Result<()> {
        let config = self.config();
        let mut writer = self.writing();
        if writer.closed || self.is_poisoned() || writer.active.size() == 0 {
            return Ok(());
        }
        if self.is_old(&writer.active, &config, now_ms) || self.is_mostly_dirty(&writer.active, &config) {
            self.roll(&mut writer, &config, now_ms)
        } else {
            Ok(())
        }
    }

    /// Whether the segment that is appended to is to be closed so that it can be compacted.
    fn is_mostly_dirty(&self, active: &Segment, config: &LogConfig) -> bool {
        let size = active.size();
        if !config.cleanup_policy.compact || size < config.compaction_roll_bytes {
            return false;
        }
        size > self.size_bytes().saturating_sub(size)
    }

    /// Whether records wait for a checkpoint since `before_ms` or earlier.
    pub(crate) fn is_dirty_since(&self, before_ms: i64) -> bool {
        self.flush.is_dirty_since(before_ms) && !self.is_poisoned()
    }

    /// Brings the log, its indexes and its producers to the device; gives the new recovery point.
    pub(crate) fn checkpoint(&self) -> Result<i64> {
        let dirty_since_ms = self.flush.take_dirty_since_ms();
        let done = self.checkpoint_now();
        if done.is_err() {
            self.flush.still_dirty_since(dirty_since_ms);
        }
        done
    }

    /// [`PartitionLog::checkpoint`], and the recovery point is on the device, too.
    pub(crate) fn checkpoint_durably(&self) -> Result<()> {
        let point = self.checkpoint()?;
        self.shared.update_recovery_points(|points| {
            let known = points.entry(self.at.clone()).or_insert(point);
            *known = point.max(*known);
        })
    }

    fn checkpoint_now(&self) -> Result<i64> {
        // A snapshot must not be written of producers whose batches are being given up.
        let _steady = self.work.shortening.lock();
        let (producers, offset) = {
            let mut writer = self.writing();
            let idle_ms = self.shared.config.producer_id_expiration_ms;
            let now_ms = self.shared.clock.now_ms();
            writer.producers.expire(now_ms, idle_ms);
            writer.verifications.expire(now_ms.saturating_sub(idle_ms));
            (writer.producers.clone(), writer.next_offset)
        };
        self.write_snapshot(&producers, offset)?;
        self.flush(true)?;
        Ok(self.flush.flushed())
    }

    /// Ends appending and brings everything to the device; gives the recovery point. Producers that wait for
    /// other replicas get an error: the log is closed.
    pub(crate) fn close(&self) -> Result<i64> {
        let closed = self.close_now();
        self.end_waiters();
        closed
    }

    fn close_now(&self) -> Result<i64> {
        let _steady = self.work.shortening.lock();
        let mut writer = self.writing();
        writer.closed = true;
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        if self.flush.unsynced_indexes_from() < i64::MAX {
            let retired = writer.active.retire(self.config().preallocate);
            retired.map_err(|error| self.poison_unless_it_passes(error))?;
        }
        self.write_snapshot(&writer.producers, writer.next_offset)?;
        drop(writer);
        self.flush(true)?;
        Ok(self.flush.flushed())
    }

    /// Ends appending and writes nothing: the directory is removed.
    pub(crate) fn abandon(&self) {
        let _swapping = self.work.swapping.lock();
        let segments = {
            let mut writer = self.writing();
            writer.closed = true;
            self.view.segments()
        };
        // First: a flush that meets a closed file has not failed.
        self.failure.set("the topic was deleted".into());
        segments.iter().for_each(|segment| segment.close());
        let _ = self.flush(false).map_err(|error| self.waiters.fail(&error));
    }

    /// Writes the producers as they are at `offset`, unless a snapshot stands there or behind.
    pub(super) fn write_snapshot(&self, producers: &Producers, offset: i64) -> Result<()> {
        let mut newest = self.flush.snapshot_offset();
        if *newest >= offset {
            return Ok(());
        }
        let path = names::segment_file(&self.dir, offset, names::SNAPSHOT_SUFFIX);
        replace(&*self.shared.disk, &path, &producers.to_snapshot(), SyncWhen::Later, &self.at)?;
        self.flush.name_made();
        *newest = offset;
        self.prune_snapshots(offset)
    }

    fn prune_snapshots(&self, newest: i64) -> Result<()> {
        let disk = &*self.shared.disk;
        let mut offsets = self.snapshots()?;
        offsets.retain(|offset| *offset <= newest);
        let surplus = offsets.len().saturating_sub(SNAPSHOTS_KEPT);
        for offset in offsets.into_iter().take(surplus) {
            // One that stays is only a file too many.
            let _ = disk.remove_file(&names::segment_file(&self.dir, offset, names::SNAPSHOT_SUFFIX));
        }
        Ok(())
    }
}

/// What `found` by retention becomes where groups need the log from `needed` on: no more than they have passed, but what is beyond
/// the limits of that. Pure.
fn start_for_groups(
    found: (i64, RetentionLimit),
    needed: i64,
    (segments, config): (&[Aged], &LogConfig),
    now_ms: i64,
    end_offset: i64,
) -> (i64, RetentionLimit) {
    if found.0 <= needed {
        return found;
    }
    let (most_ms, most_bytes) =
        (config.retention_until_checkpointed_max_ms, config.retention_until_checkpointed_max_bytes);
    let config = LogConfig { retention_ms: most_ms, retention_bytes: most_bytes, ..config.clone() };
    let (most, limit) = start_to_keep(segments, &config, now_ms, end_offset);
    let most = most.min(found.0);
    if most <= needed {
        return (needed, found.1);
    }
    let limit = match limit {
        RetentionLimit::Bytes(_) => RetentionLimit::NeededBytes(most_bytes),
        _ => RetentionLimit::NeededForMs(most_ms),
    };
    (most, limit)
}

/// Where the log may begin by retention: the base of the first segment that must stay, or `end_offset` when none must.
/// Pure. Only a run of segments from the front is given up.
fn start_to_keep(
    segments: &[Aged],
    config: &LogConfig,
    now_ms: i64,
    end_offset: i64,
) -> (i64, RetentionLimit) {
    let ((most_ms, local_ms), (most_bytes, local_bytes)) = (config.kept_ms(), config.kept_bytes());
    let expired = |s: &Aged| most_ms >= 0 && now_ms.saturating_sub(s.newest_ms) > most_ms;
    let by_time = segments.iter().take_while(|s| expired(s)).count();
    let total: u64 = segments.iter().map(|s| s.size).sum();
    let by_size = match u64::try_from(most_bytes) {
        Err(_) => 0,
        Ok(limit) => {
            let mut surplus = total.saturating_sub(limit);
            let whole = |s: &&Aged| {
                let fits = surplus >= s.size && surplus > 0;
                surplus = surplus.saturating_sub(s.size);
                fits
            };
            // The size never takes the segment that is appended to.
            segments.iter().take_while(whole).count().min(segments.len().saturating_sub(1))
        }
    };
    let start = segments.get(by_time.max(by_size)).map_or(end_offset, |s| s.base_offset);
    let limit = match (by_time >= by_size, local_ms, local_bytes) {
        (true, false, _) => RetentionLimit::ForMs(most_ms),
        (true, true, _) => RetentionLimit::LocalForMs(most_ms),
        (false, _, false) => RetentionLimit::Bytes(most_bytes),
        (false, _, true) => RetentionLimit::LocalBytes(most_bytes),
    };
    (start, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(newest: &[i64]) -> Vec<Aged> {
        let aged = |(i, newest_ms): (usize, &i64)| Aged {
            base_offset: i as i64 * 10,
            size: 100,
            newest_ms: *newest_ms,
        };
        newest.iter().enumerate().map(aged).collect()
    }

    fn start(newest: &[i64], retention_ms: i64, retention_bytes: i64) -> i64 {
        let config = LogConfig { retention_ms, retention_bytes, ..LogConfig::default() };
        start_to_keep(&segments(newest), &config, 1_000, 99).0
    }

    #[test]
    fn only_a_run_of_expired_segments_from_the_front_goes() {
        assert_eq!(start(&[100, 200, 900], 500, -1), 20);
        assert_eq!(start(&[100, 900, 200], 500, -1), 10);
        assert_eq!(start(&[900, 100, 100], 500, -1), 0);
        assert_eq!(start(&[100, 100, 100], 500, -1), 99, "all expired: everything goes");
        assert_eq!(start(&[100, 100, 100], -1, -1), 0);
    }

    #[test]
    fn of_a_log_that_is_archived_the_local_limits_count_where_they_are_given() {
        let limits = |remote_storage_enable, local_retention_ms, remote_log_copy_disable| {
            let config = LogConfig {
                remote_storage_enable,
                remote_log_copy_disable,
                local_retention_ms,
                retention_ms: 900,
                ..LogConfig::default()
            };
            start_to_keep(&segments(&[0, 500, 950]), &config, 1_000, 99)
        };
        assert_eq!(limits(false, 100, false), (10, RetentionLimit::ForMs(900)));
        assert_eq!(limits(true, -2, false), (10, RetentionLimit::ForMs(900)));
        assert_eq!(limits(true, 100, false), (20, RetentionLimit::LocalForMs(100)));
        assert_eq!(limits(true, -1, false), (0, RetentionLimit::LocalForMs(-1)));
        assert_eq!(limits(true, 100, true), (10, RetentionLimit::ForMs(900)), "nothing is copied any more");
    }

    #[test]
    fn what_groups_need_stays_up_to_the_limits_of_that() {
        let start = |needed, most_ms, most_bytes| {
            let config = LogConfig {
                retention_ms: 100,
                retention_until_checkpointed_max_ms: most_ms,
                retention_until_checkpointed_max_bytes: most_bytes,
                ..LogConfig::default()
            };
            let segments = segments(&[0, 400, 800, 1_000]);
            let found = start_to_keep(&segments, &config, 1_000, 99);
            assert_eq!(found, (30, RetentionLimit::ForMs(100)));
            start_for_groups(found, needed, (&segments, &config), 1_000, 99)
        };
        assert_eq!(start(0, -1, -1), (0, RetentionLimit::ForMs(100)));
        assert_eq!(start(15, -1, -1), (15, RetentionLimit::ForMs(100)));
        assert_eq!(start(30, -1, -1), (30, RetentionLimit::ForMs(100)), "all have passed it");
        assert_eq!(start(i64::MAX, -1, -1), (30, RetentionLimit::ForMs(100)));
        assert_eq!(start(0, 500, -1), (20, RetentionLimit::NeededForMs(500)));
        assert_eq!(start(0, 0, -1), (30, RetentionLimit::NeededForMs(0)), "no more than retention wants");
        assert_eq!(start(0, -1, 300), (10, RetentionLimit::NeededBytes(300)));
        assert_eq!(start(15, -1, 300), (15, RetentionLimit::ForMs(100)), "they are further than the limit");
    }

    #[test]
    fn size_takes_whole_segments_and_never_the_last() {
        assert_eq!(start(&[0, 0, 0], -1, 300), 0);
        assert_eq!(start(&[0, 0, 0], -1, 299), 0, "the surplus is less than a segment");
        assert_eq!(start(&[0, 0, 0], -1, 200), 10);
        assert_eq!(start(&[0, 0, 0], -1, 0), 20);
        assert_eq!(start(&[0], -1, 0), 0);
    }
}
