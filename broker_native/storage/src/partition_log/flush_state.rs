//! How far a log is on the device, and what is still to be brought there.
//!
//! One lock is held by the flush that runs, for as long as it syncs. All else are single values that appends set at the speed of
//! memory while a flush goes on, so they are atomics. The snapshot of producers has a lock of its own: a new segment writes one under
//! the append lock, which a flush must never wait for.
//!
//! Decides nothing and knows no file; thread-safe.
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// What an append asks the flusher for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlushNeed {
    None,
    Now,
    AfterMs(i64),
}

/// What a log that was just opened begins with.
pub(super) struct FlushStart {
    pub flushed_offset: i64,
    pub unsynced_indexes_from: i64,
    pub unsynced_names: bool,
    pub unsynced_topic_id: bool,
    pub dirty_since_ms: i64,
    pub snapshot_offset: i64,
}

/// See the module.
pub(super) struct FlushState {
    flushing: Mutex<()>,
    /// One past the last offset that is on the device.
    flushed_offset: AtomicI64,
    /// Base offset of the first segment with index entries that may not be on the device.
    unsynced_indexes_from: AtomicI64,
    /// Whether a file was made, and its name may not be on the device.
    unsynced_names: AtomicBool,
    /// Whether `partition.metadata` may not be on the device; it is written without a sync, so that making thousands of
    /// partitions is fast.
    unsynced_topic_id: AtomicBool,
    /// Whether a flush is queued.
    scheduled: AtomicBool,
    /// When the oldest record behind the last checkpoint was appended, milliseconds since the epoch; `i64::MAX` without
    /// one.
    dirty_since_ms: AtomicI64,
    /// Where the newest producer snapshot stands.
    snapshot_offset: Mutex<i64>,
}

impl FlushState {
    /// Of a log that was just opened.
    pub fn new(start: FlushStart) -> Self {
        Self {
            flushing: Mutex::default(),
            flushed_offset: AtomicI64::new(start.flushed_offset),
            unsynced_indexes_from: AtomicI64::new(start.unsynced_indexes_from),
            unsynced_names: AtomicBool::new(start.unsynced_names),
            unsynced_topic_id: AtomicBool::new(start.unsynced_topic_id),
            scheduled: AtomicBool::new(false),
            dirty_since_ms: AtomicI64::new(start.dirty_since_ms),
            snapshot_offset: Mutex::new(start.snapshot_offset),
        }
    }

    /// Keeps other flushes out while the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock()
    }

    /// One past the last offset that is on the device.
    pub fn flushed(&self) -> i64 {
        self.flushed_offset.load(Ordering::Acquire)
    }

    /// All before `offset` is on the device.
    pub fn advance(&self, offset: i64) {
        self.flushed_offset.fetch_max(offset, Ordering::AcqRel);
    }

    /// The log is about to be truncated to `offset`.
    pub fn lower(&self, offset: i64) {
        self.flushed_offset.fetch_min(offset, Ordering::AcqRel);
    }

    /// Batches were written into the segment at `base_offset`.
    pub fn written(&self, base_offset: i64, now_ms: i64) {
        self.dirty_since_ms.fetch_min(now_ms, Ordering::AcqRel);
        self.unsynced_indexes_from.fetch_min(base_offset, Ordering::AcqRel);
    }

    /// Base offset of the first segment with index entries that may not be on the device.
    pub fn unsynced_indexes_from(&self) -> i64 {
        self.unsynced_indexes_from.load(Ordering::Acquire)
    }

    /// The indexes before the segment at `base_offset` were synced; nothing happens when it is not `seen` any more.
    pub fn synced_indexes(&self, seen: i64, base_offset: i64) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let next = seen.max(base_offset);
        let _ = self.unsynced_indexes_from.compare_exchange(seen, next, success, failure);
    }

    /// A file was made.
    pub fn name_made(&self) {
        self.unsynced_names.store(true, Ordering::Release);
    }

    /// Whether a file's name may not be on the device.
    pub fn has_unsynced_names(&self) -> bool {
        self.unsynced_names.load(Ordering::Acquire)
    }

    /// As [`FlushState::has_unsynced_names`], and the caller syncs them.
    pub fn take_unsynced_names(&self) -> bool {
        self.unsynced_names.swap(false, Ordering::AcqRel)
    }

    /// Whether `partition.metadata` may not be on the device; the caller syncs it.
    pub fn take_unsynced_topic_id(&self) -> bool {
        self.unsynced_topic_id.swap(false, Ordering::AcqRel)
    }

    /// A flush is queued; whether one was already.
    pub fn set_scheduled(&self) -> bool {
        self.scheduled.swap(true, Ordering::AcqRel)
    }

    /// No flush is queued.
    pub fn clear_scheduled(&self) {
        self.scheduled.store(false, Ordering::Release);
    }

    /// Whether a flush is queued.
    pub fn is_scheduled(&self) -> bool {
        self.scheduled.load(Ordering::Acquire)
    }

    /// Whether records wait for a checkpoint since `before_ms` or earlier.
    pub fn is_dirty_since(&self, before_ms: i64) -> bool {
        self.dirty_since_ms.load(Ordering::Acquire) <= before_ms
    }

    /// A checkpoint begins; gives since when records waited for it.
    pub fn take_dirty_since_ms(&self) -> i64 {
        self.dirty_since_ms.swap(i64::MAX, Ordering::AcqRel)
    }

    /// The checkpoint failed: they wait on.
    pub fn still_dirty_since(&self, dirty_since_ms: i64) {
        self.dirty_since_ms.fetch_min(dirty_since_ms, Ordering::AcqRel);
    }

    /// Where the newest producer snapshot stands. The guard is held while one is written: a checkpoint and a new segment may
    /// both want one at the same offset.
    pub fn snapshot_offset(&self) -> MutexGuard<'_, i64> {
        self.snapshot_offset.lock()
    }
}
