//! Counters since the start and gauges. Relaxed atomics: each number is right, two of them may be a moment apart.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// One counter or gauge.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes one off a gauge.
    pub fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests handled.
    pub requests: Number,
    /// Requests whose connection was closed for them: malformed, too large, unknown version.
    pub refused: Number,
    /// Bytes read from sockets.
    pub bytes_in: Number,
    /// Bytes written to sockets.
    pub bytes_out: Number,
    /// Connections accepted.
    pub accepted: Number,
    /// Connections closed at once because `max.connections` were open.
    pub turned_away: Number,
    /// Connections open now.
    pub connections: Number,
    /// Logins by SASL that succeeded.
    pub logins: Number,
    /// Logins by SASL that failed.
    pub failed_logins: Number,
    /// Batches appended.
    pub batches_in: Number,
    /// Records appended.
    pub records_in: Number,
    /// Bytes of records handed to fetchers.
    pub fetched_bytes: Number,
    /// Fetches that waited for data.
    pub long_polls: Number,
    /// Decisions asked of Python.
    pub events: Number,
    /// Requests that panicked inside; each is a bug.
    pub panics: Number,
}

impl Metrics {
    /// All numbers by name.
    pub fn snapshot(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([
            ("requests", self.requests.get()),
            ("refused", self.refused.get()),
            ("bytes_in", self.bytes_in.get()),
            ("bytes_out", self.bytes_out.get()),
            ("accepted", self.accepted.get()),
            ("turned_away", self.turned_away.get()),
            ("connections", self.connections.get()),
            ("logins", self.logins.get()),
            ("failed_logins", self.failed_logins.get()),
            ("batches_in", self.batches_in.get()),
            ("records_in", self.records_in.get()),
            ("fetched_bytes", self.fetched_bytes.get()),
            ("long_polls", self.long_polls.get()),
            ("events", self.events.get()),
            ("panics", self.panics.get()),
        ])
    }
}
