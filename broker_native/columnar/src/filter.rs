//! Which rows of a partition are wanted, decided on record batches and records before a column is built.
//!
//! Timestamps are Kafka's milliseconds, in no particular order within a log: a batch is passed over by its header only
//! when the header alone proves that none of its rows is wanted. Keys are compared as Spark compares BINARY: byte by
//! byte, unsigned. Every condition must hold.
use std::collections::HashSet;

use pylog_record::{BatchHeader, RecordRef};

/// A condition on the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCondition {
    /// The key is one of these, or there is none and `null` says that this is wanted.
    In {
        /// Keys.
        keys: HashSet<Vec<u8>>,
        /// Whether records without key are wanted.
        null: bool,
    },
    /// The key begins with one of these.
    Prefix(Vec<Vec<u8>>),
    /// There is a key, and it lies in `[low, high)`.
    Range {
        /// First key wanted.
        low: Option<Vec<u8>>,
        /// First key not wanted any more.
        high: Option<Vec<u8>>,
    },
}

impl KeyCondition {
    /// Whether the key meets it.
    pub fn takes(&self, key: Option<&[u8]>) -> bool {
        let Some(key) = key else {
            return matches!(self, Self::In { null: true, .. });
        };
        match self {
            Self::In { keys, .. } => keys.contains(key),
            Self::Prefix(prefixes) => prefixes.iter().any(|prefix| key.starts_with(prefix)),
            Self::Range { low, high } => {
                low.as_deref().is_none_or(|low| low <= key) && high.as_deref().is_none_or(|high| key < high)
            }
        }
    }
}

/// Conditions on timestamp and key; see the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Spans (first, last), both included, of which one must hold the timestamp; ascending. `None` takes every timestamp.
    pub timestamps: Option<Vec<(i64, i64)>>,
    /// Conditions that the key must meet.
    pub keys: Vec<KeyCondition>,
}

impl RowFilter {
    /// Whether every row passes.
    pub fn takes_all(&self) -> bool {
        self.timestamps.is_none() && self.keys.is_empty()
    }

    /// Whether the header proves that no record of its batch passes.
    pub fn skips(&self, header: &BatchHeader) -> bool {
        let Some(spans) = &self.timestamps else { return false };
        let newest = header.max_timestamp;
        if header.is_log_append_time() {
            return !holds(spans, newest);
        }
        // A header without a largest timestamp, or with one that its own first record contradicts, proves nothing.
        let sound = newest >= 0 && header.base_timestamp <= newest;
        sound && spans.first().is_none_or(|(first, _)| newest < *first)
    }

    /// Whether this record is wanted.
    #[inline]
    pub fn takes(&self, record: &RecordRef<'_>) -> bool {
        self.timestamps.as_ref().is_none_or(|spans| holds(spans, record.timestamp))
            && self.keys.iter().all(|condition| condition.takes(record.key))
    }
}

fn holds(spans: &[(i64, i64)], timestamp: i64) -> bool {
    let after = spans.partition_point(|(first, _)| *first <= timestamp);
    after > 0 && spans.get(after - 1).is_some_and(|(_, last)| timestamp <= *last)
}
