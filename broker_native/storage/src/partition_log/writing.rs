//! The append lock. A panic of its holder poisons the log: what was left half-changed is unknown.
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::MutexGuard;

use super::{PartitionLog, Writer};

const PANICKED: &str = "a bug of the broker while it was written (see the panic above); please report it";

/// The lock, held.
pub(super) struct Writing<'a> {
    log: &'a PartitionLog,
    writer: MutexGuard<'a, Writer>,
    /// It was taken while a panic went on already, of something else.
    is_cleanup: bool,
}

impl PartitionLog {
    /// Takes the append lock.
    pub(super) fn writing(&self) -> Writing<'_> {
        Writing { log: self, writer: self.writer.lock(), is_cleanup: std::thread::panicking() }
    }
}

impl PartitionLog {
    /// Work on this log panicked: what it holds is unknown until it is opened anew, and it takes nothing more.
    pub(crate) fn panicked(&self) {
        // The listener may be what panicked.
        let reported = catch_unwind(AssertUnwindSafe(|| self.poison(PANICKED.into())));
        if reported.is_err() {
            self.failure.set(PANICKED.into());
        }
        if !std::thread::panicking() {
            self.poisoned().into_iter().for_each(|error| self.waiters.fail(&error));
        }
    }
}

impl Deref for Writing<'_> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.is_cleanup {
            self.log.panicked();
        }
    }
}
