//! One partition's log.
//!
//! Writers hold the append lock ([`Writer`]) for one batch. Readers take a short look at [`View`] and then read files
//! with no lock held. A flush takes the same look, syncs, and publishes what became durable. Every method may be
//! called from any thread.
//!
//! | file | what it does |
//! |---|---|
//! | `open` | make, open after a clean stop, recover after an unclean one |
//! | `compare` | what is opened, beside what was there at the last clean stop |
//! | `cut` | what recovery cuts is kept beside the log |
//! | `open_aborted` | the indexes of aborted transactions: taken over, or made anew |
//! | `append` | check, place, write, roll |
//! | `replay` | the producers as they were at an earlier offset |
//! | `read` | offset -> run of whole batches |
//! | `replicated` | leader and follower: roles, the high watermark from outside |
//! | `batch_ends` | where batches end behind the high watermark |
//! | `follow` | a follower writes batches as they were fetched |
//! | `truncate` | a follower gives up batches that its leader does not have |
//! | `transactions` | markers, verification, the last stable offset, aborted transactions |
//! | `times` | timestamp -> offset |
//! | `durable` | flush, group commit, poison |
//! | `waiters` | producers that wait for their records |
//! | `writing` | the append lock, and a panic of its holder |
//! | `cleanup` | retention, DeleteRecords, snapshots, close |
//! | `swap` | compacted segments take the place of others |
//!
//! Locks, in the order they may nest: `shortening`, `cleaning`, `swapping`, `flushing`, `writer`, `epochs`, `waiters`,
//! checkpoints of the data directory, `view`, `ends`, `undurable`; then those of segments and files. No listener or callback is called with one held.
mod append;
mod batch_ends;
mod cleanup;
mod compare;
mod cut;
mod durable;
mod follow;
mod open;
mod open_aborted;
mod open_checks;
mod read;
mod replay;
mod replicated;
mod swap;
mod times;
mod transactions;
mod truncate;
mod waiters;
mod writing;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use self::batch_ends::BatchEnds;
use self::read::Hints;
pub use self::replicated::{Replicated, Role};
use self::transactions::Undurable;
use self::waiters::Waiters;
use super::config::{Durability, LogConfig};
use super::epochs::LeaderEpochs;
use super::error::{Result, StorageError, TopicPartition};
use super::producers::Producers;
use super::producers::verification::Verifications;
use super::segment::{Bound, Segment};
use super::shared::Shared;
use super::types::{CutTail, Offsets};

/// Called with the new high watermark after it moved.
pub type AdvanceListener = Arc<dyn Fn(i64) + Send + Sync>;

/// Called with the reason why a log cannot write, by whoever wanted to, with locks of the log held: it asks the log nothing.
pub type FailureListener = Arc<dyn Fn(&str) + Send + Sync>;
/// Called once when a record is durable or can no longer become so.
pub type DurableCallback = Box<dyn FnOnce(Result<()>) + Send>;

/// A batch boundary of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// The offset that begins there.
    offset: i64,
    /// Base offset of the segment it is in.
    segment: i64,
    /// Bytes before it in that segment.
    position: u64,
}

impl Mark {
    fn bound(self) -> Bound {
        Bound { position: self.position, offset: self.offset }
    }
}

/// What readers see.
#[derive(Clone)]
struct View {
    role: Role,
    /// By base offset; the last one is appended to.
    segments: Arc<Vec<Arc<Segment>>>,
    log_start_offset: i64,
    high_watermark: Mark,
    end: Mark,
    /// First offset of the oldest open transaction.
    first_open_offset: Option<i64>,
    /// First offset of the oldest transaction whose marker is not acknowledged yet.
    first_undurable_offset: Option<i64>,
}

impl View {
    fn offsets(&self) -> Offsets {
        let high_watermark = self.high_watermark.offset;
        let unstable = [self.first_open_offset, self.first_undurable_offset].into_iter().flatten().min();
        // The beginning of a transaction may have been deleted.
        let stable = unstable.map_or(high_watermark, |offset| offset.max(self.log_start_offset));
        Offsets {
            log_start_offset: self.log_start_offset,
            high_watermark,
            last_stable_offset: stable.min(high_watermark),
            log_end_offset: self.end.offset,
        }
    }
}

/// What only one append at a time may touch.
struct Writer {
    role: Role,
    /// Newest epoch that a role was given in.
    leader_epoch: i32,
    active: Arc<Segment>,
    next_offset: i64,
    producers: Producers,
    verifications: Verifications,
    /// Newest epoch that the epoch checkpoint knows.
    noted_epoch: i32,
    /// Records since the last flush was asked for.
    unflushed_records: i64,
    closed: bool,
}

/// One partition's log. See the module's contract.
pub struct PartitionLog {
    at: TopicPartition,
    topic_id: Uuid,
    dir: Arc<Path>,
    shared: Arc<Shared>,
    me: Weak<Self>,
    config: RwLock<Arc<LogConfig>>,
    writer: Mutex<Writer>,
    view: Mutex<View>,
    /// Locked only while `view` is.
    ends: Mutex<BatchEnds>,
    /// Locked only while `view` is.
    undurable: Mutex<Undurable>,
    epochs: Mutex<LeaderEpochs>,
    hints: Mutex<Hints>,
    listeners: RwLock<Vec<AdvanceListener>>,
    append_listeners: RwLock<Vec<AdvanceListener>>,
    failure_listener: OnceLock<FailureListener>,
    /// The epoch since which this broker writes the log without a break.
    led_since: AtomicI32,
    /// Why nothing more is appended; set once.
    poison: OnceLock<String>,
    waiters: Mutex<Waiters>,
    /// Held by who truncates, and by who writes down what a truncation makes untrue.
    shortening: Mutex<()>,
    flushing: Mutex<()>,
    cleaning: Mutex<()>,
    /// Held by who takes segments away.
    swapping: Mutex<()>,
    /// One past the last offset that is on the device.
    flushed_offset: AtomicI64,
    /// Base offset of the first segment with index entries that may not be on the device.
    unsynced_indexes_from: AtomicI64,
    /// Whether a file was made, and its name may not be on the device.
    unsynced_names: AtomicBool,
    /// Whether `partition.metadata` may not be on the device; it is written without a sync, so that making thousands of
    /// partitions is fast.
    unsynced_topic_id: AtomicBool,
    /// Whether a flush is queued.
    scheduled: AtomicBool,
    /// When the oldest record behind the last checkpoint was appended, milliseconds since the epoch; `i64::MAX` without
    /// one.
    dirty_since_ms: AtomicI64,
    /// Where the newest producer snapshot stands. Held while one is written: a checkpoint and a new segment may both want
    /// one at the same offset. The last lock that is taken.
    snapshot_offset: Mutex<i64>,
    /// What recovery cut when the log was opened.
    cut_tail: Option<CutTail>,
    /// What was mended when the log was opened.
    notes: Vec<String>,
}

impl PartitionLog {
    /// Which partition this is.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.at
    }

    /// The topic's id.
    pub fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    /// The directory of the segments.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The log's offsets now.
    pub fn offsets(&self) -> Offsets {
        self.view.lock().offsets()
    }

    /// What recovery cut when the log was opened; to be told to the operator.
    pub fn cut_tail(&self) -> Option<&CutTail> {
        self.cut_tail.as_ref()
    }

    /// What was not as it should be when the log was opened, and was mended: sentences for the operator.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Bytes of all `.log` files.
    pub fn size_bytes(&self) -> u64 {
        let segments = self.view.lock().segments.clone();
        segments.iter().map(|segment| segment.size()).sum()
    }

    /// Settings now.
    pub fn config(&self) -> Arc<LogConfig> {
        self.config.read().clone()
    }

    /// Settings from now on. Records that wait for a flush are acknowledged at once when `durability` no longer asks
    /// for one.
    pub fn update_config(&self, config: LogConfig) {
        *self.config.write() = Arc::new(config);
        if !self.is_flushed() && self.poison.get().is_none() {
            let (flushed, end) = (self.flushed(), self.view.lock().end);
            self.settle(flushed, end);
        }
    }

    /// Whether a record is acknowledged only after fdatasync.
    pub fn is_flushed(&self) -> bool {
        self.config.read().durability == Durability::Flushed
    }

    /// Whether an earlier write or sync failed.
    pub fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Remembers that `epoch` begins at `offset` when it is newer than all known.
    fn note_epoch(&self, writer: &mut Writer, epoch: i32, offset: i64) {
        if epoch > writer.noted_epoch {
            self.epochs.lock().note(epoch, offset);
            writer.noted_epoch = epoch;
        }
    }

    /// The largest epoch up to `epoch` and one past its last offset; `None` when all known epochs are larger.
    pub fn epoch_end_offset(&self, epoch: i32) -> Option<(i32, i64)> {
        let epochs = self.epochs.lock();
        epochs.end_offset(epoch, self.view.lock().end.offset)
    }

    /// Adds a listener that is called with the high watermark each time it has moved, by the thread that moved it and
    /// with no lock held.
    pub fn on_advance(&self, listener: AdvanceListener) {
        self.listeners.write().push(listener);
    }

    /// Makes all before `end` visible, and tells who waits, when this is the only replica. Gives the role.
    fn advance_high_watermark(&self, end: Mark) -> Role {
        {
            let mut view = self.view.lock();
            if view.role != Role::Alone || view.high_watermark.offset >= end.offset {
                return view.role;
            }
            view.high_watermark = end;
            view.first_undurable_offset = self.undurable.lock().acknowledge(end.offset);
        }
        self.tell(end.offset);
        Role::Alone
    }

    /// The high watermark of a log that is alone has moved: calls the listeners and the producers that wait.
    fn tell(&self, high_watermark: i64) {
        self.complete_waiters(high_watermark, high_watermark);
        self.tell_advanced(high_watermark);
    }

    fn tell_advanced(&self, high_watermark: i64) {
        for listener in self.listeners.read().iter() {
            listener(high_watermark);
        }
    }

    fn out_of_range(&self, offset: i64) -> StorageError {
        let Offsets { log_start_offset, log_end_offset, .. } = self.offsets();
        StorageError::OffsetOutOfRange { at: self.at.clone(), offset, log_start_offset, log_end_offset }
    }

    /// One past the last offset that is on the device.
    pub(super) fn flushed(&self) -> i64 {
        self.flushed_offset.load(Ordering::Acquire)
    }
}
