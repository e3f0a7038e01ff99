//! The small values that go in and out of a log.
use std::sync::Arc;

use super::disk::DiskFile;

/// What the caller of an append knows and the batch does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendOptions {
    /// Epoch of the leader that appends; written into the batch.
    pub leader_epoch: i32,
    /// The append time, milliseconds since the epoch; `None`: the log's clock.
    pub now_ms: Option<i64>,
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
    /// First byte.
    pub position: u64,
    /// Bytes; 0 when there is nothing to read yet.
    pub len: usize,
    /// Where to go on reading: one past the last record of the slice.
    pub next_offset: i64,
    /// The log's offsets when it was read.
    pub offsets: Offsets,
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
}

impl std::fmt::Debug for LogSlice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSlice")
            .field("position", &self.position)
            .field("len", &self.len)
            .field("next_offset", &self.next_offset)
            .field("offsets", &self.offsets)
            .finish_non_exhaustive()
    }
}

/// What recovery cut from a log after an unclean stop: bytes behind the recovery point that are not whole batches, and
/// all behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutTail {
    /// Where the log ends now; the first offset that may have been lost.
    pub offset: i64,
    /// Bytes that were removed.
    pub bytes: u64,
    /// What was wrong, and in which file.
    pub reason: String,
}
