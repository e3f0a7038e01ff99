//! Why a log could not do what was asked. Every sentence names the partition and says what to do.
use std::io;
use std::path::{Path, PathBuf};

pub use pylog_record::TopicPartition;

/// The error of this crate. Cloneable: every producer that waits for a failed fdatasync gets it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// The offset is not in the log.
    #[error("{at}: offset {offset} is outside the log, which holds [{log_start_offset}, {log_end_offset})")]
    OffsetOutOfRange {
        /// Partition.
        at: TopicPartition,
        /// What was asked for.
        offset: i64,
        /// First offset that can be read.
        log_start_offset: i64,
        /// One past the last.
        log_end_offset: i64,
    },
    /// Bytes that were once acknowledged are damaged. Nothing was cut or changed.
    #[error("{at}: the log is damaged at offset {offset} in {}: {reason}; restore the file, or give up the records from there on: move it and all later segments away together with recovery-point-offset-checkpoint", file.display())]
    Corrupt {
        /// Partition.
        at: TopicPartition,
        /// First offset that cannot be read.
        offset: i64,
        /// The damaged file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What is there is not what was there when the broker stopped cleanly. Nothing was changed.
    #[error("{at}: since the broker stopped, {what}. Put back what was there, or accept what is there now: take the partition out of {} while the broker is stopped", inventory.display())]
    ChangedWhileStopped {
        /// Partition.
        at: TopicPartition,
        /// Which file is missing, shorter, longer or new, and where the log ended.
        what: String,
        /// The list of what was there.
        inventory: PathBuf,
    },
    /// The device is full. Nothing was appended; appends work again when there is space.
    #[error("{at}: no space left while writing {}; free space or shorten retention", file.display())]
    DiskFull {
        /// Partition, or the data directory's name.
        at: TopicPartition,
        /// The file that could not grow.
        file: PathBuf,
    },
    /// No file could be opened. Nothing was appended; appends work again when other files or connections are closed.
    #[error("{at}: no file descriptor is left to open {}; close connections, or raise the limit (ulimit -n)", file.display())]
    OutOfFiles {
        /// Partition, or the data directory's name.
        at: TopicPartition,
        /// The file that could not be opened.
        file: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {reason}", file.display())]
    Io {
        /// A verb.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The kernel's kind of error.
        kind: io::ErrorKind,
        /// The kernel's words.
        reason: String,
    },
    /// An earlier write or sync failed, so what the disk holds is unknown until recovery.
    #[error("{at}: refused since an earlier failure ({reason}); restart the broker, which recovers the log")]
    Poisoned {
        /// Partition.
        at: TopicPartition,
        /// The first failure.
        reason: String,
    },
    /// The data directory was closed.
    #[error("{at}: refused since the broker is stopping; send it again to the next one")]
    Closed {
        /// Partition.
        at: TopicPartition,
    },
    /// This broker does not lead the partition, or did not lead it all the time since the record was written.
    #[error("{at}: this broker does not lead it any more; ask who does and send it again there")]
    NotLeader {
        /// Partition.
        at: TopicPartition,
    },
    /// Only a follower takes another broker's batches or gives up its own.
    #[error("{at}: this broker does not follow another one; nothing was changed")]
    NotFollower {
        /// Partition.
        at: TopicPartition,
    },
    /// Another process uses the data directory.
    #[error("{} is in use by another broker; stop it or choose another data directory", dir.display())]
    Locked {
        /// The data directory.
        dir: PathBuf,
    },
    /// The data directory or partition belongs to another broker, cluster or topic.
    #[error("{} does not fit: {reason}", file.display())]
    Mismatch {
        /// The file that says so.
        file: PathBuf,
        /// What differs.
        reason: String,
    },
    /// A file of the data directory cannot be understood.
    #[error("{} cannot be read: {reason}; restore or remove it", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the line where there is one.
        reason: String,
    },
    /// An idempotent producer left a gap.
    #[error("{at}: producer {producer_id} sent sequence {found}, expected {expected}")]
    OutOfOrderSequence {
        /// Partition.
        at: TopicPartition,
        /// Producer.
        producer_id: i64,
        /// Sequence of the batch.
        found: i32,
        /// Sequence that would continue.
        expected: i32,
    },
    /// A newer instance of the producer has written already.
    #[error("{at}: producer {producer_id} has epoch {found}, but {current} is known; it was fenced")]
    InvalidProducerEpoch {
        /// Partition.
        at: TopicPartition,
        /// Producer.
        producer_id: i64,
        /// Epoch of the batch.
        found: i16,
        /// Newest epoch seen.
        current: i16,
    },
    /// The batch does not belong to the transaction that is open.
    #[error("{at}: producer {producer_id}: {reason}; abort the transaction")]
    InvalidTxnState {
        /// Partition.
        at: TopicPartition,
        /// Producer.
        producer_id: i64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A batch would begin a transaction here, and its coordinator was not asked about it, or a marker or a batch of the
    /// producer was written since. Nothing is wrong with the batch: after another question it may be written.
    #[error(
        "{at}: nobody has asked the coordinator of the transaction of producer {producer_id} since the one before ended here; send the batch again"
    )]
    Unverified {
        /// Partition.
        at: TopicPartition,
        /// Producer.
        producer_id: i64,
    },
    /// The batch has the sequences of one of a transaction that has ended.
    #[error(
        "{at}: producer {producer_id} used sequence {found} in a transaction that has ended; abort this one and go on with a new epoch"
    )]
    SequencesOfEndedTxn {
        /// Partition.
        at: TopicPartition,
        /// Producer.
        producer_id: i64,
        /// Its first sequence.
        found: i32,
    },
    /// A newer transaction coordinator has written a marker already.
    #[error(
        "{at}: a marker for producer {producer_id} from coordinator epoch {found}, but {current} is known; it was fenced"
    )]
    TransactionCoordinatorFenced {
        /// Partition.
        at: TopicPartition,
        /// Producer.
        producer_id: i64,
        /// Epoch of the coordinator that writes.
        found: i32,
        /// Newest epoch seen.
        current: i32,
    },
    /// The batch is larger than `max.message.bytes`.
    #[error(
        "{at}: a batch of {size} bytes exceeds the limit of {limit}; send smaller batches or raise max.message.bytes"
    )]
    RecordTooLarge {
        /// Partition.
        at: TopicPartition,
        /// Bytes of the batch.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The batch is allowed, but no segment can hold it.
    #[error(
        "{at}: a batch of {size} bytes does not fit a segment of {limit}; send smaller batches or raise segment.bytes"
    )]
    LargerThanSegment {
        /// Partition.
        at: TopicPartition,
        /// Bytes of the batch.
        size: usize,
        /// Bytes of a segment.
        limit: usize,
    },
    /// A timestamp lies outside `message.timestamp.{before,after}.max.ms`.
    #[error("{at}: timestamp {timestamp_ms} is not within [{earliest_ms}, {latest_ms}]")]
    InvalidTimestamp {
        /// Partition.
        at: TopicPartition,
        /// Timestamp of the batch.
        timestamp_ms: i64,
        /// Smallest accepted.
        earliest_ms: i64,
        /// Largest accepted.
        latest_ms: i64,
    },
    /// The topic is a copy of another cluster's, to which only a mirror writes.
    #[error("{at}: the topic is a copy of {source_id}, so only 'pylog mirror', or 'pylog archive import' for a file, writes to it; write to the original, or end the copy: pylog mirror promote {}", at.topic)]
    MirrorOnly {
        /// Partition.
        at: TopicPartition,
        /// The cluster.
        source_id: String,
    },
    /// A mirror of another cluster writes to the topic than the topic says, or the topic is no mirror.
    #[error("{at}: the topic's mirror.source is {known:?}, so it takes no batches of cluster {given:?}")]
    OtherSource {
        /// Partition.
        at: TopicPartition,
        /// The topic's setting.
        known: String,
        /// Where the batches are from.
        given: String,
    },
    /// The bytes are not one v2 batch.
    #[error("{at}: not a record batch: {reason}")]
    InvalidBatch {
        /// Partition.
        at: TopicPartition,
        /// What is wrong.
        reason: String,
    },
    /// There is no such partition (any more).
    #[error("{at} is not in this data directory")]
    NotFound {
        /// Partition.
        at: TopicPartition,
    },
    /// The topic name cannot be a directory name.
    #[error("topic name {name:?} is not allowed: use 1 to 249 of a-z A-Z 0-9 . _ -")]
    InvalidTopic {
        /// The name.
        name: String,
    },
}

impl StorageError {
    /// The partition that it is about, when it knows.
    pub fn topic_partition(&self) -> Option<&TopicPartition> {
        match self {
            Self::OffsetOutOfRange { at, .. }
            | Self::Corrupt { at, .. }
            | Self::ChangedWhileStopped { at, .. }
            | Self::DiskFull { at, .. }
            | Self::OutOfFiles { at, .. }
            | Self::Poisoned { at, .. }
            | Self::Closed { at, .. }
            | Self::NotLeader { at, .. }
            | Self::NotFollower { at, .. }
            | Self::OutOfOrderSequence { at, .. }
            | Self::InvalidProducerEpoch { at, .. }
            | Self::InvalidTxnState { at, .. }
            | Self::Unverified { at, .. }
            | Self::SequencesOfEndedTxn { at, .. }
            | Self::TransactionCoordinatorFenced { at, .. }
            | Self::RecordTooLarge { at, .. }
            | Self::LargerThanSegment { at, .. }
            | Self::InvalidTimestamp { at, .. }
            | Self::MirrorOnly { at, .. }
            | Self::OtherSource { at, .. }
            | Self::InvalidBatch { at, .. }
            | Self::NotFound { at, .. } => Some(at),
            Self::Io { .. }
            | Self::Locked { .. }
            | Self::Mismatch { .. }
            | Self::Malformed { .. }
            | Self::InvalidTopic { .. } => None,
        }
    }

    /// What `cause` means to a log: a want of space or of descriptors, which passes, or an [`StorageError::Io`].
    pub(super) fn of_io(at: &TopicPartition, action: &'static str, file: &Path, cause: &io::Error) -> Self {
        let (at, path) = (|| at.clone(), || file.to_path_buf());
        match Want::of(cause) {
            Some(Want::Space) => Self::DiskFull { at: at(), file: path() },
            Some(Want::Files) => Self::OutOfFiles { at: at(), file: path() },
            None => Self::io(action, file, cause),
        }
    }

    /// Whether it is a want that passes ([`Want`]): the log is as it was, and can be used again.
    pub(super) fn passes(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::OutOfFiles { .. })
    }

    /// An [`StorageError::Io`] of `cause`.
    pub(super) fn io(action: &'static str, file: &Path, cause: &io::Error) -> Self {
        Self::Io { action, file: file.to_path_buf(), kind: cause.kind(), reason: cause.to_string() }
    }
}

/// Shorthand of this crate.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Something that the machine lacks for a while: the log is as it was, and can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// No space (or quota) is left. What was being written may be there in part.
    Space,
    /// This process, or the machine, has no file descriptor left: a file could not be opened, so nothing was written.
    Files,
}

impl Want {
    /// The want that is the cause of an error.
    pub fn of(cause: &io::Error) -> Option<Self> {
        match (cause.kind(), cause.raw_os_error()) {
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => Some(Self::Space),
            (_, Some(libc::EMFILE | libc::ENFILE)) => Some(Self::Files),
            _ => None,
        }
    }
}
