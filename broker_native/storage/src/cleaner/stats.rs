//! What a cleaning did, in numbers.
use super::filter::Outcome;
use pylog_record::header::BatchHeader;

/// What a cleaning did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of the map.
    pub map_bytes: usize,
    /// Bytes read to make it.
    pub map_bytes_read: u64,
    /// Bytes of segments that were read to be written anew.
    pub bytes_read: u64,
    /// Bytes of the segments that took their place.
    pub bytes_written: u64,
    /// Records read.
    pub records_read: u64,
    /// Records that went.
    pub records_removed: u64,
    /// Segments that were replaced.
    pub segments_before: u64,
    /// Segments that took their place.
    pub segments_after: u64,
}

impl Stats {
    /// Counts a batch of which so much was left out.
    pub(super) fn note(&mut self, header: &BatchHeader, done: &Outcome) {
        self.bytes_read += header.size() as u64;
        self.records_read += u64::from(header.records_count.unsigned_abs());
        self.records_removed += done.removed;
    }
}
