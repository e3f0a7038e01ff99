//! What is known of a segment without reading it. Under one small lock, never held during IO.
use crate::index::{OffsetEntry, SparseIndex, TimeEntry};
use pylog_record::header::BatchHeader;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Whether the fields below say what the files hold.
    pub loaded: bool,
    /// The `.index`.
    pub offsets: SparseIndex<OffsetEntry>,
    /// The `.timeindex`.
    pub times: SparseIndex<TimeEntry>,
    /// Bytes of `.log` since the batch of the newest offset entry began.
    pub since_entry: u64,
    /// Milliseconds since the epoch, -1 for none.
    pub max_timestamp: i64,
    /// Last offset of the first batch with that timestamp.
    pub max_timestamp_offset: i64,
    /// See [`super::Segment::first_timestamp`].
    pub first_timestamp: i64,
}

impl Marks {
    /// Those of a segment without a batch, made at `now_ms`.
    pub fn empty(now_ms: i64) -> Self {
        Self { loaded: true, max_timestamp: -1, first_timestamp: now_ms, ..Self::default() }
    }

    /// Whether pending entries must be written before the next batch.
    pub fn must_store(&self) -> bool {
        self.offsets.is_full_of_pending() || self.times.is_full_of_pending()
    }

    /// Takes note of a batch at `position`. The caller has made sure that its offsets fit the segment.
    pub fn note(&mut self, header: &BatchHeader, position: u64, base_offset: i64, interval: u64) {
        if position == 0 && header.max_timestamp >= 0 {
            self.first_timestamp = header.max_timestamp;
        }
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.max_timestamp_offset = header.last_offset();
        }
        if self.since_entry > interval {
            let relative = (header.last_offset() - base_offset) as i32;
            self.offsets.push(OffsetEntry { relative, position: position as i32 });
            self.note_last(base_offset);
            self.since_entry = 0;
        }
        self.since_entry += header.size() as u64;
    }

    /// Brings the largest timestamp into the time index when it is not there.
    pub fn note_last(&mut self, base_offset: i64) {
        let newest = self.times.last().map_or(-1, |last| last.timestamp);
        if self.max_timestamp > newest {
            let relative = (self.max_timestamp_offset - base_offset) as i32;
            self.times.push(TimeEntry { timestamp: self.max_timestamp, relative });
        }
    }
}
