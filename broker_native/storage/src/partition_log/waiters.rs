//! Who waits for a record: until it is as durable as the topic promises (acks=1), or until all in-sync replicas have it
//! (acks=all). In a log with one replica both are the same.
use std::sync::atomic::Ordering;

use super::durable::FlushNeed;
use super::{DurableCallback, PartitionLog, Role};
use crate::error::StorageError;

/// A producer that waits for its record.
struct Waiter {
    last_offset: i64,
    done: DurableCallback,
}

/// All who wait.
#[derive(Default)]
pub(super) struct Waiters {
    durable: Vec<Waiter>,
    committed: Vec<Waiter>,
    /// The log was closed: nothing comes any more.
    closed: bool,
}

impl PartitionLog {
    /// Calls `done` when the record at `last_offset` survives what the topic's durability promises: at once for
    /// `page-cache`, after the fdatasync of a group commit for `flushed`. Called once, maybe by another thread, with no
    /// lock held.
    pub fn wait_durable(&self, last_offset: i64, done: DurableCallback) {
        if !self.is_flushed() {
            return done(Ok(()));
        }
        let mut waiters = self.waiters.lock();
        if let Some(error) = self.poisoned() {
            drop(waiters);
            return done(Err(error));
        }
        let (role, high_watermark) = self.role_and_high_watermark();
        let durable = if role == Role::Alone { high_watermark } else { self.flushed() };
        let known = match role {
            _ if durable > last_offset => Some(Ok(())),
            Role::Follower => Some(Err(self.not_leader())),
            _ => None,
        };
        if let Some(known) = known {
            drop(waiters);
            return done(known);
        }
        waiters.durable.push(Waiter { last_offset, done });
        drop(waiters);
        self.flush_for_waiter();
    }

    /// Calls `done` when the high watermark has passed the record at `last_offset`: every in-sync replica has it. Where
    /// this is the only replica, as [`PartitionLog::wait_durable`]. The record was appended while this broker led in
    /// `leader_epoch`: when it did not lead all the time since, another record may stand at that offset, which is
    /// [`StorageError::NotLeader`], also when it stops leading while this waits; [`StorageError::Closed`] when the log is closed.
    pub fn wait_committed(&self, leader_epoch: i32, last_offset: i64, done: DurableCallback) {
        let mut waiters = self.waiters.lock();
        let (role, high_watermark) = self.role_and_high_watermark();
        let interrupted = role == Role::Follower || leader_epoch < self.led_since();
        let known = match role {
            _ if interrupted => Some(Err(self.not_leader())),
            Role::Alone => None,
            _ if high_watermark > last_offset => Some(Ok(())),
            _ if waiters.closed => Some(Err(StorageError::Closed { at: self.at.clone() })),
            _ => self.poisoned().map(Err),
        };
        if let Some(known) = known {
            drop(waiters);
            return done(known);
        }
        if role == Role::Alone {
            drop(waiters);
            return self.wait_durable(last_offset, done);
        }
        waiters.committed.push(Waiter { last_offset, done });
        drop(waiters);
        if self.is_flushed() {
            self.flush_for_waiter();
        }
    }

    /// The append has asked for the flush. Without flusher threads it is done here.
    fn flush_for_waiter(&self) {
        if !self.scheduled.load(Ordering::Acquire) && !self.schedule(FlushNeed::Now) {
            self.flush_as_scheduled();
        }
    }

    /// Calls those who wait for records before `durable` to be durable, or before `committed` to be committed.
    pub(super) fn complete_waiters(&self, durable: i64, committed: i64) {
        let done = {
            let mut waiters = self.waiters.lock();
            let mut done = take(&mut waiters.durable, |waiter| waiter.last_offset < durable);
            done.extend(take(&mut waiters.committed, |waiter| waiter.last_offset < committed));
            done
        };
        done.into_iter().for_each(|waiter| (waiter.done)(Ok(())));
    }

    /// Tells all who wait that it comes to nothing.
    pub(super) fn fail_waiters(&self, error: &StorageError) {
        let failed = {
            let mut waiters = self.waiters.lock();
            let mut failed = std::mem::take(&mut waiters.durable);
            failed.append(&mut waiters.committed);
            failed
        };
        failed.into_iter().for_each(|waiter| (waiter.done)(Err(error.clone())));
    }

    /// The log was closed: who still waits, and who comes to wait, is told so.
    pub(super) fn end_waiters(&self) {
        self.waiters.lock().closed = true;
        self.fail_waiters(&StorageError::Closed { at: self.at.clone() });
    }

    pub(super) fn not_leader(&self) -> StorageError {
        StorageError::NotLeader { at: self.at.clone() }
    }
}

/// Takes those that are `due` out of `waiters`, in their order.
fn take(waiters: &mut Vec<Waiter>, due: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
    if !waiters.iter().any(&due) {
        return Vec::new();
    }
    let (taken, left) = waiters.drain(..).partition(due);
    *waiters = left;
    taken
}
