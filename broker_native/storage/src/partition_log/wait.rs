//! Waiting for a record: until it is as durable as the topic promises (acks=1), or until all in-sync replicas have it
//! (acks=all). In a log with one replica both are the same.
use super::PartitionLog;
use super::flush_state::FlushNeed;
use super::role::Role;
use super::view::Leadership;
use super::waiters::DurableCallback;
use crate::error::StorageError;

impl PartitionLog {
    /// Calls `done` when the record at `last_offset` survives what the topic's durability promises: at once for
    /// `page-cache`, after the fdatasync of a group commit for `flushed`. Called once, maybe by another thread, with no
    /// lock held.
    pub fn wait_durable(&self, last_offset: i64, done: DurableCallback) {
        if !self.is_flushed() {
            return done(Ok(()));
        }
        let mut waiting = self.waiters.lock();
        if let Some(error) = self.poisoned() {
            drop(waiting);
            return done(Err(error));
        }
        let Leadership { role, high_watermark, .. } = self.view.leadership();
        let durable = if role == Role::Alone { high_watermark } else { self.flush.flushed() };
        let known = match role {
            _ if durable > last_offset => Some(Ok(())),
            Role::Follower => Some(Err(self.not_leader())),
            _ => None,
        };
        if let Some(known) = known {
            drop(waiting);
            return done(known);
        }
        waiting.add_durable(last_offset, done);
        drop(waiting);
        self.flush_for_waiter();
    }

    /// Calls `done` when the high watermark has passed the record at `last_offset`: every in-sync replica has it. Where
    /// this is the only replica, as [`PartitionLog::wait_durable`]. The record was appended while this broker led in
    /// `leader_epoch`: when it did not lead all the time since, another record may stand at that offset, which is
    /// [`StorageError::NotLeader`], also when it stops leading while this waits; [`StorageError::Closed`] when the log is closed.
    pub fn wait_committed(&self, leader_epoch: i32, last_offset: i64, done: DurableCallback) {
        let mut waiting = self.waiters.lock();
        let Leadership { role, led_since, high_watermark } = self.view.leadership();
        let interrupted = role == Role::Follower || leader_epoch < led_since;
        let known = match role {
            _ if interrupted => Some(Err(self.not_leader())),
            Role::Alone => None,
            _ if high_watermark > last_offset => Some(Ok(())),
            _ if waiting.closed => Some(Err(StorageError::Closed { at: self.at.clone() })),
            _ => self.poisoned().map(Err),
        };
        if let Some(known) = known {
            drop(waiting);
            return done(known);
        }
        if role == Role::Alone {
            drop(waiting);
            return self.wait_durable(last_offset, done);
        }
        waiting.add_committed(last_offset, done);
        drop(waiting);
        if self.is_flushed() {
            self.flush_for_waiter();
        }
    }

    /// The append has asked for the flush. Without flusher threads it is done here.
    fn flush_for_waiter(&self) {
        if !self.flush.is_scheduled() && !self.schedule(FlushNeed::Now) {
            self.flush_as_scheduled();
        }
    }

    /// The log was closed: all who wait, and all who come to wait, get [`StorageError::Closed`].
    pub(super) fn end_waiters(&self) {
        self.waiters.lock().closed = true;
        self.waiters.fail(&StorageError::Closed { at: self.at.clone() });
    }
}
