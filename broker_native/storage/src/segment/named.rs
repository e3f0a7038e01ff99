//! What makes segments different: the names of their files, and their numbers.
use std::sync::atomic::{AtomicU64, Ordering};

/// What the files of a segment are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Named {
    /// As ever.
    #[default]
    Live,
    /// Being written by compaction.
    Cleaned,
    /// Whole, on its way to its place.
    Swap,
    /// Another took its place.
    Deleted,
}

/// See [`Segment::id`].
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
