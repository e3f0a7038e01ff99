//! What a machine takes and gives.
use bytes::Bytes;

use pylog_record::control::Marker;

/// Names an answer that a client waits for. The shell makes it; a machine keeps it until it answers, and answers once. A ticket
/// that is not answered is dropped with the machine, and the client gets NOT_COORDINATOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The client that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// As the client calls itself; empty when it does not.
    pub client_id: String,
    /// Its address, as Kafka shows it: `/127.0.0.1`.
    pub host: String,
    /// Version of the request and of the answer.
    pub version: i16,
}

/// A record of an internal topic; no value deletes the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its schema's version (i16), then the fields.
    pub key: Bytes,
    /// Its schema's version (i16), then the fields.
    pub value: Option<Bytes>,
}

/// What is found in the log, in the order of the offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// A record.
    Record {
        /// Where it lies.
        offset: i64,
        /// Milliseconds since the epoch.
        timestamp_ms: i64,
        /// `(producer_id, producer_epoch)` when it is part of a transaction: it counts when the marker is a commit.
        transaction: Option<(i64, i16)>,
        /// The record.
        record: Record,
    },
    /// The end of a transaction in this partition.
    Marker {
        /// Whose transaction.
        producer_id: i64,
        /// Its epoch.
        producer_epoch: i16,
        /// How it ended.
        marker: Marker,
    },
}

/// What is to be done, in the order of the fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects<Reply, Action> {
    /// Appended as one batch; nothing is appended when empty.
    pub records: Vec<Record>,
    /// `(producer_id, producer_epoch)`: the batch is part of that producer's transaction (TxnOffsetCommit). The machine
    /// does not change itself then: the shell replays the records once they are written, and a fenced producer's are not.
    pub transaction: Option<(i64, i16)>,
    /// Started when the batch is acknowledged.
    pub actions: Vec<Action>,
    /// Sent when the batch is acknowledged.
    pub replies: Vec<(Ticket, Reply)>,
}

impl<Reply, Action> Default for Effects<Reply, Action> {
    fn default() -> Self {
        Self { records: Vec::new(), transaction: None, actions: Vec::new(), replies: Vec::new() }
    }
}

impl<Reply, Action> Effects<Reply, Action> {
    /// Adds an answer.
    pub fn reply(&mut self, ticket: Ticket, reply: Reply) {
        self.replies.push((ticket, reply));
    }

    /// Adds a record.
    pub fn record(&mut self, record: Record) {
        self.records.push(record);
    }
}

/// One moment, by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the epoch: what is written down. It may be set.
    pub wall_ms: i64,
    /// Milliseconds since some moment: deadlines. Nobody sets it.
    pub steady_ms: i64,
}

impl Now {
    /// A deadline of the wall clock by the steady clock, if the wall clock is not set from now on.
    pub fn steady_of(self, wall_ms: i64) -> i64 {
        self.steady_ms.saturating_add(wall_ms.saturating_sub(self.wall_ms))
    }

    /// A time of the wall clock, which another coordinator may have written down, by the steady clock. At the latest now: the wall
    /// clock of this broker may be behind.
    pub fn past(self, wall_ms: i64) -> i64 {
        self.steady_of(wall_ms).min(self.steady_ms)
    }

    /// A moment at which both clocks show the same.
    #[cfg(test)]
    pub fn same(ms: i64) -> Self {
        Self { wall_ms: ms, steady_ms: ms }
    }
}

/// A coordinator's state for one partition of its internal topic.
pub trait Machine: Send + 'static {
    /// A request, or the outcome of an action.
    type Event: Send;
    /// An answer.
    type Reply: Send + 'static;
    /// Something that the shell does and whose outcome comes back as an event.
    type Action: Send;

    /// Takes one entry of the log; before anything else is called, in the order of the offsets, and later for the markers
    /// that are written into the partition.
    ///
    /// # Errors
    /// A sentence: the entry is not what its schema says. The shell writes it into the broker's log and skips the entry.
    fn replay(&mut self, entry: &LogEntry) -> Result<(), String>;

    /// The log is at its end: begin to work. Deadlines begin now.
    fn loaded(&mut self, now: Now) -> Effects<Self::Reply, Self::Action>;

    /// Whether what `event` asks for is written down: it is refused while the log takes nothing.
    fn writes(event: &Self::Event) -> bool;

    /// Takes an event.
    fn handle(&mut self, event: Self::Event, now: Now) -> Effects<Self::Reply, Self::Action>;

    /// When [`Machine::tick`] has something to do, by the steady clock.
    fn next_deadline_ms(&self) -> Option<i64>;

    /// Does what is due.
    fn tick(&mut self, now: Now) -> Effects<Self::Reply, Self::Action>;
}
