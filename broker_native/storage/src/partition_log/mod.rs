//! One partition's log.
//!
//! Writers hold the append lock ([`Writer`]) for one batch. Readers take a copy of what is to be seen ([`LogView`]) and then read
//! files with no lock held. A flush takes the same copy, syncs, and publishes what became durable. Every method may be
//! called from any thread.
//!
//! The log's state is in parts that know nothing of the log:
//!
//! | part | what it holds |
//! |---|---|
//! | `view` | what readers see, with `batch_ends`: where batches end behind the high watermark, `pending_markers`: markers that are not acknowledged, `read_hints`: where readers stopped |
//! | `flush_state` | how far the log is on the device, and what is still to be brought there |
//! | `failure` | what ended appends (poison), and who hears of failures |
//! | `waiters`, `listeners` | producers that wait for their records; who hears that the log has moved |
//! | `role`, `mark` | leader, follower or alone; a batch boundary |
//!
//! What it does, upon these:
//!
//! | file | what it does |
//! |---|---|
//! | `open`, `opening` | make, open after a clean stop, recover after an unclean one; the log while that goes on |
//! | `compare`, `open_checks` | what is opened, beside what was there at the last clean stop |
//! | `cut` | what recovery cuts is kept beside the log |
//! | `open_aborted` | the indexes of aborted transactions: taken over, or made anew |
//! | `append` | check, place, write, roll |
//! | `mirrored` | batches of another cluster, at the offsets that they have there |
//! | `replay` | the producers as they were at an earlier offset |
//! | `read` | offset -> run of whole batches |
//! | `replicated` | leader and follower: roles, the high watermark from outside |
//! | `follow` | a follower writes batches as they were fetched |
//! | `truncate` | a follower gives up batches that its leader does not have |
//! | `transactions` | markers, verification, aborted transactions |
//! | `times` | timestamp -> offset |
//! | `durable`, `wait` | flush, group commit, poison; waiting for a record |
//! | `writing` | the append lock, and a panic of its holder |
//! | `cleanup` | retention, DeleteRecords, snapshots, close |
//! | `swap` | compacted segments take the place of others |
//!
//! # Locks
//! In the order they may nest:
//! 1. `shortening`, `cleaning`, `swapping` ([`WorkLocks`]), then the one of [`FlushState`] that a flush holds: files are changed
//!    with them held;
//! 2. `writer`, `epochs`, the one of [`Waiters`], those of the data directory's checkpoints;
//! 3. the one of [`LogView`], and then those of segments and files;
//! 4. the last ones, with which no other is taken: that of the newest snapshot ([`FlushState`]), of the readers' positions
//!    ([`LogView`]), `config`.
//!
//! No listener or callback is called with one of them held, except the listener for failures.
mod append;
mod batch_ends;
mod cleanup;
mod compare;
mod cut;
mod durable;
mod failure;
mod flush_state;
mod follow;
mod listeners;
mod mark;
mod mirrored;
mod open;
mod open_aborted;
mod open_checks;
mod opening;
mod pending_markers;
mod read;
mod read_hints;
mod replay;
mod replicated;
mod role;
mod swap;
mod times;
mod transactions;
mod truncate;
mod view;
mod wait;
mod waiters;
mod writing;

use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use self::failure::Failure;
pub use self::failure::FailureListener;
use self::flush_state::FlushState;
pub use self::listeners::AdvanceListener;
use self::listeners::Listeners;
use self::mark::Mark;
pub use self::replicated::Replicated;
pub use self::role::Role;
use self::view::LogView;
pub use self::waiters::DurableCallback;
use self::waiters::Waiters;
use super::config::{Durability, LogConfig};
use super::epochs::LeaderEpochs;
use super::error::{StorageError, TopicPartition};
use super::producers::Producers;
use super::producers::verification::Verifications;
use super::segment::Segment;
use super::shared::Shared;
use super::types::{CutTail, Offsets};

/// What only one append at a time may touch.
struct Writer {
    role: Role,
    /// As in [`LogView`]: appends look here.
    led_since: i32,
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

/// What was found when the log was opened.
struct OpenReport {
    /// What recovery cut.
    cut_tail: Option<CutTail>,
    /// What was mended.
    notes: Vec<String>,
}

/// Work on the log of which only one at a time may go on; each lock is held while files are changed.
#[derive(Default)]
struct WorkLocks {
    /// Held by a truncation, and while offsets are written down that a truncation makes untrue.
    shortening: Mutex<()>,
    /// Held while records are deleted on request.
    cleaning: Mutex<()>,
    /// Held while segments are taken away.
    swapping: Mutex<()>,
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
    epochs: Mutex<LeaderEpochs>,
    view: LogView,
    flush: FlushState,
    failure: Failure,
    waiters: Waiters,
    listeners: Listeners,
    work: WorkLocks,
    opened: OpenReport,
    /// All before it may be removed by retention, of a log that is archived (`remote.storage.enable`).
    archived_until: AtomicI64,
    /// What groups need of the log, see [`PartitionLog::set_needed_from`].
    needed_from: AtomicI64,
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
        self.view.offsets()
    }

    /// What recovery cut when the log was opened; for the broker's log.
    pub fn cut_tail(&self) -> Option<&CutTail> {
        self.opened.cut_tail.as_ref()
    }

    /// What was not as it should be when the log was opened, and was mended: sentences for the broker's log.
    pub fn notes(&self) -> &[String] {
        &self.opened.notes
    }

    /// Bytes of all `.log` files.
    pub fn size_bytes(&self) -> u64 {
        let segments = self.view.segments();
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
        if !self.is_flushed() && !self.is_poisoned() {
            let (flushed, end) = (self.flush.flushed(), self.view.end());
            self.acknowledge(flushed, end);
        }
    }

    /// Whether a record is acknowledged only after fdatasync.
    pub fn is_flushed(&self) -> bool {
        self.config.read().durability == Durability::Flushed
    }

    /// Whether an earlier write or sync failed.
    pub fn is_poisoned(&self) -> bool {
        self.failure.is_set()
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
        epochs.end_offset(epoch, self.view.end().offset)
    }

    /// Adds a listener that is called with the high watermark each time it has moved, by the thread that moved it and
    /// with no lock held.
    pub fn on_advance(&self, listener: AdvanceListener) {
        self.listeners.on_advance(listener);
    }

    /// Makes all before `end` visible, and calls the producers that wait, when this is the only replica. Gives the role.
    fn advance_high_watermark(&self, end: Mark) -> Role {
        let (role, moved) = self.view.advance_alone(end);
        if moved {
            self.high_watermark_moved(end.offset);
        }
        role
    }

    /// The high watermark of a log that is alone has moved: calls the listeners and the producers that wait.
    fn high_watermark_moved(&self, high_watermark: i64) {
        self.waiters.complete(high_watermark, high_watermark);
        self.listeners.advanced(high_watermark);
    }

    fn out_of_range(&self, offset: i64) -> StorageError {
        let Offsets { log_start_offset, log_end_offset, .. } = self.offsets();
        StorageError::OffsetOutOfRange { at: self.at.clone(), offset, log_start_offset, log_end_offset }
    }

    /// One past the last offset that is on the device.
    pub(super) fn flushed(&self) -> i64 {
        self.flush.flushed()
    }
}
