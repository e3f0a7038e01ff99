//! Where a read of a segment may end, and what it finds.
use std::sync::Arc;

use crate::disk::DiskFile;

/// How far a reader may go in this segment: a batch boundary and the offset that begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    pub position: u64,
    pub offset: i64,
}

/// A run of whole batches.
#[derive(Clone)]
pub(crate) struct BatchRun {
    pub file: Arc<dyn DiskFile>,
    pub position: u64,
    pub len: usize,
    /// One past the last offset of the run.
    pub next_offset: i64,
}
