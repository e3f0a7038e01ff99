//! Making a log, opening it after a clean stop, recovering it after an unclean one.
//!
//! The recovery point is an offset up to which all was on the device when it was written down. Behind it the log may
//! end in anything: recovery walks there, cuts at the first batch that is not whole and takes away what follows
//! ([`CutTail`] reports it; `cut` keeps it). Before it every batch must be there: a bad one is [`StorageError::Corrupt`], and no file is
//! changed. A clean stop leaves recovery point = log end, so nothing but the active segment's last stretch is read.
//!
//! [`StorageError::Corrupt`]: super::super::error::StorageError::Corrupt
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use super::cut::Keeper;
use super::failure::Failure;
use super::flush_state::{FlushStart, FlushState};
use super::listeners::Listeners;
use super::mark::Mark;
use super::opening::Opening;
use super::replay::newest_snapshot;
use super::role::Role;
use super::swap::{finish_swaps, set_swaps_aside};
use super::truncate::finish_truncation;
use super::view::{LogView, View};
use super::waiters::Waiters;
use super::{OpenReport, PartitionLog, WorkLocks, Writer};
use crate::config::{Durability, LogConfig};
use crate::disk::{DirEntry, odd};
use crate::epochs::LeaderEpochs;
use crate::error::{Result, StorageError, TopicPartition};
use crate::files::SyncWhen;
use crate::identity::{read_topic_id, write_topic_id};
use crate::names;
use crate::producers::verification::Verifications;
use crate::segment::{Bound, Segment, SegmentError};
use crate::shared::Shared;
use crate::types::CutTail;

/// Removal at once.
const NO_DELAY: i64 = 0;

/// Why the log ends.
enum End {
    /// In the segment that was walked.
    Inside(String),
    /// Before it: it is no continuation.
    Before(String),
}

impl PartitionLog {
    /// Opens the partition's directory or makes it. `clean`: the last user of the data directory stopped cleanly.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        at: &TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        role: Role,
        clean: bool,
    ) -> Result<Arc<Self>> {
        let dir: Arc<Path> = names::partition_dir(&shared.dir, at)?.into();
        if shared.disk.is_link(&dir) {
            let cause = odd("it is a symbolic link; put the folder itself there");
            return Err(StorageError::io("open", &dir, &cause));
        }
        let mut opening = Opening::new(shared, (at, topic_id), dir.clone(), &config);
        opening.held = shared.inventory.expected(at, topic_id);
        let topic_id = match shared.disk.list(&dir) {
            Ok(mut entries) => {
                opening.compare(Some(&entries), &dir)?;
                if clean || !opening.settings().gaps {
                    entries = set_swaps_aside(&*shared.disk, &dir, entries, &mut opening.notes)?;
                }
                if !clean {
                    finish_truncation(&*shared.disk, &dir, &entries)?;
                }
                let entries = finish_swaps(&*shared.disk, &dir, entries)?;
                opening.load(entries, topic_id, clean)?
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                opening.compare(None, &dir)?;
                opening.check_missing(&dir, clean)?;
                opening.make(topic_id)?
            }
            Err(cause) => return Err(StorageError::io("list", &dir, &cause)),
        };
        let flush_first = !opening.clean && opening.recovery_point < opening.next_offset;
        let log = opening.finish(topic_id, &config, role)?;
        if role != Role::Alone {
            log.begin_where_checkpointed()?;
        }
        shared.inventory.forget(&*shared.disk, [at])?;
        if flush_first && log.is_flushed() {
            // What recovery found may never have been on the device, and is visible from now on.
            log.flush(true)?;
        }
        Ok(log)
    }
}

impl Opening<'_> {
    fn make(&mut self, topic_id: Uuid) -> Result<Uuid> {
        self.forget_checkpoints()?;
        let made = self.shared.disk.create_dir_all(&self.dir);
        made.map_err(|e| StorageError::io("make", &self.dir, &e))?;
        self.shared.unsynced.store(true, std::sync::atomic::Ordering::Release);
        self.shared.made.lock().push(self.at.clone());
        write_topic_id(&*self.shared.disk, &self.dir, topic_id, SyncWhen::Later, self.at)?;
        self.topic_id_unsynced = true;
        self.begin_at(0)?;
        Ok(topic_id)
    }

    /// A directory of that name may have been there before, and a checkpoint may still name it.
    fn forget_checkpoints(&self) -> Result<()> {
        self.shared.forget(std::slice::from_ref(self.at))
    }

    /// Adds an empty segment at `offset`.
    fn begin_at(&mut self, offset: i64) -> Result<()> {
        let now_ms = self.shared.clock.now_ms();
        let settings = self.settings();
        let made = Segment::create(&self.shared.pool, &self.dir, offset, settings, now_ms);
        self.segments.push(Arc::new(made.map_err(|error| error.of(self.at))?));
        self.next_offset = offset;
        self.clean = false;
        self.unsynced_from = self.unsynced_from.min(offset);
        Ok(())
    }

    fn load(&mut self, entries: Vec<DirEntry>, topic_id: Uuid, clean: bool) -> Result<Uuid> {
        self.clean = clean;
        let ended = self.held.as_ref().and_then(|held| held.log_end);
        self.recovery_point = self.shared.recovery_points.get(self.at).max(ended).unwrap_or(0);
        self.log_start_offset = self.shared.log_starts.get(self.at).unwrap_or(0);
        self.check_files(&entries)?;
        let topic_id = self.check_topic_id(topic_id)?;
        let bases = self.sort_files(&entries);
        for base_offset in bases {
            let settings = self.settings();
            let found = Segment::existing(&self.shared.pool, &self.dir, base_offset, settings);
            self.segments.push(Arc::new(found.map_err(|error| error.of(self.at))?));
        }
        if !clean {
            self.check_first()?;
        }
        self.epochs = LeaderEpochs::load(&*self.shared.disk, &self.dir, clean, self.recovery_point)?;
        self.note_no_segment();
        self.mend_start()?;
        if clean {
            self.check_start()?;
        }
        self.drop_before_start()?;
        if !clean {
            self.note_lost_active(&entries);
        }
        self.adopt_aborted()?;
        if clean {
            self.open_clean()?;
        } else {
            self.recover()?;
        }
        self.mend_aborted()?;
        self.mend_epochs()?;
        self.epochs.clip(self.log_start_offset, self.next_offset.max(self.log_start_offset + 1));
        Ok(topic_id)
    }

    fn check_topic_id(&mut self, given: Uuid) -> Result<Uuid> {
        let stored = match read_topic_id(&*self.shared.disk, &self.dir) {
            // Torn by a loss of power before the first flush.
            Err(StorageError::Malformed { .. }) if !self.clean && self.recovery_point == 0 => None,
            read => read?,
        };
        match stored {
            Some(stored) if given.is_nil() || stored == given => Ok(stored),
            Some(stored) => Err(StorageError::Mismatch {
                file: self.dir.join(names::PARTITION_METADATA),
                reason: format!(
                    "it belongs to topic id {stored}, not {given}; remove the directory to start anew"
                ),
            }),
            None => {
                write_topic_id(&*self.shared.disk, &self.dir, given, SyncWhen::Later, self.at)?;
                self.topic_id_unsynced = true;
                Ok(given)
            }
        }
    }

    /// The base offsets of the segments; removes what an interrupted change left, notes the snapshots.
    fn sort_files(&mut self, entries: &[DirEntry]) -> Vec<i64> {
        let is = |name: &str, wanted: &str| names::parse_segment_file(name).is_some_and(|(_, s)| s == wanted);
        let offset = |name: &str| names::parse_segment_file(name).map(|(offset, _)| offset);
        let mut bases: Vec<i64> = entries
            .iter()
            .filter(|e| is(&e.name, names::LOG_SUFFIX))
            .filter_map(|e| offset(&e.name))
            .collect();
        bases.sort_unstable();
        for entry in entries {
            let name = entry.name.as_str();
            let beside_log = [names::INDEX_SUFFIX, names::TIME_INDEX_SUFFIX, names::TXN_INDEX_SUFFIX];
            let orphan = beside_log.iter().any(|suffix| is(name, suffix))
                && offset(name).is_none_or(|offset| bases.binary_search(&offset).is_err());
            if name.ends_with(names::DELETED_SUFFIX) || name.ends_with(names::TMP_SUFFIX) || orphan {
                // One that stays does no harm.
                let _ = self.shared.disk.remove_file(&self.dir.join(name));
            } else if is(name, names::SNAPSHOT_SUFFIX) {
                self.snapshots.extend(offset(name));
            } else if is(name, names::TXN_INDEX_SUFFIX) {
                self.with_aborted.extend(offset(name));
            }
        }
        self.snapshots.sort_unstable();
        bases
    }

    /// Removes segments that end before the log's start: retention was interrupted.
    fn drop_before_start(&mut self) -> Result<()> {
        let bases = self.segments.iter().skip(1).map(|s| s.base_offset);
        let count = bases.take_while(|base| *base <= self.log_start_offset).count();
        for segment in self.segments.drain(..count).collect::<Vec<_>>() {
            self.remove(&segment);
        }
        // Kafka does not write down what retention removed.
        let first = self.segments.first().map(|s| s.base_offset);
        if let Some(first) = first.filter(|first| *first <= self.recovery_point || self.clean) {
            self.note_later_start(first)?;
            self.log_start_offset = self.log_start_offset.max(first);
        }
        Ok(())
    }

    fn remove(&self, segment: &Segment) {
        for path in segment.paths() {
            self.shared.bury_file(&path, NO_DELAY);
        }
        segment.close();
    }

    fn open_clean(&mut self) -> Result<()> {
        let Some(active) = self.segments.last().cloned() else {
            self.next_offset = self.log_start_offset;
            self.check_reaches_recovery_point()?;
            return self.begin_at(self.log_start_offset);
        };
        self.next_offset = active.find_end().map_err(|error| error.of(self.at))?;
        self.check_reaches_recovery_point()?;
        self.recovery_point = self.next_offset;
        let from = self.load_snapshot(self.next_offset);
        self.replay_producers(from)
    }

    /// The producers of the newest good snapshot up to `limit`; gives the offset it stands for.
    fn load_snapshot(&mut self, limit: i64) -> i64 {
        let now_ms = self.shared.clock.now_ms();
        // A snapshot says nothing of markers between it and the first batch that retention left: a transaction would stay
        // open for ever (power cut, seed 18).
        let first = self.segments.first().map_or(0, |segment| segment.base_offset);
        let offsets = self.snapshots.iter().copied().filter(|at| (first..=limit).contains(at));
        let Some((offset, producers)) = newest_snapshot(&*self.shared.disk, &self.dir, offsets, now_ms)
        else {
            return self.log_start_offset;
        };
        self.producers = producers;
        self.snapshot_offset = offset;
        offset
    }

    /// Brings the producers from `from` to the log's end, by headers.
    fn replay_producers(&mut self, from: i64) -> Result<()> {
        if from >= self.next_offset {
            return Ok(());
        }
        let now_ms = self.shared.clock.now_ms();
        let producers = &mut self.producers;
        let first = self.segments.partition_point(|s| s.base_offset <= from).saturating_sub(1);
        for segment in self.segments.iter().skip(first) {
            let bound = Bound { position: segment.size(), offset: i64::MAX };
            let walked = segment.walk(from, bound, |header, end| _ = producers.note(header, end, now_ms));
            walked.map_err(|error| error.of(self.at))?;
        }
        Ok(())
    }

    fn recover(&mut self) -> Result<()> {
        if self.ends_at_recovery_point() {
            // Nothing was appended since all was on the device; but a segment may have been begun, and its name is not
            // known to be there (power cut, seed 3035).
            self.clean = true;
            self.unsynced_names = true;
            self.next_offset = self.recovery_point;
            let from = self.load_snapshot(self.next_offset);
            self.drop_snapshots_behind();
            self.check_ends(self.segments.len())?;
            return self.replay_producers(from);
        }
        let from = self.load_snapshot(self.recovery_point);
        let from_offset = from.min(self.recovery_point);
        let first = self.segments.partition_point(|s| s.base_offset <= from_offset).saturating_sub(1);
        self.check_ends(first)?;
        let segments = self.segments.clone();
        // A first segment behind the log's start stands there for no record that was ever on the device.
        let bases = segments.get(first).map(|segment| segment.base_offset);
        self.next_offset = match bases {
            Some(base_offset) if first > 0 || base_offset <= self.log_start_offset => base_offset,
            _ => self.log_start_offset,
        };
        self.unsynced_from = self.next_offset;
        // What the batches say is written anew from there on; of the first of them only what lies behind the snapshot.
        self.bad_aborted.retain(|base_offset| *base_offset < from);
        for (i, segment) in segments.iter().enumerate().skip(first) {
            if let Some(end) = self.recover_one(segment, from, from_offset)? {
                self.cut_behind(i, segment, end)?;
                break;
            }
        }
        self.check_reaches_recovery_point()?;
        self.drop_snapshots_behind();
        if self.next_offset < self.log_start_offset {
            return self.start_over();
        }
        if self.segments.is_empty() {
            return self.begin_at(self.log_start_offset);
        }
        Ok(())
    }

    /// Whether the log ends, whole, exactly at the recovery point: most logs of a broker with many, after a kill.
    fn ends_at_recovery_point(&self) -> bool {
        let Some(active) = self.segments.last() else { return false };
        let reached =
            active.base_offset <= self.recovery_point && self.log_start_offset <= self.recovery_point;
        reached && self.recovery_point > 0 && active.find_end().is_ok_and(|end| end == self.recovery_point)
    }

    /// Walks one segment; says when the log ends in it or before it.
    fn recover_one(&mut self, segment: &Segment, from: i64, from_offset: i64) -> Result<Option<End>> {
        let expected = self.next_offset;
        let durable_offset = self.durable_offset();
        // Only before the recovery point has compaction left gaps; behind it, a segment is missing (power cut, seed 121).
        let gap = expected..=self.recovery_point;
        if segment.base_offset != expected && !(self.settings().gaps && gap.contains(&segment.base_offset)) {
            let reason = format!("the log goes on at offset {}", segment.base_offset);
            return if expected < durable_offset {
                Err(self.corrupt(segment, expected, reason))
            } else {
                Ok(Some(End::Before(reason)))
            };
        }
        let wrong = |error: SegmentError| error.of(self.at);
        if self.config.durability == Durability::Flushed {
            segment.drop_cache().map_err(wrong)?;
        }
        let now_ms = self.shared.clock.now_ms();
        let mut aborted = segment.aborted_txns().map_err(wrong)?;
        aborted.retain(|txn| txn.last_offset < from);
        let (producers, epochs) = (&mut self.producers, &mut self.epochs);
        // Where the walk does not begin with the segment, it is not known where the batch before it ends.
        let mut end_before = (from_offset <= segment.base_offset).then_some(expected);
        let scanned = segment.recover(from_offset, durable_offset, |header, end| {
            // The batch that the log's start lies in counts, too.
            if header.last_offset() >= from {
                aborted.extend(producers.note(header, end, now_ms).and_then(|ended| ended.aborted()));
            }
            epochs.recover(end_before.unwrap_or(header.base_offset), header);
            end_before = Some(header.last_offset() + 1);
        });
        let scanned = scanned.map_err(wrong)?;
        match scanned.torn {
            Some(reason) if scanned.next_offset < durable_offset => {
                Err(self.corrupt(segment, scanned.next_offset, reason))
            }
            torn => {
                segment.replace_aborted(&aborted).map_err(wrong)?;
                self.next_offset = scanned.next_offset;
                Ok(torn.map(End::Inside))
            }
        }
    }

    /// Up to where batches must be there: nothing that is missed before the log's start is missed at all.
    fn durable_offset(&self) -> i64 {
        if self.log_start_offset < self.recovery_point { self.recovery_point } else { 0 }
    }

    /// Ends the log in segment `i` or before it, on the device, too.
    fn cut_behind(&mut self, i: usize, segment: &Segment, end: End) -> Result<()> {
        let before = self.bytes_on_disk();
        let stays = match end {
            End::Inside(_) => segment.size(),
            End::Before(_) => 0,
        };
        let coming =
            before.saturating_sub(self.segments.iter().take(i).map(|s| s.size()).sum::<u64>() + stays);
        let dir = Arc::clone(&self.dir);
        let most = self.shared.config.recovery_kept_bytes;
        let mut keeper = Keeper::new(&*self.shared.disk, &dir, most, coming);
        let (keep, reason) = match end {
            End::Inside(reason) => {
                keeper.tail(segment, self.next_offset);
                segment.cut().map_err(|error| error.of(self.at))?;
                (i + 1, reason)
            }
            End::Before(reason) => (i, reason),
        };
        // From behind: a loss of power in between must not leave one that seems to continue the log.
        for later in self.segments.drain(keep..).rev().collect::<Vec<_>>() {
            keeper.segment(&later);
            self.remove(&later);
        }
        let kept = keeper.kept;
        let synced = self.shared.disk.sync_dir(&self.dir);
        synced.map_err(|e| StorageError::io("sync", &self.dir, &e))?;
        let bytes = before.saturating_sub(self.bytes_on_disk());
        let file = segment.path_of(names::LOG_SUFFIX);
        self.cut_tail = Some(CutTail {
            offset: self.next_offset,
            bytes,
            kept,
            reason: format!("{}: {reason}", file.display()),
        });
        Ok(())
    }

    fn bytes_on_disk(&self) -> u64 {
        let len = |s: &Arc<Segment>| self.shared.disk.file_len(&s.path_of(names::LOG_SUFFIX)).unwrap_or(0);
        self.segments.iter().map(len).sum()
    }

    /// All that is left was given up before: the log goes on, empty, where it begins.
    fn start_over(&mut self) -> Result<()> {
        for segment in std::mem::take(&mut self.segments) {
            self.remove(&segment);
        }
        self.begin_at(self.log_start_offset)
    }

    fn corrupt(&self, segment: &Segment, offset: i64, reason: String) -> StorageError {
        let file = segment.path_of(names::LOG_SUFFIX);
        StorageError::Corrupt { at: self.at.clone(), offset, file, reason }
    }

    /// Snapshots of a log that was longer say nothing about this one.
    fn drop_snapshots_behind(&mut self) {
        for offset in self.snapshots.iter().filter(|offset| **offset > self.recovery_point) {
            let _ = self.shared.disk.remove_file(&names::segment_file(
                &self.dir,
                *offset,
                names::SNAPSHOT_SUFFIX,
            ));
        }
    }

    fn finish(self, topic_id: Uuid, config: &LogConfig, role: Role) -> Result<Arc<PartitionLog>> {
        let Some(active) = self.segments.last().cloned() else {
            return Err(StorageError::NotFound { at: self.at.clone() });
        };
        let end = Mark { offset: self.next_offset, segment: active.base_offset, position: active.size() };
        let now_ms = self.shared.clock.now_ms();
        let writer = Writer {
            role,
            led_since: i32::MIN,
            leader_epoch: -1,
            active,
            next_offset: self.next_offset,
            noted_epoch: self.epochs.latest().unwrap_or(-1),
            unflushed_records: 0,
            closed: false,
            producers: self.producers,
            verifications: Verifications::default(),
        };
        let view = LogView::new(View {
            role,
            segments: Arc::new(self.segments),
            log_start_offset: self.log_start_offset,
            high_watermark: end,
            end,
            first_open_offset: writer.producers.first_open_offset(),
            first_pending_offset: None,
        });
        let flush = FlushState::new(FlushStart {
            flushed_offset: self.recovery_point.min(end.offset),
            unsynced_indexes_from: self.unsynced_from,
            unsynced_names: self.unsynced_names || !self.clean,
            // After an unclean stop it is not known whether it was.
            unsynced_topic_id: self.topic_id_unsynced || (!self.clean && self.recovery_point == 0),
            dirty_since_ms: if self.clean { i64::MAX } else { now_ms },
            snapshot_offset: self.snapshot_offset,
        });
        Ok(Arc::new_cyclic(|me| PartitionLog {
            at: self.at.clone(),
            topic_id,
            dir: self.dir,
            shared: self.shared.clone(),
            me: me.clone(),
            config: RwLock::new(Arc::new(config.clone())),
            writer: Mutex::new(writer),
            epochs: Mutex::new(self.epochs),
            view,
            flush,
            failure: Failure::default(),
            waiters: Waiters::default(),
            listeners: Listeners::default(),
            work: WorkLocks::default(),
            opened: OpenReport { cut_tail: self.cut_tail, notes: self.notes },
            archived_until: AtomicI64::new(0),
            needed_from: AtomicI64::new(0),
        }))
    }
}
