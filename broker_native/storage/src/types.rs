//! The small values that go in and out of a log.
use super::error::TopicPartition;
use std::sync::Arc;

use super::disk::DiskFile;
use super::scan::{Found, Scanner};
use pylog_record::control::EndTxn;
use pylog_record::header::BatchHeader;

/// The writer of a batch, which decides what is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// A producer: epoch, sequence, and for the first batch of a transaction a [`Verification`].
    #[default]
    Client,
    /// A coordinator of this broker, which knows the transaction itself: the epoch only. Such batches have no sequence.
    Coordinator,
}

/// What the caller of an append knows and the batch does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppendOptions {
    /// Epoch of the leader that appends; written into the batch.
    pub leader_epoch: i32,
    /// The append time, milliseconds since the epoch; `None`: the log's clock.
    pub now_ms: Option<i64>,
    /// The writer.
    pub origin: Origin,
    /// That the transaction coordinator knows of the transaction that the batch begins here.
    pub verified: Option<Verification>,
    /// Smallest timestamp of the records, milliseconds since the epoch; `None`: the batch's base timestamp.
    pub min_timestamp: Option<i64>,
}

impl AppendOptions {
    /// Those of a producer's batch that begins no transaction.
    pub fn client(leader_epoch: i32) -> Self {
        Self { leader_epoch, ..Self::default() }
    }

    /// Those of a coordinator of this broker.
    pub fn coordinator(leader_epoch: i32) -> Self {
        Self { leader_epoch, origin: Origin::Coordinator, ..Self::default() }
    }
}

/// Stands for one question to the transaction coordinator, made by [`super::PartitionLog::begin_verification`] before
/// it is asked. It is worth something until a marker or a batch of the producer's transaction is written: an answer
/// about an earlier transaction does not let a late batch into a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification(pub(super) u64);

/// What the transaction coordinator writes into a partition at the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxnMarker {
    /// Whose transaction.
    pub producer_id: i64,
    /// Epoch that fences all before it.
    pub producer_epoch: i16,
    /// How it ended.
    pub marker: pylog_record::control::Marker,
    /// Epoch of the coordinator.
    pub coordinator_epoch: i32,
    /// `transaction.version` of the transaction. From 2 on each end bumps the epoch, so that of a marker must be larger
    /// than that of the transaction's batches (KIP-1228).
    pub transaction_version: i16,
}

impl TxnMarker {
    /// What is written into the control record.
    pub fn end(&self) -> EndTxn {
        EndTxn { marker: self.marker, coordinator_epoch: self.coordinator_epoch }
    }
}

/// A transaction that was aborted, as an entry of the `.txnindex` has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AbortedTxn {
    /// Whose.
    pub producer_id: i64,
    /// Its first offset in the partition.
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
    /// The last stable offset once the marker was written: no transaction that ends later begins before it.
    pub last_stable_offset: i64,
}

/// What a log knows of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerInfo {
    /// Which.
    pub producer_id: i64,
    /// Newest epoch that wrote.
    pub producer_epoch: i16,
    /// Sequence of its last record, -1 for none in this epoch.
    pub last_sequence: i32,
    /// Timestamp of its last batch or marker, milliseconds since the epoch.
    pub last_timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker, -1 for none.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub txn_first_offset: Option<i64>,
}

/// Where a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record; what [`super::PartitionLog::wait_durable`] wants.
    pub last_offset: i64,
    /// Milliseconds since the epoch, -1 when the producer's timestamps count.
    pub log_append_time_ms: i64,
    /// First readable offset of the log.
    pub log_start_offset: i64,
    /// An idempotent producer sent it again: the offsets are those of the first time, nothing was written.
    pub duplicate: bool,
}

/// How far a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadUpTo {
    /// What is acknowledged (`read_uncommitted` consumers).
    HighWatermark,
    /// What is acknowledged and in no open transaction (`read_committed` consumers).
    LastStable,
    /// All that is written (followers).
    LogEnd,
}

/// The offsets of a log at one moment; each range is `[log_start_offset, x)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// First readable offset.
    pub log_start_offset: i64,
    /// One past the last acknowledged record.
    pub high_watermark: i64,
    /// One past the last record that `read_committed` consumers see.
    pub last_stable_offset: i64,
    /// One past the last written record.
    pub log_end_offset: i64,
}

/// A run of whole batches in one file, for sendfile or `read_at`. The file stays readable for as long as this lives,
/// even when retention removes it meanwhile.
#[derive(Clone)]
pub struct LogSlice {
    /// The segment's file.
    pub file: Arc<dyn DiskFile>,
    /// The base offset of its segment.
    pub segment: i64,
    /// First byte.
    pub position: u64,
    /// Bytes; 0 when there is nothing to read yet.
    pub len: usize,
    /// Where to go on reading: one past the last record of the slice.
    pub next_offset: i64,
    /// The log's offsets when it was read.
    pub offsets: Offsets,
    /// The aborted transactions that a reader of [`ReadUpTo::LastStable`] must hide in this slice; empty for others.
    pub aborted: Vec<AbortedTxn>,
}

impl LogSlice {
    /// Copies the bytes out of the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        self.file.read_exact_at(&mut bytes, self.position)?;
        Ok(bytes)
    }

    /// The headers of its first batches, at most `most` of them; what is read of the file is little more than that.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` when the first batch is damaged.
    pub fn headers(&self, most: usize) -> std::io::Result<Vec<BatchHeader>> {
        let mut scanner = Scanner::headers(&*self.file, self.position, self.position + self.len as u64);
        let mut headers = Vec::new();
        while headers.len() < most {
            match scanner.step()? {
                Found::Batch(header) => headers.push(header),
                Found::Bad(damage) if headers.is_empty() => {
                    return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, damage.to_string()));
                }
                Found::End | Found::Bad(_) => break,
            }
        }
        Ok(headers)
    }
}

impl std::fmt::Debug for LogSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSlice")
            .field("position", &self.position)
            .field("len", &self.len)
            .field("next_offset", &self.next_offset)
            .field("offsets", &self.offsets)
            .field("aborted", &self.aborted)
            .finish_non_exhaustive()
    }
}

/// The limit of a topic's retention that records are beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionLimit {
    /// `retention.ms`.
    ForMs(i64),
    /// `retention.bytes`.
    Bytes(i64),
    /// `local.retention.ms`.
    LocalForMs(i64),
    /// `local.retention.bytes`.
    LocalBytes(i64),
    /// `retention.until.checkpointed.max.ms`.
    NeededForMs(i64),
    /// `retention.until.checkpointed.max.bytes`.
    NeededBytes(i64),
}

/// What retention removed from a log at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    /// Partition.
    pub at: TopicPartition,
    /// First offset that was removed, and the one that the log begins at now.
    pub offsets: std::ops::Range<i64>,
    /// Number of segments.
    pub segments: usize,
    /// Bytes of their `.log` files.
    pub bytes: u64,
    /// Why.
    pub limit: RetentionLimit,
}

/// What recovery cut from a log after an unclean stop: bytes behind the recovery point that are not whole batches, and
/// all behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutTail {
    /// Where the log ends now; the first offset that may have been lost.
    pub offset: i64,
    /// Bytes that were cut.
    pub bytes: u64,
    /// Bytes of them that are kept beside the log, as `.cut` files.
    pub kept: u64,
    /// What was wrong, and in which file.
    pub reason: String,
}
