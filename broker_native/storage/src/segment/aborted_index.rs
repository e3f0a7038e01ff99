//! What is known of a segment's `.txnindex` without reading it; see `aborted` for what is in the file.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::MutexGuard;

use crate::disk::DiskFile;
use crate::files::FileSlot;

/// See the module.
#[derive(Default)]
pub(super) struct AbortedIndex {
    pub file: Arc<FileSlot>,
    pub exists: AtomicBool,
    pub entries: AtomicU64,
    /// CRC-32C of the entries, and what it was before the newest.
    pub sum: AtomicU32,
    pub sum_before: AtomicU32,
}

impl AbortedIndex {
    /// Forgets the open file.
    pub fn close(&self) {
        self.file.close();
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.exists.load(Ordering::Acquire)
    }

    /// See [`FileSlot::hold`].
    pub fn hold(&self) -> MutexGuard<'_, Option<Arc<dyn DiskFile>>> {
        self.file.hold()
    }
}
