//! A log that several brokers have: what this broker is to it, and the high watermark, which is then moved from outside.
//!
//! | role | high watermark | writes |
//! |---|---|---|
//! | [`Role::Alone`] | the log's end, or what is flushed (`durability=flushed`) | [`PartitionLog::append`] |
//! | [`Role::Leader`] | [`PartitionLog::move_high_watermark`]: what the ISR has | [`PartitionLog::append`] |
//! | [`Role::Follower`] | the same: what the leader says, and the log has | [`PartitionLog::append_replica`] |
//!
//! `replication-offset-checkpoint` says at the start where the high watermark was. It may be behind, never ahead of what
//! was committed: a truncation lowers it first.
use super::flush_state::FlushNeed;
use super::listeners::AdvanceListener;
use super::mark::{Mark, bound_of};
use super::role::Role;
use super::view::{Leadership, Move, View};
use super::{PartitionLog, Writer};
use crate::checkpoint::PartitionOffsets;
use crate::error::{Result, StorageError};

/// What a follower's append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicated {
    /// One past the last record: where to fetch next.
    pub log_end_offset: i64,
    /// Batches that were written.
    pub batches: usize,
}

impl PartitionLog {
    /// What this broker is from now on, and the epoch of the leader. A leader's epoch begins at the log's end, also when
    /// it writes nothing; like every epoch it is on the device before a record of it counts as durable. The high
    /// watermark stays, unless the log becomes alone: then all of it counts.
    ///
    /// When this broker no longer leads, producers that wait get [`StorageError::NotLeader`].
    ///
    /// # Errors
    /// None now.
    pub fn set_role(&self, role: Role, epoch: i32) -> Result<()> {
        let had = {
            let mut writer = self.writing();
            let had = writer.role;
            writer.role = role;
            writer.leader_epoch = writer.leader_epoch.max(epoch);
            if role == Role::Follower {
                self.forget_empty_epochs(&mut writer);
                writer.verifications.clear();
            } else {
                let end = writer.next_offset;
                self.note_epoch(&mut writer, epoch, end);
            }
            if role == Role::Follower || had == Role::Follower {
                writer.led_since = epoch;
            }
            self.view.set_role(role, writer.led_since);
            had
        };
        match (had, role) {
            (Role::Alone | Role::Leader, Role::Follower) => self.waiters.fail(&self.not_leader()),
            (Role::Leader | Role::Follower, Role::Alone) => self.count_alone(),
            _ => {}
        }
        Ok(())
    }

    /// There are no other replicas any more: the high watermark is what it would be had there been none.
    fn count_alone(&self) {
        if !self.is_flushed() {
            self.advance_high_watermark(self.view.end());
        } else if !self.schedule(FlushNeed::Now) {
            self.flush_as_scheduled();
        }
    }

    /// Forgets epochs that begin at the log's end: this broker led in them and wrote nothing, the records that follow may
    /// be of an older one.
    pub(super) fn forget_empty_epochs(&self, writer: &mut Writer) {
        let mut epochs = self.epochs.lock();
        epochs.truncate(writer.next_offset);
        writer.noted_epoch = epochs.latest().unwrap_or(-1);
    }

    /// Moves the high watermark to `offset`, or to the last batch that ends before; never beyond the log's end, never
    /// back. `true` when it moved. Not for a log that is alone.
    pub fn move_high_watermark(&self, offset: i64) -> bool {
        loop {
            let seen = match self.view.move_high_watermark(offset) {
                Move::Done(moved) => return self.committed(moved),
                Move::LookUp(seen) => seen,
            };
            match self.last_end(&seen, offset) {
                Ok(mark) => {
                    if let Some(moved) = self.view.show_until(&seen, mark) {
                        return self.committed(moved);
                    }
                }
                Err(_) if !self.view.has_segments_of(&seen) => {}
                // A reader of that offset gets the error.
                Err(_) => return false,
            }
        }
    }

    /// Calls the producers and listeners that wait for the high watermark; whether it has moved.
    fn committed(&self, moved: Option<i64>) -> bool {
        if let Some(high_watermark) = moved {
            self.waiters.complete(i64::MIN, high_watermark);
            self.listeners.advanced(high_watermark);
        }
        moved.is_some()
    }

    /// The end of the last batch that lies wholly before `offset`, by the index.
    pub(super) fn last_end(&self, view: &View, offset: i64) -> Result<Mark> {
        let i = view.segments.partition_point(|s| s.base_offset <= offset).saturating_sub(1);
        let Some(segment) = view.segments.get(i) else { return Ok(view.end) };
        let bound = bound_of(segment, view.end, view.segments.get(i + 1));
        let found = segment.end_before(offset, bound).map_err(|error| error.of(&self.at))?;
        Ok(Mark { offset: found.offset, segment: segment.base_offset, position: found.position })
    }

    /// One past the last record that counts as this broker's: the log's end, or what is flushed of it
    /// (`durability=flushed`).
    pub fn replicated_end(&self) -> i64 {
        let end = self.view.end().offset;
        if self.is_flushed() { self.flush.flushed().min(end) } else { end }
    }

    /// The newest epoch that has a record or was given one's place.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.epochs.lock().latest()
    }

    /// Adds a listener that is called with [`PartitionLog::replicated_end`] after each append of a leader (after the
    /// flush for `durability=flushed`), by the thread that moved it and with no lock held.
    pub fn on_append(&self, listener: AdvanceListener) {
        self.listeners.on_append(listener);
    }

    /// Lets the log begin at `offset`, as the leader's does: on the device when this returns. Not beyond the log's end;
    /// where the leader's log begins behind it, [`PartitionLog::restart_at`] is due. All before was committed.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`] and [`StorageError::Io`], after which nothing has changed.
    pub fn follow_log_start(&self, offset: i64) -> Result<()> {
        self.move_high_watermark(offset);
        let offsets = self.offsets();
        let offset = offset.min(offsets.high_watermark);
        if offset > offsets.log_start_offset {
            self.delete_records_before(offset)?;
        }
        Ok(())
    }

    /// Puts the high watermark into what is written down, when the log has other replicas. While it is truncated, what is
    /// there stays.
    pub(crate) fn note_high_watermark(&self, offsets: &mut PartitionOffsets) {
        let Some(_steady) = self.work.shortening.try_lock() else { return };
        let Leadership { role, high_watermark, .. } = self.view.leadership();
        match role {
            Role::Alone => _ = offsets.remove(&self.at),
            Role::Leader | Role::Follower => _ = offsets.insert(self.at.clone(), high_watermark),
        }
    }

    /// Sets the high watermark to what its checkpoint says. For a log that is not in use yet.
    pub(super) fn begin_where_checkpointed(&self) -> Result<()> {
        let known = self.shared.high_watermarks.get(&self.at).unwrap_or(0);
        let view = self.view.now();
        if known >= view.end.offset {
            return Ok(());
        }
        let start = view.log_start_offset;
        let found = if known > start { Some(self.last_end(&view, known)?) } else { None };
        let mark = found.filter(|mark| mark.offset > start).unwrap_or_else(|| {
            // No reader begins before it.
            let segment = view.segments.first().map_or(start, |segment| segment.base_offset);
            Mark { offset: start, segment, position: 0 }
        });
        let ended = self.ended_behind(&view, mark)?;
        self.view.begin_at(mark, ended);
        Ok(())
    }

    pub(super) fn not_leader(&self) -> StorageError {
        StorageError::NotLeader { at: self.at.clone() }
    }

    pub(super) fn not_follower(&self) -> StorageError {
        StorageError::NotFollower { at: self.at.clone() }
    }
}
