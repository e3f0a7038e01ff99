//! A batch boundary of a log.
use std::sync::Arc;

use crate::segment::{Bound, Segment};

/// A batch boundary of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The offset that begins there.
    pub offset: i64,
    /// Base offset of the segment it is in.
    pub segment: i64,
    /// Bytes before it in that segment.
    pub position: u64,
}

impl Mark {
    /// The same inside its segment.
    pub fn bound(self) -> Bound {
        Bound { position: self.position, offset: self.offset }
    }
}

/// How far `segment` may be read when `limit` is the end of all reading and `next` is the segment behind it.
pub(super) fn bound_of(segment: &Segment, limit: Mark, next: Option<&Arc<Segment>>) -> Bound {
    if segment.base_offset == limit.segment {
        return limit.bound();
    }
    Bound { position: segment.size(), offset: next.map_or(limit.offset, |next| next.base_offset) }
}
