//! Transactions that ended, whose markers are not acknowledged yet. A reader that were shown them before could see them come back as
//! open after a loss of power.
use std::collections::BTreeMap;

use crate::producers::EndedTxn;

/// First offset of a transaction -> offset of its marker.
#[derive(Default)]
pub(super) struct PendingMarkers(BTreeMap<i64, i64>);

impl PendingMarkers {
    /// Adds a transaction that ended.
    pub fn add(&mut self, ended: EndedTxn) {
        self.hold(ended.txn.first_offset, ended.txn.last_offset);
    }

    /// Holds the last stable offset back at `first` until the marker at `marker` is acknowledged.
    pub fn hold(&mut self, first: i64, marker: i64) {
        self.0.insert(first, marker);
    }

    /// The log was truncated to `end`, and all before `high_watermark` is acknowledged; gives the first offset of the
    /// oldest transaction that is left.
    pub fn truncate(&mut self, end: i64, high_watermark: i64) -> Option<i64> {
        self.0.retain(|_, marker| *marker < end);
        self.acknowledge(high_watermark)
    }

    /// All before `high_watermark` is acknowledged; gives the first offset of the oldest transaction that is left.
    pub fn acknowledge(&mut self, high_watermark: i64) -> Option<i64> {
        self.0.retain(|_, marker| *marker >= high_watermark);
        self.0.first_key_value().map(|(first, _)| *first)
    }
}
