//! The producers that wait for their records.
//!
//! Callbacks are called with no lock held.
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Result, StorageError};

/// Called once when a record is durable or can no longer become so.
pub type DurableCallback = Box<dyn FnOnce(Result<()>) + Send>;

/// A producer that waits for its record.
struct Waiter {
    last_offset: i64,
    done: DurableCallback,
}

/// All who wait, behind one lock.
#[derive(Default)]
pub(super) struct Waiters(Mutex<Waiting>);

/// All who wait.
#[derive(Default)]
pub(super) struct Waiting {
    durable: Vec<Waiter>,
    committed: Vec<Waiter>,
    /// The log was closed: nothing comes any more.
    pub closed: bool,
}

impl Waiting {
    /// Adds one that waits until its record is durable.
    pub fn add_durable(&mut self, last_offset: i64, done: DurableCallback) {
        self.durable.push(Waiter { last_offset, done });
    }

    /// Adds one that waits until its record is committed.
    pub fn add_committed(&mut self, last_offset: i64, done: DurableCallback) {
        self.committed.push(Waiter { last_offset, done });
    }
}

impl Waiters {
    /// Keeps the list as it is while the guard lives: a caller that looks whether it has to wait misses no completion meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock()
    }

    /// Calls those who wait for records before `durable` to be durable, or before `committed` to be committed.
    pub fn complete(&self, durable: i64, committed: i64) {
        let done = {
            let mut waiting = self.lock();
            let mut done = take(&mut waiting.durable, |waiter| waiter.last_offset < durable);
            done.extend(take(&mut waiting.committed, |waiter| waiter.last_offset < committed));
            done
        };
        done.into_iter().for_each(|waiter| (waiter.done)(Ok(())));
    }

    /// Calls all with `error`.
    pub fn fail(&self, error: &StorageError) {
        let failed = {
            let mut waiting = self.lock();
            let mut failed = std::mem::take(&mut waiting.durable);
            failed.append(&mut waiting.committed);
            failed
        };
        failed.into_iter().for_each(|waiter| (waiter.done)(Err(error.clone())));
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
