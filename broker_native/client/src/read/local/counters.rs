//! How often records came from files, and why not. Shared between the thread that reads and whoever asks.
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// See the module.
#[derive(Debug, Default)]
pub struct LocalCounters {
    bytes: AtomicU64,
    fallbacks: AtomicU64,
    reason: Mutex<Option<String>>,
}

impl LocalCounters {
    /// Bytes of records that were read from files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often a file was doubtful, so that the wire was taken for what was left of a range.
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.load(Ordering::Relaxed)
    }

    /// Why the wire was taken last; `None` when files were never in question or always good.
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().clone()
    }

    pub(super) fn read(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn fell_back(&self, reason: String) {
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
        self.unseen(reason);
    }

    pub(super) fn unseen(&self, reason: String) {
        *self.reason.lock() = Some(reason);
    }
}
